"""The effects of a changed policy on stored data, by kind of policy. Reads only; use inside `acting`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import NamedTuple
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from governance.access.grants.sharing_policies import grants_against
from governance.models import ApiKey, AuditEntry, Member
from governance.policies.active import ActivePolicies
from governance.policies.purposes import denied_rows
from governance.policies.rules import (
    Expiry,
    Facts,
    Lifetime,
    Quota,
    QuotaTarget,
    Retention,
    Rule,
    examination_misses,
    examination_of,
    lifetime_of,
    limits_of,
    pii_rule_of,
    purpose_levels,
)
from governance.vocabulary import Measure, QuotaTargetKind, Verb
from vault.cubes.usage import usage_count
from vault.models import Cube, MemoryForm
from vault.policies.rules import SAMPLES, Effect, Outcome, Tally, expiry_effect, openness, sharing_effects, would_refuse
from vault.vocabulary import MemoryType

READS = (Verb.MEMORY_READ, Verb.MEMORY_LISTED, Verb.MEMORY_SEARCHED, Verb.VERSIONS_READ)
PAGE = 2_000  # rows held at once
COLUMNS = (
    "id",
    "namespace__path",
    "type",
    "semantic_type",
    "sensitivity",
    "tags",
    "created_at",
    "expires_at",
    "expiry_policy",
)


@dataclass(frozen=True)
class Change:
    """The policies before and after a change; `reach`: the only memories that the change can affect.

    `since`: the start of the time whose writes and reads are examined.
    """

    tenant_id: UUID
    before: ActivePolicies
    after: ActivePolicies
    reach: Q
    now: datetime
    since: datetime


class _Row(NamedTuple):
    id: UUID
    namespace: str
    type: str
    semantic_type: str
    sensitivity: str
    tags: list[str]
    born: datetime
    expires_at: datetime | None
    expiry_policy: UUID | None

    def facts(self) -> Facts:
        return Facts(self.namespace, self.type, self.semantic_type, self.sensitivity, frozenset(self.tags))

    def expiry(self) -> Expiry:
        return Expiry(self.expires_at, self.expiry_policy)


def retention_effects(change: Change) -> list[Outcome]:
    """Return the effects of a retention policy on stored memories, and on writes like the recent ones."""
    before, after = (_cache_lifetimes(policies.retention) for policies in (change.before, change.after))
    tally = Tally()
    for row in _iterate_rows(_select_live(change)):
        effect = expiry_effect(after(row.facts()), born=row.born, present=row.expiry(), now=change.now)
        if effect is not None:
            tally.add(effect, row.id)
    for row in _iterate_rows(_select_written(change)):
        facts = row.facts()
        was, would = (would_refuse(life(facts), born=row.born, asked=row.expiry()) for life in (before, after))
        if was != would:
            tally.add(Effect.WRITE_REFUSED if would else Effect.WRITE_ALLOWED, row.id)
    return tally.outcomes()


def _cache_lifetimes(rules: Sequence[Rule[Retention]]) -> Callable[[Facts], Lifetime | None]:
    """Return a function from facts to the lifetime under these rules, with a cache."""
    return cache(lambda facts: lifetime_of(rules, facts))


def sharing_changes(change: Change) -> list[Outcome]:
    """Return the effects of a sharing policy on the allowed recipients of memories, and the grants that it would
    forbid.
    """
    tally = Tally()

    @cache
    def effects(facts: Facts) -> list[Effect]:
        before, after = (openness(policies.sharing, facts) for policies in (change.before, change.after))
        return sharing_effects(before, after)

    for row in _iterate_rows(_select_live(change)):
        for effect in effects(row.facts()):
            tally.add(effect, row.id)
    for grant in grants_against(change.tenant_id, change.after.sharing):
        tally.add(Effect.GRANT_FORBIDDEN, grant.grant_id)
    return tally.outcomes()


def purpose_effects(change: Change) -> list[Outcome]:
    """Return the memories that become readable or unreadable by a purpose policy, for named and recent purposes."""
    readers = _count_readers(change)
    named = {
        purpose
        for policies in (change.before, change.after)
        for rule in policies.purpose
        for purpose in rule.document.purposes
    }
    outcomes = []
    for purpose in sorted({"", *named, *readers}):
        before, after = (
            denied_rows(purpose_levels(policies.purpose, purpose)) or Q(pk__in=[])
            for policies in (change.before, change.after)
        )
        for effect, rows in (
            (Effect.READER_LOSES, _select_live(change).filter(after).exclude(before)),
            (Effect.READER_GAINS, _select_live(change).filter(before).exclude(after)),
        ):
            if count := rows.count():
                ids = tuple(rows.order_by("id").values_list("id", flat=True)[:SAMPLES])
                outcomes.append(Outcome(effect, count, ids, about=purpose, readers=readers.get(purpose, 0)))
    return outcomes


def pii_effects(change: Change) -> list[Outcome]:
    """Return the effects of a PII policy on writes like the recent ones, whose findings are unknown here."""
    tally = Tally()
    for row in _iterate_rows(_select_written(change)):
        before, after = (pii_rule_of(policies.pii, row.facts()) for policies in (change.before, change.after))
        if (before.action, before.kinds) != (after.action, after.kinds):
            tally.add(Effect.PII_CHANGES, row.id, f"{before.action}→{after.action}")
    return tally.outcomes()


def examination_effects(change: Change) -> list[Outcome]:
    """Return the adapters that could no longer, or could newly, be approved and used."""
    tally = Tally()
    reports = dict(MemoryForm.objects.filter(tenant_id=change.tenant_id).values_list("cube_id", "report"))
    for row in _iterate_rows(_select_live(change).filter(type=MemoryType.PARAMETER)):
        before, after = (
            not examination_misses(reports.get(row.id) or {}, examination_of(policies.examination, row.facts()).limits)
            for policies in (change.before, change.after)
        )
        if before != after:
            tally.add(Effect.ADAPTER_ALLOWED if after else Effect.ADAPTER_REFUSED, row.id)
    return tally.outcomes()


def quota_effects(change: Change, quota: Quota) -> list[Outcome]:
    """Return the principals whose next write or question would be refused and is not now."""
    tally = Tally()
    for holder in _list_holders(change, quota):
        before, after = (limits_of(policies.quotas, holder) for policies in (change.before, change.after))
        for measure in (Measure.MEMORIES, Measure.BYTES, Measure.MODEL_TOKENS):
            limit, former = after.of(measure), before.of(measure)
            if limit is None:
                continue
            used = usage_count(holder, measure)
            if used >= limit and (former is None or used < former):
                tally.add(Effect.QUOTA_REACHED, holder.id, measure)
    return tally.outcomes()


def _select_live(change: Change) -> QuerySet[Cube]:
    return Cube.objects.stored().free().filter(change.reach, tenant_id=change.tenant_id)


def _select_written(change: Change) -> QuerySet[Cube]:
    return Cube.objects.filter(change.reach, tenant_id=change.tenant_id, created_at__gte=change.since)


def _iterate_rows(cubes: QuerySet[Cube]) -> Iterator[_Row]:
    found = cubes.order_by("id").values_list(*COLUMNS)
    return (_Row(*row) for row in found.iterator(chunk_size=PAGE))


def _count_readers(change: Change) -> dict[str, int]:
    """Count the principals that read for each purpose recently."""
    entries = AuditEntry.objects.filter(tenant_id=change.tenant_id, at__gte=change.since, verb__in=READS)
    counted = entries.values("context__purpose").annotate(readers=Count("principal_id", distinct=True)).order_by()
    return {purpose or "": readers for purpose, readers in counted.values_list("context__purpose", "readers")}


def _list_holders(change: Change, quota: Quota) -> list[QuotaTarget]:
    kind = quota.holder.kind
    if quota.holder.id is not None:
        return [QuotaTarget(kind, quota.holder.id)]
    if kind is QuotaTargetKind.TENANT:
        return [QuotaTarget(kind, change.tenant_id)]
    members, keys = Member.objects.filter(removed_at=None), ApiKey.objects.filter(revoked_at=None)
    rows = members if kind is QuotaTargetKind.MEMBER else keys
    return [
        QuotaTarget(kind, holder_id)
        for holder_id in rows.filter(tenant_id=change.tenant_id).values_list("id", flat=True)
    ]
