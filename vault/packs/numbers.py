"""Version numbers of packs and the ranges that subscribers follow (Semantic Versioning 2.0.0), pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from governance.errors import FieldError, Invalid

LARGEST_PART = 99_999
ANY = "*"


@dataclass(frozen=True, order=True)
class Number:
    """`major.minor.patch`, without pre-releases and build metadata. Ordered as precedence is."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def number_read(text: str, *, field: str = "version") -> Number:
    """Raises Invalid for anything but three whole numbers such as 1.4.0."""
    parts = text.split(".")
    if len(parts) != 3 or not all(_is_part(part) for part in parts):
        raise Invalid(errors=[FieldError(field, "three numbers such as 1.4.0 are needed")])
    return Number(*map(int, parts))


@dataclass(frozen=True)
class Range:
    """Versions that a subscriber takes. text: `*` any, `^1.2.0` up to the next major, `~1.2.0` up to the next minor,
    `1.2.0` that one."""

    text: str

    def allows(self, number: Number) -> bool:
        if self.text == ANY:
            return True
        mark = self.text[0]
        first = number_read(self.text.lstrip("^~"), field="range")
        if mark not in "^~":
            return number == first
        fixed = (number.major,) if mark == "^" else (number.major, number.minor)
        return number >= first and fixed == (first.major, first.minor)[: len(fixed)]

    def newest(self, numbers: Iterable[Number]) -> Number | None:
        """The newest of `numbers` in the range."""
        return max((number for number in numbers if self.allows(number)), default=None)


def range_read(text: str) -> Range:
    """Read a range of version numbers. Raises Invalid."""
    if text != ANY:
        number_read(text[1:] if text[:1] in {"^", "~"} else text, field="range")
    return Range(text)


def _is_part(text: str) -> bool:
    plain = text.isascii() and text.isdecimal() and len(text) <= len(str(LARGEST_PART))
    return plain and (text == "0" or not text.startswith("0"))
