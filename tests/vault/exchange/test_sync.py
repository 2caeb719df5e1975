"""A namespace here and one of another installation are kept in step: both directions, conflicts, failures, rights."""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import timedelta
from threading import Event
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connections
from django.db.models.functions import Now
from django.test import override_settings
from pytest_httpserver import HTTPServer

from governance.database import acting
from governance.models import Job, OutboxEvent
from governance.vocabulary import Topic
from tests.factories import World
from tests.governance.web.visitors import signed_in, without_marks
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, contract, fields_at_fault
from tests.vault.exchange.peers import HERE, THERE, OtherSide, other_side, peer_of, run_sync, sync_peer
from tests.vault.outbox import run_jobs
from vault.content.drafts import CubeDraft, SourceRef
from vault.cubes.services import cubes_add
from vault.exchange.item_drafts import imported_find
from vault.exchange.items import Item, ItemVersion
from vault.exchange.sync import received_changes
from vault.exchange.sync.received_changes import changes_apply
from vault.exchange.sync.wire import Change, make_sent
from vault.models import Cube, CubeSource, SyncLink, SyncPeer
from vault.vocabulary import SourceKind


@pytest.fixture
def other(httpserver: HTTPServer) -> Iterator[OtherSide]:
    with other_side(httpserver) as found:
        yield found


@pytest.fixture
def peer(world: World, olivia: Contract, other: OtherSide) -> str:
    """Charlie's namespace, as a peer of Olivia's."""
    return peer_of(olivia, other, world.charlie.key.text)


def list_here(olivia: Contract) -> list[str]:
    return sorted(olivia.list_contents(f"namespace={HERE}"))


def list_there(charlie: Contract) -> list[str]:
    return sorted(charlie.list_contents(f"namespace={THERE}"))


def find_memory(client: Contract, content: str) -> dict[str, Any]:
    """The memory with this content."""
    (found,) = [memory for memory in client.get("memories/").json["results"] if memory["content"] == content]
    memory: dict[str, Any] = found
    return memory


def edit(client: Contract, content: str, to: str) -> None:
    memory = find_memory(client, content)
    reply = client.patch(f"memories/{memory['id']}/", {"content": to}, if_match=f'"{memory["version"]}"')
    assert reply.status == 200, reply


def remove(client: Contract, content: str) -> None:
    assert client.delete(f"memories/{find_memory(client, content)['id']}/").status == 204


def conflict(client: Contract) -> dict[str, Any]:
    (review,) = client.get("reviews/?kind=sync").json["results"]
    found: dict[str, Any] = review
    return found


def test_new_memories_go_both_ways_once_and_do_not_echo(olivia: Contract, charlie: Contract, peer: str) -> None:
    olivia.add("The heron nests by the mill.", namespace=HERE, tags=["bird"])
    charlie.add("The heron fishes at dawn.", namespace=THERE, importance=0.9)
    assert sync_peer(olivia, peer) == {"received": 1, "sent": 1}
    both = ["The heron fishes at dawn.", "The heron nests by the mill."]
    assert (list_here(olivia), list_there(charlie)) == (both, both)
    assert find_memory(olivia, "The heron fishes at dawn.")["importance"] == 0.9
    assert find_memory(charlie, "The heron nests by the mill.")["tags"] == ["bird"]
    assert sync_peer(olivia, peer) == {}
    assert sync_peer(olivia, peer) == {}
    assert (list_here(olivia), list_there(charlie)) == (both, both)


def test_life_of_a_memory_goes_along_but_not_its_persona(olivia: Contract, charlie: Contract, peer: str) -> None:
    olivia.post("personas/", {"name": "birder"})
    fields = {"expires_at": "2099-01-01T00:00:00Z", "valid_to": "2098-01-01T00:00:00Z"}
    olivia.add("The heron nests by the mill.", namespace=HERE, persona="birder", **fields)
    old = olivia.add("The stork left.", namespace=HERE)
    assert olivia.post(f"memories/{old['id']}/transition/", {"to": "archived"}).status == 200
    assert sync_peer(olivia, peer) == {"sent": 2}
    found = find_memory(charlie, "The heron nests by the mill.")
    assert {name: found[name][:4] for name in fields} == {"expires_at": "2099", "valid_to": "2098"}
    assert found["persona"] is None
    assert charlie.list_contents(f"namespace={THERE}&state=archived") == ["The stork left."]
    assert sync_peer(olivia, peer) == {}


