"""Stored pipelines of a member. A member sees and runs no other member's pipelines."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Forbidden, Invalid, NotFound
from governance.ids import uuid7
from governance.keys.services import member_scope, open_sealed, seal_for
from governance.vocabulary import Permission, Scope, Verb
from vault.models import Pipeline
from vault.pipelines.rules import Step, steps_json, steps_read
from vault.pipelines.runs import steps_check

OBJECT_TYPE = "pipeline"
LONGEST_NAME = 60
MOST_PIPELINES = 50  # of one member


@dataclass(frozen=True)
class PipelineDraft:
    """A pipeline to store. steps: as JSON."""

    name: str = field(repr=False)
    steps: object = field(repr=False)


@dataclass(frozen=True)
class StoredPipeline:
    id: UUID
    name: str = field(repr=False)
    steps: tuple[Step, ...] = field(repr=False)


def pipelines_list(*, actor: Actor) -> list[StoredPipeline]:
    """Return the actor's own pipelines, oldest first; none for an actor without a membership or with a bound key.

    Raises Forbidden; KeyUnavailable.
    """
    authorize(actor, Permission.MEMORY_READ)
    if actor.member_id is None or actor.binding is not None:
        return []
    with acting(actor):
        rows = Pipeline.objects.filter(tenant_id=actor.tenant_id, member_id=actor.member_id).order_by("id")
        return [found for row in rows if (found := _open(row)) is not None]


def pipeline_get(*, actor: Actor, pipeline_id: UUID) -> StoredPipeline:
    """Return one of the actor's own pipelines. Raises NotFound; Forbidden; KeyUnavailable."""
    with acting(actor):
        row = _locate(actor, pipeline_id)
        authorize(actor, Permission.MEMORY_READ, _target(row))
        found = _open(row)
    if found is None:
        raise NotFound
    return found


def pipeline_create_ask(*, actor: Actor) -> None:
    """Check that the actor may store pipelines. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_READ)
    _require_member(actor)


def pipeline_create(*, actor: Actor, draft: PipelineDraft) -> StoredPipeline:
    """Store a pipeline. Raises Forbidden; Invalid; Conflict for more than MOST_PIPELINES.

    Writes: Pipeline, AuditEntry.
    """
    authorize(actor, Permission.MEMORY_READ)
    member_id = _require_member(actor)
    with acting(actor):
        if Pipeline.objects.filter(tenant_id=actor.tenant_id, member_id=member_id).count() >= MOST_PIPELINES:
            raise Conflict(f"A member has at most {MOST_PIPELINES} pipelines. Delete one first.")
        row = Pipeline(id=uuid7(), tenant_id=actor.tenant_id, member_id=member_id)
        found = _seal(actor, row, draft)
        row.save(force_insert=True)
        record(actor=actor, verb=Verb.PIPELINE_CREATED, object_type=OBJECT_TYPE, object_ids=[row.id])
        return found


def pipeline_update(*, actor: Actor, pipeline_id: UUID, changes: Mapping[str, Any]) -> StoredPipeline:
    """Change the name or the steps of a pipeline. Raises NotFound; Forbidden; Invalid. Writes: Pipeline, AuditEntry."""
    with acting(actor):
        row = _locate(actor, pipeline_id, lock=True)
        authorize(actor, Permission.MEMORY_READ, _target(row))
        _require_member(actor)
        present = _open(row)
        if present is None:
            raise NotFound
        found = _seal(actor, row, replace(PipelineDraft(present.name, steps_json(present.steps)), **changes))
        row.save(update_fields=["sealed"])
        record(actor=actor, verb=Verb.PIPELINE_CHANGED, object_type=OBJECT_TYPE, object_ids=[row.id])
        return found


def pipeline_remove(*, actor: Actor, pipeline_id: UUID) -> None:
    """Remove a pipeline. Raises NotFound; Forbidden. Writes: AuditEntry; deletes Pipeline."""
    with acting(actor):
        row = _locate(actor, pipeline_id, lock=True)
        authorize(actor, Permission.MEMORY_READ, _target(row))
        _require_member(actor)
        row.delete()
        record(actor=actor, verb=Verb.PIPELINE_REMOVED, object_type=OBJECT_TYPE, object_ids=[pipeline_id])


def _locate(actor: Actor, pipeline_id: UUID, *, lock: bool = False) -> Pipeline:
    """Return the row of one of the actor's own pipelines. Raises NotFound, also for a bound key."""
    if actor.member_id is None or actor.binding is not None:
        raise NotFound
    rows = Pipeline.objects.filter(tenant_id=actor.tenant_id, member_id=actor.member_id, id=pipeline_id)
    row = (rows.select_for_update() if lock else rows).first()
    if row is None:
        raise NotFound
    return row


def _target(row: Pipeline) -> Target:
    return Target(OBJECT_TYPE, row.id, row.tenant_id, private_to=frozenset({row.member_id}), owner_id=row.member_id)


def _require_member(actor: Actor) -> UUID:
    """Return the member whose pipelines the actor may store. Raises Forbidden, also for a key that only reads."""
    permission = Permission.MEMORY_READ
    if actor.member_id is None:
        raise Forbidden("Only a member has pipelines.", permission=permission, rule="member")
    if actor.binding is not None:
        raise Forbidden("A bound key has no stored pipelines.", permission=permission, rule="binding")
    if actor.scopes is not None and Scope.MEMORIES_WRITE not in actor.scopes:
        detail = f"The key lacks the scope {Scope.MEMORIES_WRITE}."
        raise Forbidden(detail, permission=permission, rule="scopes")
    return actor.member_id


def _seal(actor: Actor, row: Pipeline, draft: PipelineDraft) -> StoredPipeline:
    """Check a draft and seal it into the row. Raises Invalid; KeyUnavailable."""
    name = draft.name.strip()
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise Invalid(errors=[FieldError("name", f"1 to {LONGEST_NAME} printable characters")])
    steps = steps_read(draft.steps)
    steps_check(actor=actor, steps=steps)
    plaintext = json.dumps({"name": name, "steps": steps_json(steps)}, ensure_ascii=False).encode()
    scope = member_scope(row.member_id)
    row.sealed = seal_for(tenant_id=row.tenant_id, scope=scope, place=row.id.bytes, plaintext=plaintext)
    return StoredPipeline(row.id, name, steps)


def _open(row: Pipeline) -> StoredPipeline | None:
    """Decrypt a pipeline; None if its key was destroyed."""
    plaintext = open_sealed(tenant_id=row.tenant_id, place=row.id.bytes, blob=bytes(row.sealed))
    if not plaintext:
        return None
    stored = json.loads(plaintext)
    return StoredPipeline(row.id, stored["name"], steps_read(stored["steps"]))
