"""The entities that a text names, in English and Chinese, by patterns: names, titles, places, handles. Pure.

Only the form of a word is used: lower-case names are missed, and other capitalised words may be taken for names. Linear
in the length of the text, because no pattern nests repetitions.
"""

import re
from collections.abc import Iterator

from vault.lexicon.names import (
    AROUND_NAMES,
    BEFORE_PLACES,
    BEGINS_NAMES,
    CALLED,
    DOUBLE_SURNAMES,
    FOREIGN_NAMES,
    GIVEN,
    INSIDE_NAMES,
    LATIN_TITLES,
    ORDINARY,
    ORDINARY_ENDINGS,
    PLACE_ENDINGS,
    PLACES,
    SURNAMES,
    TITLES,
    TRANSLITERATED,
)
from vault.lexicon.normal import normal_form
from vault.lexicon.tokens import query_terms
from vault.lexicon.words import DULL_WORDS, QUESTION_WORDS, STOP_WORDS

MOST_ENTITIES = 32  # of one text
LONGEST_TITLE = 60  # characters between quotation marks
LONGEST_NAME = 6  # words

_KNOWN = STOP_WORDS | DULL_WORDS | QUESTION_WORDS | ORDINARY
_HAN = "\u4e00-\u9fff"
_BLANK = " ; "  # where a title stood: it is no part of the names around it
_HANDLE = re.compile(r"(?<![\w.@])@[A-Za-z0-9_]{2,30}")
_QUOTED = re.compile(
    rf"《([^《》]{{1,{LONGEST_TITLE}}})》|『([^『』]{{1,{LONGEST_TITLE}}})』|「([^「」]{{1,{LONGEST_TITLE}}})」"
    rf"|“([^“”]{{2,{LONGEST_TITLE}}})”|(?<![\w\"])\"([^\"\n]{{2,{LONGEST_TITLE}}})\"(?!\w)"
)
_ARTICLE = re.compile(r"^(?:the|an?)\s+(?=\w)", re.IGNORECASE)
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f][\w\u00c0-\u024f]*(?:['’-][\w\u00c0-\u024f]+)*\.?|[&]|\d+")
_ENDS_SENTENCE = re.compile(r"[.!?:;\n\"“”(\[•*。！？]|--")
_HAN_LETTER = re.compile(f"[{_HAN}]")
_POSSESSIVE = re.compile(r"['’][sS]$")
_AROUND = f"{AROUND_NAMES}|[^{_HAN}]|$"
_PERSON = re.compile(
    rf"(?:(?<![{_HAN}])|(?<=[和与跟对给叫是让请把被找问與對給讓請]))"
    rf"((?:{DOUBLE_SURNAMES}|[{SURNAMES}])[{_HAN}]{{1,2}}?)(?=(?:{TITLES}|{_AROUND}))"
)
_TITLED = re.compile(rf"((?:{DOUBLE_SURNAMES}|[{SURNAMES}])(?:{TITLES}))|([{CALLED}][{SURNAMES}])(?=(?:{_AROUND}))")
_NAMED = re.compile(rf"(?<![{SURNAMES}])[小阿][{GIVEN}](?=(?:{_AROUND}|呢))|(?<!·)(?:{FOREIGN_NAMES})(?!·)")
_FOREIGN = re.compile(rf"[{TRANSLITERATED}]+(?:·[{TRANSLITERATED}]+)*")
_KNOWN_PLACE = re.compile(PLACES)
_PLACE = re.compile(rf"(?:(?<![{_HAN}])|(?:{BEFORE_PLACES}))([{_HAN}]{{2,4}}?(?:{PLACE_ENDINGS}))")


def entities(text: str) -> list[str]:
    """Return the entities of `text`, normalised (NFKC, case-folded, single blanks): at most MOST_ENTITIES, distinct."""
    folded = [" ".join(each.replace("’", "'").split()).casefold() for each in find_entities(text)]
    return list(dict.fromkeys([each for each in folded if len(each) > 1]))[:MOST_ENTITIES]


def find_entities(text: str) -> list[str]:
    """Return all entities of `text` as they are written in its NFKC form, distinct."""
    if text.isascii():
        normal, quoted = text, '"' in text
    else:
        normal, quoted = normal_form("NFKC", text), True
    found = [*_find_titles(normal)] if quoted else []
    if "@" in normal:
        found += _HANDLE.findall(normal)
    found += _find_names(_QUOTED.sub(_BLANK, normal) if quoted else normal)
    found += _find_chinese_names(normal)
    return list(dict.fromkeys([each for each in found if len(each) > 1]))


def find_asked_entities(question: str) -> list[str]:
    """Return the entities that a question may mean: its names, and each content word, since people type names in lower
    case.
    """
    normal = normal_form("NFKC", question)
    words = (word.removesuffix("'s") for word in _LATIN.findall(normal.casefold()))
    plain = [word for word in words if len(word) > 2 and not _is_ordinary(word) and query_terms(word)]
    return list(dict.fromkeys([*entities(question), *plain]))[:MOST_ENTITIES]


def _find_titles(text: str) -> Iterator[str]:
    """Yield the texts between quotation marks that begin like a title."""
    for match in _QUOTED.finditer(text):
        title = next(group for group in match.groups() if group).strip(" ,.!?，。！？")
        title = _ARTICLE.sub("", title)
        if title and (title[0].isupper() or title[0].isdigit() or _HAN_LETTER.match(title)):
            yield title


def _find_names(text: str) -> Iterator[str]:
    """Yield runs of capitalised words separated by single blanks, with small words inside them."""
    run: list[str] = []
    end = 0
    starts = True
    for match in _LATIN.finditer(text):
        word, begin = match[0], match.start()
        if run and (text[end:begin] != " " or len(run) >= LONGEST_NAME):
            yield from _finish_name(run, starts)
            run = []
        if word[0].isupper():
            if not run:
                starts = end == 0 or text[end - 1] in ".!?" or _ENDS_SENTENCE.search(text, end, begin) is not None
            run.append(word.rstrip("."))
        elif run and (word in INSIDE_NAMES or word.isdigit()):
            run.append(word.rstrip("."))
        elif run:
            yield from _finish_name(run, starts)
            run = []
        end = match.end()
        if run and word.endswith(".") and len(word) > 4:  # a full stop; `Dr.` and `J.` go on
            yield from _finish_name(run, starts)
            run = []
    if run:
        yield from _finish_name(run, starts)


def _finish_name(run: list[str], starts: bool) -> Iterator[str]:
    """Yield the name in a run, without small and ordinary words at its ends, and without the possessive."""
    words = [_POSSESSIVE.sub("", word) for word in run]
    while words and (words[-1] in INSIDE_NAMES or words[-1].isdigit() or _is_ordinary(words[-1])):
        words.pop()
    is_single = len(words) == 1 and starts
    while words and not _may_begin(words):
        words.pop(0)
    if words and not (is_single and words[0].casefold().endswith(ORDINARY_ENDINGS)):
        yield " ".join(words)


def _may_begin(words: list[str]) -> bool:
    """Return whether a name may begin with its first word: `New York` keeps it, `Hey Ann` and `Dr John` do not."""
    folded = words[0].casefold()
    if folded in BEGINS_NAMES and len(words) > 1:
        return True
    return not (_is_ordinary(folded) or folded in LATIN_TITLES or folded.isdigit())


def _is_ordinary(word: str) -> bool:
    folded = word.casefold().replace("’", "'")
    return len(folded) < 2 or folded in _KNOWN or folded.split("'")[0] in _KNOWN or folded.endswith("n't")


def _find_chinese_names(text: str) -> Iterator[str]:
    if text.isascii():
        return
    for pattern in (_PERSON, _TITLED, _PLACE):
        for match in pattern.finditer(text):
            yield next(group for group in match.groups() if group)
    yield from (match[0] for match in _KNOWN_PLACE.finditer(text))
    yield from (match[0] for match in _NAMED.finditer(text))
    yield from (match[0] for match in _FOREIGN.finditer(text) if len(match[0]) > 2)
