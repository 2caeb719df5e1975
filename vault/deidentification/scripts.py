"""Words of scripts for which there are no rules for names: all but Latin and Chinese. Pure, linear in the text."""

import re
from collections.abc import Iterator

LONGEST_UNIT = 4  # letters of a word with a sign, as in μmol
LONGEST = 100  # characters of a range
_LATIN = (
    "A-Za-z\u00aa-\u00be\u00c0-\u02ff\u1d00-\u1d25\u1d2c-\u1d5c\u1d62-\u1d65\u1d6b-\u1d77\u1d79-\u1dbe\u1e00-\u1eff"
    "\u2070-\u209c\u2100-\u218f\u2460-\u24ff\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab64\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a"
    "\U0001d400-\U0001d7ff"
)
_HAN = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3220-\u33ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs and accents, which are no letters to `\w`.
_MARK = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0711-\u074a\u07a6-\u07b0"
    "\u0816-\u082d\u0859-\u085b\u08d3-\u0963\u0971-\u0e3a\u0e40-\u0e4e\u0e81-\u109d\u135d-\u135f\u1712-\u1734\u1752-\u1773\u17b4-\u17d3"
    "\u180b-\u180d\u18a9-\u1cff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff\u2de0-\u2dff\u302a-\u302f\u3099\u309a\ua66f-\ua67d"
    "\ua802-\ua827\ua880-\ua8c5\ua8e0-\ua953\ua980-\ua9c0\uaa29-\uaaf6\uabe3-\uabea\ufb1e\ufe00-\ufe0f\ufe20-\ufe2f"
    "\U00010a01-\U00010a3f\U00011000-\U000116b7"
)
_OTHER = re.compile(rf"[^\W\d_{_LATIN}{_HAN}]")
_GREEK_SIGN = re.compile("[\u0370-\u03ff]")  # alone a sign, as in μg
_WORD = rf"(?:[^\W\d_]|[{_MARK}])"
_RUN = re.compile(rf"{_WORD}{{1,{LONGEST}}}")
_BETWEEN = re.compile("[ \u00a0\u3000\u30fb\u00b7'’.\u05be\u05f3\u05f4-]{1,2}")


def find_other_scripts(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of whole words with a letter that is neither Latin nor Chinese; neighbours are joined.

    Chinese characters beside such a letter, as in Japanese, belong to its word. A range has some LONGEST characters.
    """
    if text.isascii():
        return
    start = end = -1
    for run in _RUN.finditer(text):
        letters = _OTHER.findall(run[0])
        if not letters or (len(letters) == 1 and len(run[0]) <= LONGEST_UNIT and _GREEK_SIGN.match(letters[0])):
            continue
        if start >= 0 and run.end() - start <= LONGEST and _BETWEEN.fullmatch(text, end, run.start()):
            end = run.end()
            continue
        if start >= 0:
            yield start, end
        start, end = run.span()
    if start >= 0:
        yield start, end
