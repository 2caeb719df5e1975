"""Heat and importance of memories, computed by a job from counts of their use. Reading a memory only changes the
counts.

Heat is uses + exp(−Δt/μ). Importance rises to the log-scaled use of a memory and never falls below its stated value.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from django.db import connection
from pydantic import Field, TypeAdapter

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.jobs.kinds import JobRun, Preview, Step
from governance.jobs.registry import handler
from governance.vocabulary import Permission, Topic, Verb
from vault.cubes.lookup import keep_cubes
from vault.lifecycle.forgetting_policies import MANY_USES, RECENCY_SECONDS

FIRST = UUID(int=0)
PART = 2_000  # memories of one step
MOST_NAMED = 100
LEAST_HEAT, LEAST_IMPORTANCE = 0.01, 0.005  # smaller differences are not written
HEAT = f"""(used.access_count + exp(-greatest(0, extract(epoch FROM
  transaction_timestamp() - coalesce(used.last_accessed_at, cube.created_at)))::float8 / {RECENCY_SECONDS}))"""
OFTEN = f"least(1, ln(1 + used.access_count) / ln(1 + {MANY_USES}))::float8"
DIFFERS = f"abs(used.heat - {HEAT}) >= {LEAST_HEAT}"
RISES = f"""(%(importance)s AND cube.importance <= {OFTEN} - {LEAST_IMPORTANCE}
  AND NOT vault_cube_is_held(cube.tenant_id, cube.id))"""
DUE = f"""
SELECT cube.id, {RISES} FROM vault_cubeuse AS used
  JOIN vault_cube AS cube ON cube.tenant_id = used.tenant_id AND cube.id = used.cube_id
WHERE used.tenant_id = %(tenant)s AND used.cube_id > %(after)s AND cube.deleted_at IS NULL
  AND ({DIFFERS} OR {RISES})
ORDER BY used.cube_id LIMIT %(limit)s
"""
WRITE_HEAT = f"""
UPDATE vault_cubeuse AS used SET heat = {HEAT} FROM vault_cube AS cube
WHERE used.tenant_id = %(tenant)s AND used.cube_id = ANY(%(ids)s::uuid[])
  AND cube.tenant_id = used.tenant_id AND cube.id = used.cube_id
"""
WRITE_IMPORTANCE = f"""
UPDATE vault_cube AS cube SET importance = {OFTEN} FROM vault_cubeuse AS used
WHERE cube.tenant_id = %(tenant)s AND cube.id = ANY(%(ids)s::uuid[])
  AND used.tenant_id = cube.tenant_id AND used.cube_id = cube.id AND {RISES}
RETURNING cube.id
"""


@dataclass(frozen=True)
class BehaviourSettings:
    """Settings of the job. importance: false leaves the importance unchanged. most: memories changed by one run."""

    importance: bool = True
    most: Annotated[int, Field(ge=1, le=10_000_000)] = 1_000_000


SETTINGS = TypeAdapter(BehaviourSettings)


def behaviour_preview(actor: Actor, chosen: Mapping[str, Any]) -> Preview:
    """Return the memories whose heat or importance a run would write now. Raises Forbidden."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    settings = SETTINGS.validate_python(dict(chosen))
    with acting(actor):
        due = _find_due(actor, settings, FIRST, settings.most)
    return Preview(len(due), tuple(due)[:MOST_NAMED])


@handler(Topic.BEHAVIOUR_UPDATE, settings=BehaviourSettings, preview=behaviour_preview, default_cron="30 2 * * *")
def behaviour_update(run: JobRun) -> Callable[[], Step]:
    """Write heat and importance of the next PART memories, as the system actor. done: memories written.

    Repeated or concurrent runs write the same values, because both follow from the counts. Held memories keep their
    importance.
    Writes: CubeUse …, Cube …, AuditEntry?.
    """
    chosen = SETTINGS.validate_python(dict(run.settings))
    after = UUID(run.state.get("after", str(FIRST)))
    part = min(PART, chosen.most - run.done)

    def write() -> Step:
        with acting(run.system):
            due = _find_due(run.system, chosen, after, part)
            raised = _write_heat_and_importance(run.system, due, chosen)
        return _compose_step(run, list(due), raised, chosen)

    return write


def _find_due(actor: Actor, chosen: BehaviourSettings, after: UUID, limit: int) -> dict[UUID, bool]:
    """Return the next memories to write: id → True if its importance rises."""
    values: dict[str, Any] = {
        "tenant": actor.tenant_id,
        "after": after,
        "limit": limit,
        "importance": chosen.importance,
    }
    with connection.cursor() as cursor:
        cursor.execute(DUE, values)
        return {cube_id: bool(rises) for cube_id, rises in cursor.fetchall()}


def _write_heat_and_importance(actor: Actor, due: Mapping[UUID, bool], chosen: BehaviourSettings) -> list[UUID]:
    """Write heat and importance, and return the ids of memories whose importance was raised."""
    rising = [cube_id for cube_id, rises in due.items() if rises]
    values: dict[str, Any] = {"tenant": actor.tenant_id, "ids": list(due), "importance": chosen.importance}
    keep_cubes(due)
    with connection.cursor() as cursor:
        cursor.execute(WRITE_HEAT, values)
        if not rising:
            return []
        cursor.execute(WRITE_IMPORTANCE, {**values, "ids": rising})
        raised = sorted(cube_id for (cube_id,) in cursor.fetchall())
    if raised:
        record(actor=actor, verb=Verb.MEMORY_IMPORTANCE_RAISED, object_type="memory", object_ids=raised)
    return raised


def _compose_step(run: JobRun, ids: list[UUID], raised: list[UUID], chosen: BehaviourSettings) -> Step:
    done = run.done + len(ids)
    result = {"changed": done, "importance": run.result.get("importance", 0) + len(raised)}
    is_last = len(ids) < PART or done >= chosen.most
    return Step(state=None if is_last else {"after": str(ids[-1])}, done=done, total=done, result=result)
