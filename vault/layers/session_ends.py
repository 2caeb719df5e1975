"""The end of a stream: its queue moves to the mid-term layer, and what its segments state is distilled, hot or not.

A stream ends when the person whose persona it is begins another, or when nothing was said for STREAM_IDLE_MINUTES; an
agent's talks with several members do not end each other. A further turn opens it again. The paper distils hot segments
only; a person who tells thirty things once would never have a profile (docs/decisions/0079).
"""

from collections.abc import Sequence
from uuid import UUID

from django.conf import settings

from governance.actor import Actor, system_actor
from governance.database import acting
from governance.ids import uuid7
from governance.outbox.services import emit
from governance.prepared import prepared_cursor, sql_array
from governance.tenants.selectors import tenant_ids
from governance.vocabulary import PersonaKind, Topic

END_OTHERS = """
UPDATE vault_stream SET ended_at = statement_timestamp()
WHERE tenant_id = %s AND persona_id = %s AND id <> %s AND ended_at IS NULL
  AND EXISTS (SELECT 1 FROM governance_persona WHERE id = persona_id AND kind = %s)
RETURNING id
"""
END_IDLE = """
UPDATE vault_stream SET ended_at = statement_timestamp()
WHERE tenant_id = %s AND ended_at IS NULL AND updated_at < transaction_timestamp() - make_interval(mins => %s)
RETURNING id
"""
DRAIN = """
UPDATE vault_page SET layer = 'mid_term'
WHERE tenant_id = %s AND stream_id = ANY (%s::uuid[]) AND layer = 'short_term'
"""


def streams_end_others(actor: Actor, *, persona_id: UUID, stream_id: UUID) -> None:
    """End all streams of a person but one, in the caller's transaction. Writes: Stream …, Page …, OutboxEvent …."""
    _drain(actor, _fetch_ids(END_OTHERS, [actor.tenant_id, persona_id, stream_id, PersonaKind.USER]))


def streams_end_idle() -> int:
    """End the idle streams of all tenants; returns how many. Writes: Stream …, Page …, OutboxEvent …."""
    ended = 0
    for tenant_id in tenant_ids():
        actor = system_actor(tenant_id=tenant_id, request_id=f"streams-{uuid7()}")
        with acting(actor):
            ids = _fetch_ids(END_IDLE, [tenant_id, settings.STREAM_IDLE_MINUTES])
            _drain(actor, ids)
            ended += len(ids)
    return ended


def _drain(actor: Actor, stream_ids: Sequence[UUID]) -> None:
    """Move what is left in the queues of streams on. Placement asks for the distillation of their segments."""
    if not stream_ids:
        return
    with prepared_cursor() as cursor:
        cursor.execute(DRAIN, [actor.tenant_id, sql_array(stream_ids)])
    for stream_id in sorted(stream_ids):
        emit(actor=actor, topic=Topic.PAGES_WRITTEN, payload={"stream": str(stream_id)})


def _fetch_ids(statement: str, values: Sequence[UUID | int | str]) -> list[UUID]:
    with prepared_cursor() as cursor:
        cursor.execute(statement, values)
        return [row[0] for row in cursor.fetchall()]
