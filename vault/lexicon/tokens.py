"""Text to index terms, and the plain statistics over words that need no model. Pure; linear in the text's length."""

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import Stemmer  # type: ignore[import-not-found]

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
HAN_PER_WORD = 1.5  # characters of a Chinese word, on average: makes its count comparable with that of Latin words

_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u3096\u309d-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
_UNSPACED = f"{_HAN}{_KANA}{_HANGUL}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # also Thai, Lao, Burmese, Khmer
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff"  # accents and vowel signs
_WORD = rf"(?:[^\W_{_UNSPACED}]|[{_MARKS}])"
_TOKENS = re.compile(rf"(?P<run>[{_UNSPACED}]+)|(?P<word>{_WORD}+(?:'{_WORD}+)*)")
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_ACCENTS = re.compile(r"(?<=[a-z])[\u0300-\u036f]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_QUESTION_PHRASES = re.compile(QUESTION_PHRASES)
_CHINESE_QUESTION = re.compile(CHINESE_QUESTION_WORDS)
_FUNCTION_WORDS = re.compile(FUNCTION_WORDS)
_LETTER = re.compile("[A-Za-z]")
_UNSPACED_LETTER = re.compile(f"[{_HAN}{_KANA}{_HANGUL}]")
_PHRASE_WORD = re.compile(rf"{_WORD}+(?:[-']{_WORD}+)*")
_ENDINGS = frozenset({"s", "t", "re", "ve", "ll", "d", "m"})

_thread = threading.local()  # a Stemmer must not be used by two threads at once


def terms(text: str) -> list[str]:
    """The index terms of `text` in order, repeats kept (BM25 counts them). May be empty.

    English words are stemmed and stop words dropped; runs of Chinese, Japanese and Korean give their overlapping
    character bigrams (a run of one gives that character); words of other scripts are kept as they are.
    """
    return list(_terms(_normal(text)))


def single_characters(text: str) -> list[str]:
    """Each character of the runs that `terms` cuts into bigrams, so that a question of one character finds them."""
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
    """As `terms`, without the words that only make it a question, unless nothing else is in it.

    Pairs of Chinese characters that belong to two words are left out, as far as words are known.
    """
    normal = _normal(text)
    asked = _CHINESE_QUESTION.sub(" ", _QUESTION_PHRASES.sub(" ", normal))
    kept = [term for term in _terms(asked, pieces) if term not in _QUESTION_TERMS]
    return kept or list(_terms(normal, pieces)) or list(_terms(normal))


def language_of(text: str) -> str:
    """`zh`, `ja`, `ko` or `en` (any Latin script) by the letters in it; `und` when there are none of these."""
    if text.isascii():
        return "en" if _LETTER.search(text) else "und"
    kana, hangul = _count(_KANA, text), _count(_HANGUL, text)
    han, latin = _count(_HAN, text), len(re.findall(r"[A-Za-z\u00c0-\u024f]+", text))
    asian = (han + kana + hangul) / HAN_PER_WORD
    if not asian and not latin:
        return "und"
    if asian < latin:
        return "en"
    if kana * 5 >= han + kana:  # Japanese needs kana in every sentence; a Chinese text may quote some
        return "ja" if kana >= hangul else "ko"
    return "ko" if hangul > han else "zh"


def keywords(text: str, limit: int = 8) -> list[str]:
    """Up to `limit` words and short phrases that say what `text` is about, as they stand in it, best first.

    Latin script: phrases between stop words, scored by degree over frequency (RAKE, Rose et al. 2010). Chinese: what
    stands between function words, and repeated pieces of it, scored by frequency. Ties: first in the text first.
    """
    text = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    found = _latin_keywords(text) if text.isascii() else [*_latin_keywords(text), *_chinese_keywords(text)]
    chosen: list[str] = []
    for keyword in sorted(found, key=lambda each: (-each.score, each.position)):
        if len(chosen) < limit and not any(_is_part(keyword.text, other) for other in chosen):
            chosen.append(keyword.text)
    return chosen


def _normal(text: str) -> str:
    """NFKC, case-folded, Latin accents and thousands separators removed, apostrophes straight."""
    if text.isascii():
        return _THOUSANDS.sub("", text.lower())
    folded = unicodedata.normalize("NFKD", text).casefold().replace("\u2019", "'")
    return _THOUSANDS.sub("", unicodedata.normalize("NFKC", _ACCENTS.sub("", folded)))


def _terms(normal: str, cut: Callable[[str], list[str]] = lambda run: [run]) -> Iterator[str]:
    for match in _TOKENS.finditer(normal):
        if match["run"]:
            for piece in cut(match["run"]):
                yield from _bigrams(piece)
        else:
            yield from (_stem(word) for word in _words(match["word"]) if word not in STOP_WORDS)


def _bigrams(run: str) -> Iterator[str]:
    pairs = [run[at : at + 2] for at in range(len(run) - 1)] or [run]
    return (pair for pair in pairs if not FUNCTION_CHARACTERS.issuperset(pair))


def _words(token: str) -> list[str]:
    """A token cut at its apostrophes, without English endings: `caroline's`, `don't`, `o'brien`."""
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


def _count(characters: str, text: str) -> int:
    return sum(len(run) for run in re.findall(f"[{characters}]+", text))


@dataclass(frozen=True, slots=True)
class _Keyword:
    text: str
    score: float
    position: int


def _is_part(part: str, whole: str) -> bool:
    """Whether `whole` says `part` already: as some of its words, or, where nothing is spaced, of its characters."""
    if not part.isascii() and _UNSPACED_LETTER.search(part):
        return part in whole
    return f" {part.casefold()} " in f" {whole.casefold()} "


def _latin_keywords(text: str) -> list[_Keyword]:
    phrases = list(_phrases(text))
    frequency = Counter(word.casefold() for phrase, _ in phrases for word in phrase)
    degree: Counter[str] = Counter()
    for phrase, _ in phrases:
        degree.update({word.casefold(): len(phrase) for word in phrase})
    repeats = Counter(tuple(word.casefold() for word in phrase) for phrase, _ in phrases)
    first: dict[tuple[str, ...], _Keyword] = {}
    for phrase, position in phrases:
        key = tuple(word.casefold() for word in phrase)
        score = sum(degree[word] / frequency[word] for word in key) + repeats[key] - 1
        first.setdefault(key, _Keyword(" ".join(phrase), score, position))
    return list(first.values())


def _phrases(text: str) -> Iterator[tuple[list[str], int]]:
    """Runs of up to KEYWORD_WORDS content words with nothing but a blank between them, and where each begins."""
    phrase: list[str] = []
    start = end = 0
    for match in _PHRASE_WORD.finditer(text):
        word = match[0].removesuffix("'s")
        fits = phrase and text[end : match.start()] == " " and len(phrase) < KEYWORD_WORDS
        if phrase and (not fits or _is_dull(word)):
            yield phrase, start
            phrase = []
        if not _is_dull(word):
            start = start if phrase else match.start()
            phrase.append(word)
        end = match.start() + len(word)
    if phrase:
        yield phrase, start


def _is_dull(word: str) -> bool:
    folded = word.casefold()
    known = folded in STOP_WORDS or folded in DULL_WORDS or folded in QUESTION_WORDS
    return known or not 2 <= len(word) <= LONGEST_TERM or word.isdigit() or "'" in word


def _chinese_keywords(text: str) -> list[_Keyword]:
    pieces: Counter[str] = Counter()
    positions: dict[str, int] = {}
    for run in re.finditer(f"[{_HAN}{_KANA}{_HANGUL}]+", _CHINESE_QUESTION.sub(" ", text)):
        at = run.start()
        for chunk in _FUNCTION_WORDS.split(run[0]):
            for piece in _chunk_pieces(chunk):
                pieces[piece] += 1
                positions.setdefault(piece, at)
            at += len(chunk)
    return [_Keyword(piece, count + len(piece) / 10, positions[piece]) for piece, count in pieces.items()]


def _chunk_pieces(chunk: str) -> list[str]:
    """A short chunk is a word or two and stands whole; of a long one, every second bigram."""
    if len(chunk) <= 5:
        return [chunk] if len(chunk) > 1 else []
    return [chunk[at : at + 2] for at in range(0, len(chunk) - 1, 2)]