def test_changes_and_deletions_go_both_ways_with_their_versions(olivia: Contract, charlie: Contract, peer: str) -> None:
    for content in ("One.", "Two.", "Three."):
        olivia.add(content, namespace=HERE)
    charlie.add("Four.", namespace=THERE)
    sync_peer(olivia, peer)
    edit(olivia, "One.", "One, changed.")
    edit(olivia, "One, changed.", "One, changed twice.")
    edit(charlie, "Two.", "Two, changed there.")
    remove(olivia, "Three.")
    remove(charlie, "Four.")
    assert sync_peer(olivia, peer) == {"updated_here": 1, "updated_there": 1, "deleted_here": 1, "deleted_there": 1}
    both = ["One, changed twice.", "Two, changed there."]
    assert (list_here(olivia), list_there(charlie)) == (both, both)
    versions = charlie.get(f"memories/{find_memory(charlie, 'One, changed twice.')['id']}/versions/").json["results"]
    assert [version["content"] for version in versions] == ["One, changed twice.", "One, changed.", "One."]
    assert sync_peer(olivia, peer) == {}


def test_lineage_goes_both_ways(world: World, olivia: Contract, charlie: Contract, peer: str) -> None:
    def add_derived_memory(person: str, namespace: str, origin: str, content: str) -> None:
        draft = CubeDraft(content=content, namespace=namespace, sources=(SourceRef(UUID(origin), 1, SourceKind.TEXT),))
        cubes_add(actor=world.person(person).actor, drafts=[draft])

    first = olivia.add("The heron nests by the mill.", namespace=HERE)["id"]
    add_derived_memory("olivia", HERE, first, "Herons nest.")
    second = charlie.add("The heron fishes at dawn.", namespace=THERE)["id"]
    add_derived_memory("charlie", THERE, second, "Herons fish.")
    assert sync_peer(olivia, peer) == {"received": 2, "sent": 2}
    add_derived_memory(
        "charlie", THERE, find_memory(charlie, "The heron nests by the mill.")["id"], "Mills have nests."
    )
    add_derived_memory("olivia", HERE, find_memory(olivia, "The heron fishes at dawn.")["id"], "Dawn has fishers.")
    assert sync_peer(olivia, peer) == {"received": 1, "sent": 1}
    for person, client in (("olivia", olivia), ("charlie", charlie)):
        with acting(world.person(person).actor):
            found = {(str(cube_source.cube_id), str(cube_source.source_id)) for cube_source in CubeSource.objects.all()}
        pairs = {
            "Herons nest.": "The heron nests by the mill.",
            "Herons fish.": "The heron fishes at dawn.",
            "Mills have nests.": "The heron nests by the mill.",
            "Dawn has fishers.": "The heron fishes at dawn.",
        }
        assert found == {
            (find_memory(client, key)["id"], find_memory(client, other)["id"]) for key, other in pairs.items()
        }


