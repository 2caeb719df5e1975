"""Rules that decide the links of a cube from its neighbours. Pure.

A link reads `source` KIND `target`: a later message follows an earlier one; an earlier one causes its consequence.
"""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from vault.lexicon.tokens import terms
from vault.vocabulary import LinkKind

SAYS_THE_SAME = 0.6  # share of the words of two statements that both have, from which they can contradict each other
FEWEST_SHARED = 2  # words: `thanks` and `no thanks` are no contradiction

_CAUSED = re.compile(
    r"\W*(?:therefore|thus|hence|consequently|as a (?:result|consequence)|(?:because|as a result) of (?:that|this)"
    r"|due to (?:that|this)|thanks to (?:that|this)|(?:that|this)(?:'|’| i)s why|for (?:that|this) reason"
    r"|so(?=,)|so (?:i|we|he|she|they|now|that['’]?s why))\b"
    r"|\W*(?:所以|因此|因而|于是|於是|结果|結果|为此|正因如此|这就是为什么|难怪)",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|never|no longer|no|cannot|without|nobody|nothing|none)\b|n['’]t\b"
    r"|没有|沒有|不再|从不|從不|不|没|沒|別|别",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d+(?:[.,:]\d+)*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|hundred)\b"
    r"|[一二两三四五六七八九十百]{1,8}(?=[个個岁歲年月天号點点只隻条块元人次])",
    re.IGNORECASE,
)
_NO_NEGATION = re.compile(
    r"\b(?:can['’]?t (?:wait|believe)|no (?:problem|worries|doubt|wonder)|not only|why not)\b"
    r"|不错|不錯|没问题|沒問題|没关系|不客气",
    re.IGNORECASE,
)
_ASKS = re.compile(r"[?？]\s*$")


@dataclass(frozen=True)
class Statement:
    """The data of a cube that links depend on.

    border: its readers; links stay among cubes with the same readers. voice: the subject or speaker, None if unknown;
    only cubes with equal voices contradict each other.
    """

    id: UUID
    border: Hashable
    voice: Hashable
    text: str = field(default="", repr=False)  # empty where it was not needed


@dataclass(frozen=True)
class LinkContext:
    """The neighbours of a cube. before: the one before it in its session. similar: those sharing words, with text."""

    before: Statement | None = None
    similar: Sequence[Statement] = ()


@dataclass(frozen=True)
class Link:
    source: UUID
    target: UUID
    kind: LinkKind


class LinkPolicy(Protocol):
    """Decides the links of one cube. Links across a border and repeated links are dropped afterwards."""

    def links(self, statement: Statement, context: LinkContext) -> list[Link]:
        """Return the links that `statement` makes, as source or as target. Deterministic."""


@dataclass(frozen=True)
class RuleLinks:
    """The default policy: order in the session, cue words, and contradicting statements."""

    def links(self, statement: Statement, context: LinkContext) -> list[Link]:
        made: list[Link] = []
        if context.before is not None:
            made.append(Link(statement.id, context.before.id, LinkKind.FOLLOWS))
            if is_consequence(statement.text):
                made.append(Link(context.before.id, statement.id, LinkKind.CAUSES))
        for other in context.similar:
            if (
                statement.voice is not None
                and other.voice == statement.voice
                and contradict(statement.text, other.text)
            ):
                newer, older = sorted((statement.id, other.id), reverse=True)
                made.append(Link(newer, older, LinkKind.CONTRADICTS))
        return made


def is_consequence(text: str) -> bool:
    """Return whether a message begins by referring to an earlier one as its cause."""
    return _CAUSED.match(text) is not None


def contradict(first: str, other: str) -> bool:
    """Return whether two statements differ only in a negation or a number. Questions never contradict."""
    if _ASKS.search(first) or _ASKS.search(other):
        return False
    numbers, others = _find_numbers(first), _find_numbers(other)
    recounted = bool(numbers) and bool(others) and numbers != others
    turned = _is_negated(first) != _is_negated(other) and numbers == others
    return (recounted or turned) and _say_the_same(_bare_terms(first), _bare_terms(other))


def agree(first: str, other: str) -> bool:
    """Return whether two statements have nearly the same words, and the same numbers and negations."""
    if _ASKS.search(first) or _ASKS.search(other):
        return False
    is_alike = _find_numbers(first) == _find_numbers(other) and _is_negated(first) == _is_negated(other)
    return is_alike and _say_the_same(_bare_terms(first), _bare_terms(other))


def _say_the_same(words: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether the Jaccard index of two texts' index terms is at least SAYS_THE_SAME."""
    shared = len(words & others)
    return shared >= FEWEST_SHARED and shared >= SAYS_THE_SAME * len(words | others)


def _bare_terms(text: str) -> frozenset[str]:
    """Return the index terms of the text without its negations and numbers, so that Chinese bigrams match."""
    return frozenset(terms(_NUMBER.sub("", _NEGATION.sub("", _NO_NEGATION.sub("", text)))))


def _is_negated(text: str) -> bool:
    return len(_NEGATION.findall(_NO_NEGATION.sub("", text))) % 2 == 1


def _find_numbers(text: str) -> frozenset[str]:
    return frozenset(number.casefold() for number in _NUMBER.findall(text))
