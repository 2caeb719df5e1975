"""The numbers of audit entries over time, for the chart above the log."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import connection

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.reading.queries import READS, AuditQuery
from governance.database import acting, database_now
from governance.models import AuditEntry
from governance.vocabulary import Outcome, Permission

COLUMNS, DAYS = 84, 7  # two hours each
MOST_CHARTED = 20_000
COUNT = """
SELECT width_bucket(extract(epoch FROM at), extract(epoch FROM %s::timestamptz), extract(epoch FROM %s::timestamptz),
    %s),
  CASE WHEN outcome = %s THEN 2 WHEN verb = ANY (%s) THEN 0 ELSE 1 END, count(*)
FROM ({entries}) AS entry GROUP BY 1, 2
"""


@dataclass(frozen=True)
class Histogram:
    """The numbers of entries in COLUMNS equal parts of a period, oldest first.

    is_cut: the period may have more entries than were counted, which are the newest.
    """

    since: datetime
    until: datetime
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    refused: tuple[int, ...]
    is_cut: bool


def entries_histogram(*, actor: Actor, query: AuditQuery, most: int = MOST_CHARTED) -> Histogram:
    """Count the matching entries of the last DAYS days, or of the period of the query, by time and kind.

    Raises Forbidden. One query over the newest `most` entries.
    """
    authorize(actor, Permission.AUDIT_READ)
    with acting(actor):
        now = database_now()
        until = min(query.before or now, now)
        since = min(query.since or until - timedelta(days=DAYS), until - timedelta(seconds=1))
        query = replace(query, since=since, before=None if until == now else until, is_reading=None)
        rows = AuditEntry.objects.filter(query.condition(), tenant_id=actor.tenant_id).order_by("-id")
        entries, given = rows.values("at", "verb", "outcome")[:most].query.sql_with_params()
        counts = [[0] * COLUMNS for _kind in range(3)]
        with connection.cursor() as cursor:
            cursor.execute(COUNT.format(entries=entries), [since, until, COLUMNS, Outcome.DENIED, READS, *given])
            for column, kind, number in cursor.fetchall():
                counts[kind][min(max(column, 1), COLUMNS) - 1] += number
    reads, writes, refused = (tuple(numbers) for numbers in counts)
    return Histogram(since, until, reads, writes, refused, sum(map(sum, counts)) >= most)