@pytest.mark.parametrize("decision", ["theirs", "ours", "edited"])
def test_edits_on_both_sides_wait_in_the_inbox_until_somebody_decides(
    decision: str, olivia: Contract, charlie: Contract, peer: str
) -> None:
    olivia.add("The heron nests by the mill.", namespace=HERE)
    sync_peer(olivia, peer)
    edit(olivia, "The heron nests by the mill.", "The heron nests by the lake.")
    edit(charlie, "The heron nests by the mill.", "The heron nests by the sea.")
    assert sync_peer(olivia, peer) == {"conflicts": 1}
    assert (list_here(olivia), list_there(charlie)) == (
        ["The heron nests by the lake."],
        ["The heron nests by the sea."],
    )
    assert sync_peer(olivia, peer) == {"conflicts": 1}
    review = conflict(olivia)
    assert (review["content"], review["theirs"]["content"]) == (
        "The heron nests by the lake.",
        "The heron nests by the sea.",
    )
    if decision == "ours":
        reply = olivia.post(f"reviews/{review['id']}/reject/")
        result, counts = "The heron nests by the lake.", {"updated_there": 1}
    else:
        text = "The heron nests by both."
        reply = olivia.post(f"reviews/{review['id']}/accept/", {"content": text} if decision == "edited" else {})
        result = text if decision == "edited" else "The heron nests by the sea."
        counts = {"updated_there": 1} if decision == "edited" else {}
    assert reply.status == 200, reply
    assert sync_peer(olivia, peer) == counts
    assert list_here(olivia) == list_there(charlie) == [result]
    assert sync_peer(olivia, peer) == {}
    edit(charlie, result, "The heron left.")
    assert sync_peer(olivia, peer) == {"updated_here": 1}


def test_same_edit_on_both_sides_is_no_conflict(olivia: Contract, charlie: Contract, peer: str) -> None:
    olivia.add("One.", namespace=HERE)
    sync_peer(olivia, peer)
    edit(olivia, "One.", "Two.")
    edit(charlie, "One.", "Two.")
    assert sync_peer(olivia, peer) == {}
    assert sync_peer(olivia, peer) == {}


def test_change_wins_over_a_deletion_on_the_other_side(olivia: Contract, charlie: Contract, peer: str) -> None:
    olivia.add("One.", namespace=HERE)
    olivia.add("Two.", namespace=HERE)
    sync_peer(olivia, peer)
    remove(charlie, "One.")
    edit(olivia, "One.", "One, changed.")
    remove(olivia, "Two.")
    edit(charlie, "Two.", "Two, changed.")
    sync_peer(olivia, peer)
    assert sync_peer(olivia, peer) == {}
    both = ["One, changed.", "Two, changed."]
    assert (list_here(olivia), list_there(charlie)) == (both, both)


@pytest.mark.parametrize(("direction", "come", "go"), [("pull", True, False), ("push", False, True)])
def test_sync_in_one_direction_leaves_the_other_side_as_it_is(
    direction: str, come: bool, go: bool, world: World, olivia: Contract, charlie: Contract, other: OtherSide
) -> None:
    peer = peer_of(olivia, other, world.charlie.key.text, direction=direction)
    olivia.add("Ours.", namespace=HERE)
    charlie.add("Theirs.", namespace=THERE)
    sync_peer(olivia, peer)
    assert list_here(olivia) == (["Ours.", "Theirs."] if come else ["Ours."])
    assert list_there(charlie) == (["Ours.", "Theirs."] if go else ["Theirs."])


def test_conflict_of_a_push_shows_the_text_at_the_peer(
    world: World, olivia: Contract, charlie: Contract, other: OtherSide
) -> None:
    peer = peer_of(olivia, other, world.charlie.key.text, direction="push")
    olivia.add("One.", namespace=HERE)
    sync_peer(olivia, peer)
    edit(olivia, "One.", "Ours.")
    edit(charlie, "One.", "Theirs.")
    assert sync_peer(olivia, peer) == {"conflicts": 1}
    review = conflict(olivia)
    assert review["theirs"]["content"] == "Theirs."
    assert olivia.post(f"reviews/{review['id']}/reject/").status == 200
    assert sync_peer(olivia, peer) == {"updated_there": 1}
    assert list_there(charlie) == ["Ours."]


def test_two_installations_that_both_sync_do_not_multiply_memories(
    world: World, olivia: Contract, charlie: Contract, other: OtherSide, peer: str
) -> None:
    back = peer_of(charlie, other, world.olivia.key.text, namespace=THERE, remote_namespace=HERE)
    olivia.add("Ours.", namespace=HERE)
    charlie.add("Theirs.", namespace=THERE)
    for _ in range(2):
        sync_peer(olivia, peer)
        sync_peer(charlie, back)
    assert list_here(olivia) == list_there(charlie) == ["Ours.", "Theirs."]
    edit(charlie, "Ours.", "Ours, changed there.")
    sync_peer(charlie, back)
    assert sync_peer(olivia, peer) == {}
    assert list_here(olivia) == list_there(charlie) == ["Ours, changed there.", "Theirs."]


