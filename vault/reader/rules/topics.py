"""The memories that a request is about: what has its topic, or says what it says. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from vault.lexicon.concepts import Concept, base_forms
from vault.lexicon.labels import find_word
from vault.lexicon.tokens import terms
from vault.reader.rules.answers import Passage
from vault.reader.rules.kinds import is_question
from vault.reader.rules.questions import LIGHT_WEIGHT, QuestionParts, question_parts
from vault.reader.rules.sentences import sentences
from vault.reader.rules.verdicts import contradicts, read_clauses

LEAST_ABOUT = 0.6  # share of a topic's words that a passage about it states
MOST_READ = 8  # sentences of a passage that are looked at for one that is no question
_NEGATED = re.compile(r"\b(?:no longer|not|never)\b|n't\b|[不没]")


@dataclass(frozen=True)
class Topic:
    """A topic. parts: its words, concepts and names; is_statement: it is something that was said, as in "that I live
    in Ghent"."""

    text: str = field(repr=False)
    parts: QuestionParts = field(repr=False)
    is_statement: bool = False


def read_topic(text: str, speakers: Sequence[str] = (), *, is_statement: bool = False) -> Topic:
    """Return a topic; `speakers`: people who are recognised in any capitalisation."""
    # A name at the beginning of a sentence may be none, so the topic does not stand there.
    parts = question_parts(text if is_statement or not text.isascii() else f"about {text}", set(speakers))
    return Topic(" ".join(text.casefold().split()), parts, is_statement)


def about(topic: str, passages: Sequence[Passage], *, own: bool, is_statement: bool = False) -> list[str]:
    """Return the keys of passages about `topic`, in order. own: only what the asking person said about themselves;
    is_statement: only what says the same."""
    asked = read_topic(topic, [passage.speaker for passage in passages], is_statement=is_statement)
    return [
        passage.key
        for passage in passages
        if (passage.own or not own) and not _only_asks(passage.text) and _is_about(asked, passage)
    ]


def _is_about(topic: Topic, passage: Passage) -> bool:
    """Return whether a passage has each name of a topic, and most of its words; all, of what is a statement."""
    text, held = " ".join(passage.text.casefold().split()), base_forms(terms(passage.text))
    parts = topic.parts
    if not all(_has_name(name, text, passage.speaker.casefold()) for name in parts.names):
        return False
    found = [
        *((weight, _has_word(term, text, held)) for term, weight in parts.terms.items()),
        *((1.0, _tells(concept, text)) for concept in parts.concepts),
    ]
    if topic.is_statement:
        return all(has for weight, has in found if weight > LIGHT_WEIGHT) and _says_alike(topic, passage.text)
    total = sum(weight for weight, _ in found)
    if not total:
        return bool(parts.names) or _has_name(topic.text, text, passage.speaker.casefold())
    return sum(weight for weight, has in found if has) >= LEAST_ABOUT * total


def _has_name(name: str, text: str, speaker: str) -> bool:
    return name == speaker or find_word(text, name) >= 0


def _has_word(term: str, text: str, held: frozenset[str]) -> bool:
    return term in held or (len(term) == 1 and not term.isascii() and term in text)


def _tells(concept: Concept, text: str) -> bool:
    return concept.told.search(text) is not None


def _says_alike(topic: Topic, text: str) -> bool:
    """Return whether a text with a statement's words has a clause that says them, negated only if the statement is."""
    if bool(_NEGATED.search(topic.text)) != bool(_NEGATED.search(text.casefold())):
        return not contradicts(topic.text, read_clauses(text))
    return True


def _only_asks(text: str) -> bool:
    return all(is_question(sentence) for sentence in sentences(text)[:MOST_READ])
