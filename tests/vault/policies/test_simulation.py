"""The simulator says what then happens: the same memories, counted before and found changed after."""

from collections.abc import Callable
from uuid import UUID

import psycopg
import pytest

from governance.database import acting
from tests.factories import World
from tests.governance.tables import read_all_rows
from tests.vault.api.contract import Contract, fields_at_fault
from tests.vault.outbox import run_jobs
from tests.vault.policies.policy_factories import DAY, age_memory, change_policy, create_policy, simulate_policy
from vault.models import Cube

Superuser = Callable[[], psycopg.Connection]
TEAM = {"namespace": "/team"}


@pytest.fixture
def memories(world: World, alice: Contract) -> dict[str, str]:
    """Memories of all kinds of age and expiry."""
    ids = {
        "young": alice.add("Young.", namespace="/team")["id"],
        "old": alice.add("Old.", namespace="/team")["id"],
        "own": alice.add("Own.", namespace="/team", ttl_seconds=30 * DAY)["id"],
        "brief": alice.add("Brief.", namespace="/team", ttl_seconds=3600)["id"],
        "outside": alice.add("Outside.", namespace="/open")["id"],
    }
    age_memory(world.alice.actor, ids["old"], days=50)
    run_jobs()
    return ids


def expiries(world: World) -> dict[str, object]:
    with acting(world.alice.actor):
        return {str(item): at for item, at in Cube.objects.values_list("id", "expires_at")}


def test_what_it_says_of_retention_is_what_then_happens(
    world: World, olivia: Contract, memories: dict[str, str]
) -> None:
    document = {"where": TEAM, "ttl_seconds": 10 * DAY, "max_seconds": 20 * DAY}
    effects = simulate_policy(olivia, "retention", document)
    assert effects == {
        ("expires_newly", ""): (1, {memories["young"]}),
        ("expires_at_once", ""): (1, {memories["old"]}),
        ("expires_sooner", ""): (1, {memories["own"]}),
        ("write_refused", ""): (1, {memories["own"]}),
    }
    before = expiries(world)
    create_policy(olivia, "retention", document)
    run_jobs()
    after = expiries(world)
    moved = {key for key, at in after.items() if at != before[key]}
    assert moved == {memories["young"], memories["old"], memories["own"]}
    assert simulate_policy(olivia, "retention", document, id=olivia.get("policies/").json["results"][0]["id"]) == {}


def test_what_it_says_of_a_next_version_is_what_then_happens(
    world: World, olivia: Contract, memories: dict[str, str]
) -> None:
    policy_id = create_policy(olivia, "retention", {"where": TEAM, "ttl_seconds": 100 * DAY})
    run_jobs()
    for fields, document in (
        ({}, {"where": {"namespace": "/open"}, "ttl_seconds": DAY}),
        ({"enabled": False}, {"where": {"namespace": "/open"}, "ttl_seconds": DAY}),
    ):
        effects = simulate_policy(olivia, "retention", document, id=policy_id, **fields)
        before = expiries(world)
        change_policy(olivia, policy_id, document=document, **fields)
        run_jobs()
        moved = {key for key, at in expiries(world).items() if at != before[key]}
        said = {
            memory_id for (effect, _), (_, ids) in effects.items() if effect.startswith("expires") for memory_id in ids
        }
        assert said == moved != set()


def test_what_it_says_of_purposes_is_what_readers_then_find(
    olivia: Contract, alice: Contract, memories: dict[str, str]
) -> None:
    alice.get("memories/", x_memory_purpose="billing")
    document = {"where": TEAM, "purposes": ["treatment"]}
    effects = simulate_policy(olivia, "purpose", document)
    assert set(effects) == {("reader_loses", ""), ("reader_loses", "billing")}
    purposes = ("", "billing", "treatment")
    before = {purpose: list_ids(alice, purpose) for purpose in purposes}
    create_policy(olivia, "purpose", document)
    for purpose in purposes:
        lost = before[purpose] - list_ids(alice, purpose)
        assert effects.get(("reader_loses", purpose), (0, set())) == (len(lost), lost), purpose
    opened = simulate_policy(
        olivia, "purpose", document, id=olivia.get("policies/").json["results"][0]["id"], enabled=False
    )
    assert opened[("reader_gains", "billing")] == effects[("reader_loses", "billing")]