def test_peer_that_is_set_up_again_links_what_was_there(
    world: World, olivia: Contract, charlie: Contract, other: OtherSide, peer: str
) -> None:
    olivia.add("Ours.", namespace=HERE)
    charlie.add("Theirs.", namespace=THERE)
    sync_peer(olivia, peer)
    assert olivia.delete(f"sync/peers/{peer}/").status == 204
    with acting(world.olivia.actor):
        assert not SyncLink.objects.exists()
    again = peer_of(olivia, other, world.charlie.key.text)
    assert sync_peer(olivia, again) == {}
    assert list_here(olivia) == list_there(charlie) == ["Ours.", "Theirs."]


def test_what_may_not_leave_stays_on_both_sides(world: World, olivia: Contract, charlie: Contract, peer: str) -> None:
    for client, place in ((olivia, HERE), (charlie, THERE)):
        client.add("The nest is worth much.", namespace=place, sensitivity="confidential")
        client.add("The password is api_key=sk-9fK2mQ7xVb4LpZ8tRw3NcY6h.", namespace=place)
        client.add("An elsewhere.", namespace="/elsewhere")
    counts = sync_peer(olivia, peer)
    assert counts == {"left_out": {"secret": 2}}
    assert (len(list_here(olivia)), len(list_there(charlie))) == (2, 2)
    memory = olivia.add("The heron nests.", namespace=HERE)
    sync_peer(olivia, peer)
    copy = find_memory(charlie, "The heron nests.")
    assert charlie.patch(f"memories/{copy['id']}/", {"sensitivity": "restricted"}, if_match='"1"').status == 200
    assert sync_peer(olivia, peer)["left_out"]["not_shared"] == 1
    assert olivia.get(f"memories/{memory['id']}/").status == 200


def test_purged_memory_does_not_come_back(olivia: Contract, charlie: Contract, peer: str) -> None:
    charlie.add("Theirs.", namespace=THERE)
    sync_peer(olivia, peer)
    memory = find_memory(olivia, "Theirs.")
    assert olivia.delete(f"memories/{memory['id']}/?purge=true").status == 204
    assert sync_peer(olivia, peer) == {"deleted_there": 1}
    assert list_here(olivia) == list_there(charlie) == []


def test_peer_that_is_down_is_tried_again_and_goes_on_where_it_stopped(
    world: World, olivia: Contract, charlie: Contract, other: OtherSide, peer: str
) -> None:
    for number in range(150):
        charlie.add(f"Theirs {number}.", namespace=THERE)
    other.status, other.cut_after = 503, 2  # the list and the first hundred
    job = run_sync(olivia, peer)
    assert job["status"] in {"running", "pending"}, job
    assert len(olivia.list_contents(f"namespace={HERE}&page_size=200")) == 100
    refused = olivia.post(f"sync/peers/{peer}/run/")
    assert refused.status == 409
    other.status = None
    calls = len(other.calls)
    with acting(world.olivia.actor):
        assert Job.objects.get(id=job["id"]).state["after"]
        OutboxEvent.objects.filter(done_at=None).update(available_at=Now() - timedelta(seconds=1))
    run_jobs()
    assert olivia.get(f"jobs/{job['id']}/").json["status"] == "succeeded"
    assert len(olivia.list_contents(f"namespace={HERE}&page_size=200")) == 150
    assert other.calls[calls:] == ["list", "read/"]


def test_wrong_key_fails_honestly_and_a_right_one_goes_on(
    world: World, olivia: Contract, charlie: Contract, other: OtherSide
) -> None:
    charlie.add("Theirs.", namespace=THERE)
    peer = peer_of(olivia, other, "mk_wrong")
    job = run_sync(olivia, peer)
    assert (job["status"], "Change the key" in job["error"]["detail"]) == ("failed", True)
    view = olivia.get(f"sync/peers/{peer}/").json
    assert view["last_job"]["status"] == "failed"
    assert "key" not in view
    assert "Change the key" in signed_in(world.olivia).get(f"/exchange/peers/{peer}/").content.decode()
    changed = olivia.patch(f"sync/peers/{peer}/", {"key": world.charlie.key.text})
    assert changed.status == 200, changed
    assert olivia.post(f"jobs/{job['id']}/retry/").status in {200, 202}
    run_jobs()
    assert list_here(olivia) == ["Theirs."]


