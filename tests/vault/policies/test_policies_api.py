"""policies/ of the contract: versions, who may, what is refused, what it leaves on the audit log."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from governance.database import acting
from governance.models import AuditEntry, OutboxEvent, PolicyVersion
from governance.policies.rules import Facts
from governance.policies.selectors import check_publishing, check_sharing, pii_action, pii_rule
from governance.policies.services import PolicyChanges, policy_change
from governance.vocabulary import PiiAction, Recipient, RoleName, Topic, Verb
from tests.factories import World
from tests.governance.tables import become, read_all_rows
from tests.harness.cases import each_case
from tests.vault.api.contract import MISSING, Contract, contract, fields_at_fault, without_id
from tests.vault.policies.policy_factories import DAY, change_policy, create_policy

Superuser = Callable[[], psycopg.Connection]
KEEP = {"where": {"namespace": "/team"}, "max_seconds": 60}
DRAFT = {"kind": "retention", "name": "keep", "document": KEEP}


def calls_on(client: Contract, policy_id: object) -> list[int]:
    address = f"policies/{policy_id}/"
    return [
        client.get(address).status,
        client.get(address + "versions/").status,
        client.patch(address, {"enabled": False}, if_match='"1"').status,
        client.patch(address, {"speling": 1}).status,
        client.delete(address).status,
        client.post("policies/simulate/", {"id": str(policy_id), "kind": "retention", "document": KEEP}).status,
    ]


def test_a_policy_is_made_read_and_changed_in_versions(olivia: Contract) -> None:
    reply = olivia.post("policies/", {**DRAFT, "reason": "law"})
    assert reply.status == 201
    policy_id = reply.json["id"]
    assert (reply.json["version"], reply.json["enabled"], reply.json["reason"]) == (1, True, "law")
    assert reply.json["document"]["max_seconds"] == 60
    change_policy(olivia, policy_id, document={"max_seconds": 90}, reason="longer")
    assert olivia.delete(f"policies/{policy_id}/", if_match='"2"').status == 204
    assert olivia.delete(f"policies/{policy_id}/").status == 204  # it is not in force already
    read = olivia.get(f"policies/{policy_id}/")
    assert (read.json["version"], read.json["enabled"], read.headers["ETag"]) == (3, False, '"3"')
    versions = olivia.get(f"policies/{policy_id}/versions/").json["results"]
    assert [version["document"]["max_seconds"] for version in versions] == [90, 90, 60]
    change_policy(olivia, policy_id, enabled=True)
    assert olivia.get("policies/").json["results"][0]["version"] == 4


def test_each_change_is_in_the_audit_log_with_what_was_before(world: World, olivia: Contract) -> None:
    policy_id = create_policy(olivia, "retention", KEEP)
    change_policy(olivia, policy_id, document={"max_seconds": 90})
    assert olivia.delete(f"policies/{policy_id}/").status == 204
    with acting(world.olivia.actor):
        rows = list(AuditEntry.objects.filter(object_type="policy", outcome="done").order_by("id"))
        events = OutboxEvent.objects.filter(topic=Topic.RETENTION_CHANGED).count()
    assert [row.verb for row in rows] == [Verb.POLICY_CREATED, Verb.POLICY_CHANGED, Verb.POLICY_DISABLED]
    assert [row.version for row in rows] == [1, 2, 3]
    assert bytes(rows[1].before_hash or b"") == bytes(rows[0].after_hash or b"") != b""
    assert events == 3


@pytest.mark.parametrize(("who", "reads"), [("alice", False), ("bob", False), ("ada", True)])
def test_who_does_not_govern_changes_nothing(world: World, superuser: Superuser, who: str, reads: bool) -> None:
    policy_id = create_policy(contract(world, "olivia"), "retention", KEEP)
    client, read = contract(world, who), 200 if reads else 403
    before = read_all_rows(superuser())
    assert client.get("policies/").status == read
    assert client.post("policies/", DRAFT).status == 403
    assert calls_on(client, policy_id) == [read, read, 403, 403, 403, 403]
    after = read_all_rows(superuser())
    denials = len(after.pop("governance_auditentry")) - len(before.pop("governance_auditentry"))
    assert denials == (5 if reads else 8)
    assert after == before


def test_a_foreign_policy_is_like_one_that_never_was(olivia: Contract, charlie: Contract) -> None:
    policy_id = create_policy(olivia, "retention", KEEP)
    assert calls_on(charlie, policy_id) == calls_on(charlie, MISSING) == [404] * 6
    for method in ("get", "delete"):
        foreign, missing = (getattr(charlie, method)(f"policies/{item}/") for item in (policy_id, MISSING))
        assert without_id(foreign) == without_id(missing)
    assert charlie.get("policies/").json["count"] == 0
    assert charlie.post("policies/", DRAFT).status == 201  # the same name elsewhere is no conflict


def test_a_change_needs_the_version_that_was_read(olivia: Contract) -> None:
    policy_id = create_policy(olivia, "retention", KEEP)
    address = f"policies/{policy_id}/"
    assert olivia.patch(address, {"speling": 1}).status == 428
    assert olivia.patch(address, {"speling": 1}, if_match='"2"').status == 412
    assert fields_at_fault(olivia.patch(address, {"speling": 1}, if_match='"1"')) == {"speling"}
    assert olivia.delete(address, if_match='"2"').status == 412


def test_a_name_is_given_once(olivia: Contract, superuser: Superuser) -> None:
    assert olivia.post("policies/", DRAFT).status == 201
    before = read_all_rows(superuser())
    assert olivia.post("policies/", DRAFT).status == 409
    assert read_all_rows(superuser()) == before


def test_a_post_that_comes_again_makes_one(olivia: Contract) -> None:
    first, second = (olivia.post("policies/", DRAFT, idempotency_key="once") for _ in range(2))
    assert first.json == second.json
    assert olivia.get("policies/").json["count"] == 1


@each_case(
    ("body", "fields"),
    [
        ({"kind": "law"}, {"kind"}),
        ({"name": ""}, {"name"}),
        ({"document": "x"}, {"document"}),
        ({"document": {"max_seconds": "x", "speling": 1}}, {"document.max_seconds", "document.speling"}),
        ({"document": {"max_seconds": 5, "where": {"tags": ["\x00"]}}}, {"document"}),
        ({"speling": 1}, {"speling"}),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(olivia: Contract, body: dict[str, object], fields: set[str]) -> None:
    assert fields_at_fault(olivia.post("policies/", {**DRAFT, **body})) == fields
    assert fields_at_fault(olivia.get("policies/?kind=law")) == {"kind"}
    assert olivia.get("policies/").json["count"] == 0


def test_no_version_is_ever_changed(world: World, olivia: Contract, app_connection: psycopg.Connection) -> None:
    create_policy(olivia, "retention", KEEP)
    for statement in ("UPDATE governance_policyversion SET enabled = false", "DELETE FROM governance_policyversion"):
        with app_connection.transaction(force_rollback=True):
            become(app_connection, world.acme.id)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                app_connection.execute(statement.encode())


def test_a_change_that_is_rolled_back_is_in_force_nowhere(world: World, olivia: Contract) -> None:
    actor = world.olivia.actor
    create_policy(olivia, "pii", {"action": "allow"})
    with acting(actor):
        olivia_changes(world)
        assert pii_action(actor=actor, namespace_path="/a", sensitivity="public") is PiiAction.REFUSE
        transaction.set_rollback(True)
    assert pii_action(actor=actor, namespace_path="/a", sensitivity="public") is PiiAction.ALLOW
    create_policy(olivia, "pii", {"where": {"namespace": "/b"}, "action": "redact"}, name="two")
    assert pii_action(actor=actor, namespace_path="/a", sensitivity="public") is PiiAction.ALLOW


def olivia_changes(world: World) -> None:
    """A change inside the transaction that is open."""
    policy_id = PolicyVersion.objects.get().policy_id
    changes = PolicyChanges(document={"action": "refuse"})
    policy_change(actor=world.olivia.actor, policy_id=policy_id, expected_versions=[1], changes=changes)


def test_other_packages_read_the_active_policies(world: World, olivia: Contract) -> None:
    actor = world.alice.actor
    assert pii_action(actor=actor, namespace_path="/a", sensitivity="public") is PiiAction.FLAG
    assert check_sharing(actor=actor, facts=Facts(namespace="/a"), recipient=Recipient.MEMBER).allowed
    assert check_publishing(actor=actor, facts=Facts(namespace="/a")).allowed
    create_policy(
        olivia,
        "pii",
        {"where": {"namespace": "/a"}, "action": "redact", "kinds": {"card": "refuse"}},
        name="pii",
    )
    create_policy(
        olivia,
        "sharing",
        {"where": {"namespace": "/a", "sensitivities": ["restricted"]}, "share_with": ["member"], "roles": ["admin"]},
        name="share",
    )
    assert pii_action(actor=actor, namespace_path="/a/b", sensitivity="public") is PiiAction.REDACT
    assert pii_rule(actor=actor, namespace_path="/a", sensitivity="public").action_for("card") is PiiAction.REFUSE
    secret = Facts("/a", "plaintext", "fact", "restricted", frozenset())
    for recipient, role, allowed in (
        (Recipient.MEMBER, RoleName.ADMIN, True),
        (Recipient.MEMBER, RoleName.VIEWER, False),
        (Recipient.ROLE, RoleName.ADMIN, False),
    ):
        answer = check_sharing(actor=actor, facts=secret, recipient=recipient, roles={role})
        assert (answer.allowed, answer.rule) == (allowed, "policy:share@1")
    assert not check_publishing(actor=actor, facts=secret).allowed
    assert not check_publishing(actor=actor, facts=Facts(namespace="/a")).allowed  # it may hold restricted ones
    assert check_sharing(actor=world.charlie.actor, facts=secret, recipient=Recipient.ROLE).allowed


def test_policies_cost_one_query_after_a_change_and_none_from_then_on(world: World, olivia: Contract) -> None:
    client = contract(world, "alice")
    client.add("One.", namespace="/team")
    client.get("memories/")

    def queries() -> tuple[int, int]:
        with CaptureQueriesContext(connection) as captured:
            client.get("memories/")
        return len(captured), sum("governance_policyversion" in query["sql"] for query in captured.captured_queries)

    without, _ = queries()
    create_policy(olivia, "purpose", {"where": {"namespace": "/else"}, "purposes": ["x"]})
    assert queries() == (without + 4, 1)  # with the transaction that it has for itself
    assert queries() == (without, 0)


def test_a_list_costs_the_same_for_one_and_for_many(olivia: Contract) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert olivia.get("policies/").status == 200
        return len(captured)

    create_policy(olivia, "pii", {"action": "allow"}, name="first")
    queries()
    count = queries()
    for number in range(10):
        create_policy(olivia, "pii", {"action": "allow"}, name=f"number {number}")
    queries()
    assert queries() == count


def test_the_list_has_what_is_in_force_and_the_rest_on_request(olivia: Contract) -> None:
    stays, goes = (create_policy(olivia, "retention", {"ttl_seconds": DAY}, name=name) for name in ("stays", "goes"))
    assert olivia.delete(f"policies/{goes}/").status == 204
    for asked, expected in (("", stays), ("?enabled=true", stays), ("?enabled=false", goes)):
        reply = olivia.get(f"policies/{asked}").json
        assert ([row["id"] for row in reply["results"]], reply["count"]) == ([expected], 1), asked
    assert fields_at_fault(olivia.get("policies/?enabled=perhaps")) == {"enabled"}


@each_case(
    ("document", "message"),
    [
        ({"where": {}}, "set a default life, a longest life or a time for restoring"),
        ({"ttl_seconds": DAY, "speling": 1}, "unknown field: remove it, or correct its name"),
        ({"ttl_seconds": 0}, "1 or more is needed"),
        ({"ttl_seconds": "long"}, "a whole number is needed"),
    ],
)
def test_a_fault_of_a_document_is_reported_in_plain_words(
    olivia: Contract, document: dict[str, Any], message: str
) -> None:
    reply = olivia.post("policies/", {"kind": "retention", "name": "one", "document": document})
    assert [fault["message"] for fault in reply.json["errors"]] == [message]
