"""Unicode normalisation in time linear in the text. Pure."""

import re
import unicodedata
from typing import Literal

# Consecutive combining marks are sorted, in quadratic time: Unicode's stream-safe format (UAX #15, 13) allows no more
# than this, and no language needs more.
MOST_MARKS = 30
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u302a-\u302f\u3099\u309a\ufe20-\ufe2f"
)
# A Korean syllable becomes three letters, a ligature up to eighteen: the result of a text of only these is cut.
MOST_GROWTH = 3
SHORT = 1_000  # characters, which may become as many as they do
_ACCENTS = re.compile(r"(?<=[A-Za-z])[\u0300-\u036f]+")
_TOO_MANY = re.compile(f"([{_MARKS}]{{{MOST_MARKS}}})[{_MARKS}]+")


def normal_form(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Normalise as unicodedata.normalize, in bounded time.

    At most MOST_MARKS marks on a letter are kept, and a text longer than SHORT grows at most MOST_GROWTH times.
    """
    if text.isascii():
        return text
    normal = unicodedata.normalize(form, _TOO_MANY.sub(r"\1", text))
    return normal[: MOST_GROWTH * max(len(text), SHORT)]


def remove_accents(text: str) -> str:
    """Return `text` in NFC, with Latin letters without accents, because people often omit these in names."""
    return text if text.isascii() else normal_form("NFC", _ACCENTS.sub("", normal_form("NFD", text)))


def fold_name(name: str) -> str:
    """Return a name without differences of width, case and outer blanks."""
    return normal_form("NFKC", name).strip().casefold()
