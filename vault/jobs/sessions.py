"""The end of a session: what its agents shared in a context pool is deleted."""

from collections.abc import Callable
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from governance.access.decisions.services import authorize
from governance.actor import Actor, system_actor
from governance.audit.services import record
from governance.database import acting
from governance.ids import uuid7
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.jobs.selectors import JobView
from governance.jobs.services import job_create
from governance.tenants.selectors import tenant_ids
from governance.vocabulary import Permission, Topic, Verb
from vault.cubes.services import cubes_hide
from vault.models import Cube, Namespace
from vault.namespaces.mounts import session_token
from vault.namespaces.services import namespace_target
from vault.vocabulary import NamespaceKind

PART = 100  # memories of one step
IDLE = """
SELECT pool.id FROM vault_namespace AS pool
WHERE pool.tenant_id = %s AND pool.kind = %s AND pool.ended_at IS NULL
  AND pool.created_at < transaction_timestamp() - make_interval(secs => %s)
  AND NOT EXISTS (SELECT 1 FROM vault_cube AS cube WHERE cube.tenant_id = pool.tenant_id
    AND cube.namespace_id = pool.id AND cube.updated_at >= transaction_timestamp() - make_interval(secs => %s))
  AND NOT EXISTS (SELECT 1 FROM governance_job AS job WHERE job.tenant_id = pool.tenant_id AND job.kind = %s
    AND job.settings->'namespaces' @> to_jsonb(pool.id::text))
"""


def session_end_ask(*, actor: Actor, session_id: str) -> list[Namespace]:
    """The open context pools of a session, if the actor may delete what is in them. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_DELETE)
    with acting(actor):
        token = session_token(actor, session_id)
        rows = Namespace.objects.filter(tenant_id=actor.tenant_id, kind=NamespaceKind.CONTEXT_POOL, ended_at=None)
        pools = list(rows.filter(session_token=token).order_by("id"))
        for pool in pools:
            authorize(actor, Permission.MEMORY_DELETE, namespace_target(pool))
    return pools


def session_end_later(*, actor: Actor, session_id: str) -> JobView:
    """Ask for the job that deletes the context pools of a session. Raises Forbidden. Writes: Job, AuditEntry,
    OutboxEvent."""
    with acting(actor):
        pools = session_end_ask(actor=actor, session_id=session_id)
        return job_create(
            actor=actor, kind=Topic.SESSION_END, settings={"namespaces": [str(pool.id) for pool in pools]}
        )


def sessions_end_idle() -> int:
    """Ask for the end of each context pool that nobody used for SESSION_IDLE_HOURS; returns how many.

    Writes: Job …, AuditEntry …, OutboxEvent ….
    """
    asked = 0
    for tenant_id in tenant_ids():
        actor = system_actor(tenant_id=tenant_id, request_id=f"sessions-{uuid7()}")
        seconds = settings.SESSION_IDLE_HOURS * 3600
        with acting(actor), connection.cursor() as cursor:
            cursor.execute(IDLE, [tenant_id, NamespaceKind.CONTEXT_POOL, seconds, seconds, Topic.SESSION_END])
            idle = [str(namespace_id) for (namespace_id,) in cursor.fetchall()]
            if idle:
                job_create(actor=actor, kind=Topic.SESSION_END, settings={"namespaces": idle})
                asked += len(idle)
    return asked


@handler(Topic.SESSION_END, permission=Permission.MEMORY_DELETE)
def sessions_end(run: JobRun) -> Callable[[], Step]:
    """Delete the next PART memories of some context pools; at the end the pools. done: memories.

    What is held stays, and is counted in the result.
    """

    def write() -> Step:
        actor = run.actor
        pools = list(
            Namespace.objects.filter(id__in=[UUID(text) for text in run.settings["namespaces"]], ended_at=None)
        )
        for pool in pools:
            authorize(actor, Permission.MEMORY_DELETE, namespace_target(pool))
        inside = Cube.objects.filter(tenant_id=actor.tenant_id, namespace__in=pools, deleted_at=None)
        cubes = list(inside.free().select_related("namespace").order_by("id").select_for_update(of=("self",))[:PART])
        if cubes:
            cubes_hide(actor=actor, cubes=cubes)
        done = run.done + len(cubes)
        if len(cubes) == PART:
            return Step(state={"after": str(cubes[-1].id)}, done=done, result={"deleted": done})
        ids = [pool.id for pool in pools]
        Namespace.objects.filter(id__in=ids).update(ended_at=Now())
        if ids:
            record(actor=actor, verb=Verb.NAMESPACE_ENDED, object_type="namespace", object_ids=ids)
        return Step(done=done, total=done, result={"deleted": done, "held": inside.count()})

    return write
