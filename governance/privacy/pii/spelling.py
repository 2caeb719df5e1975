"""Normal spelling of digits and Latin letters: full-width (１３８) and styled ones are folded, invisible ones removed.

The rules read the folded text; `Folded.original_range` maps a range of it to the original.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

# Characters that NFKC turns into a letter, digit or mark of numbers and addresses, and characters without width.
_INVISIBLE = "\u00ad\u200b-\u200f\u2060\ufeff"
_FOLDABLE = re.compile(f"[{_INVISIBLE}\uff0b\uff0d-\uff19\uff20-\uff3a\uff3f\uff41-\uff5a\U0001d400-\U0001d7ff]")
_DROPPED = re.compile(f"[{_INVISIBLE}]")


@dataclass(frozen=True)
class Folded:
    """A folded text. `origins[i]`: the position of text[i] in the original; None if no position has changed."""

    text: str
    origins: Sequence[int] | None = None

    def original_range(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the original text that a range of the folded text comes from."""
        if self.origins is None:
            return start, end
        return self.origins[start], self.origins[end - 1] + 1


def fold(text: str) -> Folded:
    """Return `text` in the spelling that the rules expect. Most texts need no folding and cost one scan."""
    if text.isascii() or not _FOLDABLE.search(text):
        return Folded(text)
    characters: list[str] = []
    origins: list[int] = []
    for place, character in enumerate(text):
        spelt = _fold_character(character) if _FOLDABLE.match(character) else character
        characters.append(spelt)
        origins += [place] * len(spelt)
    return Folded("".join(characters), origins)


def _fold_character(character: str) -> str:
    return "" if _DROPPED.match(character) else unicodedata.normalize("NFKC", character)
