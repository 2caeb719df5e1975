"""Quotas and their use, for the principals that they limit and for those who govern."""

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.policies.active import policies_active
from governance.policies.quotas import holders_of
from governance.policies.rules import Limits, QuotaTarget, limits_of
from governance.vocabulary import Measure, Permission, QuotaTargetKind
from vault.cubes.usage import usage_count
from vault.models import DailyCount
from vault.vocabulary import Counted

COUNTED = (Measure.MEMORIES, Measure.BYTES, Measure.MODEL_TOKENS)


@dataclass(frozen=True)
class QuotaView:
    """The limits of a principal and its use: memories, bytes, model tokens since the month began.

    used: empty for a reader who may not know it. counted_at: when a job counted the use; None: now.
    """

    holder: QuotaTarget
    limits: Limits
    used: dict[Measure, int]
    counted_at: datetime | None = None


def quotas_list(*, actor: Actor, is_live: bool = True) -> list[QuotaView]:
    """Return the quotas of the tenant, the member and the key; for readers of policies also each quota set by name.

    is_live: count now, with three queries for each principal. Otherwise the last counts of the overview's job are used,
    for tenant and members, with two queries in all.
    """
    with acting(actor):
        holders = holders_of(actor)
        reads_all = is_allowed(actor, Permission.POLICY_READ)
        if reads_all:
            named = (quota.holder for quota in policies_active(actor).quotas)
            holders += sorted(
                {QuotaTarget(holder.kind, holder.id) for holder in named if holder.id is not None} - {*holders}
            )
        counted = None if is_live else _counted_last(actor)
        views = [_view_from_counts(actor, holder, counted) for holder in holders]
        return views if reads_all else [_without_use_of_others(view) for view in views]


def quota_view(*, actor: Actor, holder: QuotaTarget) -> QuotaView:
    """Return the quota and use of one principal of the actor's tenant, if the actor may read it."""
    with acting(actor):
        limits = limits_of(policies_active(actor).quotas, holder)
        return QuotaView(holder, limits, {measure: usage_count(holder, measure) for measure in COUNTED})


def _without_use_of_others(view: QuotaView) -> QuotaView:
    """Leave out the use of the whole organisation, which counts memories that the reader may not read."""
    return replace(view, used={}) if view.holder.kind is QuotaTargetKind.TENANT else view


@dataclass(frozen=True)
class _Counts:
    """The last counts of a tenant, by member (None: of the tenant) and measure."""

    at: datetime
    of: dict[tuple[UUID | None, str], int]


def _counted_last(actor: Actor) -> _Counts | None:
    """Return the last counts of the tenant; None before the first."""
    rows = DailyCount.objects.filter(tenant_id=actor.tenant_id, name=Counted.USAGE)
    last = rows.order_by("-day").first()
    if last is None:
        return None
    found = rows.filter(day=last.day).values_list("member_id", "value", "count")
    return _Counts(last.created_at, {(member_id, value): count for member_id, value, count in found})


def _view_from_counts(actor: Actor, holder: QuotaTarget, counted: _Counts | None) -> QuotaView:
    if counted is None or holder.kind is QuotaTargetKind.API_KEY:
        return quota_view(actor=actor, holder=holder)
    member_id = holder.id if holder.kind is QuotaTargetKind.MEMBER else None
    used = {measure: counted.of.get((member_id, measure), 0) for measure in COUNTED}
    return QuotaView(holder, limits_of(policies_active(actor).quotas, holder), used, counted.at)
