"""Legal holds: over a memory, a query, or all of a data subject, until two different members let go."""

from typing import Any
from urllib.parse import quote

import pytest

from governance.database import acting
from governance.errors import Forbidden
from governance.models import AuditEntry, Member
from governance.tenants.services import command_line_actor
from governance.vocabulary import Outcome, RoleName, Scope, Verb
from tests.factories import Person, World, client_for, database_time, person_add
from tests.harness.cases import each_case
from tests.vault.api.contract import MISSING, Contract, contract, fields_at_fault
from vault.holds.services import HoldDraft, hold_create
from vault.models import Cube, Hold, HoldCube, HoldReleaseApproval

REASON = "Case 17."


@pytest.fixture
def second(world: World) -> Person:
    """Another admin of acme."""
    return person_add(world.acme, "sam@acme.example", RoleName.ADMIN)


@pytest.fixture
def sam(second: Person) -> Contract:
    return Contract(key=second.key.text)


def hold(client: Contract, **over: Any) -> dict[str, Any]:
    reply = client.post("holds/", {"reason": REASON, **over})
    assert reply.status == 201, reply
    made: dict[str, Any] = reply.json
    return made


def is_held(client: Contract, memory_id: str) -> bool:
    return bool(client.get(f"memories/{memory_id}/").json["held"])


def change(client: Contract, memory_id: str) -> int:
    version = client.get(f"memories/{memory_id}/").json["version"]
    return client.patch(f"memories/{memory_id}/", {"importance": 0.9}, if_match=f'"{version}"').status


def test_a_hold_over_a_memory_keeps_just_that_one(alice: Contract, olivia: Contract) -> None:
    first, other = (alice.add(text, namespace="/team")["id"] for text in ("One.", "Other."))
    made = hold(olivia, memory_id=first)
    assert made["kind"] == "memory"
    assert (made["memory_id"], made["filters"], made["subject"], made["covered"]) == (first, None, None, 1)
    assert (made["status"], made["reason"], made["approvals"]) == ("active", REASON, [])
    assert made["created_by"]["name"] == "olivia"
    assert (is_held(alice, first), is_held(alice, other)) == (True, False)
    assert (change(alice, first), change(alice, other)) == (423, 200)


def test_a_hold_over_a_query_keeps_what_matches_now_and_what_comes_to_match(alice: Contract, olivia: Contract) -> None:
    before = alice.add("The pump leaks.", namespace="/team", tags=["pump"])["id"]
    outside = alice.add("The lamp glows.", namespace="/team", tags=["lamp"])["id"]
    assert hold(olivia, filters={"tags": "pump"})["covered"] == 1
    after = alice.add("The pump stopped.", namespace="/team", tags=["pump"])["id"]
    assert [is_held(alice, item) for item in (before, outside, after)] == [True, False, True]
    assert change(alice, after) == 423
    # An edit that makes a memory match is the last one.
    assert alice.patch(f"memories/{outside}/", {"tags": ["pump"]}, if_match='"1"').json["held"] is True
    assert change(alice, outside) == 423
    assert olivia.get("holds/").json["results"][0]["covered"] == 3


@pytest.mark.parametrize(
    "filters",
    [{"speaker": "Ann"}, {"metadata.case": 17}, {"session_id": "s-1"}, {"OR": [{"namespace": "/team"}]}],
)
def test_the_whole_filter_language_can_be_held_by(alice: Contract, olivia: Contract, filters: dict[str, Any]) -> None:
    hold(olivia, filters=filters)
    message = {"role": "user", "name": "Ann", "content": "It broke.", "metadata": {"case": 17}}
    body = {"messages": [message], "session_id": "s-1", "namespace": "/team", "infer": False}
    assert alice.post("memories/", body).json["results"][0]["held"] is True
    assert alice.add("Elsewhere.")["held"] is False


def test_a_hold_over_a_subject_keeps_all_that_is_was_or_will_be_about_them(alice: Contract, olivia: Contract) -> None:
    now = alice.add("Carla called.", namespace="/team", subject="carla")["id"]
    former = alice.add("Someone called.", namespace="/team", subject="carla")["id"]
    assert alice.patch(f"memories/{former}/", {"subject": None}, if_match='"1"').status == 200
    made = hold(olivia, subject="carla")
    assert (made["kind"], made["covered"], made["subject"]["reference"]) == ("subject", 2, "carla")
    later = alice.add("Carla called again.", namespace="/team", subject="carla")["id"]
    turned = alice.add("Nobody called.", namespace="/team", subject="dora")["id"]
    assert alice.patch(f"memories/{turned}/", {"subject": "carla"}, if_match='"1"').status == 200
    for memory_id in (now, former, later, turned):
        assert is_held(alice, memory_id)
        assert change(alice, memory_id) == 423


