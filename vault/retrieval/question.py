"""A question in the form that the ranking uses: its keyed terms, the speakers and times that it names, and its
weights."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from pgvector import HalfVector

from governance.keys.services import TokenMaker
from vault.index import marks
from vault.index.terms import WORD_KIND
from vault.lexicon.normal import normal_form
from vault.lexicon.questions import is_about_questions
from vault.lexicon.temporal_expressions import TimeRange, asks_for_time, remove_times, time_ranges_of
from vault.lexicon.tokens import content_terms, day_terms, language_of, query_terms, split_by_spacing, terms
from vault.lexicon.words import QUESTION_WORDS
from vault.retrieval.fusion import Weights
from vault.retrieval.learned_weights import load_learned_weights
from vault.retrieval.scope import Scope
from vault.retrieval.statistics import IndexStatistics, read_index_statistics

MOST_TERMS = 64  # of one question: a pasted page is searched by its first words
MOST_NAMES = 128
LONGEST_READ = 4_000  # characters of a question that are searched for words, names and times
LONGEST_NAME = 40  # characters of a speaker's name in a question
# Words that only ask for events or talk at some time. They count as no content of the question.
_HAPPENED = re.compile(
    r"\b(?:happen(?:s|ed|ing)?|events?|news|went on|going on|goes on|talk(?:s|ed|ing)?|discuss(?:es|ed|ing)?)\b"
    r"|发生[了过]?|[聊谈][了过到起]?|(?:什么|哪些)?事情?|新闻",
    re.IGNORECASE,
)
UNSPACED_NAME = range(2, 5)  # characters of a name in text without spaces


class Terms(NamedTuple):
    """The keyed terms of a question.

    words: all terms but names; names: (term, number of the name) for the terms of speakers' names; bare: the question
    has no words besides speakers and times.
    """

    words: list[int]
    names: list[tuple[int, int]]
    bare: bool


@dataclass(frozen=True)
class QuestionVector:
    """The vector of a question, made by `model`. None: no vector counts in this search.

    active: the model that was assumed to be the tenant's when the vector was made. may_ask: a vector index outside
    PostgreSQL may be asked, after this transaction. nearest: its answer, empty if it has none; None: not asked yet.
    """

    active: str
    model: str
    vector: HalfVector | None = field(repr=False)
    may_ask: bool = False
    nearest: Sequence[UUID] | None = field(repr=False, default=None)


class OtherModel(Exception):
    """The tenant's vectors belong to another model than the question's vector. active: the tenant's model."""

    def __init__(self, active: str) -> None:
        super().__init__(active)
        self.active = active


class NearestNeeded(Exception):
    """The search needs the answer of the vector index. It is asked after the transaction, and the search begins anew.

    namespaces: those that the actor sees. limit: of vectors.
    """

    def __init__(self, namespaces: Sequence[UUID], limit: int) -> None:
        super().__init__(limit)
        self.namespaces, self.limit = namespaces, limit


@dataclass(frozen=True)
class QuestionText:
    """The text of a question. names: the keyed mark of each possible speaker → its spelling in the text."""

    maker: TokenMaker
    text: str = field(repr=False)
    names: Mapping[int, str] = field(repr=False)
    asks_for_time: bool

    def list_spellings(self, known: Collection[int]) -> list[str]:
        """Return how the question spells the names with these marks."""
        return [self.names[mark] for mark in known]

    def find_speakers(self, known: Collection[int], *, has_time: bool = False) -> list[int]:
        """Return those of the marks that the question names; not a name that is part of a longer name or of a time."""
        text = remove_times(self.text, self.list_spellings(known)) if has_time else self.text
        found = []
        for mark in sorted(known, key=lambda mark: -len(self.names[mark])):
            text, often = re.subn(_spelling_pattern(self.names[mark]), " ", text, flags=re.IGNORECASE)
            found += [mark] if often else []
        return found

    def make_terms(self, speakers: Collection[int] = (), *, has_time: bool = False) -> Terms:
        """Return the terms of the question without certain names of `speakers` and without times; all terms if none are
        left.

        A name that may be an ordinary word (`pump`, 合同) stays a term, because any writer can choose a speaker's name.
        The 12 of `12 May` is dropped as a word, because it would match twelve eggs, and counts as that day only.
        """
        names = self.list_spellings(speakers)
        asked = remove_times(self.text, names, but_names=True) if has_time else self.text
        told = self._remove_names(names, asked, _is_certain_name)
        words = [*content_terms(told), *day_terms(self.text)]
        rest = self._remove_names(names, remove_times(self.text, names) if has_time else self.text)
        bare = bool(names or has_time) and not content_terms(_HAPPENED.sub(" ", rest))
        pieces = [(token, whose) for whose, name in enumerate(names) for token in self._term_tokens(terms(name))]
        return Terms(self._term_tokens(words or query_terms(self.text)), pieces, bare)

    def make_entity_marks(self, speakers: Collection[int]) -> list[int]:
        """Return the marks of the entities named like the `speakers`."""
        return [marks.entity_mark(self.maker, self.names[mark].casefold()) for mark in speakers]

    def make_time_marks(self, speakers: Collection[int]) -> list[int]:
        """Return the marks of statements by `speakers` that mention a time; empty unless the question asks for a
        time."""
        return [marks.speaker_time_mark(self.maker, self.names[mark]) for mark in speakers if self.asks_for_time]

    def _remove_names(self, names: Collection[str], text: str, goes: Callable[[re.Match[str]], bool] = bool) -> str:
        if not names:
            return text
        spelled = "|".join(_spelling_pattern(name) for name in names)
        return re.sub(spelled, lambda match: " " if goes(match) else match[0], text, flags=re.IGNORECASE)

    def _term_tokens(self, words: list[str]) -> list[int]:
        return [self.maker.token(WORD_KIND, word) for word in list(dict.fromkeys(words))[:MOST_TERMS]]


