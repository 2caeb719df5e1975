"""Index terms of text, and word statistics that need no model. Pure; linear in the text's length."""

import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain
from operator import itemgetter

import Stemmer  # type: ignore[import-not-found]

from vault.lexicon.days import days_of
from vault.lexicon.normal import normal_form
from vault.lexicon.segments import pieces
from vault.lexicon.words import (
    CHINESE_QUESTION_WORDS,
    DULL_WORDS,
    FUNCTION_CHARACTERS,
    FUNCTION_WORDS,
    QUESTION_PHRASES,
    QUESTION_WORDS,
    STOP_WORDS,
)

LONGEST_TERM = 64  # characters; what is longer is no word, and its beginning tells it from others
KEYWORD_WORDS = 3
REMEMBERED = 2**14  # words, of which a process keeps what was found out about them: most of a text are frequent ones
HAN_PER_WORD = 1.5  # characters of a Chinese word, on average: makes its count comparable with that of Latin words

_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u3096\u309d-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
_UNSPACED = f"{_HAN}{_KANA}{_HANGUL}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # also Thai, Lao, Burmese, Khmer
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff"  # accents and vowel signs
SPACED = rf"(?:[^\W_{_UNSPACED}]|[{_MARKS}])"
# Emoji and older pictograms, without plain arrows and shapes; modifiers and joiners are no emoji themselves.
_SIGNS = "\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u2600-\u27bf\u2b1b\u2b1c\u2b50\u2b55"
_PICTURES = f"{_SIGNS}\U0001f000-\U0001f3fa\U0001f400-\U0001faff"  # between them: colours of skin
_EMOJI = f"[\U0001f1e6-\U0001f1ff]{{2}}|[{_PICTURES}]"  # a flag is two letters of its country
_TOKENS = re.compile(rf"(?P<run>[{_UNSPACED}]+)|(?P<word>{SPACED}+(?:'{SPACED}+)*)|(?P<emoji>{_EMOJI})")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_HYPHENED = re.compile(r"(?<![a-z0-9-])[a-z][a-z0-9]*(?:-[a-z0-9]+){1,3}(?![a-z0-9-])")
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_ACCENTS = re.compile(r"(?<=[a-z])[\u0300-\u036f]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_ASCII_TOKENS = re.compile(r"[a-z0-9]+(?:'[a-z0-9]+)*")  # what `_TOKENS` finds in lower-case ASCII
_QUESTION_PHRASES = re.compile(QUESTION_PHRASES)
_CHINESE_QUESTION = re.compile(CHINESE_QUESTION_WORDS)
_FUNCTION_WORDS = re.compile(FUNCTION_WORDS)
_LETTER = re.compile("[A-Za-z]")
_UNSPACED_LETTER = re.compile(f"[{_HAN}{_KANA}{_HANGUL}]")
_HAN_RUN, _KANA_RUN, _HANGUL_RUN = (re.compile(f"[{script}]+") for script in (_HAN, _KANA, _HANGUL))
_LATIN_RUN = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_CJK_RUN = re.compile(f"[{_HAN}{_KANA}{_HANGUL}]+")
_PHRASE_WORD = re.compile(rf"{SPACED}+(?:[-']{SPACED}+)*")
_ENDINGS = frozenset({"s", "t", "re", "ve", "ll", "d", "m"})

_thread = threading.local()  # a Stemmer must not be used by two threads at once


def terms(text: str) -> list[str]:
    """Return the index terms of `text` in order, with repetitions (BM25 counts them). May be empty.

    English words are stemmed and stop words dropped; runs of Chinese, Japanese and Korean give their overlapping
    character bigrams (a run of one gives that character); words of other scripts are unchanged. Each emoji is a term
    without its skin tone, and a joined sequence gives each of its emoji. Hyphenated words also give a joined term, and
    days of a year a term at the end.
    """
    normal = _normal(text)
    if not normal.isascii():
        return [*_terms(normal), *_join_hyphenated(normal), *days_of(normal)]
    tokens = _ASCII_TOKENS.findall(normal)
    found = chain.from_iterable(map(_known_terms if _are_short(tokens) else _token_terms, tokens))
    return [*found, *_join_hyphenated(normal), *days_of(normal)]


def day_terms(text: str) -> list[str]:
    """Return the terms for the days of a year that `text` names (vault/lexicon/days.py)."""
    return list(days_of(_normal(text)))


def single_characters(text: str) -> list[str]:
    """Return each character of the runs that `terms` cuts into bigrams, so that a query of one character finds them."""
    if text.isascii():
        return []
    return [
        character
        for match in _TOKENS.finditer(_normal(text))
        if match["run"] and len(match["run"]) > 1
        for character in match["run"]
        if character not in FUNCTION_CHARACTERS
    ]


def query_terms(text: str) -> list[str]:
    """Return the terms of a question: those of `terms` without question words, unless nothing else is left.

    Bigrams across two known Chinese words are left out.
    """
    if kept := content_terms(text):
        return kept
    normal = _normal(text)
    return list(_terms(normal, pieces)) or list(_terms(normal))


def content_terms(text: str) -> list[str]:
    """Return the terms of `query_terms`, or none if the text has only question words."""
    asked = _CHINESE_QUESTION.sub(" ", _QUESTION_PHRASES.sub(" ", _normal(text)))
    return [term for term in (*_terms(asked, pieces), *_join_hyphenated(asked)) if term not in _QUESTION_TERMS]


def split_by_spacing(text: str) -> tuple[list[str], list[str]]:
    """Return the runs of `text` in scripts without spaces between words (Chinese, Japanese, Thai …), and the others."""
    return _UNSPACED_RUN.findall(text), [run for run in _UNSPACED_RUN.split(text) if run]


def language_of(text: str) -> str:
    """Return `zh`, `ja`, `ko` or `en` (any Latin script) by the letters in it; `und` without such letters."""
    if text.isascii():
        return "en" if _LETTER.search(text) else "und"
    kana, hangul = _count(_KANA_RUN, text), _count(_HANGUL_RUN, text)
    han, latin = _count(_HAN_RUN, text), len(_LATIN_RUN.findall(text))
    asian = (han + kana + hangul) / HAN_PER_WORD
    if not asian and not latin:
        return "und"
    if asian < latin:
        return "en"
    if kana * 5 >= han + kana:  # Japanese needs kana in every sentence; a Chinese text may quote some
        return "ja" if kana >= hangul else "ko"
    return "ko" if hangul > han else "zh"


def keywords(text: str, limit: int = 8) -> list[str]:
    """Return up to `limit` words and short phrases that describe `text`, in its own spelling, best first.

    Latin script: phrases between stop words, scored by degree over frequency (RAKE, Rose et al. 2010). Chinese: text
    between function words, and its repeated pieces, scored by frequency. Ties: first in the text first.
    """
    if text.isascii():
        found = _latin_keywords(text)
    else:
        text = normal_form("NFKC", text).replace("\u2019", "'")
        found = [*_latin_keywords(text), *_chinese_keywords(text)]
    found.sort(key=itemgetter(0, 1))
    chosen: list[str] = []
    plain = folded = "\n"  # those that were chosen, to look for another in them
    for _, _, keyword in found:
        if len(chosen) == limit:
            break
        spaced = f" {keyword.casefold()} "
        if keyword in plain if _is_unspaced(keyword) else spaced in folded:
            continue
        chosen.append(keyword)
        plain += f"{keyword}\n"
        folded += f"{spaced}\n"
    return chosen


def _normal(text: str) -> str:
    """Return `text` in NFKC, case-folded, without Latin accents and thousands separators, with straight apostrophes."""
    if text.isascii():
        return _THOUSANDS.sub("", text.lower())
    folded = normal_form("NFKD", text).casefold().replace("\u2019", "'")
    return _THOUSANDS.sub("", normal_form("NFKC", _ACCENTS.sub("", folded)))


def _terms(normal: str, cut: Callable[[str], list[str]] = lambda run: [run]) -> Iterator[str]:
    for match in _TOKENS.finditer(normal):
        if match["run"]:
            for piece in cut(match["run"]):
                yield from _bigrams(piece)
        elif match["emoji"]:
            yield match["emoji"]
        else:
            yield from _token_terms(match["word"])


def _join_hyphenated(normal: str) -> Iterator[str]:
    """Yield hyphenated words without the hyphen: `wifi` matches Wi-Fi, and `e-mail` matches email."""
    if "-" in normal:
        yield from (_stem(word.replace("-", "")) for word in _HYPHENED.findall(normal))


def _token_terms(token: str) -> tuple[str, ...]:
    return tuple(_stem(word) for word in _words(token) if word not in STOP_WORDS)


_known_terms = lru_cache(REMEMBERED)(_token_terms)


def _are_short(tokens: list[str]) -> bool:
    """Return whether every token is short enough for the cache."""
    return not tokens or len(max(tokens, key=len)) <= LONGEST_TERM


def _bigrams(run: str) -> Iterator[str]:
    pairs = [run[at : at + 2] for at in range(len(run) - 1)] or [run]
    return (pair for pair in pairs if not FUNCTION_CHARACTERS.issuperset(pair))


def _words(token: str) -> list[str]:
    """Return a token cut at its apostrophes, without English endings: `caroline's`, `don't`, `o'brien`."""
    if token.endswith("n't"):
        return []  # an auxiliary, always
    head, *rest = token.split("'")
    return [head, *(part for part in rest if part not in _ENDINGS)]


def _stem(word: str) -> str:
    word = word[:LONGEST_TERM]
    if not _ASCII_WORD.fullmatch(word):
        return word
    if not hasattr(_thread, "stemmer"):
        _thread.stemmer = Stemmer.Stemmer("english")
    return str(_thread.stemmer.stemWord(word))


_QUESTION_TERMS = frozenset(_stem(word) for word in QUESTION_WORDS)


def _count(runs: re.Pattern[str], text: str) -> int:
    return sum(map(len, runs.findall(text)))


_Keyword = tuple[float, int, str]  # minus its score, where it stands first, itself: the best comes first


def _is_unspaced(text: str) -> bool:
    """Return whether the text has letters of a script without spaces between words."""
    return not text.isascii() and _UNSPACED_LETTER.search(text) is not None


def _latin_keywords(text: str) -> list[_Keyword]:
    """Return phrases, scored by the number of words that occur with each of their words."""
    first: dict[tuple[str, ...], tuple[int, str]] = {}
    frequency: dict[str, int] = defaultdict(int)
    degree: dict[str, int] = defaultdict(int)
    repeats: dict[tuple[str, ...], int] = defaultdict(int)
    for key, phrase, position in _phrases(text):
        first.setdefault(key, (position, phrase))
        repeats[key] += 1
        size = len(key)
        for word in key:
            frequency[word] += 1
        for word in set(key) if size > 1 else key:
            degree[word] += size
    return [
        (-(sum([degree[word] / frequency[word] for word in key]) + repeats[key] - 1), *place)
        for key, place in first.items()
    ]


def _phrases(text: str) -> Iterator[tuple[tuple[str, ...], str, int]]:
    """Yield runs of up to KEYWORD_WORDS adjacent content words: folded, as written, and their position."""
    phrase: list[str] = []
    start = end = 0
    for match in _PHRASE_WORD.finditer(text):
        word, begin = match[0], match.start()
        word = word.removesuffix("'s")
        folded = _content_word(word) if len(word) <= LONGEST_TERM else ""
        if phrase and not (folded and len(phrase) < KEYWORD_WORDS and text[end:begin] == " "):
            yield tuple(phrase), text[start:end], start
            phrase = []
        if folded:
            start = start if phrase else begin
            phrase.append(folded)
        end = begin + len(word)
    if phrase:
        yield tuple(phrase), text[start:end], start


@lru_cache(REMEMBERED)
def _content_word(word: str) -> str:
    """Return the folded word if it is a content word, else an empty text."""
    folded = word.casefold()
    known = folded in STOP_WORDS or folded in DULL_WORDS or folded in QUESTION_WORDS
    return "" if known or len(word) < 2 or word.isdigit() or "'" in word else folded


def _chinese_keywords(text: str) -> list[_Keyword]:
    pieces: Counter[str] = Counter()
    positions: dict[str, int] = {}
    for run in _CJK_RUN.finditer(_CHINESE_QUESTION.sub(" ", text)):
        at = run.start()
        for chunk in _FUNCTION_WORDS.split(run[0]):
            for piece in _chunk_pieces(chunk):
                pieces[piece] += 1
                positions.setdefault(piece, at)
            at += len(chunk)
    return [(-count - len(piece) / 10, positions[piece], piece) for piece, count in pieces.items()]


def _chunk_pieces(chunk: str) -> list[str]:
    """Return a short chunk whole, as it is a word or two; of a long one, every second bigram."""
    if len(chunk) <= 5:
        return [chunk] if len(chunk) > 1 else []
    return [chunk[at : at + 2] for at in range(0, len(chunk) - 1, 2)]
