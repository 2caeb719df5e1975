"""Kinds of sentences, and whether they are worth storing. By patterns; pure."""

import re
from dataclasses import dataclass
from datetime import datetime

from vault.lexicon.tokens import terms
from vault.reader.rules.patterns import (
    CHINESE_NOT_ASKING,
    CHINESE_QUESTION,
    EVENT,
    GOAL,
    PREFERENCE,
    PROFILE,
    QUESTION_START,
    SMALL_TALK,
)
from vault.reader.rules.remarks import REMINDER
from vault.reader.rules.sentences import sentences

FEWEST_TERMS = 2  # of a sentence that can stand on its own
SHORT_REMARK = 7  # terms; up to here a sentence that opens like small talk is small talk
_ENDS_ASKING = re.compile(r"[?\uff1f吗嗎]\W*\Z")
_TAIL = 64  # characters at the end of a sentence, in which its question mark stands
# The order matters: "I want to visit my favourite town" is a goal first.
_KINDS = (("profile", PROFILE, 0.8), ("goal", GOAL, 0.7), ("preference", PREFERENCE, 0.8), ("event", EVENT, 0.7))
_FACT_CONFIDENCE = 0.5  # no pattern spoke for it: a whole sentence, kept as it is


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence to store. `confidence`, 0..1, is about its `semantic_type`, not about its truth.

    semantic_type: fact, profile, preference, event or goal. entities: as `vault.lexicon.entities` finds them.
    event_time: the start of the time that the sentence names, in UTC; None if it names none exactly.
    """

    text: str
    semantic_type: str
    confidence: float
    entities: tuple[str, ...] = ()
    event_time: datetime | None = None


def is_question(sentence: str) -> bool:
    """Return whether a sentence is a question, by its mark or its form: chats often leave the mark out."""
    folded = _fold_sentence(sentence)
    if REMINDER.search(folded):
        return False
    if _ENDS_ASKING.search(sentence[-_TAIL:]):
        return True
    if QUESTION_START.search(folded):
        return True
    return bool(CHINESE_QUESTION.search(folded)) and not CHINESE_NOT_ASKING.search(folded)


def classify_semantic_type(sentence: str) -> str:
    """Return `profile`, `goal`, `preference`, `event`, `fact`, or `dialogue` for questions, greetings, thanks and small
    talk.
    """
    return classify_sentence(sentence)[0]


def is_small_talk(sentence: str, count: int) -> bool:
    """Return True for a sentence of `count` terms that neither asks nor states anything."""
    if count == 0 or count > SHORT_REMARK:
        return count == 0
    folded = _fold_sentence(sentence)
    return _opens_like_small_talk(folded, count) and not any(pattern.search(folded) for _, pattern, _ in _KINDS)


def statements(message_text: str) -> list[Statement]:
    """Return the self-contained sentences of a message, in order, without duplicates."""
    found: dict[str, Statement] = {}
    for sentence in sentences(message_text):
        kind, confidence = classify_sentence(sentence)
        if kind != "dialogue":
            found.setdefault(_fold_sentence(sentence), Statement(sentence, kind, confidence))
    return list(found.values())


def classify_sentence(sentence: str) -> tuple[str, float]:
    """Return (semantic type, confidence 0..1) of one sentence; `dialogue` for questions and small talk."""
    count = len(terms(sentence))
    if is_question(sentence) or count == 0:
        return "dialogue", 1.0
    folded = _fold_sentence(sentence)
    if REMINDER.search(folded):
        return "goal", 0.8
    for kind, pattern, confidence in _KINDS:
        if pattern.search(folded):
            return kind, confidence
    return ("dialogue", 0.8) if _opens_like_small_talk(folded, count) else ("fact", _FACT_CONFIDENCE)


def _opens_like_small_talk(folded: str, count: int) -> bool:
    return count < FEWEST_TERMS or (count <= SHORT_REMARK and SMALL_TALK.search(folded) is not None)


def _fold_sentence(sentence: str) -> str:
    return " ".join(sentence.casefold().replace("\u2019", "'").split())
