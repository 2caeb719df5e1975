"""Extraction of statements from a text. Greetings, questions, commands and remarks are left out. Pure functions."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import islice

from vault.lexicon.dates import find_named_times, fold_signs
from vault.lexicon.entities import entities
from vault.lexicon.resolved_dates import time_of
from vault.lexicon.tokens import terms
from vault.reader.phrases import own_words
from vault.reader.rules.cancellations import read_cancelled, tells_of_parting
from vault.reader.rules.kinds import Statement, classify_sentence, is_question
from vault.reader.rules.remarks import (
    ASKED_TO_STORE,
    BARE_REFERENCE,
    CLAUSE_END,
    COMMAND,
    CONDITION,
    FAREWELL,
    FEELING_NOW,
    FRAGMENT,
    GREETING,
    HAN_FRAGMENT,
    LEAD_IN,
    LIST_ITEM,
    NAMES_IT,
    OPENING,
    OWN_PARTS,
    PARTING,
    PERSON_START,
    PRONOUN_START,
    REACTION,
    REASON,
    REMARK_ON_TALK,
    REMINDER,
    SPEAKS,
    THANKS,
    TRAILING_QUESTION,
)
from vault.reader.rules.sentences import LONGEST_SENTENCE, is_lead_in, sentences
from vault.reader.rules.verbs import read_verb

MOST_STATEMENTS = 500  # of one text; the conversation stores the whole text
NOT_PEOPLE = frozenset({"assistant", "system", "tool"})
REQUESTED_CONFIDENCE = 0.95  # of a statement that its speaker asked to store
CHOSEN_CONFIDENCE = 0.8  # of a sentence that a model alone chose
CHANGE_CONFIDENCE = 0.6  # of a short sentence that says that something is off
LONGEST_REMARK = 200  # characters that are searched for a greeting or thanks
LONGEST_GAP = 32  # characters between two sentences that are looked at
SHORTEST_BARE_FACT = 5  # terms; shorter facts that begin with a pronoun are not stored


class Decision(StrEnum):
    """The reading of a passage. Only the statement of STATEMENT and REQUESTED is stored as a memory."""

    STATEMENT = "statement"
    REQUESTED = "requested"
    QUESTION = "question"
    COMMAND = "command"
    REMARK = "remark"
    SMALL_TALK = "small_talk"
    FRAGMENT = "fragment"


UNSTORED = frozenset({Decision.REMARK, Decision.SMALL_TALK, Decision.FRAGMENT})


@dataclass(frozen=True)
class Reading:
    """A passage of a text, verbatim, and the decision on it."""

    passage: str
    decision: Decision
    statement: Statement | None = None


def explain_reading(text: str, *, speaker: str) -> list[Reading]:
    """Return the passages of a text in order with the decision on each, as `read_statements` takes them."""
    if speaker.casefold() in NOT_PEOPLE:
        return []
    return [_read_passage(passage) for passage in islice(_split_passages(text), MOST_STATEMENTS)]


def read_statements(text: str, *, speaker: str, said_at: datetime) -> tuple[Statement, ...]:
    """Return the statements of `text` that are worth storing, verbatim, in order, without duplicates.

    speaker: a role or a name; texts of assistants, systems and tools have no statements. said_at: the
    time of the text with its zone, from which `yesterday` is resolved. Each sentence is English or Chinese.
    """
    if speaker.casefold() in NOT_PEOPLE:
        return ()
    return _complete_statements(_find_all_statements(text), said_at)


def rephrased_statements(text: str, *, said_at: datetime) -> tuple[Statement, ...]:
    """Return the one statement that a text is known to be, with its kind, entities and time."""
    kind, _ = classify_sentence(text)
    return _complete_statements(
        [Statement(text, "fact" if kind == "dialogue" else kind, REQUESTED_CONFIDENCE)], said_at
    )


def states_something(text: str) -> bool:
    """Return whether `read_statements` finds a statement in the text of a person."""
    return next(_find_all_statements(text), None) is not None


def chosen_statements(text: str, *, said_at: datetime, kinds: Mapping[int, str | None]) -> tuple[Statement, ...]:
    """Return the statements among the sentences of a person's `text` that a model has chosen.

    kinds: the kind of each sentence to store, by its number from 0; None leaves it out. Sentences that the speaker
    asked to store are kept, questions and commands are never statements, and patterns read sentences without a choice.
    """
    own = frozenset(sentences(_drop_own_parts(text)))
    numbered = [(number, sentence) for number, sentence in enumerate(sentences(text)) if sentence in own]
    return _complete_statements(
        (statement for number, sentence in numbered for statement in _apply_kinds(sentence, number, kinds)), said_at
    )


def _complete_statements(found: Iterable[Statement], said_at: datetime) -> tuple[Statement, ...]:
    """Return at most MOST_STATEMENTS distinct statements, with their entities and times."""
    statements: dict[str, Statement] = {}
    for statement in islice(found, MOST_STATEMENTS):
        statements.setdefault(_fold_sentence(statement.text), statement)
    return tuple(
        replace(
            statement,
            entities=tuple(entities(statement.text)),
            event_time=time_of(statement.text, said_at, is_plan=statement.semantic_type == "goal"),
        )
        for statement in statements.values()
    )


def unstated_kind(text: str) -> str:
    """Return the kind of a text without statements: `farewell`, `greeting`, `thanks` or `not_noted`."""
    folded = text[:LONGEST_REMARK].casefold().strip()
    if FAREWELL.search(folded) or PARTING.search(folded):
        return "farewell"
    return "thanks" if THANKS.search(folded) else "greeting" if GREETING.search(folded) else "not_noted"


def _find_all_statements(text: str) -> Iterator[Statement]:
    for passage in _split_passages(text):
        yield from _find_statements(passage)


def _split_passages(text: str) -> Iterator[str]:
    """Yield the sentences of `text`, verbatim; a list together with its lead-in, and a reason with its consequence."""
    text = _drop_own_parts(text)
    start = end = 0
    for sentence in sentences(text):
        begin = text.index(sentence, end)
        belongs = end and _belongs_to_passage(text[start:end], text[end:begin], sentence)
        if belongs and begin + len(sentence) - start <= LONGEST_SENTENCE:
            end = begin + len(sentence)
            continue
        if end:
            yield text[start:end]
        start, end = begin, begin + len(sentence)
    if end:
        yield text[start:end]


def _drop_own_parts(text: str) -> str:
    """Return `text` without what the product itself wrote: quotes with their markers, contexts, fixed sentences."""
    kept = OWN_PARTS.sub("\n", text)
    return text if kept == text else own_words(kept)


def _belongs_to_passage(passage: str, between: str, sentence: str) -> bool:
    if LIST_ITEM.search(between[-LONGEST_GAP:]):
        return is_lead_in(passage.partition("\n")[0])
    if "\n" in between or is_question(passage):
        return False
    return REASON.search(sentence) is not None or (
        is_fragment(sentence) and _read_passage(passage).statement is not None
    )


def is_fragment(sentence: str) -> bool:
    """Return whether a sentence is only understood together with the one before it."""
    folded = _fold_sentence(sentence).rstrip(".!\u3002\uff01")
    if is_question(sentence) or REMINDER.search(folded):
        return False
    if NAMES_IT.search(folded):
        return _read_passage(sentence).statement is None
    if HAN_FRAGMENT.search(folded):
        return True
    return FRAGMENT.search(folded) is not None and SPEAKS.search(folded) is None


def _apply_kinds(sentence: str, number: int, kinds: Mapping[int, str | None]) -> Iterator[Statement]:
    stated = list(_find_statements(sentence))
    if number not in kinds or ASKED_TO_STORE.match(sentence):
        yield from stated
        return
    kind = kinds[number]
    if kind is None or is_question(sentence) or _is_command(sentence):
        return
    for statement in stated or [Statement(sentence, kind, CHOSEN_CONFIDENCE)]:
        yield replace(statement, semantic_type=kind)


def _find_statements(sentence: str) -> Iterator[Statement]:
    statement = _read_passage(sentence).statement
    if statement is not None:
        yield statement


def _read_passage(sentence: str) -> Reading:
    reading = _read_whole(sentence)
    lead = LEAD_IN.match(sentence) if reading.decision in UNSTORED else None
    if lead and _states_by_itself(rest := sentence[lead.end() :]):
        return replace(_read_whole(rest), passage=sentence)
    is_small = reading.decision in UNSTORED and not is_question(sentence)
    if is_small and (read_cancelled(sentence) or tells_of_parting(sentence)):
        return Reading(sentence, Decision.STATEMENT, Statement(sentence, "fact", CHANGE_CONFIDENCE))
    return reading


def _read_whole(sentence: str) -> Reading:
    if REMINDER.search(_fold_sentence(sentence)):
        return Reading(sentence, Decision.REQUESTED, Statement(sentence, "goal", REQUESTED_CONFIDENCE))
    asked = ASKED_TO_STORE.match(sentence)
    if asked:
        rest = sentence[asked.end() :].strip()
        if not rest or is_question(rest):
            return Reading(sentence, Decision.QUESTION)
        kind, _ = classify_sentence(rest)
        statement = Statement(rest, "fact" if kind == "dialogue" else kind, REQUESTED_CONFIDENCE)
        return Reading(sentence, Decision.REQUESTED, statement)
    text = _without_question(sentence)
    opening = OPENING.match(text)
    if opening and _states_by_itself(text[opening.end() :]):
        text = text[opening.end() :]
    if not text:
        return Reading(sentence, Decision.QUESTION)
    if _is_remark(text):
        return Reading(sentence, Decision.COMMAND if _is_command(text) else Decision.REMARK)
    kind, confidence = classify_sentence(text)
    if kind == "dialogue":
        return Reading(sentence, Decision.SMALL_TALK)
    if kind == "fact" and not _is_self_contained(text):
        return Reading(sentence, Decision.FRAGMENT)
    return Reading(sentence, Decision.STATEMENT, Statement(text, kind, confidence))


def _states_by_itself(rest: str) -> bool:
    """Return whether the words after an opening state something and are no remark."""
    if not rest or _is_remark(rest):
        return False
    kind, _ = classify_sentence(rest)
    return kind not in {"dialogue", "fact"} or (kind == "fact" and not PRONOUN_START.search(_fold_sentence(rest)))


def _without_question(sentence: str) -> str:
    """Return the statement before a question: `I am back from Oslo, what should I cook?`"""
    if not is_question(sentence):
        return sentence
    if CONDITION.match(sentence):
        return ""
    tail = TRAILING_QUESTION.search(sentence)
    head = sentence[: tail.start()].strip() if tail else ""
    if head and not is_question(head) and classify_sentence(head)[0] not in {"dialogue", "fact"}:
        return head
    return _find_dated_head(sentence)


def _find_dated_head(sentence: str) -> str:
    """Return the clauses before a question that tell when something happens: `I turn 35 on 8 May, am I old?`"""
    heads = (sentence[: end.start()].strip() for end in reversed(list(CLAUSE_END.finditer(sentence))))
    told = next((head for head in heads if head and not is_question(head)), "")
    is_told = bool(told) and classify_sentence(told)[0] != "dialogue"
    return told if is_told and _names_time(told) else ""


def _is_remark(sentence: str) -> bool:
    """Return whether a sentence is a command, a greeting, a momentary feeling, or a remark about the conversation."""
    folded = _fold_sentence(sentence)
    patterns = (REMARK_ON_TALK, PARTING, FEELING_NOW, REACTION, BARE_REFERENCE)
    return _is_command(sentence) or any(pattern.search(folded) for pattern in patterns)


def _is_command(sentence: str) -> bool:
    return COMMAND.search(_fold_sentence(sentence)) is not None or read_verb(sentence) is not None


def _is_self_contained(sentence: str) -> bool:
    """Return whether a fact can be understood without the sentence before it."""
    return (
        not PRONOUN_START.search(_fold_sentence(sentence))
        or len(terms(sentence)) >= SHORTEST_BARE_FACT
        or bool(entities(sentence))
        or (PERSON_START.search(_fold_sentence(sentence)) is not None and _names_time(sentence))
    )


def _names_time(text: str) -> bool:
    return next(find_named_times(fold_signs(text)), None) is not None


def _fold_sentence(sentence: str) -> str:
    return " ".join(sentence.casefold().replace("\u2019", "'").split())
