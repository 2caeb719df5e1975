"""Attribution of a model's sentences to the memories that support them. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vault.chat.rules import KNOWS_NOTHING, UNSUPPORTED, Evidence
from vault.lexicon.concepts import base_forms
from vault.lexicon.entities import entities
from vault.lexicon.labels import find_word
from vault.lexicon.tokens import content_terms, terms
from vault.reader.rules import (
    Clause,
    asks_yes_or_no,
    contradicts,
    decides_yes,
    is_lead_in,
    is_question,
    read_clauses,
    sentences,
)

LEAST_SUPPORT = 0.5  # share of a sentence's words that the memory behind it holds
FEWEST_SUPPORTED = 3  # words of a sentence that is supported by a part of them; a shorter one needs all
NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_VERDICT = re.compile(
    r"^\W*(?:(?P<yes>yes|yeah|yep|correct|right|true|是的?|对的?|有的?|会的?|嗯)|(?P<no>no|nope|false|不是的?|不对?|没有?|不会))\W*$",
    re.IGNORECASE,
)
# A short sentence that claims something of somebody: "She is a pilot.", 他是医生。
_CLAIM = re.compile(
    r"^\W*(?:(?:your?|his|her|their|its?|he|she|they|we|the)\b.{0,40}(?:\b(?:is|are|was|were|has|have|had|does|did)\b"
    r"|['\u2019](?:s|re)\b|\b\w{3,}(?:s|ed)\b)|(?:you|they|we) \w+ \w+"
    r"|(?:他|她|它|你)们?[^，。]{0,6}[是在有叫住会去了])",
    re.IGNORECASE,
)
_WELCOME = re.compile(r"\bwelcome\b|不客气|不用谢", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Support:
    """A memory that may support a sentence. whole: with its speaker and day, case-folded; words: of that."""

    marker: int
    text: str
    whole: str
    words: frozenset[str]
    clauses: frozenset[Clause]


def attribute_sentences(answer: str, evidence: Sequence[Evidence], question: str) -> str:
    """Return a model's answer with a marker after each sentence that a memory supports, and UNSUPPORTED after the
    others.

    For answers without markers. The memory with most of a sentence's words supports it, if it has a share of
    LEAST_SUPPORT, all numbers, all names that are not in the question, and does not say the opposite; it must have all
    words of a short claim. A bare yes or no is supported by a memory that decides the question so. Questions, lead-ins,
    courtesies and sentences that say that nothing is known get no mark.
    """
    held = [_make_support(memory) for memory in evidence]
    pieces, at = [], 0
    for sentence in sentences(answer):
        end = answer.find(sentence, at) + len(sentence)
        pieces.append(answer[at:end] + _find_mark(sentence, held, question))
        at = end
    return "".join([*pieces, answer[at:]])


def _make_support(memory: Evidence) -> _Support:
    event = f" {memory.happens:%Y-%m-%d}" if memory.happens else ""
    whole = f"{memory.speaker} {memory.time:%Y-%m-%d}{event} {memory.text}"
    return _Support(memory.marker, memory.text, whole.casefold(), base_forms(terms(whole)), read_clauses(memory.text))


def _find_mark(sentence: str, held: Sequence[_Support], question: str) -> str:
    if is_lead_in(sentence) or is_question(sentence) or KNOWS_NOTHING.search(sentence) or _WELCOME.search(sentence):
        return ""
    if verdict := _VERDICT.match(sentence):
        return _mark_verdict(held, question, is_yes=bool(verdict["yes"]))
    words = base_forms(terms(sentence))
    is_short = len(words) < FEWEST_SUPPORTED
    if not words or (is_short and not _CLAIM.search(sentence)):
        return ""
    asked = question.casefold()
    numbers = NUMBER.findall(sentence)
    names = [name for name in entities(sentence) if find_word(asked, name) < 0]
    able = [
        support
        for support in held
        if all(number in support.whole for number in numbers)
        and all(find_word(support.whole, name) >= 0 for name in names)
    ]
    return _mark_best(
        [support for support in able if not contradicts(sentence, support.clauses)],
        words,
        1.0 if is_short else LEAST_SUPPORT,
    )


def _mark_verdict(held: Sequence[_Support], question: str, *, is_yes: bool) -> str:
    """Return the mark of a bare yes or no; none if the question is not one that these answer."""
    words = base_forms(content_terms(question))
    decided = [(support, decides_yes(question, support.text)) for support in held]
    if not words or not asks_yes_or_no(question):
        return ""
    return _mark_best([support for support, verdict in decided if verdict is is_yes], words, LEAST_SUPPORT)


def _mark_best(able: Sequence[_Support], words: frozenset[str], share: float) -> str:
    best = max(able, key=lambda support: len(words & support.words), default=None)
    is_supported = best is not None and len(words & best.words) >= share * len(words)
    return f" [{best.marker}]" if best is not None and is_supported else f" {UNSUPPORTED}"
