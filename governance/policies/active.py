"""The enabled policies of a tenant, cached in this process until the tenant changes them.

Every transaction reads the policy epoch at no extra cost (governance/database.py). A tenant that never had a policy
costs no query; other tenants cost one query per process after each change.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import F

from governance.actor import Actor
from governance.database import acting, epoch_last, epoch_now
from governance.models import PolicyVersion
from governance.policies.rules import (
    AnyDocument,
    Examination,
    Pii,
    Purposes,
    Quota,
    Retention,
    Rule,
    Sharing,
    load_document,
)
from governance.vocabulary import PolicyKind

MOST_TENANTS = 1_000  # tenants
D = TypeVar("D")


@dataclass(frozen=True)
class ActivePolicies:
    """The policies in force. `epoch`: the policy epoch; `since`: the time of the last change."""

    epoch: int = 0
    since: datetime | None = None
    retention: tuple[Rule[Retention], ...] = ()
    sharing: tuple[Rule[Sharing], ...] = ()
    purpose: tuple[Rule[Purposes], ...] = ()
    pii: tuple[Rule[Pii], ...] = ()
    examination: tuple[Rule[Examination], ...] = ()
    quotas: tuple[Quota, ...] = ()


NONE = ActivePolicies()
_known: dict[UUID, ActivePolicies] = {}


def policies_active(actor: Actor) -> ActivePolicies:
    """Return the policies of the actor's tenant. At most one query."""
    with acting(actor):
        return policies_in_force()


def policies_in_force() -> ActivePolicies:
    """Return the policies of the tenant whose transaction is open. Raises RuntimeError without one."""
    epoch = epoch_now()
    if epoch.number == 0:
        return NONE
    if epoch.changing:  # may be rolled back: nobody else may learn of it
        return _load_policies(epoch.number)
    found = _find_cached(epoch.tenant_id, epoch.number)
    return found if found is not None else _cache_policies(epoch.tenant_id, _load_policies(epoch.number))


def policies_of_request(actor: Actor) -> ActivePolicies:
    """Return the policies that authentication's transaction read, for checks before the request's own work."""
    epoch = epoch_last(actor.tenant_id)
    if epoch is not None and epoch.number == 0:
        return NONE
    found = _find_cached(actor.tenant_id, epoch.number) if epoch is not None else None
    return found if found is not None else policies_active(actor)


def group_policies(rows: Iterable[tuple[PolicyKind, UUID, str, int, AnyDocument]]) -> ActivePolicies:
    """Return enabled policies by kind. rows: (kind, id, name, version, document)."""
    found: dict[PolicyKind, list[Any]] = {kind: [] for kind in PolicyKind}
    for kind, policy_id, name, version, document in rows:
        is_quota = isinstance(document, Quota)
        found[kind].append(document if is_quota else Rule(policy_id, name, version, document))
    return ActivePolicies(
        retention=tuple(found[PolicyKind.RETENTION]),
        sharing=tuple(found[PolicyKind.SHARING]),
        purpose=tuple(found[PolicyKind.PURPOSE]),
        pii=tuple(found[PolicyKind.PII]),
        examination=tuple(found[PolicyKind.EXAMINATION]),
        quotas=tuple(found[PolicyKind.QUOTA]),
    )


def _find_cached(tenant_id: UUID, epoch: int) -> ActivePolicies | None:
    found = _known.get(tenant_id)
    return found if found is not None and found.epoch == epoch else None


def _cache_policies(tenant_id: UUID, policies: ActivePolicies) -> ActivePolicies:
    if len(_known) >= MOST_TENANTS:
        _known.clear()
    _known[tenant_id] = policies
    return policies


def _load_policies(epoch: int) -> ActivePolicies:
    rows = list(
        PolicyVersion.objects.filter(number=F("policy__version"), enabled=True)
        .order_by("policy__name")
        .values_list("policy__kind", "policy_id", "policy__name", "number", "document", "created_at")
    )
    read = ((PolicyKind(row[0]), *row[1:4], load_document(PolicyKind(row[0]), row[4])) for row in rows)
    since = max((row[5] for row in rows), default=None)
    return replace(group_policies(read), epoch=epoch, since=since)