def test_namespace_that_the_key_may_no_longer_read_deletes_nothing(
    world: World, olivia: Contract, charlie: Contract, peer: str
) -> None:
    charlie.add("Theirs.", namespace=THERE)
    sync_peer(olivia, peer)
    (namespace,) = charlie.get(f"namespaces/?path={THERE}").json["results"]
    assert charlie.post(f"namespaces/{namespace['id']}/move/", {"path": "/gone"}).status in {200, 202}
    run_jobs()
    job = run_sync(olivia, peer)
    assert (job["status"], "no such namespace" in job["error"]["detail"]) == ("failed", True)
    assert list_here(olivia) == ["Theirs."]


@pytest.mark.parametrize(
    "answer",
    [
        b"[]",
        b"{}",
        b'{"count": 1, "memories": [], "is_last": false}',
        b'{"count": 2, "memories": [{"id": "b0000000-0000-7000-8000-000000000000", "version": 1},'
        b'{"id": "a0000000-0000-7000-8000-000000000000", "version": 1}], "is_last": true}',
        b"[" * 100_000,
    ],
)
def test_answer_that_is_none_fails_the_sync(
    answer: bytes, world: World, olivia: Contract, httpserver: HTTPServer
) -> None:
    httpserver.expect_request("/api/v1/sync/memories/").respond_with_data(answer, content_type="application/json")
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
        peer = peer_of(olivia, OtherSide(httpserver.url_for("").rstrip("/")), "mk_any")
        job = run_sync(olivia, peer)
    assert (job["status"], "does not understand" in job["error"]["detail"]) == ("failed", True)


def test_sync_on_a_schedule_runs_and_ends_with_its_peer(world: World, olivia: Contract, peer: str) -> None:
    reply = olivia.send("PUT", f"sync/peers/{peer}/schedule/", {"cron": "0 * * * *", "timezone": "Europe/Berlin"})
    assert (reply.status, reply.json["cron"], reply.json["timezone"]) == (200, "0 * * * *", "Europe/Berlin")
    olivia.add("Ours.", namespace=HERE)
    (schedule,) = [
        schedule for schedule in olivia.get("schedules/").json["results"] if schedule["kind"] == "memories.sync"
    ]
    assert olivia.post(f"schedules/{schedule['id']}/run/").status == 202
    run_jobs()
    last = olivia.get(f"sync/peers/{peer}/").json["last_job"]
    assert (last["status"], last["result"]["counts"]["sent"]) == ("succeeded", 1)
    assert olivia.delete(f"sync/peers/{peer}/").status == 204
    assert not [
        schedule for schedule in olivia.get("schedules/").json["results"] if schedule["kind"] == "memories.sync"
    ]


def test_only_members_with_the_right_and_of_the_tenant_manage_its_peers(
    world: World, olivia: Contract, charlie: Contract, other: OtherSide, peer: str
) -> None:
    body = {"name": "x", "address": other.address, "key": "mk_x", "namespace": HERE, "remote_namespace": THERE}
    for who in ("alice", "bob"):
        client = contract(world, who)
        assert client.get("sync/peers/").status == 403
        assert client.post("sync/peers/", body).status == 403
        assert client.post(f"sync/peers/{peer}/run/").status == 403
        assert client.patch(f"sync/peers/{peer}/", {"name": "y"}).status == 403
        assert client.delete(f"sync/peers/{peer}/").status == 403
        assert client.send("PUT", f"sync/peers/{peer}/schedule/", {"cron": "0 * * * *"}).status == 403
    assert charlie.get("sync/peers/").json["results"] == []
    assert charlie.get(f"sync/peers/{peer}/").status == 404
    assert charlie.post(f"sync/peers/{peer}/run/").status == 404
    assert charlie.patch(f"sync/peers/{peer}/", {"name": "y"}).status == 404
    assert charlie.delete(f"sync/peers/{peer}/").status == 404
    with acting(world.olivia.actor):
        (row,) = SyncPeer.objects.all()
        assert world.charlie.key.text.encode() not in bytes(row.sealed_key)
        assert not Job.objects.filter(kind=Topic.MEMORIES_SYNC).exists()


