"""Quotas of stored amounts and of model tokens, counted in PostgreSQL, exact under concurrency.

Only principals with a quota are counted, each in a row of its own. Its writers lock it and so wait for each other;
tenants without quotas never wait. The row is an upper bound, since deleted and expired rows are not subtracted: before
a refusal, the product counts again under the lock.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db import connection
from django.db.models import F

from governance.actor import Actor
from governance.database import acting, database_now
from governance.errors import QuotaExceeded
from governance.ids import uuid7
from governance.models import Usage
from governance.policies.active import ActivePolicies, policies_active
from governance.policies.rules import QuotaTarget, limits_of
from governance.vocabulary import Measure, PrincipalKind, QuotaTargetKind

# Transactions that were open when a quota was set did not count their writes; after this time they have ended.
SETTLED = timedelta(seconds=60)
Recount = Callable[[QuotaTarget, Measure], int]
"""How much a holder uses now, of memories, bytes, or tokens since the month began; the product knows."""

ENSURE = """
INSERT INTO governance_usage (id, tenant_id, holder_kind, holder_id, measure)
VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True)
class _Limited:
    """A limit that applies to the actor's use."""

    holder: QuotaTarget
    measure: Measure
    limit: int


def holders_of(actor: Actor) -> list[QuotaTarget]:
    """Return the principals whose quotas count the actor's use: tenant, member and key, always in this order."""
    holders = [QuotaTarget(QuotaTargetKind.TENANT, actor.tenant_id)]
    if actor.member_id is not None:
        holders.append(QuotaTarget(QuotaTargetKind.MEMBER, actor.member_id))
    if actor.principal_kind is PrincipalKind.API_KEY:
        holders.append(QuotaTarget(QuotaTargetKind.API_KEY, actor.principal_id))
    return holders


def usage_take(actor: Actor, amounts: Mapping[Measure, int], recount: Recount) -> None:
    """Count the amounts that the caller stores next, in the caller's transaction.

    Raises QuotaExceeded. Writes: Usage for each limit. Queries: none without a quota, else three for each limit.
    """
    policies = policies_active(actor)
    for limited in _limits(actor, policies, amounts):
        row, fresh = _lock_usage(actor, policies, limited, recount)
        wanted = amounts[limited.measure]
        if row.used + wanted > limited.limit and not fresh:
            _count(row, policies, limited, recount)
        if row.used + wanted > limited.limit:
            raise _exceeded_error(limited, row.used)
        Usage.objects.filter(id=row.id).update(used=row.used + wanted)


def usage_check(actor: Actor, amounts: Mapping[Measure, int], recount: Recount) -> None:
    """Refuse amounts that are beyond a quota, before work whose result would be lost. Counts nothing.

    Raises QuotaExceeded, of tokens with the time until the month ends.
    """
    policies = policies_active(actor)
    limits = list(_limits(actor, policies, amounts))
    if not limits:
        return
    with acting(actor):
        for limited in limits:
            row, fresh = _lock_usage(actor, policies, limited, recount)
            wanted = amounts[limited.measure]
            if row.used + wanted > limited.limit and not fresh:
                _count(row, policies, limited, recount)
            if row.used + wanted > limited.limit:
                is_monthly = limited.measure is Measure.MODEL_TOKENS
                until = _until_next_month(database_now()) if is_monthly else None
                raise _exceeded_error(limited, row.used, retry_after=until)


def tokens_check(actor: Actor, recount: Recount) -> None:
    """Check the token quotas before a model is called. Raises QuotaExceeded."""
    usage_check(actor, {Measure.MODEL_TOKENS: 1}, recount)


def tokens_add(actor: Actor, tokens: int, recount: Recount) -> None:
    """Count a model's tokens, in the transaction that stores its answer. Never refuses."""
    policies = policies_active(actor)
    for limited in _limits(actor, policies, [Measure.MODEL_TOKENS]):
        row, _ = _lock_usage(actor, policies, limited, recount)
        Usage.objects.filter(id=row.id).update(used=F("used") + tokens)


def _limits(actor: Actor, policies: ActivePolicies, measures: Container[Measure]) -> Iterator[_Limited]:
    """Return the limits in one fixed order, so that two writers cannot deadlock."""
    if not policies.quotas:
        return
    for holder in holders_of(actor):
        limits = limits_of(policies.quotas, holder)
        for measure in Measure:
            limit = limits.of(measure) if measure in measures else None
            if limit is not None:
                yield _Limited(holder, measure, limit)


def _lock_usage(actor: Actor, policies: ActivePolicies, limited: _Limited, recount: Recount) -> tuple[Usage, bool]:
    """Return the locked row of a limit, and whether it was just recounted."""
    with connection.cursor() as cursor:
        cursor.execute(ENSURE, [uuid7(), actor.tenant_id, limited.holder.kind, limited.holder.id, limited.measure])
    row = Usage.objects.select_for_update().get(
        holder_kind=limited.holder.kind, holder_id=limited.holder.id, measure=limited.measure
    )
    if _is_current(row, policies, limited.measure):
        return row, False
    _count(row, policies, limited, recount)
    return row, True


def _is_current(row: Usage, policies: ActivePolicies, measure: Measure) -> bool:
    """Return whether the row counts everything written since its last recount."""
    if row.epoch != policies.epoch:
        return False
    now = database_now()
    if measure is Measure.MODEL_TOKENS and row.month != _month(now):
        return False
    settled = policies.since + SETTLED if policies.since is not None else now
    return row.counted_at >= settled or now < settled


def _count(row: Usage, policies: ActivePolicies, limited: _Limited, recount: Recount) -> None:
    now = database_now()
    row.used = recount(limited.holder, limited.measure)
    row.epoch, row.counted_at, row.month = policies.epoch, now, _month(now)
    row.save(update_fields=["used", "epoch", "counted_at", "month"])


def _exceeded_error(limited: _Limited, used: int, *, retry_after: int | None = None) -> QuotaExceeded:
    what = limited.measure.replace("_", " ")
    is_own = limited.holder.kind is not QuotaTargetKind.TENANT
    use = f"; {used} are used" if is_own else ", and this would be more"
    return QuotaExceeded(
        f"The quota of this {limited.holder.kind.replace('_', ' ')} is {limited.limit} {what}{use}.",
        retry_after=retry_after,
    )


def _month(now: datetime) -> date:
    return now.date().replace(day=1)


def _until_next_month(now: datetime) -> int:
    """Return the whole seconds until the first of the next month, UTC."""
    first = (now.replace(day=1) + timedelta(days=32)).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return int((first - now).total_seconds()) + 1