def test_a_subject_can_be_held_before_the_first_memory_about_them(alice: Contract, olivia: Contract) -> None:
    assert hold(olivia, subject="nobody yet")["covered"] == 0
    assert alice.add("Here they are.", subject="nobody yet")["held"] is True


def test_it_takes_in_what_is_private_deleted_or_expired(world: World, alice: Contract, olivia: Contract) -> None:
    alice.add("Private.", tags=["x"])
    deleted = alice.add("Deleted.", tags=["x"], namespace="/team")["id"]
    alice.delete(f"memories/{deleted}/")
    assert hold(olivia, filters={"tags": "x"})["covered"] == 2
    for reply in (alice.delete(f"memories/{deleted}/?purge=true"), alice.post(f"memories/{deleted}/restore/")):
        assert (reply.status, reply.code) == (423, "held")


def test_two_different_members_release_it(alice: Contract, olivia: Contract, sam: Contract) -> None:
    memory_id = alice.add("Held.", namespace="/team")["id"]
    address = f"holds/{hold(olivia, memory_id=memory_id)['id']}/"
    for _ in range(2):  # the same member twice is one member
        reply = olivia.post(address + "release/")
        assert (reply.status, reply.json["status"]) == (202, "releasing")
        assert [approval["member"]["name"] for approval in reply.json["approvals"]] == ["olivia"]
        assert change(alice, memory_id) == 423
    reply = sam.post(address + "release/")
    assert (reply.status, reply.json["status"]) == (200, "released")
    assert [approval["member"]["name"] for approval in reply.json["approvals"]] == ["olivia", "sam"]
    assert not is_held(alice, memory_id)
    assert change(alice, memory_id) == 200
    assert sam.post(address + "release/").status == 200  # what has ended stays so


def test_a_second_key_of_one_member_is_no_second_member(world: World, alice: Contract, olivia: Contract) -> None:
    memory_id = alice.add("Held.", namespace="/team")["id"]
    address = f"holds/{hold(olivia, memory_id=memory_id)['id']}/release/"
    assert olivia.post(address).status == 202
    assert contract(world, "olivia", *Scope).post(address).status == 202
    assert is_held(alice, memory_id)


def test_holds_are_listed_as_they_stood_at_a_time(
    world: World, alice: Contract, bob: Contract, olivia: Contract, sam: Contract
) -> None:
    memory_id = alice.add("Held.", namespace="/team")["id"]
    times = [database_time(world)]
    made = hold(olivia, memory_id=memory_id)
    times.append(database_time(world))
    for client in (olivia, sam):
        assert client.post(f"holds/{made['id']}/release/").status in {200, 202}
        times.append(database_time(world))
    found = [olivia.get(f"holds/?as_of={quote(at)}").json["results"] for at in times]
    assert [[row["status"] for row in rows] for rows in found] == [[], ["active"], ["releasing"], []]
    assert bob.get(f"holds/?as_of={quote(times[1])}").status == 403
    assert fields_at_fault(olivia.get("holds/?as_of=then")) == {"as_of"}


def test_one_hold_released_leaves_the_other(alice: Contract, olivia: Contract, sam: Contract) -> None:
    memory_id = alice.add("Held twice.", namespace="/team", tags=["x"])["id"]
    first, _ = hold(olivia, memory_id=memory_id), hold(sam, filters={"tags": "x"})
    assert [client.post(f"holds/{first['id']}/release/").status for client in (olivia, sam)] == [202, 200]
    assert is_held(alice, memory_id)
    assert change(alice, memory_id) == 423


def test_a_released_hold_takes_in_nothing_more(alice: Contract, olivia: Contract, sam: Contract) -> None:
    for over in ({"filters": {"tags": "x"}}, {"subject": "carla"}):
        made = hold(olivia, **over)
        assert [client.post(f"holds/{made['id']}/release/").status for client in (olivia, sam)] == [202, 200]
    assert alice.add("Free.", tags=["x"], subject="carla")["held"] is False


