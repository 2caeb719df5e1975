"""What a question asks for: its words by their keyed tokens, whom it may name, and whether it wants a time."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from governance.keys.services import TokenMaker
from vault.cubes import marks
from vault.cubes.rules import WORD_KIND
from vault.lexicon.moments import asks_for_time, without_times
from vault.lexicon.tokens import content_terms, day_terms, query_terms, terms, unspaced_and_spaced
from vault.lexicon.words import QUESTION_WORDS

MOST_TERMS = 64  # of one question: a pasted page is searched by its first words
MOST_NAMES = 128
LONGEST_NAME = 40  # characters of a speaker's name in a question
UNSPACED_NAME = range(2, 5)  # characters of one that stands within a sentence without spaces


class Terms(NamedTuple):
    """The keyed tokens of a question. names: of the names of those who are meant; words: of all else; bare: it has none
    but those that name who spoke and when."""

    words: list[int]
    names: list[int]
    bare: bool


@dataclass(frozen=True)
class Question:
    """A question in a tenant's terms. names: the mark of each speaker whom it may name → how it is spelled there."""

    maker: TokenMaker
    text: str = field(repr=False)
    names: Mapping[int, str] = field(repr=False)
    asks_for_time: bool

    def meant(self, known: Collection[int], *, has_time: bool = False) -> list[int]:
        """Of `known` marks of speakers those that are meant: no name that only stands within another, or in a time."""
        text = without_times(self.text) if has_time else self.text
        found = []
        for mark in sorted(known, key=lambda mark: -len(self.names[mark])):
            text, often = re.subn(_spelled(self.names[mark]), " ", text, flags=re.IGNORECASE)
            found += [mark] if often else []
        return found

    def terms(self, speakers: Collection[int] = (), *, has_time: bool = False) -> Terms:
        """Its words but the names of `speakers` and the numbers of a time; where nothing is left, those too.

        Names of months and years stay: they stand in what was told, too. The 12 of `12 May` is that of twelve eggs, so
        it only counts as that day.
        """
        told = self._without(speakers, without_times(self.text, numbers_only=True) if has_time else self.text)
        words = [*content_terms(told), *day_terms(self.text)]
        rest = content_terms(self._without(speakers, without_times(self.text))) if has_time else words
        bare = told != self.text and not rest
        names = [one for mark in speakers for one in terms(self.names[mark])[-1:]]
        return Terms(self._tokens(words or query_terms(self.text)), self._tokens(names), bare)

    def named(self, speakers: Collection[int]) -> list[int]:
        """The marks of what names `speakers`."""
        return [marks.entity(self.maker, self.names[mark].casefold()) for mark in speakers]

    def _without(self, speakers: Collection[int], text: str) -> str:
        if not speakers:
            return text
        return re.sub("|".join(_spelled(self.names[mark]) for mark in speakers), " ", text, flags=re.IGNORECASE)

    def _tokens(self, words: list[str]) -> list[int]:
        return [self.maker.token(WORD_KIND, word) for word in list(dict.fromkeys(words))[:MOST_TERMS]]


def question_of(maker: TokenMaker, text: str) -> Question:
    names: dict[int, str] = {}
    for name in _possible_names(text):
        names.setdefault(marks.contains(maker, "speaker", name), name)
        if len(names) == MOST_NAMES:
            break
    return Question(maker, text, names, asks_for_time(text))


def _possible_names(text: str) -> Iterator[str]:
    """Each word that is not merely grammar; of what is written without spaces, each few characters, too."""
    words = [word for word in marks.WORD.findall(text)[:MOST_TERMS] if len(word) <= LONGEST_NAME]
    for place, word in enumerate(words):
        unspaced, spaced = unspaced_and_spaced(word) if not word.isascii() else ([], [])
        if unspaced or terms(word) or (word[0].isupper() and (place or _stands_alone(words))):
            yield word
        yield from spaced if unspaced else ()
        for run in unspaced:
            for size in reversed(UNSPACED_NAME):
                yield from (run[at : at + size] for at in range(len(run) - size + 1))


def _stands_alone(words: list[str]) -> bool:
    """Whether the first word, which is one of grammar, may be a name by itself: `Will`, `Will said`."""
    return len(words) == 1 or words[1].lower() in QUESTION_WORDS


def _spelled(name: str) -> str:
    return rf"\b{re.escape(name)}(?:['’]s)?\b" if name.isascii() else re.escape(name)
