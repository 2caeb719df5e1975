"""Tests of the choice of a policy: the most specific, of equals the strictest; beside a second implementation."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from governance.errors import Invalid
from governance.policies.rules import (
    Expiry,
    Facts,
    Limits,
    Pii,
    Purposes,
    Quota,
    QuotaTarget,
    QuotaTargetChoice,
    Retention,
    Rule,
    Sharing,
    Where,
    approval_of,
    binding_of,
    document_json,
    document_read,
    expiry_under,
    is_denied,
    lifetime_of,
    limits_of,
    load_document,
    matches,
    may_publish,
    may_share,
    most_specific_rules,
    pii_rule_of,
    purpose_levels,
    specificity,
)
from governance.policies.rules.decisions import strictest
from governance.vocabulary import PiiAction, PolicyKind, PublishApproval, QuotaTargetKind, Recipient, RoleName

TERMS = {
    "types": frozenset({"plaintext"}),
    "semantic_types": frozenset({"fact", "goal"}),
    "sensitivities": frozenset({"public", "restricted"}),
}
PATHS = ["", "/a", "/a/b", "/a/b/c", "/ab", "/x"]
PURPOSES = ["treatment", "billing", "audit"]
BORN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)

wheres = st.builds(
    Where,
    namespace=st.sampled_from(PATHS),
    semantic_types=st.frozensets(st.sampled_from(["fact", "goal"]), max_size=2),
    sensitivities=st.frozensets(st.sampled_from(["public", "restricted"]), max_size=2),
    tags=st.frozensets(st.sampled_from("pq"), max_size=2),
)
facts = st.builds(
    Facts,
    namespace=st.sampled_from(PATHS[1:]),
    type=st.just("plaintext"),
    semantic_type=st.sampled_from(["fact", "goal"]),
    sensitivity=st.sampled_from(["public", "restricted"]),
    tags=st.frozensets(st.sampled_from("pqr"), max_size=3),
)


def rules(documents: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Rule[Any]]]:
    """Some policies with these documents, each with an id and a name of its own."""
    return st.lists(documents, max_size=6).map(
        lambda found: [Rule(UUID(int=n + 1), f"p{n}", 1, document) for n, document in enumerate(found)]
    )


purposes = st.builds(Purposes, where=wheres, purposes=st.frozensets(st.sampled_from(PURPOSES), min_size=1, max_size=3))
retentions = st.builds(
    Retention, where=wheres, ttl_seconds=st.integers(1, 9), max_seconds=st.integers(9, 20) | st.none()
)
sharings = st.builds(
    Sharing,
    where=wheres,
    share_with=st.frozensets(st.sampled_from(Recipient)),
    roles=st.frozensets(st.sampled_from(RoleName)),
    publish=st.booleans(),
    approval=st.sampled_from(PublishApproval),
)
piis = st.builds(
    Pii,
    where=wheres,
    action=st.sampled_from(PiiAction),
    kinds=st.dictionaries(st.sampled_from(["email", "phone"]), st.sampled_from(PiiAction)),
)


def oracle(found: list[Rule[Any]], facts: Facts) -> list[Rule[Any]]:
    """Return the policies that apply, by comparing each with every other."""
    meant = [
        rule
        for rule in found
        if f"{facts.namespace}/".startswith(f"{rule.document.where.namespace}/")
        and (not rule.document.where.semantic_types or facts.semantic_type in rule.document.where.semantic_types)
        and (not rule.document.where.sensitivities or facts.sensitivity in rule.document.where.sensitivities)
        and (not rule.document.where.tags or rule.document.where.tags & (facts.tags or frozenset()))
    ]
    return [
        rule
        for rule in meant
        if not any(specificity(other.document.where) > specificity(rule.document.where) for other in meant)
    ]


@settings(max_examples=300, deadline=None)
@given(rules(purposes), facts)
def test_the_most_specific_that_match_decide(found: list[Rule[Purposes]], memory: Facts) -> None:
    assert {rule.name for rule in most_specific_rules(found, memory)} == {rule.name for rule in oracle(found, memory)}


@settings(max_examples=300, deadline=None)
@given(rules(purposes), facts, st.sampled_from([*PURPOSES, "", "other"]))
def test_condition_for_many_memories_equals_the_decision_for_each(
    found: list[Rule[Purposes]], memory: Facts, purpose: str
) -> None:
    binding = binding_of(found, memory)
    denied = binding is not None and purpose not in binding.purposes
    assert is_denied(purpose_levels(found, purpose), memory) is denied
    assert denied is any(purpose not in rule.document.purposes for rule in oracle(found, memory))


@settings(max_examples=300, deadline=None)
@given(rules(retentions), facts, st.permutations(range(6)))
def test_of_equals_the_strictest_whatever_their_order(
    found: list[Rule[Retention]], memory: Facts, order: list[int]
) -> None:
    shuffled = [found[index] for index in order if index < len(found)]
    lifetime, again = lifetime_of(found, memory), lifetime_of(shuffled, memory)
    assert lifetime == again
    decided = oracle(found, memory)
    assert (lifetime is None) is (not decided)
    if lifetime is not None:
        assert lifetime.default == min(timedelta(seconds=rule.document.ttl_seconds or 0) for rule in decided)
        maxima = [rule.document.max_seconds for rule in decided if rule.document.max_seconds is not None]
        assert lifetime.maximum == (timedelta(seconds=min(maxima)) if maxima else None)


@settings(max_examples=300, deadline=None)
@given(rules(sharings), facts, st.sampled_from(Recipient), st.sets(st.sampled_from(RoleName)))
def test_sharing_is_what_all_deciding_policies_allow(
    found: list[Rule[Sharing]], memory: Facts, recipient: Recipient, roles: set[RoleName]
) -> None:
    decided = [rule.document for rule in oracle(found, memory)]
    expected = all(recipient in document.share_with and roles <= document.roles for document in decided)
    assert may_share(found, memory, recipient, roles).allowed is expected
    assert may_publish(found, memory).allowed is all(document.publish for document in decided)


@pytest.mark.parametrize(
    ("asked", "strictest_of_them"),
    [
        ((), PublishApproval.OUTSIDE),
        ((PublishApproval.NEVER,), PublishApproval.NEVER),
        ((PublishApproval.NEVER, PublishApproval.OUTSIDE), PublishApproval.OUTSIDE),
        ((PublishApproval.ALWAYS, PublishApproval.NEVER), PublishApproval.ALWAYS),
    ],
)
def test_approval_of_publications_is_the_strictest_of_all_policies(
    asked: tuple[PublishApproval, ...], strictest_of_them: PublishApproval
) -> None:
    found = [
        Rule(UUID(int=n), f"p{n}", 1, Sharing(Where(namespace=f"/p{n}"), approval=approval))
        for n, approval in enumerate(asked)
    ]
    assert approval_of(found) is strictest_of_them


@settings(max_examples=200, deadline=None)
@given(rules(sharings), facts, st.sampled_from(Recipient))
def test_a_whole_namespace_is_shared_only_if_all_in_it_may_be(
    found: list[Rule[Sharing]], memory: Facts, recipient: Recipient
) -> None:
    if may_share(found, Facts(namespace=memory.namespace), recipient).allowed:
        assert may_share(found, memory, recipient).allowed


@settings(max_examples=200, deadline=None)
@given(rules(piis), facts, st.sampled_from(["email", "phone", "card"]))
def test_of_equal_pii_policies_the_strictest_acts(found: list[Rule[Pii]], memory: Facts, kind: str) -> None:
    decided = [rule.document for rule in oracle(found, memory)]
    expected = strictest(document.action_for(kind) for document in decided) if decided else PiiAction.FLAG
    assert pii_rule_of(found, memory).action_for(kind) is expected


@settings(max_examples=200, deadline=None)
@given(rules(retentions), facts, st.integers(1, 40) | st.none(), st.booleans())
def test_an_expiry_that_was_settled_stays(
    found: list[Rule[Retention]], memory: Facts, seconds: int | None, by_policy: bool
) -> None:
    """Applying policies twice is applying them once; what a person set is never made later."""
    present = Expiry(BORN + timedelta(hours=seconds) if seconds else None, UUID(int=9) if by_policy else None)
    lifetime = lifetime_of([_in_hours(rule) for rule in found], memory)
    settled = expiry_under(lifetime, born=BORN, present=present)
    assert expiry_under(lifetime, born=BORN, present=settled).at == settled.at
    if present.at is not None and not by_policy:
        assert settled.at is not None
        assert settled.at <= present.at


def _in_hours(rule: Rule[Retention]) -> Rule[Retention]:
    """Seconds made hours: expiries that differ by less than a minute are the same."""
    ttl, most = rule.document.ttl_seconds or 0, rule.document.max_seconds
    document = replace(rule.document, ttl_seconds=ttl * 3600, max_seconds=most * 3600 if most else None)
    return replace(rule, document=document)


def test_a_longer_path_stands_before_more_criteria() -> None:
    narrow = Where(namespace="/a/b")
    rich = Where(namespace="/a", semantic_types=frozenset({"fact"}), tags=frozenset({"p"}))
    assert specificity(narrow) > specificity(rich) > specificity(Where(namespace="/a"))


def test_a_path_is_not_the_beginning_of_another_name() -> None:
    assert matches(Where(namespace="/a"), Facts(namespace="/a/b"))
    assert not matches(Where(namespace="/a"), Facts(namespace="/ab"))


def test_a_quota_of_one_stands_before_that_of_each_and_equals_give_the_smallest() -> None:
    alice, bob = QuotaTarget(QuotaTargetKind.MEMBER, UUID(int=1)), QuotaTarget(QuotaTargetKind.MEMBER, UUID(int=2))
    quotas = [
        Quota(QuotaTargetChoice(QuotaTargetKind.MEMBER), Limits(memories=5, bytes=7)),
        Quota(QuotaTargetChoice(QuotaTargetKind.MEMBER), Limits(memories=4)),
        Quota(QuotaTargetChoice(QuotaTargetKind.MEMBER, alice.id), Limits(memories=9)),
        Quota(QuotaTargetChoice(QuotaTargetKind.TENANT), Limits(memories=1)),
    ]
    assert limits_of(quotas, alice) == Limits(memories=9)
    assert limits_of(quotas, bob) == Limits(memories=4, bytes=7)


@pytest.mark.parametrize(
    ("kind", "raw", "fields"),
    [
        (PolicyKind.RETENTION, {}, {"document"}),
        (PolicyKind.RETENTION, None, {"document"}),
        (PolicyKind.RETENTION, {"ttl_seconds": 0}, {"document.ttl_seconds"}),
        (PolicyKind.RETENTION, {"ttl_seconds": "5"}, {"document.ttl_seconds"}),
        (PolicyKind.RETENTION, {"ttl_seconds": True}, {"document.ttl_seconds"}),
        (PolicyKind.RETENTION, {"ttl_seconds": 9, "max_seconds": 5}, {"document.ttl_seconds"}),
        (PolicyKind.RETENTION, {"max_seconds": 5, "speling": 1}, {"document.speling"}),
        (
            PolicyKind.RETENTION,
            {"max_seconds": 5, "where": {"namespace": "a", "sensitivity": "x"}},
            {"document.where.namespace", "document.where.sensitivity"},
        ),
        (PolicyKind.RETENTION, {"max_seconds": 5, "where": {"sensitivities": ["x"]}}, {"document.where.sensitivities"}),
        (PolicyKind.SHARING, {"share_with": ["world"]}, {"document.share_with"}),
        (PolicyKind.SHARING, {"approval": "sometimes"}, {"document.approval"}),
        (PolicyKind.PURPOSE, {"where": {}, "purposes": []}, {"document.purposes"}),
        (PolicyKind.PURPOSE, {"where": {}}, {"document.purposes"}),
        (PolicyKind.PURPOSE, {"where": {}, "purposes": [""]}, {"document.purposes"}),
        (PolicyKind.PII, {"action": "shout"}, {"document.action"}),
        (PolicyKind.PII, {"where": {"tags": ["x"]}}, {"document.where"}),
        (PolicyKind.EXAMINATION, {"exact": 1.5, "perplexity": 0.5}, {"document.exact", "document.perplexity"}),
        (PolicyKind.EXAMINATION, {"general": "much"}, {"document.general"}),
        (PolicyKind.QUOTA, {"holder": {"kind": "tenant"}, "limits": {"memories": -1}}, {"document.limits.memories"}),
        (
            PolicyKind.QUOTA,
            {"holder": {"kind": "tenant", "id": str(UUID(int=1))}, "limits": {}},
            {"document.holder.id"},
        ),
    ],
)
def test_invalid_document_is_refused_with_each_wrong_field(kind: PolicyKind, raw: object, fields: set[str]) -> None:
    with pytest.raises(Invalid) as refusal:
        document_read(kind, raw, TERMS)
    assert {fault.field for fault in refusal.value.errors} == fields


@settings(max_examples=100, deadline=None)
@given(retentions | sharings | purposes)
def test_a_document_is_the_same_after_it_was_stored(document: Retention | Sharing | Purposes) -> None:
    kind = {Retention: PolicyKind.RETENTION, Sharing: PolicyKind.SHARING, Purposes: PolicyKind.PURPOSE}[type(document)]
    assert load_document(kind, document_json(kind, document)) == document