@dataclass(frozen=True)
class Question:
    """A question in the form that the ranking uses.

    statistics: of the memories searched. ranges: the times that it names. speakers, marks: keyed marks of the index.
    weights: those of the parts that apply. times_told: the question asks for a time, so memories of the speakers that
    mention a time score more. language: of its text.
    """

    statistics: IndexStatistics
    vector: QuestionVector
    ranges: Sequence[TimeRange]
    speakers: Sequence[int]
    terms: Terms
    weights: Weights
    marks: Sequence[int]
    asks_for_time: bool
    times_told: bool
    language: str

    @property
    def has_time(self) -> bool:
        return bool(self.ranges and self.weights.time)


def read_question(scope: Scope, vector: QuestionVector) -> Question:
    """Read the question of a search, in the caller's transaction. Runs one query, for statistics. Raises OtherModel."""
    text, weights = make_question_text(scope.maker, scope.search.query), scope.search.part_weights
    statistics = read_index_statistics(scope, text.names)
    check_model(statistics.model, vector)
    ranges = time_ranges_of(text.text, statistics.now, text.list_spellings(statistics.speakers))
    has_time, language = bool(ranges and weights.time), language_of(text.text)
    speakers = text.find_speakers(statistics.speakers, has_time=has_time) if weights.entity else []
    terms_asked = text.make_terms(speakers, has_time=has_time)
    applying = weights.restrict(
        entity=bool(speakers),
        time=text.asks_for_time or bool(ranges),
        bare=terms_asked.bare,
        questions=is_about_questions(text.text),
        learned=load_learned_weights().fit(vector.model, language),
    )
    with_time = text.make_time_marks(speakers) if applying.time else []
    return Question(
        statistics=statistics,
        vector=vector,
        ranges=ranges,
        speakers=speakers,
        terms=terms_asked,
        weights=applying,
        marks=[*speakers, *text.make_entity_marks(speakers), *with_time],
        asks_for_time=text.asks_for_time,
        times_told=bool(with_time),
        language=language,
    )


def check_model(active: str | None, vector: QuestionVector) -> None:
    """Check that the vector was made for the tenant's present model. Raises OtherModel."""
    if vector.vector is not None and active is not None and active != vector.active:
        raise OtherModel(active)


def make_question_text(maker: TokenMaker, text: str) -> QuestionText:
    text = normal_form("NFC", text[:LONGEST_READ])  # an accent by itself would end a name
    names: dict[int, str] = {}
    for name in _find_possible_names(text):
        names.setdefault(marks.part_mark(maker, "speaker", name), name)
        if len(names) == MOST_NAMES:
            break
    return QuestionText(maker, text, names, asks_for_time(text))


def _find_possible_names(text: str) -> Iterator[str]:
    """Yield the words that may be names: all but function words. For text without spaces, yield its runs of 2 to 4
    characters."""
    words = [word for word in marks.WORD.findall(text)[:MOST_TERMS] if len(word) <= LONGEST_NAME]
    for place, word in enumerate(words):
        unspaced, spaced = split_by_spacing(word) if not word.isascii() else ([], [])
        if unspaced or terms(word) or (word[0].isupper() and (place or _may_be_name(words))):
            yield word
        yield from spaced if unspaced else ()
        for run in unspaced:
            for size in reversed(UNSPACED_NAME):
                yield from (run[at : at + size] for at in range(len(run) - size + 1))


def _may_be_name(words: list[str]) -> bool:
    """Return whether the first word, though a function word, may be a name, as in `Will` or `Will said`."""
    return len(words) == 1 or words[1].lower() in QUESTION_WORDS


def _is_certain_name(name: re.Match[str]) -> bool:
    """Return whether the match is surely a name: it is capitalized, and not because it begins the sentence or all is
    capitals."""
    before = name.string[: name.start()]
    return name[0][0].isupper() and bool(before.strip()) and not name.string.isupper()


def _spelling_pattern(name: str) -> str:
    return rf"\b{re.escape(name)}(?:['’]s)?\b" if name.isascii() else re.escape(name)