def test_an_unfreeze_ends_no_legal_hold(alice: Contract, olivia: Contract) -> None:
    memory_id = alice.add("Held.", namespace="/team")["id"]
    hold(olivia, memory_id=memory_id)
    assert alice.post(f"memories/{memory_id}/freeze/", {"reason": "Mine."}).status == 200
    for client in (alice, olivia):
        assert client.post(f"memories/{memory_id}/unfreeze/").json["held"] is True


def test_a_tenant_with_one_member_names_a_second_first(world: World, charlie: Contract) -> None:
    memory_id = charlie.add("Held.")["id"]
    address = f"holds/{hold(charlie, memory_id=memory_id)['id']}/release/"
    reply = charlie.post(address)
    assert (reply.status, reply.code) == (409, "second_member_needed")
    assert "second" in reply.json["detail"]
    with acting(world.charlie.actor):
        assert not HoldReleaseApproval.objects.exists()
    second = client_for(person_add(world.other, "dan@other.example", RoleName.ADMIN).key.text)
    assert [client.post(address).status for client in (charlie, second)] == [202, 200]


def test_a_removed_member_approves_nothing(world: World, second: Person, alice: Contract, olivia: Contract) -> None:
    memory_id = alice.add("Held.", namespace="/team")["id"]
    address = f"holds/{hold(olivia, memory_id=memory_id)['id']}/release/"
    assert olivia.post(address).status == 202
    with acting(world.olivia.actor):
        now = Member.objects.get(id=second.member.id).created_at
        Member.objects.filter(id=second.member.id).update(removed_at=now)
    assert client_for(second.key.text).post(address).status == 401
    assert is_held(alice, memory_id)


def test_memory_that_expired_before_the_hold_stays_expired_and_stored(
    world: World, alice: Contract, olivia: Contract
) -> None:
    """Promise 13 before the reader, promise 12 before the bytes."""
    memory_id = alice.add("Short-lived.", namespace="/team")["id"]
    with acting(world.olivia.actor):
        past = Cube.objects.get(id=memory_id).created_at
        Cube.objects.filter(id=memory_id).update(expires_at=past)
    hold(olivia, memory_id=memory_id)
    assert alice.get(f"memories/{memory_id}/").status == 404
    assert alice.patch(f"memories/{memory_id}/", {"expires_at": None}, if_match='"1"').status == 404
    assert olivia.delete(f"memories/{memory_id}/?purge=true").status == 423


@each_case(
    ("body", "fields"),
    [
        ({}, {"reason"}),
        ({"reason": REASON}, {"body"}),
        ({"reason": REASON, "subject": "a", "filters": {"tags": "x"}}, {"body"}),
        ({"reason": REASON, "filters": {}}, {"filters"}),
        ({"reason": REASON, "filters": []}, {"filters"}),
        ({"reason": REASON, "filters": {"speling": 1}}, {"filters.speling"}),
        ({"reason": REASON, "memory_id": str(MISSING)}, {"memory_id"}),
        ({"reason": REASON, "memory_id": "x"}, {"memory_id"}),
        ({"reason": REASON, "subject": "a", "until": "noon"}, {"until"}),
        ({"reason": "  ", "subject": "a"}, {"reason"}),
    ],
)
def test_what_cannot_be_held_is_reported(world: World, olivia: Contract, body: Any, fields: set[str]) -> None:
    assert fields_at_fault(olivia.post("holds/", body)) == fields
    with acting(world.olivia.actor):
        assert not Hold.objects.exists()


def test_a_dry_run_counts_and_makes_nothing(world: World, alice: Contract, olivia: Contract) -> None:
    ids = {alice.add(f"Row {number}.", tags=["x"])["id"] for number in range(3)}
    reply = olivia.post("holds/?dry_run=true", {"reason": REASON, "filters": {"tags": "x"}})
    assert (reply.status, reply.json["count"], set(reply.json["ids"])) == (200, 3, ids)
    with acting(world.olivia.actor):
        assert not Hold.objects.exists()


