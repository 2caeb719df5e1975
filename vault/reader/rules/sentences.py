"""Splitting of text into sentences: English and Chinese punctuation, line breaks, abbreviations. Pure."""

import re
from collections.abc import Iterator

LONGEST_SENTENCE = 500  # characters; a longer one is cut at a comma or a blank, so that a quote stays readable

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_CLOSING = "\"'\u201d\u2019\u300d\u300f\u300b\u3011\uff09)\\]"
_END = re.compile(
    # . ! ? … end a sentence before a blank or a CJK character. A row of them is tried once, from its first.
    rf"[.!?\u2026](?<![.!?\u2026].)[.!?\u2026]*+[{_CLOSING}]*+(?=\s|$|[{_CJK}])"
    rf"|[\u3002\uff01\uff1f\uff1b\uff61]++[{_CLOSING}]*+"  # the full-width ones always
)
_TITLES = "mr mrs ms dr prof st sr jr vs no fig approx dept gen col capt rev hon mt"
_SHORTENED = "etc inc ltd co corp e.g i.e a.m p.m u.s u.k u.n ph.d b.a m.a al cf"
_NEVER_LAST, _SELDOM_LAST = frozenset(_TITLES.split()), frozenset(_SHORTENED.split())
_BULLET = re.compile(r"^\s*(?:[-*\u2022\u00b7]\s+|[0-9]{1,3}[.)]\s+)?")
_LAST_WORD = re.compile(r"[\w.]+\Z")
_CLAUSE = re.compile(r"[,;:\s\u3001\uff0c\uff1a]")


def sentences(text: str) -> list[str]:
    """Return the sentences of `text` in order, trimmed, with their closing punctuation, each at most LONGEST_SENTENCE
    long.

    A line break always ends a sentence; bullets and numbers at the start of a line are left out.
    """
    found = (sentence for line in text.splitlines() for sentence in _split_line(_BULLET.sub("", line)))
    return [piece for sentence in found for piece in _cut_long_sentence(sentence.strip()) if piece]


def is_lead_in(sentence: str) -> bool:
    """Return whether a sentence announces the text after it, as in "here is what I did:"."""
    return sentence.rstrip().endswith((":", "\uff1a"))


def _split_line(line: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(line):
        if not _is_abbreviation(line, end):
            yield line[start : end.end()]
            start = end.end()
    yield line[start:]


def _is_abbreviation(line: str, end: re.Match[str]) -> bool:
    """Return whether the dot belongs to the word before it: `Dr. Lee`, `J. Smith`, `9 a.m. today`."""
    word = _LAST_WORD.search(line, max(0, end.start() - 12), end.start())
    if end[0] != "." or word is None:
        return False
    following = line[end.end() : end.end() + 2].strip()
    folded = word[0].casefold()
    initial = len(word[0]) == 1 and word[0].isupper() and word[0].isascii() and word[0] != "I"
    return (
        folded in _NEVER_LAST or initial or (folded in _SELDOM_LAST and not following[:1].isupper() and following != "")
    )


def _cut_long_sentence(sentence: str) -> Iterator[str]:
    while len(sentence) > LONGEST_SENTENCE:
        cuts = [cut.end() for cut in _CLAUSE.finditer(sentence, LONGEST_SENTENCE // 2, LONGEST_SENTENCE)]
        cut = cuts[-1] if cuts else LONGEST_SENTENCE
        yield sentence[:cut].strip()
        sentence = sentence[cut:].lstrip()
    yield sentence
