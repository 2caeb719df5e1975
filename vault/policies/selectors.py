"""Quotas with what is used of them, as those whom they limit see them, and those who govern."""

from dataclasses import dataclass

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.policies.active import policies_active
from governance.policies.quotas import holders_of
from governance.policies.rules import Limits, QuotaTarget, limits_of
from governance.vocabulary import Measure, Permission
from vault.cubes.usage import usage_count

COUNTED = (Measure.MEMORIES, Measure.BYTES, Measure.MODEL_TOKENS)


@dataclass(frozen=True)
class QuotaView:
    """A holder's limits, and what it uses now: memories, bytes, model tokens since the month began."""

    holder: QuotaTarget
    limits: Limits
    used: dict[Measure, int]


def quotas_list(*, actor: Actor) -> list[QuotaView]:
    """The tenant's, the member's own and the key's own; for those who may read policies also each that was set by name.

    Queries: three for each holder.
    """
    with acting(actor):
        holders = holders_of(actor)
        if is_allowed(actor, Permission.POLICY_READ):
            named = (quota.holder for quota in policies_active(actor).quotas)
            holders += sorted({QuotaTarget(one.kind, one.id) for one in named if one.id is not None} - {*holders})
        return [quota_view(actor=actor, holder=holder) for holder in holders]


def quota_view(*, actor: Actor, holder: QuotaTarget) -> QuotaView:
    """One holder of the actor's tenant, for whoever may know of it."""
    with acting(actor):
        limits = limits_of(policies_active(actor).quotas, holder)
        return QuotaView(holder, limits, {measure: usage_count(holder, measure) for measure in COUNTED})
