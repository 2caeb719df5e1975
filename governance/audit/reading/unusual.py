"""Unusual reads: by memory and by principal, the last day compared with the 28 days before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import connection

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.reading.queries import CLOCKS_DIFFER
from governance.audit.reading.rules import FEWEST_READS, Usual, is_unusual, measure_usual, score
from governance.audit.services import record
from governance.database import acting, database_now
from governance.ids import uuid7_floor
from governance.vocabulary import Permission, Verb

DAYS = 28
MOST = 200  # of the most read that are looked at
READS = (Verb.MEMORY_READ, Verb.MEMORY_LISTED, Verb.MEMORY_SEARCHED, Verb.VERSIONS_READ, Verb.CONVERSATION_READ)
# The condition "id >= …" gives the index its range.
LAST_DAY = """
SELECT {name} AS named, count(*)
FROM governance_auditentry AS entry {more}
WHERE entry.verb = ANY(%(verbs)s) AND entry.outcome = 'done' AND entry.at > transaction_timestamp() - interval '1 day'
  AND entry.id >= %(since_yesterday)s
GROUP BY 1 HAVING count(*) >= %(fewest)s ORDER BY 2 DESC, 1 LIMIT %(most)s
"""
DAYS_BEFORE = """
SELECT {name} AS named, floor(extract(epoch FROM transaction_timestamp() - entry.at) / 86400)::integer, count(*)
FROM governance_auditentry AS entry {more}
WHERE entry.verb = ANY(%(verbs)s) AND entry.outcome = 'done'
  AND entry.at <= transaction_timestamp() - interval '1 day'
  AND entry.at > transaction_timestamp() - make_interval(days => %(days)s + 1)
  AND entry.id >= %(since_then)s AND {name} = ANY(%(wanted)s)
GROUP BY 1, 2
"""


class ReadBy(StrEnum):
    """The key by which reads are grouped."""

    OBJECT = "object"
    PRINCIPAL = "principal"


OF = {
    ReadBy.OBJECT: {"name": "object_id", "more": "CROSS JOIN LATERAL unnest(entry.object_ids) AS object_id"},
    ReadBy.PRINCIPAL: {"name": "entry.principal_id", "more": ""},
}


@dataclass(frozen=True)
class UnusualReading:
    """The reads in the last 24 hours, and the usual number in a day; a `score` above rules.LIMIT is unusual."""

    by: ReadBy
    id: UUID
    reads: int
    usual: Usual
    score: float


def unusual_reading(*, actor: Actor) -> list[UnusualReading]:
    """Return memories that are read, and principals who read, far more than usual, the most unusual first.

    Two queries for each kind. Raises Forbidden. Writes: AuditEntry.
    """
    authorize(actor, Permission.AUDIT_READ)
    with acting(actor):
        found = [reading for by in ReadBy for reading in _find_unusual(by)]
        record(
            actor=actor,
            verb=Verb.AUDIT_REPORTED,
            object_type="audit",
            object_ids=[actor.tenant_id],
            detail={"report": "unusual_reads", "rows": len(found)},
        )
    return sorted(found, key=lambda reading: (-reading.score, reading.id))


def _find_unusual(by: ReadBy) -> list[UnusualReading]:
    now = database_now()
    asked: dict[str, Any] = {
        "verbs": list(READS),
        "fewest": FEWEST_READS,
        "most": MOST,
        "days": DAYS,
        "since_yesterday": uuid7_floor(now - timedelta(days=1) - CLOCKS_DIFFER),
        "since_then": uuid7_floor(now - timedelta(days=DAYS + 1) - CLOCKS_DIFFER),
    }
    with connection.cursor() as cursor:
        cursor.execute(LAST_DAY.format(**OF[by]), asked)
        reads: dict[UUID, int] = dict(cursor.fetchall())
        cursor.execute(DAYS_BEFORE.format(**OF[by]), asked | {"wanted": list(reads)})
        before = _count_by_day(cursor.fetchall())
    usual = {id: measure_usual(before.get(id, [0] * DAYS)) for id in reads}
    return [
        UnusualReading(by, id, count, usual[id], round(score(count, usual[id]), 1))
        for id, count in reads.items()
        if is_unusual(count, usual[id])
    ]


def _count_by_day(rows: Sequence[tuple[UUID, int, int]]) -> dict[UUID, list[int]]:
    """Return the reads of DAYS days for each id; a day without any stays 0."""
    found: dict[UUID, list[int]] = {}
    for named, day, count in rows:
        found.setdefault(named, [0] * DAYS)[min(max(day, 1), DAYS) - 1] += count
    return found