def list_ids(client: Contract, purpose: str) -> set[str]:
    headers = {"x_memory_purpose": purpose} if purpose else {}
    return {memory["id"] for memory in client.get("memories/", **headers).json["results"]}


def test_it_tells_who_read_for_a_purpose(
    olivia: Contract, alice: Contract, bob: Contract, memories: dict[str, str]
) -> None:
    for client in (alice, bob, bob):
        client.get("memories/", x_memory_purpose="billing")
    body = {"kind": "purpose", "document": {"where": TEAM, "purposes": ["treatment"]}}
    effects = olivia.post("policies/simulate/", body).json["effects"]
    assert [effect["readers"] for effect in effects if effect["about"] == "billing"] == [2]


def test_it_tells_of_sharing_pii_and_quotas(world: World, olivia: Contract, memories: dict[str, str]) -> None:
    inside = {memories[name] for name in ("young", "old", "own", "brief")}
    assert simulate_policy(olivia, "sharing", {"where": TEAM, "share_with": ["member"]}) == {
        ("sharing_narrowed", ""): (4, inside)
    }
    recent = inside - {memories["old"]}
    assert simulate_policy(olivia, "pii", {"where": TEAM, "action": "refuse"}) == {
        ("pii_changes", "flag→refuse"): (3, recent)
    }
    quota = {"holder": {"kind": "tenant"}, "limits": {"memories": 4, "bytes": 2**40}}
    assert simulate_policy(olivia, "quota", quota) == {("quota_reached", "memories"): (1, {str(world.acme.id)})}
    create_policy(olivia, "quota", quota)
    assert olivia.post("memories/", {"content": "One more."}).status == 429


def test_it_counts_all_and_names_some(olivia: Contract, alice: Contract) -> None:
    items = [{"content": f"Row {number}.", "namespace": "/team"} for number in range(30)]
    assert alice.post("memories/bulk/", {"items": items}).status == 201
    ((count, ids),) = simulate_policy(olivia, "retention", {"where": TEAM, "ttl_seconds": DAY}).values()
    assert (count, len(ids)) == (30, 10)


def test_it_changes_nothing(olivia: Contract, memories: dict[str, str], superuser: Superuser) -> None:
    before = read_all_rows(superuser())
    for kind, document in (
        ("retention", {"ttl_seconds": 60}),
        ("purpose", {"where": {}, "purposes": ["x"]}),
        ("sharing", {}),
        ("pii", {"action": "refuse"}),
        ("quota", {"holder": {"kind": "member"}, "limits": {"memories": 0}}),
    ):
        assert simulate_policy(olivia, kind, document)
    assert read_all_rows(superuser()) == before


def test_it_refuses_what_could_not_be_saved(olivia: Contract, charlie: Contract) -> None:
    policy_id = create_policy(olivia, "retention", {"ttl_seconds": 60})
    wrong = olivia.post("policies/simulate/", {"id": policy_id, "kind": "pii", "document": {}})
    assert fields_at_fault(wrong) == {"kind"}
    assert fields_at_fault(olivia.post("policies/simulate/", {"kind": "retention", "document": {}})) == {"document"}
    foreign = {"id": policy_id, "kind": "retention", "document": {"ttl_seconds": 60}}
    assert charlie.post("policies/simulate/", foreign).status == 404
    assert fields_at_fault(olivia.post("policies/simulate/", {**foreign, "days": 0})) == {"days"}


def test_it_tells_nothing_of_another_tenant(olivia: Contract, charlie: Contract) -> None:
    theirs = UUID(charlie.add("Theirs.", namespace="/team")["id"])
    charlie.get("memories/", x_memory_purpose="secret-purpose")
    for kind, document in (("retention", {"ttl_seconds": 60}), ("purpose", {"where": {}, "purposes": ["x"]})):
        reply = olivia.post("policies/simulate/", {"kind": kind, "document": document})
        assert str(theirs).encode() not in reply.body
        assert b"secret-purpose" not in reply.body
