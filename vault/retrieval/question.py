"""What a question asks for: its words by their keyed tokens, whom it may name, and whether it wants a time."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from governance.keys.services import TokenMaker
from vault.cubes import marks
from vault.cubes.rules import WORD_KIND
from vault.lexicon.moments import asks_for_time, without_times
from vault.lexicon.tokens import content_terms, query_terms, terms, unspaced_and_spaced

MOST_TERMS = 64  # of one question: a pasted page is searched by its first words
MOST_NAMES = 128
LONGEST_NAME = 40  # characters of a speaker's name in a question
UNSPACED_NAME = range(2, 5)  # characters of one that stands within a sentence without spaces


class Terms(NamedTuple):
    """tokens: of the words of a question; bare: it has none but those that name who spoke and when."""

    tokens: list[int]
    bare: bool


@dataclass(frozen=True)
class Question:
    """A question in a tenant's terms. names: the mark of each speaker whom it may name → how it is spelled there."""

    maker: TokenMaker
    text: str = field(repr=False)
    names: Mapping[int, str] = field(repr=False)
    asks_for_time: bool

    def meant(self, known: Collection[int]) -> list[int]:
        """Of `known` marks of speakers those that are meant: no name that is but a part of another."""
        spelled = {mark: self.names[mark].casefold() for mark in known}
        return [mark for mark, name in spelled.items() if not any(name in other != name for other in spelled.values())]

    def terms(self, speakers: Collection[int] = (), *, has_time: bool = False) -> Terms:
        """Its words but the names of `speakers` and the numbers of a time; where nothing is left, those too.

        Names of months and years stay: they stand in what was told, too. The 12 of `12 May` is that of twelve eggs.
        """
        text = without_times(self.text, numbers_only=True) if has_time else self.text
        if speakers:
            text = re.sub("|".join(_spelled(self.names[mark]) for mark in speakers), " ", text, flags=re.IGNORECASE)
        rest = self._tokens(content_terms(text))
        return Terms(rest, bare=False) if rest else Terms(self._tokens(query_terms(self.text)), bare=text != self.text)

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
        unspaced, spaced = unspaced_and_spaced(word)
        if unspaced or terms(word) or (place and word[0].isupper()):
            yield word
        yield from spaced if unspaced else ()
        for run in unspaced:
            for size in reversed(UNSPACED_NAME):
                yield from (run[at : at + size] for at in range(len(run) - size + 1))


def _spelled(name: str) -> str:
    return rf"\b{re.escape(name)}\b" if name.isascii() else re.escape(name)
