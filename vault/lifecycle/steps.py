"""Writes state transitions of locked memories: compare-and-set, one row for each, then an update of the index."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection

from governance.actor import Actor
from governance.audit.services import record
from governance.errors import Conflict, IllegalTransition
from governance.ids import uuid7
from governance.outbox.services import emit
from governance.vocabulary import Topic, Verb
from vault.cubes.eligibility import SEARCHABLE, index_cubes
from vault.cubes.services import EVENT_CHUNK, emit_cubes_written
from vault.lifecycle.rules import Cause, is_legal, legal_states
from vault.models import Cube
from vault.vocabulary import State

INSERT = """
INSERT INTO vault_statetransition
  (id, tenant_id, cube_id, step, from_state, to_state, principal_kind, principal_id, reason, job_id)
SELECT entry.id, %(tenant)s::uuid, entry.cube_id, coalesce(former.step, 0) + 1, %(before)s, %(to)s, %(kind)s,
  %(principal)s::uuid, entry.reason, %(job)s::uuid
FROM unnest(%(ids)s::uuid[], %(cubes)s::uuid[], %(reasons)s::text[]) AS entry (id, cube_id, reason)
CROSS JOIN LATERAL (
  SELECT max(step) AS step FROM vault_statetransition
  WHERE tenant_id = %(tenant)s::uuid AND cube_id = entry.cube_id
) AS former
"""


@dataclass(frozen=True)
class PlannedStep:
    """A locked memory and its new state. reason: text for people, at most 500 characters."""

    cube: Cube
    to: State
    reason: str = field(default="", repr=False)


def refuse_illegal(state: State, to: State, cause: Cause = Cause.REQUEST) -> None:
    """Raise IllegalTransition, which names the legal states, unless the transition is legal."""
    if is_legal(state, to, cause):
        return
    legal = " or ".join(legal_states(state, cause)) or "no other state"
    raise IllegalTransition(f"From {state} a memory can go to {legal}, not to {to}.")


def steps_write(actor: Actor, steps: Sequence[PlannedStep], job_id: UUID | None = None) -> None:
    """Change the state of each memory, and move its postings and vector to the index of that state.

    The caller has checked the permission and that each transition is legal. job_id: the job that makes the change.
    Raises Conflict if another transition came first. Writes: Cube …, StateTransition …, Posting …, OutboxEvent?, and an
    AuditEntry for each pair of states.
    """
    if not steps:
        return
    groups: dict[tuple[State, State], list[PlannedStep]] = defaultdict(list)
    for step in steps:
        groups[State(step.cube.state), step.to].append(step)
    for (before, to), group in groups.items():
        _insert_steps(actor, group, before, to, job_id)
        _change_states([step.cube for step in group], before, to)
    cubes = [step.cube for step in steps]
    entered = set(index_cubes(cubes))
    if entered:
        emit_cubes_written(actor, [cube for cube in cubes if cube.id in entered])
    _content_move(actor, groups)
    for (before, to), group in groups.items():
        record(
            actor=actor,
            verb=Verb.MEMORY_TRANSITIONED,
            object_type="memory",
            object_ids=[step.cube.id for step in group],
            version=group[0].cube.version if len(group) == 1 else None,
            detail={"from": before, "to": to},
        )


def _content_move(actor: Actor, groups: Mapping[tuple[State, State], Sequence[PlannedStep]]) -> None:
    """Request the job that moves content to the blob store or back (vault/lifecycle/archive.py)."""
    moving = [str(step.cube.id) for pair, group in groups.items() if State.ARCHIVED in pair for step in group]
    for start in range(0, len(moving), EVENT_CHUNK):
        emit(actor=actor, topic=Topic.BLOBS_DUE, payload={"ids": moving[start : start + EVENT_CHUNK]})


def _insert_steps(actor: Actor, steps: Sequence[PlannedStep], before: State, to: State, job_id: UUID | None) -> None:
    """Insert a StateTransition for each memory. Its number is the memory's highest step plus 1."""
    values: dict[str, Any] = {
        "tenant": actor.tenant_id,
        "ids": [uuid7() for _ in steps],
        "cubes": [step.cube.id for step in steps],
        "reasons": [step.reason for step in steps],
        "before": before,
        "to": to,
        "kind": actor.principal_kind,
        "principal": actor.principal_id,
        "job": job_id,
    }
    with connection.cursor() as cursor:
        cursor.execute(INSERT, values)


def _change_states(cubes: Sequence[Cube], before: State, to: State) -> None:
    """Set the state of memories in one UPDATE, and clear `is_indexed` if the new state is not searchable. Raises
    Conflict."""
    left = {} if to in SEARCHABLE else {"is_indexed": False}
    changed = Cube.objects.filter(id__in=[cube.id for cube in cubes], state=before).update(state=to, **left)
    if changed != len(cubes):
        raise Conflict("The state of the memory was changed meanwhile.")
    for cube in cubes:
        cube.state = to
        cube.is_indexed = cube.is_indexed and not left
