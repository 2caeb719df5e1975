"""Storage tiers: hot memories have a vector, cold ones are searched by words only, archived ones on request.

A rule moves unused memories to a colder tier, by age, heat and namespace. It is a kind of job, so that it can be
scheduled and previewed (docs/decisions/0045).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db import connection, transaction
from pydantic import Field, TypeAdapter

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import DomainError, IllegalTransition, Unavailable
from governance.jobs.kinds import JobRun, Preview, Step
from governance.jobs.registry import handler
from governance.vocabulary import Permission, Topic, Verb
from vault.cubes.eligibility import SEARCHABLE, tier_of
from vault.cubes.moves_and_rollbacks import cube_change_ask
from vault.cubes.services import emit_cubes_written
from vault.cubes.writer.prepared_texts import provide_texts, read_stored_texts
from vault.embeddings.vectors import embeddings_delete
from vault.lifecycle.attempts import ids_to_retry, plan_next_step
from vault.lifecycle.services import cube_transition
from vault.models import Cube
from vault.vocabulary import State, Tier

PART = 100  # memories of one step
MOST_NAMED = 100
FIRST = UUID(int=0)
UNUSED = """
SELECT cube.id FROM vault_cube AS cube
  JOIN vault_namespace AS place ON place.tenant_id = cube.tenant_id AND place.id = cube.namespace_id
  LEFT JOIN vault_cubeuse AS used ON used.tenant_id = cube.tenant_id AND used.cube_id = cube.id
WHERE cube.tenant_id = %(tenant)s AND cube.id > %(after)s AND cube.state = ANY(%(states)s)
  AND NOT (cube.is_cold AND %(to)s = 'cold') AND cube.deleted_at IS NULL
  AND (cube.expires_at IS NULL OR cube.expires_at > transaction_timestamp())
  AND coalesce(used.last_accessed_at, cube.created_at) < transaction_timestamp() - make_interval(days => %(days)s)
  AND cube.updated_at < transaction_timestamp() - make_interval(days => %(days)s)
  AND coalesce(used.heat, 0) <= %(heat)s
  AND (%(path)s = '' OR place.path = %(path)s OR starts_with(place.path, %(path)s || '/'))
  AND NOT vault_cube_is_held(cube.tenant_id, cube.id)
ORDER BY cube.id LIMIT %(limit)s
"""
EVERY = 2**31 - 1


@dataclass(frozen=True)
class TierRule:
    """A rule that moves memories to the tier `to` if they were not used or changed for `days` days and heat ≤
    `max_heat`.

    namespace: a path, which includes all paths below it; empty: all namespaces.
    """

    to: Literal["cold", "archive"] = "cold"
    days: Annotated[int, Field(ge=0, le=36_500)] = 90
    max_heat: Annotated[float, Field(ge=0)] = 0.0
    namespace: str = ""


RULE: TypeAdapter[TierRule] = TypeAdapter(TierRule)


def cube_tier(*, actor: Actor, cube_id: UUID, to: Tier, job_id: UUID | None = None) -> Cube:
    """Move a memory to another tier, without a new version. A move to or from the archive is a state transition.

    A cold memory loses its vector at once; a hot one gets a new one from the indexing job. Use inside `acting`, or
    alone.
    Raises NotFound; Forbidden; Held; IllegalTransition. Writes: Cube, AuditEntry, OutboxEvent?; deletes Embedding ….
    """
    with acting(actor):
        cube = cube_change_ask(actor=actor, cube_id=cube_id)
        before = tier_of(cube)
        if before is to:
            return cube
        if to is Tier.ARCHIVE:
            return cube_transition(actor=actor, cube_id=cube_id, to=State.ARCHIVED, job_id=job_id)
        if before is Tier.ARCHIVE and to is Tier.HOT:
            return cube_transition(actor=actor, cube_id=cube_id, to=State.ACTIVATED, job_id=job_id)
        if cube.state not in SEARCHABLE:
            raise IllegalTransition(f"A memory that is {cube.state} cannot be stored {to}.")
        cube.is_cold = to is Tier.COLD
        Cube.objects.filter(id=cube.id).update(is_cold=cube.is_cold)
        if cube.is_cold:
            embeddings_delete(actor.tenant_id, [cube.id])
        else:
            emit_cubes_written(actor, [cube])
        record(
            actor=actor,
            verb=Verb.MEMORY_TIERED,
            object_type="memory",
            object_ids=[cube.id],
            version=cube.version,
            detail={"from": before, "to": to},
        )
    return cube


def tiers_preview(actor: Actor, settings: Mapping[str, Any]) -> Preview:
    """Return the memories that a run of the rule would move. Raises Forbidden. Writes nothing."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        ids = _find_unused(actor, RULE.validate_python(dict(settings)), FIRST, EVERY)
    return Preview(len(ids), tuple(ids[:MOST_NAMED]))


@handler(Topic.TIERS_APPLY, permission=Permission.OPERATIONS_MANAGE, settings=TierRule, preview=tiers_preview)
def tiers_apply(run: JobRun) -> Callable[[], Step]:
    """Move the next PART memories. done: memories processed. Writes what `cube_tier` writes.

    Failed memories are retried after all others, and reported after the last attempt (vault/lifecycle/attempts.py).
    """
    rule = RULE.validate_python(dict(run.settings))
    after = UUID(run.state.get("after", str(FIRST)))
    with acting(run.actor):
        again = ids_to_retry(run.state)
        ids = _find_unused(run.actor, rule, after, PART) if again is None else again
    texts = read_stored_texts(actor=run.actor, cube_ids=ids if rule.to == "archive" else [])

    def write() -> Step:
        with provide_texts(texts):
            return _move_part(run, rule, ids)

    return write


def _move_part(run: JobRun, rule: TierRule, ids: list[UUID]) -> Step:
    authorize(run.actor, Permission.OPERATIONS_MANAGE)
    is_again = ids_to_retry(run.state) is not None
    moved, failed = 0, dict[UUID, str]()
    for cube_id in ids:
        try:
            with transaction.atomic():
                cube_tier(actor=run.actor, cube_id=cube_id, to=Tier(rule.to), job_id=run.job_id)
            moved += 1
        except Unavailable:
            raise
        except DomainError as failure:
            failed[cube_id] = failure.code
    done = run.done + (0 if is_again else len(ids))
    codes = Counter({} if is_again else run.result.get("codes", {})) + Counter(failed.values())
    result = {"changed": run.result.get("changed", 0) + moved, "codes": dict(codes)}
    state, parked = plan_next_step(run.state, ids[-1] if len(ids) == PART else None, failed)
    return Step(state=state, done=done, total=None if state else done, result=result, parked=parked)


def _find_unused(actor: Actor, rule: TierRule, after: UUID, limit: int) -> list[UUID]:
    parameters: dict[str, Any] = {
        "tenant": actor.tenant_id,
        "after": after,
        "states": [str(state) for state in SEARCHABLE],
        "to": rule.to,
        "days": rule.days,
        "heat": rule.max_heat,
        "path": rule.namespace,
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(UNUSED, parameters)
        return [row[0] for row in cursor.fetchall()]
