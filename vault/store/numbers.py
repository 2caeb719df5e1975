"""Version numbers of packs, and version ranges of subscribers (Semantic Versioning 2.0.0). Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from governance.errors import FieldError, Invalid

LARGEST_PART = 99_999
ANY = "*"


@dataclass(frozen=True, order=True)
class Number:
    """A version `major.minor.patch`, without pre-release and build metadata, ordered by precedence."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def number_read(text: str, *, field: str = "version") -> Number:
    """Parse a version number. Raises Invalid unless it is three whole numbers such as 1.4.0."""
    parts = text.split(".")
    if len(parts) != 3 or not all(_is_part(part) for part in parts):
        raise Invalid(errors=[FieldError(field, "three numbers such as 1.4.0 are needed")])
    return Number(*map(int, parts))


@dataclass(frozen=True)
class Range:
    """A range of versions. text: `*` any; `^1.2.0` below the next major; `~1.2.0` below the next minor; `1.2.0` only
    this one."""

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
        """Return the newest of `numbers` in the range, or None."""
        return max((number for number in numbers if self.allows(number)), default=None)


def range_read(text: str) -> Range:
    """Read a range of version numbers. Raises Invalid."""
    if text != ANY:
        number_read(text[1:] if text[:1] in {"^", "~"} else text, field="range")
    return Range(text)


def _is_part(text: str) -> bool:
    plain = text.isascii() and text.isdecimal() and len(text) <= len(str(LARGEST_PART))
    return plain and (text == "0" or not text.startswith("0"))
