"""Decisions of policies about one memory, text or principal; of equally specific rules, the strictest decides. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from uuid import UUID

from governance.policies.rules.documents import Examination, Limits, Pii, Purposes, Quota, Retention, Sharing
from governance.policies.rules.selection import (
    Facts,
    Rule,
    Where,
    levels,
    matches,
    may_match,
    most_specific_rules,
    rule_names,
)
from governance.vocabulary import Measure, PiiAction, PublishApproval, QuotaTargetKind, Recipient, RoleName

# A memory's creation time is when its row is written; its first expiry counts from the start of that transaction.
SAME = timedelta(minutes=1)
STRICTNESS = tuple(PiiAction)
APPROVALS = tuple(PublishApproval)


@dataclass(frozen=True)
class Lifetime:
    """The lifetime that retention gives a memory. `default`: if its writer sets none; `maximum`: the longest."""

    default: timedelta | None
    maximum: timedelta | None
    grace: timedelta | None
    retention_class: str
    policy_id: UUID
    rule: str


@dataclass(frozen=True)
class Expiry:
    """The expiry of a memory, and the policy that set it; None if a person or nobody set it."""

    at: datetime | None
    policy_id: UUID | None = None


@dataclass(frozen=True)
class Binding:
    """The purposes that a memory may be read for."""

    purposes: frozenset[str]
    rule: str


@dataclass(frozen=True)
class Allowed:
    """A decision about sharing or publishing, with the rule that denies it, if any."""

    allowed: bool
    rule: str = ""


@dataclass(frozen=True)
class PiiRule:
    """The action for findings, by their kind."""

    action: PiiAction = PiiAction.FLAG
    kinds: dict[str, PiiAction] = field(default_factory=dict)
    rule: str = ""

    def action_for(self, kind: str) -> PiiAction:
        return self.kinds.get(kind, self.action)


@dataclass(frozen=True, order=True)
class QuotaTarget:
    """The principal whose use is counted."""

    kind: QuotaTargetKind
    id: UUID


def lifetime_of(rules: Iterable[Rule[Retention]], facts: Facts) -> Lifetime | None:
    """Return the lifetime, or None without a policy. Of equally specific rules, the shortest times count."""
    found = most_specific_rules(rules, facts)
    if not found:
        return None
    documents = [rule.document for rule in found]
    defaults = [document.default for document in documents if document.default is not None]
    maxima = [document.maximum for document in documents if document.maximum is not None]
    graces = [timedelta(days=document.grace_days) for document in documents if document.grace_days is not None]
    shortest = min(found, key=lambda rule: (rule.document.default or timedelta.max, rule.name))
    return Lifetime(
        default=min(defaults, default=None),
        maximum=min(maxima, default=None),
        grace=min(graces, default=None),
        retention_class=shortest.document.retention_class,
        policy_id=shortest.policy_id,
        rule=rule_names(found),
    )


def expiry_under(lifetime: Lifetime | None, *, born: datetime, present: Expiry) -> Expiry:
    """Return the expiry under a lifetime. An expiry that a person set stays, up to the maximum; any other follows the
    current policies.
    """
    if present.at is None or present.policy_id is not None:
        if lifetime is None or lifetime.default is None:
            return Expiry(None)
        wanted = Expiry(born + lifetime.default, lifetime.policy_id)
        is_so = present.at is not None and wanted.at is not None and abs(present.at - wanted.at) < SAME
        return present if is_so else wanted
    if lifetime is not None and exceeds(lifetime, born=born, at=present.at) and lifetime.maximum is not None:
        return Expiry(born + lifetime.maximum)
    return present


def exceeds(lifetime: Lifetime, *, born: datetime, at: datetime) -> bool:
    """Return whether an expiry is later than the maximum allows."""
    return lifetime.maximum is not None and at > born + lifetime.maximum


def binding_of(rules: Iterable[Rule[Purposes]], facts: Facts) -> Binding | None:
    """Return the purposes that all equally specific rules allow; None means any purpose."""
    found = most_specific_rules(rules, facts)
    if not found:
        return None
    return Binding(frozenset.intersection(*(rule.document.purposes for rule in found)), rule_names(found))


@dataclass(frozen=True)
class Level:
    """Rules of equal specificity: they decide about memories in `matching`, and deny those in `denying`."""

    matching: tuple[Where, ...]
    denying: tuple[Where, ...]


def purpose_levels(rules: Iterable[Rule[Purposes]], purpose: str) -> list[Level]:
    """Return the levels of the rules, the most specific first; empty if `purpose` may read everything.

    They decide as `binding_of` does, but for all memories in one query.
    """
    found = [
        Level(
            matching=tuple(rule.document.where for rule in level),
            denying=tuple(rule.document.where for rule in level if purpose not in rule.document.purposes),
        )
        for level in levels(rules)
    ]
    while found and not found[-1].denying:
        found.pop()
    return found


def is_denied(purposes: Sequence[Level], facts: Facts) -> bool:
    """Return whether the first level that matches denies the purpose."""
    for level in purposes:
        if any(matches(where, facts) for where in level.matching):
            return any(matches(where, facts) for where in level.denying)
    return False


def may_share(
    rules: Iterable[Rule[Sharing]], facts: Facts, recipient: Recipient, roles: Collection[RoleName] = ()
) -> Allowed:
    """Decide whether the memory may be shared with a recipient. An unknown fact may have any value."""

    def gives(document: Sharing) -> bool:
        return recipient in document.share_with and document.roles.issuperset(roles)

    return _allow_if_all(list(rules), facts, {rule.policy_id for rule in rules if not gives(rule.document)})


def may_publish(rules: Iterable[Rule[Sharing]], facts: Facts) -> Allowed:
    """Decide whether the memory may leave the tenant. An unknown fact may have any value."""
    return _allow_if_all(list(rules), facts, {rule.policy_id for rule in rules if not rule.document.publish})


def approval_of(rules: Iterable[Rule[Sharing]]) -> PublishApproval:
    """Return the strictest approval of all rules; `where` is ignored, since a pack has memories of many namespaces."""
    asked = [rule.document.approval for rule in rules]
    return max(asked, key=APPROVALS.index, default=PublishApproval.OUTSIDE)


def _allow_if_all(rules: list[Rule[Sharing]], facts: Facts, refusing: set[UUID]) -> Allowed:
    certain = most_specific_rules(rules, facts)
    known = {rule.policy_id for rule in rules if matches(rule.document.where, facts)}
    possible = [rule for rule in rules if rule.policy_id not in known and may_match(rule.document.where, facts)]
    against = [rule for rule in [*certain, *possible] if rule.policy_id in refusing]
    return Allowed(allowed=not against, rule=rule_names(against or certain))


def pii_rule_of(rules: Iterable[Rule[Pii]], facts: Facts) -> PiiRule:
    """Return the PII rule, by default to flag; of equally specific rules, the strictest action for each kind."""
    found = most_specific_rules(rules, facts)
    if not found:
        return PiiRule()
    kinds = {kind for rule in found for kind in rule.document.kinds}
    return PiiRule(
        action=strictest(rule.document.action for rule in found),
        kinds={kind: strictest(rule.document.action_for(kind) for rule in found) for kind in sorted(kinds)},
        rule=rule_names(found),
    )


@dataclass(frozen=True)
class ExaminationRule:
    """The limits of an examination, and the policies that set them; without any, the defaults."""

    limits: Examination = field(default_factory=Examination)
    rule: str = ""


def examination_of(rules: Iterable[Rule[Examination]], facts: Facts) -> ExaminationRule:
    """Return the limits of an examination; of equally specific rules, the strictest of each."""
    found = most_specific_rules(rules, facts)
    if not found:
        return ExaminationRule()
    documents = [rule.document for rule in found]
    strict = Examination(
        exact=max(document.exact for document in documents),
        paraphrases=max(document.paraphrases for document in documents),
        strangers=max(document.strangers for document in documents),
        general=max(document.general for document in documents),
        perplexity=min(document.perplexity for document in documents),
    )
    return ExaminationRule(strict, rule_names(found))


def examination_misses(report: Mapping[str, float], limits: Examination) -> tuple[str, ...]:
    """Return the limits that a report of an examination misses; what the report lacks misses its limit."""
    shares = {name: getattr(limits, name) for name in ("exact", "paraphrases", "strangers", "general")}
    missed = [name for name, least in shares.items() if report.get(name, 0.0) < least]
    return (*missed, *(["perplexity"] if report.get("perplexity_ratio", inf) > limits.perplexity else []))


def strictest(actions: Iterable[PiiAction]) -> PiiAction:
    return max(actions, key=STRICTNESS.index)


def limits_of(quotas: Iterable[Quota], holder: QuotaTarget) -> Limits:
    """Return the limits of a principal: its own quota overrides the quota of every member or key; of several, the
    smallest.
    """
    meant = [quota for quota in quotas if quota.holder.kind is holder.kind]
    own = [quota for quota in meant if quota.holder.id == holder.id]
    found = own or [quota for quota in meant if quota.holder.id is None]
    return Limits(**{measure: _smallest(quota.limits.of(measure) for quota in found) for measure in Measure})


def _smallest(limits: Iterable[int | None]) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
