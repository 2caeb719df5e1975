"""Corrections: a statement ends the validity of an earlier one of the same speaker, with a reason."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.database import database_now
from governance.vocabulary import Permission
from vault.content.drafts import CubeChanges
from vault.cubes.lookup import cube_target
from vault.cubes.services import cube_update
from vault.layers.persona_scope import is_own_memory, is_own_speaker
from vault.layers.statements import StoredStatement, find_slot, reconcile
from vault.lexicon.entities import entities
from vault.lexicon.temporal_expressions import remove_times
from vault.lexicon.tokens import content_terms, language_of, terms
from vault.models import Cube
from vault.reader.rules import (
    Passage,
    about,
    admits_error,
    find_changed_value,
    read_cancelled,
    read_moved,
    remove_correction,
    remove_values,
    tells_of_parting,
    tells_of_partner,
)
from vault.reconciliation.relations import RelationKind
from vault.retrieval.selectors import Hit
from vault.vocabulary import STATED, EntryAction

CORRECTED = "A later statement of the same speaker corrects this one."
TAKEN_BACK = re.compile(r"\b(?:no longer|not any ?more)\b|不再|已经不", re.IGNORECASE)
ADDS = re.compile(r"\b(?:also|too|as well|besides)\b|[也还]|另外|同时", re.IGNORECASE)
DENIED = re.compile(r"\bnot (?:at |on |in )?(\w+)\W*$|不是(\w{1,8})\W*$", re.IGNORECASE)
LEAST_SHARED, SHARED_PART = 2, 0.5  # terms that a correction has in common with what it corrects
LEAST_CLAUSES = 2  # of a statement of which a part is replaced
_CLAUSES = re.compile(  # of a text with single blanks
    r"[,;\uff0c\uff1b] ?(?:(?:and|but) )?"
    r"| and (?=(?:i|my|we|our|have|work|own|love|like|enjoy|play|drive|study|teach|keep|speak|am|run)\b)"
    r"|[.\u3002!](?: |$)|\u3002",
    re.IGNORECASE,
)
_STATES = re.compile(
    r"^(?:(?:i|my|we|our|have|work|own|love|like|enjoy|play|drive|study|teach|keep|speak|am|run)\b.{2,}"
    r"|(?:我|还|也|有|养|在|是|喜欢|会|做|当|开|学|爱|教|租|买|家里).{2,})",
    re.IGNORECASE,
)
_HAS_SUBJECT = re.compile(r"^(?:i|my|we|our)\b|^我|^家里", re.IGNORECASE)
_SEPARATOR = (", ", "，")
SUBJECT = 2  # terms at the beginning of a correction that name what it is about


@dataclass(frozen=True)
class Ended:
    """The earlier statement that a new one ends. rest: what else it says, which stays in force."""

    id: UUID
    kind: RelationKind
    rest: str = ""


def find_ended(
    text: str, *, said_at: datetime, earlier: Sequence[tuple[UUID, str]], is_correction: bool
) -> Ended | None:
    """Return the statement that `text` replaces, withdraws or cancels; None if it is not certain.

    earlier: ids and texts of valid statements of the same person. is_correction: the speaker announces a correction
    ("actually, …"). Then, and if `text` says that something no longer holds, a common subject is enough.
    """
    stored = [StoredStatement(key, told, said_at) for key, told in earlier if told.strip() != text.strip()]
    outcome = reconcile(text, said_at, stored)
    if outcome.action in {EntryAction.UPDATE, EntryAction.DELETE} and outcome.other is not None:
        older = next(statement.text for statement in stored if statement.id == outcome.other)
        return Ended(outcome.other, RelationKind.SUPERSEDES, other_clauses(older, text))
    if cancelled := _find_cancelled(text, stored):
        return Ended(cancelled, RelationKind.CANCELS)
    if moved := _find_moved(text, stored):
        return Ended(moved.id, RelationKind.SUPERSEDES, _name_rest(read_moved(text), moved.text))
    if admits_error(text) and (wrong := _find_wrong(text, stored)):
        return Ended(wrong, RelationKind.CORRECTS)
    if not (is_correction or TAKEN_BACK.search(text)) or outcome.action is EntryAction.NOTHING:
        return None
    if same := _same_slot(text, stored):
        return Ended(same, RelationKind.CORRECTS)
    words = _statement_terms(text)
    denied = [
        statement
        for statement in stored
        if _denies(text, statement.text) and set(words) & set(_statement_terms(statement.text))
    ]
    if denied:
        return Ended(denied[0].id, RelationKind.CORRECTS)
    same = None if ADDS.search(text) else _same_subject(words, stored)
    return Ended(same, RelationKind.CORRECTS) if same else None


def announces_change(text: str) -> bool:
    """Return whether a statement says that something told before is over, has another time, or was told wrong."""
    return (
        TAKEN_BACK.search(text) is not None
        or announces_cancellation(text)
        or bool(read_moved(text))
        or admits_error(text)
    )


def announces_cancellation(text: str) -> bool:
    """Return whether a statement says that something is off, given up or over."""
    return bool(read_cancelled(text)) or tells_of_parting(text)


def _find_cancelled(text: str, stored: Sequence[StoredStatement]) -> UUID | None:
    """Return the only statement about what `text` says is off, or about the couple that it says is none any more."""
    others = [statement for statement in stored if not announces_cancellation(statement.text)]
    if tells_of_parting(text):
        found = [statement.id for statement in others if tells_of_partner(statement.text)]
        return found[0] if len(found) == 1 else None
    topic = read_cancelled(text)
    passages = [Passage(str(statement.id), statement.text, 1.0) for statement in others]
    keys = about(topic, passages, own=False) if topic else []
    return UUID(keys[0]) if len(keys) == 1 else None


def _find_moved(text: str, stored: Sequence[StoredStatement]) -> StoredStatement | None:
    """Return the only statement with a time about what `text` says has another time now."""
    topic = read_moved(text)
    timed = [each for each in stored if topic and _has_time(each.text)]
    keys = about(topic, [Passage(str(each.id), each.text, 1.0) for each in timed], own=False) if topic else []
    return next(each for each in timed if str(each.id) == keys[0]) if len(keys) == 1 else None


def _find_wrong(text: str, stored: Sequence[StoredStatement]) -> UUID | None:
    """Return the only statement with another value than `text`, which admits an error, among those about the same: with
    words in common any value, with the subject alone a time.
    """
    words, names = _statement_terms(text), set(entities(text))
    close, alike = list[StoredStatement](), list[StoredStatement]()
    for statement in stored:
        theirs = _statement_terms(statement.text)
        if len(set(words) & set(theirs)) >= LEAST_SHARED:
            close.append(statement)
        elif names & set(entities(statement.text)) or (words[:1] == theirs[:1] != []):
            alike.append(statement)
    for among, numbers in ((close, True), ([*close, *alike], False)):
        place = find_changed_value(text, [statement.text for statement in among], numbers=numbers)
        if place is not None:
            return among[place].id
    return None


def other_clauses(older: str, newer: str) -> str:
    """Return what a statement says besides the attribute that a newer one has another value of, with its subject."""
    slot, clauses = find_slot(newer), _split_clauses(older)
    if slot is None or len(clauses) < LEAST_CLAUSES:
        return ""
    filled = [(clause, find_slot(clause)) for clause in clauses]
    if not any(has is not None and has.name == slot.name for _, has in filled):
        return ""
    left = [clause for clause, has in filled if has is None or has.name != slot.name]
    return _join_clauses(left, older) if all(map(_STATES.match, left)) else ""


def _name_rest(topic: str, older: str) -> str:
    """Return what a statement says of a topic besides its time, after the name of the topic."""
    rest = _join_clauses([clause for clause in _split_clauses(older) if not _has_time(clause)], older)
    return f"{topic[:1].upper()}{topic[1:]}{'：' if language_of(rest) == 'zh' else ': '}{rest}" if rest else ""


def _split_clauses(text: str) -> list[str]:
    return [clause.strip() for clause in _CLAUSES.split(" ".join(text.split())) if clause.strip()]


def _join_clauses(clauses: Sequence[str], older: str) -> str:
    stating = [clause for clause in clauses if _STATES.match(clause)]
    separator = _SEPARATOR[bool(stating) and not stating[0].isascii()]
    return separator.join(_put_subject(clause, older) for clause in stating)


def _has_time(text: str) -> bool:
    return remove_values(remove_times(text)) != text


def _put_subject(clause: str, older: str) -> str:
    if _HAS_SUBJECT.match(clause):
        return clause
    return f"I {clause}" if clause.isascii() else f"{'我' if older.lstrip().startswith('我') else ''}{clause}"


def _same_slot(text: str, stored: Sequence[StoredStatement]) -> UUID | None:
    """Return the only statement about the thing of the speaker's that a correction is about: "my dog is called Max"."""
    slot = find_slot(text)
    found = [each.id for each in stored if slot and each.slot is not None and each.slot.name == slot.name]
    return found[0] if len(found) == 1 else None


