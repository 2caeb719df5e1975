"""Corrections: a statement ends the validity of an earlier one of the same speaker, with a reason."""

import re
from collections.abc import Sequence
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
from vault.layers.statements import StoredStatement, reconcile
from vault.lexicon.tokens import content_terms, terms
from vault.models import Cube
from vault.reader.rules import remove_correction
from vault.retrieval.selectors import Hit
from vault.vocabulary import STATED, EntryAction, Layer

CORRECTED = "A later statement of the same speaker corrects this one."
TAKEN_BACK = re.compile(r"\b(?:no longer|not any ?more)\b|不再|已经不", re.IGNORECASE)
ADDS = re.compile(r"\b(?:also|too|as well|besides)\b|[也还]|另外|同时", re.IGNORECASE)
DENIED = re.compile(r"\bnot (?:at |on |in )?(\w+)\W*$|不是(\w{1,8})\W*$", re.IGNORECASE)
LEAST_SHARED, SHARED_PART = 2, 0.5  # terms that a correction has in common with what it corrects
SUBJECT = 2  # terms at the beginning of a correction that name what it is about


def corrected_statement(
    actor: Actor, text: str, *, said_at: datetime, hits: Sequence[Hit], is_correction: bool
) -> UUID | None:
    """Return the stored statement that `text` replaces or withdraws; None if it contradicts none.

    is_correction: the speaker announces a correction ("actually, …"). Then, and if `text` says that something no longer
    holds, a common subject is enough.
    """
    own = [hit for hit in hits if is_own_statement(actor, hit)]
    stored = [StoredStatement(hit.view.cube.id, hit.view.words.content, said_at) for hit in own]
    outcome = reconcile(text, said_at, stored)
    if outcome.action in {EntryAction.UPDATE, EntryAction.DELETE}:
        return outcome.other
    if not (is_correction or TAKEN_BACK.search(text)) or outcome.action is EntryAction.NOTHING:
        return None
    words = _statement_terms(text)
    denied = [
        statement
        for statement in stored
        if _denies(text, statement.text) and set(words) & set(_statement_terms(statement.text))
    ]
    if denied:
        return denied[0].id
    return None if ADDS.search(text) else _same_subject(words, stored)


def _same_subject(words: Sequence[str], stored: Sequence[StoredStatement]) -> UUID | None:
    """Return the statement that shares the most `words`, if these are a large share of either or its first words."""
    shared = [(len(set(words) & set(_statement_terms(statement.text))), statement) for statement in stored]
    count, best = max(shared, key=lambda pair: pair[0], default=(0, None))
    if best is None or count < LEAST_SHARED:
        return None
    theirs = set(_statement_terms(best.text))
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
    is_stated = cube.semantic_type in STATED and cube.layer == Layer.LONG_TERM and not words.quotes
    return is_stated and is_own_speaker(actor, words.speaker) and is_own_memory(actor, cube)


def _denies(text: str, stored: str) -> bool:
    """Return whether `text` says "not X" with an X that the stored statement has: "at 7, not 6"."""
    found = DENIED.search(text)
    denied = next((group for group in found.groups() if group), "") if found else ""
    return bool(denied) and denied.casefold() in terms(stored)


def _statement_terms(text: str) -> list[str]:
    """Return the terms of a statement in order, without numbers and words that announce a correction."""
    return [term for term in content_terms(remove_correction(text)) if not term.isdecimal()]
