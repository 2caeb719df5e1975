"""The overview of the memories that an actor may see, read from daily counts instead of the memories."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Count, Q, Sum
from django.db.models.functions import TruncDate

from governance.access.decisions.rules import sees_private
from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting, database_now
from governance.policies.active import policies_active
from governance.policies.rules import QuotaTarget, limits_of
from governance.vocabulary import JobStatus, Measure, Permission, QuotaTargetKind
from vault.cubes.eligibility import SEARCHABLE
from vault.cubes.visibility import exceptions_of
from vault.listing.facets import facets_count
from vault.listing.queries import MemoryQuery
from vault.models import Cube, DailyCount, Namespace
from vault.overview.counts import ANSWERED, EMPTY, FAULT, MEASURES, VERIFIED
from vault.vocabulary import Counted, State, Tier

MOST_LIVE = 20_000  # memories of a live count
SOON = 7  # days in which something expires soon
MOST_PLACES = 8
GROUPS = (Counted.LAYER, Counted.STATE, Counted.SEMANTIC_TYPE)
TENANT_WIDE = (Counted.USAGE, Counted.AUDIT, Counted.TIER, Counted.TIER_BYTES)
Series = dict[str, list[int]]
"""By value, a number for each day, oldest first."""


@dataclass(frozen=True)
class Use:
    """The tenant's use of a measure. limit: None without a quota."""

    used: int
    limit: int | None

    @property
    def percent(self) -> int | None:
        return None if self.limit is None else min(100, self.used * 100 // max(1, self.limit))


@dataclass(frozen=True)
class AuditState:
    """The state of the audit log. day: of the last verification from its first entry; upto: the last valid seal; fault:
    the first invalid one.
    """

    day: date
    upto: int
    fault: int | None


@dataclass(frozen=True)
class Overview:
    """The numbers of the overview. counted_at: None before the first count. is_live: single memories are hidden from
    the actor, so its memories were counted now, up to a limit (`is_capped`): the series have the memories that still
    exist, from the day of their creation; they are empty for more than MOST_LIVE memories.

    memories: searchable ones; growth: in the last seven days. series: by the value of the group. expiring: by day.
    tiers: memories and bytes of each storage tier; None without the right to see use. searches: answered and empty ones
    of each day. jobs: by status. use and audit: None without the right to see them.
    """

    days: tuple[date, ...]
    counted_at: datetime | None
    memories: int
    is_live: bool = False
    is_capped: bool = False
    growth: int | None = None
    series: Series = field(default_factory=dict)
    states: Mapping[str, int] = field(default_factory=dict)
    places: Sequence[tuple[str, int]] = ()
    expiring: Mapping[date, int] = field(default_factory=dict)
    searches: Series = field(default_factory=dict)
    jobs: Series = field(default_factory=dict)
    use: Mapping[Measure, Use] | None = None
    audit: AuditState | None = None
    tiers: Mapping[Tier, tuple[int, int]] | None = None

    @property
    def expiring_soon(self) -> int:
        return sum(self.expiring.values())

    @property
    def searches_total(self) -> int:
        return sum(map(sum, self.searches.values()))

    @property
    def answered_percent(self) -> float | None:
        total = self.searches_total
        return None if not total else 100 * sum(self.searches.get(ANSWERED, [])) / total


Counts = dict[Counted, dict[date, dict[str, int]]]


def overview_get(*, actor: Actor, days: int, group: Counted = Counted.LAYER) -> Overview:
    """Return the last `days` days, grouped by one of GROUPS. Raises Forbidden. Queries: three; for a live count seven.

    Writes: AuditEntry for a live count.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        today = database_now().date()
        span = tuple(today - timedelta(days=back) for back in range(days - 1, -1, -1))
        is_live = bool(exceptions_of(actor, lambda: Namespace.objects.visible_to(actor)).denied)
        counts, counted_at = _load_counts(actor, span, group)
        shown = _count_live(actor, span, group) if is_live else _count_memories(actor, counts, span, group)
        return Overview(
            days=span,
            counted_at=counted_at,
            is_live=is_live,
            searches=_daily_series(counts[Counted.SEARCH], span, (ANSWERED, EMPTY)),
            jobs=_daily_series(counts[Counted.JOB], span, tuple(JobStatus)),
            use=_quota_use(actor, counts) if is_allowed(actor, Permission.POLICY_READ) else None,
            tiers=_count_tiers(counts) if is_allowed(actor, Permission.POLICY_READ) else None,
            audit=_audit_state(counts) if is_allowed(actor, Permission.AUDIT_READ) else None,
            **shown,
        )


def _load_counts(actor: Actor, span: Sequence[date], group: Counted) -> tuple[Counts, datetime | None]:
    """Return the counts that the actor may read, and the time of the newest. Includes one day before the span."""
    mine = Q(member=None) | Q(member_id=actor.member_id)
    everybodys = Q() if sees_private(actor) else mine
    memory = Q(namespace__in=Namespace.objects.visible_to(actor)) & everybodys
    people = Q(name=Counted.SEARCH) & (
        Q() if is_allowed(actor, Permission.AUDIT_READ) else Q(member_id=actor.member_id)
    )
    jobs = Q(name=Counted.JOB) & (Q() if sees_private(actor) else Q(member_id=actor.member_id))
    tenant = Q(name__in=TENANT_WIDE, member=None)
    of_memories = Q(name__in={group, Counted.LAYER, Counted.STATE, Counted.EXPIRY}) & memory
    rows = DailyCount.objects.filter(of_memories | people | jobs | tenant, tenant_id=actor.tenant_id)
    rows = rows.filter(name__in=[*GROUPS, Counted.EXPIRY, Counted.SEARCH, Counted.JOB, *TENANT_WIDE])
    found: Counts = defaultdict(lambda: defaultdict(dict))
    since = span[0] - timedelta(days=SOON)
    summed = rows.filter(day__gte=since).order_by().values_list("name", "day", "value").annotate(total=Sum("count"))
    for name, day, value, total in summed:
        found[Counted(name)][day][value] = int(total)
    newest = DailyCount.objects.filter(tenant_id=actor.tenant_id, name=Counted.USAGE).order_by("-day")
    return found, newest.values_list("created_at", flat=True).first()


def _count_memories(actor: Actor, counts: Counts, span: Sequence[date], group: Counted) -> dict[str, Any]:
    layers, today = counts[Counted.LAYER], span[-1]
    present = _sum_searchable(_counts_at(layers, today))
    before = _counts_at(layers, today - timedelta(days=SOON))
    until = today + timedelta(days=SOON)
    expiring = {date.fromisoformat(day): count for day, count in _counts_at(counts[Counted.EXPIRY], today).items()}
    return {
        "memories": present,
        "growth": present - _sum_searchable(before) if before else None,
        "series": _carry_forward(counts[group], span),
        "states": _counts_at(counts[Counted.STATE], today),
        "places": _rank_namespaces(actor, max(layers, default=today)),
        "expiring": {day: count for day, count in sorted(expiring.items()) if today <= day < until},
    }


def _count_live(actor: Actor, span: Sequence[date], group: Counted) -> dict[str, Any]:
    counted = facets_count(actor=actor, query=MemoryQuery())
    total = counted["total"][0] if counted["total"] else None
    births = _count_births(actor, group)
    is_capped = bool(total and total.capped)
    return {
        "memories": _sum_searchable(_sum_values(births)) if births else (total.count or 0) if total else 0,
        "is_capped": is_capped and not births,
        "series": {
            value: [sum(n for born, n in days.items() if born <= day) for day in span] for value, days in births.items()
        },
        "states": {value.value: value.count or 0 for value in counted["state"]},
        "places": [(value.value, value.count) for value in counted["namespace"] if value.count][:MOST_PLACES],
        "expiring": _count_expiring(actor, span[-1]),
    }


def _count_births(actor: Actor, group: Counted) -> dict[str, dict[date, int]]:
    """Count the visible memories of now by value and day of creation (UTC); empty for more than MOST_LIVE."""
    newest = Cube.objects.visible_to(actor).order_by("-id").values("id")[: MOST_LIVE + 1]
    rows = (
        Cube.objects.filter(id__in=newest)
        .order_by()
        .values_list(TruncDate("created_at", tzinfo=UTC), "state", str(group))
    )
    births: dict[str, dict[date, int]] = defaultdict(lambda: defaultdict(int))
    for day, state, value, count in rows.annotate(count=Count("id")):
        if state in SEARCHABLE or group is Counted.STATE:
            births[value][day] += count
        elif state == State.ARCHIVED and group is Counted.LAYER:
            births[state][day] += count
    return births if sum(_sum_values(births).values()) <= MOST_LIVE else {}


def _sum_values(births: Mapping[str, Mapping[date, int]]) -> dict[str, int]:
    return {value: sum(days.values()) for value, days in births.items()}


def _count_expiring(actor: Actor, today: date) -> dict[date, int]:
    """Count the visible memories that expire on each of the next SOON days (UTC)."""
    until = datetime.combine(today + timedelta(days=SOON), time(), UTC)
    rows = Cube.objects.visible_to(actor).filter(expires_at__lt=until, state__in=SEARCHABLE).order_by()
    counted = rows.values_list(TruncDate("expires_at", tzinfo=UTC)).annotate(count=Count("id"))
    return dict(sorted(counted))


def _rank_namespaces(actor: Actor, day: date) -> list[tuple[str, int]]:
    """Return the namespaces with the most memories, by the counts of `day`."""
    rows = DailyCount.objects.filter(tenant_id=actor.tenant_id, name=Counted.LAYER, day=day)
    rows = rows.filter(namespace__in=Namespace.objects.visible_to(actor)).exclude(value=State.ARCHIVED)
    if not sees_private(actor):
        rows = rows.filter(Q(member=None) | Q(member_id=actor.member_id))
    summed = rows.values_list("namespace__path").annotate(total=Sum("count")).order_by("-total", "namespace__path")
    return [(path, int(total)) for path, total in summed[:MOST_PLACES]]


def _sum_searchable(counts: Mapping[str, int]) -> int:
    return sum(count for value, count in counts.items() if value != State.ARCHIVED)


def _counts_at(counts: Mapping[date, dict[str, int]], day: date) -> dict[str, int]:
    """Return the counts of `day`, or of the last day before it with any counts."""
    return counts[max(known)] if (known := [known_day for known_day in counts if known_day <= day]) else {}


def _carry_forward(counts: Mapping[date, dict[str, int]], span: Sequence[date]) -> Series:
    by_day = [_counts_at(counts, day) for day in span]
    values = dict.fromkeys(value for counted in by_day for value in counted)
    return {value: [counted.get(value, 0) for counted in by_day] for value in values}


def _daily_series(counts: Mapping[date, dict[str, int]], span: Sequence[date], values: Sequence[str]) -> Series:
    return {value: [counts.get(day, {}).get(value, 0) for day in span] for value in values}


def _quota_use(actor: Actor, counts: Counts) -> dict[Measure, Use]:
    used = _counts_at(counts[Counted.USAGE], date.max)
    limits = limits_of(policies_active(actor).quotas, QuotaTarget(QuotaTargetKind.TENANT, actor.tenant_id))
    return {measure: Use(used.get(measure, 0), limits.of(measure)) for measure in MEASURES}


def _count_tiers(counts: Counts) -> dict[Tier, tuple[int, int]]:
    memories, stored = _counts_at(counts[Counted.TIER], date.max), _counts_at(counts[Counted.TIER_BYTES], date.max)
    return {tier: (memories.get(tier, 0), stored.get(tier, 0)) for tier in Tier}


def _audit_state(counts: Counts) -> AuditState | None:
    days = counts[Counted.AUDIT]
    if not days:
        return None
    last = max(days)
    return AuditState(last, days[last].get(VERIFIED, 0), days[last].get(FAULT))