def _same_subject(words: Sequence[str], stored: Sequence[StoredStatement]) -> UUID | None:
    """Return the statement that shares the most `words`, if these are a large share of either or its first words; or
    the only one that has all of them.
    """
    shared = [(len(set(words) & set(_statement_terms(statement.text))), statement) for statement in stored]
    count, best = max(shared, key=lambda pair: pair[0], default=(0, None))
    if best is None or sum(1 for other, _ in shared if other == count) > 1:
        return None  # none, or a guess
    theirs = set(_statement_terms(best.text))
    if count < LEAST_SHARED:
        return best.id if count and set(words) <= theirs else None
    is_same = count >= SHARED_PART * min(len(set(words)), len(theirs)) or set(words[:SUBJECT]) <= theirs
    return best.id if is_same else None


def statement_end(*, actor: Actor, cube_id: UUID, successor_id: UUID, said_at: datetime | None = None) -> bool:
    """End the validity of a replaced statement, now or when its successor was said; return whether it ended. Call
    inside `acting`.

    A statement that the actor may not change, that is held, or that has ended already is left as it is. Writes: Cube,
    CubeVersion, AuditEntry, OutboxEvent.
    """
    rows = Cube.objects.visible_to(actor).free().filter(id=cube_id, valid_to=None, deleted_at=None)
    row = rows.first()
    now = database_now()
    until = min(said_at or now, now)
    if row is None or row.id == successor_id or (row.valid_from is not None and row.valid_from >= until):
        return False
    if not is_allowed(actor, Permission.MEMORY_UPDATE, cube_target(row)):
        return False
    changes = CubeChanges(valid_to=until)
    cube_update(actor=actor, cube_id=row.id, expected_versions={row.version}, changes=changes, reason=CORRECTED)
    Cube.objects.filter(id=row.id).update(superseded_by=successor_id)
    return True


def is_current(hit: Hit, now: datetime) -> bool:
    """Return whether no later statement has replaced a memory."""
    cube = hit.view.cube
    return cube.superseded_by is None or cube.valid_to is None or cube.valid_to > now


def is_own_statement(actor: Actor, hit: Hit) -> bool:
    """Return whether a memory is a statement of the reader."""
    cube, words = hit.view.cube, hit.view.words
    is_stated = cube.semantic_type in STATED and not words.quotes  # also a message that is nothing but one statement
    return is_stated and is_own_speaker(actor, words.speaker) and is_own_memory(actor, cube)


def _denies(text: str, stored: str) -> bool:
    """Return whether `text` says "not X" with an X that the stored statement has: "at 7, not 6"."""
    found = DENIED.search(text)
    denied = next((group for group in found.groups() if group), "") if found else ""
    return bool(denied) and denied.casefold() in terms(stored)


def _statement_terms(text: str) -> list[str]:
    """Return the terms of a statement in order, without numbers, times and words that announce a correction."""
    told = remove_values(remove_times(remove_correction(text))) or text
    return [term for term in content_terms(told) if not term.isdecimal()]