def test_peer_that_cannot_be_called_is_refused(world: World, olivia: Contract) -> None:
    body = {"name": "x", "address": "https://host.example", "key": "k", "namespace": HERE, "remote_namespace": THERE}
    for name, value in (
        ("name", " "),
        ("address", "ftp://host.example"),
        ("address", "http://host.example"),
        ("address", "https://127.0.0.1"),
        ("address", "https://169.254.169.254"),
        ("address", "https://user:word@host.example"),
        ("address", "https://host.example/?x=1"),
        ("key", "k\n"),
        ("namespace", "birds"),
        ("remote_namespace", "../x"),
        ("direction", "sideways"),
    ):
        assert name in fields_at_fault(olivia.post("sync/peers/", {**body, name: value})), (name, value)
    with acting(world.olivia.actor):
        assert not SyncPeer.objects.exists()


def test_rights_hold_for_what_another_installation_asks(world: World, charlie: Contract, olivia: Contract) -> None:
    memory = olivia.add("Ours.", namespace=HERE)["id"]
    read = {"namespace": HERE, "memories": {memory: 0}}
    assert charlie.get(f"sync/memories/?namespace={HERE}").status == 404
    assert charlie.post("sync/memories/read/", read).status == 404
    change = {"sent": None, "target": memory, "base": 1}
    written = charlie.post("sync/memories/write/", {"namespace": THERE, "changes": [change]})
    assert written.json["results"][0]["outcome"] == "deleted"  # as of any id that is none of charlie's
    assert list_here(olivia) == ["Ours."]
    bob = contract(world, "bob")
    assert bob.post("sync/memories/write/", {"namespace": HERE, "changes": [change]}).status == 403
    assert list_here(olivia) == ["Ours."]


@each_case(
    "change",
    [
        {"sent": {}, "target": None, "base": None},
        {"sent": {"id": "x", "version": 1, "item": {}, "origin": "", "stays": ""}, "target": None, "base": None},
        {"target": None, "base": None},
        {"sent": None, "target": "x", "base": 1},
        {"sent": None, "target": None, "base": -1},
    ],
)
def test_malformed_change_is_refused_and_writes_nothing(change: dict[str, Any], world: World, olivia: Contract) -> None:
    reply = olivia.post("sync/memories/write/", {"namespace": HERE, "changes": [change]})
    assert reply.status == 400, reply
    with acting(world.olivia.actor):
        assert not Cube.objects.exists()


def test_history_that_is_too_long_comes_with_its_newest_versions(
    olivia: Contract, charlie: Contract, peer: str
) -> None:
    olivia.add("0 " + "heron " * 4_000, namespace=HERE)
    memory = olivia.get(f"memories/?namespace={HERE}").json["results"][0]
    for number in range(1, 30):
        body = {"content": f"{number} " + "heron " * 4_000}
        assert olivia.patch(f"memories/{memory['id']}/", body, if_match=f'"{number}"').status == 200
    assert sync_peer(olivia, peer) == {"sent": 1}
    copy = charlie.get(f"memories/?namespace={THERE}").json["results"][0]
    assert (copy["content"].partition(" ")[0], 1 < copy["version"] < 30) == ("29", True)
    assert sync_peer(olivia, peer) == {}
    assert len(json.dumps(copy)) < 100_000


