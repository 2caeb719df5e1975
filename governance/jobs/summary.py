"""Numbers of the jobs of one day."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min
from django.db.models.functions import TruncHour

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting, database_now
from governance.ids import uuid7_floor
from governance.jobs.selectors import OPEN, jobs_readable
from governance.vocabulary import JobStatus, Permission

HOURS = 24


@dataclass(frozen=True)
class JobsSummary:
    """Numbers of the jobs that the actor may read. done, failed: by the hour in which they were requested, for the last
    24 hours, oldest first. kinds: (kind, number of jobs in that time), most first. open: the number of unfinished jobs.
    """

    done: tuple[int, ...]
    failed: tuple[int, ...]
    kinds: tuple[tuple[str, int], ...]
    open: int
    oldest_open: datetime | None
    dead_letters: int


def jobs_summary(*, actor: Actor) -> JobsSummary:
    """Return the numbers of the actor's jobs. Three queries, each by an index. Raises Forbidden."""
    authorize(actor, Permission.JOB_READ)
    with acting(actor):
        rows, now = jobs_readable(actor), database_now()
        first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
        counted = (
            rows.filter(id__gte=uuid7_floor(first))
            .annotate(hour=TruncHour("created_at"))
            .values_list("hour", "kind", "status")
            .annotate(count=Count("id"))
        )
        groups = list(counted)
        waiting = rows.filter(status__in=OPEN).aggregate(count=Count("id"), oldest=Min("created_at"))
        dead_letters = rows.filter(dead_letter=True).count()
    hours = [first + timedelta(hours=hour) for hour in range(HOURS)]
    return JobsSummary(
        done=_count_by_hour(groups, hours, JobStatus.SUCCEEDED),
        failed=_count_by_hour(groups, hours, JobStatus.FAILED),
        kinds=_count_by_kind(groups),
        open=waiting["count"],
        oldest_open=waiting["oldest"],
        dead_letters=dead_letters,
    )


Group = tuple[datetime, str, str, int]


def _count_by_hour(groups: list[Group], hours: list[datetime], wanted: JobStatus) -> tuple[int, ...]:
    counts = dict.fromkeys(hours, 0)
    for hour, _kind, status, count in groups:
        if status == wanted and hour in counts:
            counts[hour] += count
    return tuple(counts.values())


def _count_by_kind(groups: list[Group]) -> tuple[tuple[str, int], ...]:
    counts: dict[str, int] = {}
    for _hour, kind, _status, count in groups:
        counts[kind] = counts.get(kind, 0) + count
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
