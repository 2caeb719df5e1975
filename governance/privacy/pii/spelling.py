"""One spelling for digits and Latin letters: full-width ones (１３８), styled ones, and none that cannot be seen.

The rules read the folded text; `Folded.back` says where a place of it lies in the original.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

# What NFKC makes a letter, a digit or a mark of numbers and addresses of, and characters without width.
_INVISIBLE = "\u00ad\u200b-\u200f\u2060\ufeff"
_FOLDABLE = re.compile(f"[{_INVISIBLE}\uff0b\uff0d-\uff19\uff20-\uff3a\uff3f\uff41-\uff5a\U0001d400-\U0001d7ff]")
_DROPPED = re.compile(f"[{_INVISIBLE}]")


@dataclass(frozen=True)
class Folded:
    """`origins[i]`: where text[i] stands in the original; None: at the same place."""

    text: str
    origins: Sequence[int] | None = None

    def original_range(self, start: int, end: int) -> tuple[int, int]:
        """The same stretch of the original text."""
        if self.origins is None:
            return start, end
        return self.origins[start], self.origins[end - 1] + 1


def fold(text: str) -> Folded:
    """Return `text` in the spelling that the rules expect. Most texts need no folding, and cost one look."""
    if text.isascii() or not _FOLDABLE.search(text):
        return Folded(text)
    characters: list[str] = []
    origins: list[int] = []
    for place, character in enumerate(text):
        spelt = _spelt(character) if _FOLDABLE.match(character) else character
        characters.append(spelt)
        origins += [place] * len(spelt)
    return Folded("".join(characters), origins)


def _spelt(character: str) -> str:
    return "" if _DROPPED.match(character) else unicodedata.normalize("NFKC", character)