@pytest.mark.parametrize("who", ["alice", "bob", "ada"])
def test_it_refuses_who_may_not_and_leaves_only_the_denial(
    world: World, olivia: Contract, sam: Contract, who: str
) -> None:
    made = hold(olivia, subject="carla")
    client = contract(world, who)
    before = rows(world)
    for reply in (
        client.get("holds/"),
        client.get(f"holds/{made['id']}/"),
        client.post("holds/", {"reason": REASON, "subject": "dora"}),
        client.post("holds/?dry_run=true", {"reason": REASON, "subject": "dora"}),
        client.post(f"holds/{made['id']}/release/"),
    ):
        assert (reply.status, reply.code) == (403, "forbidden")
    assert rows(world) == before
    with acting(world.olivia.actor):
        assert AuditEntry.objects.filter(outcome=Outcome.DENIED, detail__permission="hold.manage").count() == 5


def test_a_foreign_hold_is_like_one_that_never_was(world: World, alice: Contract, olivia: Contract) -> None:
    memory_id = alice.add("Ours.", namespace="/team")["id"]
    made = hold(olivia, subject="carla")
    charlie, before = contract(world, "charlie"), rows(world)
    for item in (made["id"], MISSING):
        assert charlie.get(f"holds/{item}/").status == 404
        assert charlie.post(f"holds/{item}/release/").status == 404
    for item in (memory_id, str(MISSING)):
        assert fields_at_fault(charlie.post("holds/", {"reason": REASON, "memory_id": item})) == {"memory_id"}
    assert charlie.get("holds/").json["count"] == 0
    assert rows(world) == before


def test_a_freeze_is_no_legal_hold(world: World, alice: Contract, olivia: Contract) -> None:
    memory_id = alice.add("Frozen.", namespace="/team")["id"]
    alice.post(f"memories/{memory_id}/freeze/", {"reason": "Mine."})
    assert olivia.get("holds/").json["count"] == 0
    with acting(world.olivia.actor):
        freeze = Hold.objects.get()
    assert olivia.get(f"holds/{freeze.id}/").status == 404
    assert olivia.post(f"holds/{freeze.id}/release/").status == 404


def test_they_are_listed_by_status(olivia: Contract, sam: Contract) -> None:
    active, releasing, released = (hold(olivia, subject=name)["id"] for name in ("a", "b", "c"))
    for item, clients in ((releasing, [sam]), (released, [sam, olivia])):
        for client in clients:
            client.post(f"holds/{item}/release/")
    for status, expected in (("active", active), ("releasing", releasing), ("released", released)):
        listed = olivia.get(f"holds/?status={status}").json
        assert (listed["count"], [row["id"] for row in listed["results"]]) == (1, [expected])
    assert olivia.get("holds/?page_size=2").json["count"] == 3
    assert fields_at_fault(olivia.get("holds/?status=odd")) == {"status"}
    assert fields_at_fault(olivia.get("holds/?colour=red")) == {"colour"}


def test_each_step_is_in_the_audit_log_without_its_reason(world: World, olivia: Contract, sam: Contract) -> None:
    made = hold(olivia, subject="carla")
    for client in (olivia, sam):
        client.post(f"holds/{made['id']}/release/")
    with acting(world.olivia.actor):
        trail = list(AuditEntry.objects.filter(object_ids=[made["id"]]).order_by("id"))
    assert [row.verb for row in trail] == [Verb.HOLD_CREATED, Verb.HOLD_RELEASE_APPROVED, Verb.HOLD_RELEASED]
    assert trail[0].detail == {"kind": "subject", "covered": 0}
    assert [row.member_id for row in trail][1:] == [world.olivia.member.id, trail[2].member_id]
    assert REASON not in str([row.detail for row in trail])


def test_a_repeated_release_is_one_approval(olivia: Contract, sam: Contract) -> None:
    address = f"holds/{hold(olivia, subject='carla')['id']}/release/"
    replies = [olivia.post(address, idempotency_key="once") for _ in range(2)]
    assert [reply.status for reply in replies] == [202, 202]
    assert replies[0].json == replies[1].json


def test_the_system_makes_no_hold(world: World) -> None:
    with pytest.raises(Forbidden):
        hold_create(actor=command_line_actor(world.acme.id), draft=HoldDraft(reason=REASON, subject="carla"))


def rows(world: World) -> tuple[int, int, int]:
    with acting(world.olivia.actor):
        return Hold.objects.count(), HoldCube.objects.count(), HoldReleaseApproval.objects.count()
