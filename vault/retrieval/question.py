"""A question in a tenant's keyed terms: its words, the speakers it may name, and whether it asks for a time."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from governance.keys.services import TokenMaker
from vault.cubes.index import marks
from vault.cubes.rules import WORD_KIND
from vault.lexicon.normal import normal_form
from vault.lexicon.temporal_expressions import asks_for_time, without_times
from vault.lexicon.tokens import content_terms, day_terms, query_terms, terms, unspaced_and_spaced
from vault.lexicon.words import QUESTION_WORDS

MOST_TERMS = 64  # of one question: a pasted page is searched by its first words
MOST_NAMES = 128
LONGEST_READ = 4_000  # characters of a question that are looked through for words, names and times
LONGEST_NAME = 40  # characters of a speaker's name in a question
# What asks for nothing but what was said or done at some time, beside what is no word of any question.
_HAPPENED = re.compile(
    r"\b(?:happen(?:s|ed|ing)?|events?|news|went on|going on|goes on|talk(?:s|ed|ing)?|discuss(?:es|ed|ing)?)\b"
    r"|发生[了过]?|[聊谈][了过到起]?|(?:什么|哪些)?事情?|新闻",
    re.IGNORECASE,
)
UNSPACED_NAME = range(2, 5)  # characters of one that stands within a sentence without spaces


class Terms(NamedTuple):
    """The keyed terms of a question. words: all but names; names: the terms of the speakers' names, each with the
    number of its name; bare: the question has no other words than who spoke and when.
    """

    words: list[int]
    names: list[tuple[int, int]]
    bare: bool


@dataclass(frozen=True)
class Question:
    """A question in a tenant's terms. names: the mark of each possible speaker → its spelling in the question."""

    maker: TokenMaker
    text: str = field(repr=False)
    names: Mapping[int, str] = field(repr=False)
    asks_for_time: bool

    def spelled(self, known: Collection[int]) -> list[str]:
        """The spellings of `known` marks in the question."""
        return [self.names[mark] for mark in known]

    def meant(self, known: Collection[int], *, has_time: bool = False) -> list[int]:
        """The marks of `known` that the question means: no name that is only part of another one, or of a time."""
        text = without_times(self.text, self.spelled(known)) if has_time else self.text
        found = []
        for mark in sorted(known, key=lambda mark: -len(self.names[mark])):
            text, often = re.subn(_spelled(self.names[mark]), " ", text, flags=re.IGNORECASE)
            found += [mark] if often else []
        return found

    def terms(self, speakers: Collection[int] = (), *, has_time: bool = False) -> Terms:
        """Its words but what surely is a name of `speakers` and what a time says of now; where nothing is left, those.

        Whoever may write chooses what speakers are called: a name that is written like any word (`pump`, 合同) stays
        one. The 12 of `12 May` is that of twelve eggs, so it only counts as that day.
        """
        names = self.spelled(speakers)
        asked = without_times(self.text, names, but_names=True) if has_time else self.text
        told = self._without(names, asked, _is_sure)
        words = [*content_terms(told), *day_terms(self.text)]
        rest = self._without(names, without_times(self.text, names) if has_time else self.text)
        bare = bool(names or has_time) and not content_terms(_HAPPENED.sub(" ", rest))
        pieces = [(token, whose) for whose, name in enumerate(names) for token in self._tokens(terms(name))]
        return Terms(self._tokens(words or query_terms(self.text)), pieces, bare)

    def named(self, speakers: Collection[int]) -> list[int]:
        """The marks of the entities that have the names of `speakers`."""
        return [marks.entity(self.maker, self.names[mark].casefold()) for mark in speakers]

    def time_marks(self, speakers: Collection[int]) -> list[int]:
        """The marks of what `speakers` said with a time, if the question asks for one."""
        return [marks.speaker_time(self.maker, self.names[mark]) for mark in speakers if self.asks_for_time]

    def _without(self, names: Collection[str], text: str, goes: Callable[[re.Match[str]], bool] = bool) -> str:
        if not names:
            return text
        spelled = "|".join(_spelled(name) for name in names)
        return re.sub(spelled, lambda match: " " if goes(match) else match[0], text, flags=re.IGNORECASE)

    def _tokens(self, words: list[str]) -> list[int]:
        return [self.maker.token(WORD_KIND, word) for word in list(dict.fromkeys(words))[:MOST_TERMS]]


def question_of(maker: TokenMaker, text: str) -> Question:
    text = normal_form("NFC", text[:LONGEST_READ])  # an accent by itself would end a name
    names: dict[int, str] = {}
    for name in _possible_names(text):
        names.setdefault(marks.contains(maker, "speaker", name), name)
        if len(names) == MOST_NAMES:
            break
    return Question(maker, text, names, asks_for_time(text))


def _possible_names(text: str) -> Iterator[str]:
    """The words that may be names: all but function words. Of text without spaces, each run of a few characters."""
    words = [word for word in marks.WORD.findall(text)[:MOST_TERMS] if len(word) <= LONGEST_NAME]
    for place, word in enumerate(words):
        unspaced, spaced = unspaced_and_spaced(word) if not word.isascii() else ([], [])
        if unspaced or terms(word) or (word[0].isupper() and (place or _may_be_name(words))):
            yield word
        yield from spaced if unspaced else ()
        for run in unspaced:
            for size in reversed(UNSPACED_NAME):
                yield from (run[at : at + size] for at in range(len(run) - size + 1))


def _may_be_name(words: list[str]) -> bool:
    """Return whether the first word, a function word, may be a name by itself, as in `Will` or `Will said`."""
    return len(words) == 1 or words[1].lower() in QUESTION_WORDS


def _is_sure(name: re.Match[str]) -> bool:
    """Return whether a name is certain: its capital has no other reason."""
    before = name.string[: name.start()]
    return name[0][0].isupper() and bool(before.strip()) and not name.string.isupper()


def _spelled(name: str) -> str:
    return rf"\b{re.escape(name)}(?:['’]s)?\b" if name.isascii() else re.escape(name)