def test_pages_add_a_peer_sync_and_show_the_report(
    world: World, olivia: Contract, charlie: Contract, other: OtherSide
) -> None:
    charlie.add("The heron fishes at dawn.", namespace=THERE)
    browser = signed_in(world.olivia)
    asked = {"name": "Desktop", "address": other.address, "namespace": HERE, "remote_namespace": THERE}
    wrong = browser.post("/exchange/peers/new/", {**asked, "key": "mk_wrong", "direction": "sideways"})
    assert (wrong.status_code, b"id_direction_error" in wrong.content, b"mk_wrong" in wrong.content) == (
        422,
        True,
        False,
    )
    assert browser.post("/exchange/peers/new/", {**asked, "key": "", "direction": "both"}).status_code == 422
    made = browser.post("/exchange/peers/new/", {**asked, "key": world.charlie.key.text, "direction": "both"})
    assert made.status_code == 303
    address = made["Location"]
    assert "No sync yet" in browser.get(address).content.decode()
    assert browser.post(f"{address}run/").status_code == 303
    assert "Sync now" in browser.get(address).content.decode()
    assert browser.post(f"{address}run/").status_code == 409
    run_jobs()
    assert "1 new here" in browser.get(address).content.decode()
    assert browser.post(f"{address}run/").status_code == 303
    run_jobs()
    assert "Nothing had changed." in browser.get(address).content.decode()
    changed = browser.post(f"{address}change/", {"direction": "pull", "cron": "0 * * * *", "key": ""})
    assert changed.status_code == 303
    assert olivia.get("sync/peers/").json["results"][0]["cron"] == "0 * * * *"
    shown = browser.get("/exchange/").content.decode()
    assert ("Desktop" in shown, "Every hour" in shown, "From there to here" in shown) == (True, True, True)
    assert "Desktop" not in signed_in(world.alice).get("/exchange/").content.decode()
    for who in ("alice", "bob"):
        assert signed_in(world.person(who)).get(address).status_code == 403
    assert signed_in(world.charlie).get(address).status_code == 404
    assert browser.post(f"{address}remove/").status_code == 303
    assert olivia.get("sync/peers/").json["results"] == []


def test_inbox_shows_both_texts_of_a_conflict_and_takes_a_third(
    world: World, olivia: Contract, charlie: Contract, peer: str
) -> None:
    olivia.add("One.", namespace=HERE)
    sync_peer(olivia, peer)
    edit(olivia, "One.", "Ours now.")
    edit(charlie, "One.", "Theirs now.")
    sync_peer(olivia, peer)
    browser = signed_in(world.olivia)
    shown = without_marks(browser.get("/reviews/").content.decode())
    assert all(words in shown for words in ("Ours now.", "Theirs now.", "The other one", "Take the other text"))
    review = conflict(olivia)["id"]
    assert signed_in(world.bob).post(f"/reviews/{review}/accept/", {"content": "Bob's."}).status_code == 403
    assert list_here(olivia) == ["Ours now."]
    refused = browser.post(f"/reviews/{review}/accept/", {"content": " "})
    assert (refused.status_code, 'id="id_content_error"' in refused.content.decode()) == (422, True)
    assert browser.post(f"/reviews/{review}/accept/", {"content": "Both now."}).status_code == 303
    sync_peer(olivia, peer)
    assert list_here(olivia) == list_there(charlie) == ["Both now."]


def test_call_sent_again_while_the_first_still_runs_adds_nothing(
    world: World, charlie: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a break of the connection: the first call has looked for copies when the second one comes."""
    began = Event()

    def look_late(*args: Any, **kwargs: Any) -> Any:
        found = imported_find(*args, **kwargs)
        if not began.is_set():
            began.set()
            second.append(pool.submit(send))
            wait([second[0]], timeout=1)  # it has looked, too, if nothing holds it
        return found

    def send() -> list[str]:
        try:
            applied = changes_apply(actor=world.charlie.actor, namespace=THERE, changes=[change])
            return [str(outcome.id) for outcome in applied]
        finally:
            connections.close_all()

    monkeypatch.setattr(received_changes, "imported_find", look_late)
    second: list[Future[list[str]]] = []
    item = Item(id=str(uuid4()), versions=(ItemVersion("The heron nests by the mill."),))
    change = Change(make_sent(uuid4(), 1, item), None, None)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(send).result()
        assert second[0].result() == first
    assert list_there(charlie) == [item.versions[0].content]
