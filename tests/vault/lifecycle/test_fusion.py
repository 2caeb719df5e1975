"""memories/fuse/, split/ and unfuse/: what a memory was made of stays, marked merged, and can be taken back."""

from collections.abc import Callable

import psycopg
import pytest

from governance.database import acting
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import MISSING, Contract, fields_at_fault
from tests.vault.outbox import run_jobs
from vault.lifecycle.fusion_text import fused_text, split_parts
from vault.models import Cube

HERON = "The heron nests by the mill. It leaves in autumn."
SAME = "The heron nests by the mill. It eats carp."


@pytest.fixture
def pair(alice: Contract) -> list[str]:
    """Two memories that state partly the same, the older one first."""
    return [str(alice.add(text, namespace="/team")["id"]) for text in (HERON, SAME)]


def states(world: World, ids: list[str]) -> list[str]:
    with acting(world.alice.actor):
        found = {str(cube.id): cube.state for cube in Cube.objects.filter(id__in=ids)}
    return [found[memory_id] for memory_id in ids]


def fuse_memories(client: Contract, ids: list[str]) -> str:
    reply = client.post("memories/fuse/", {"ids": ids})
    assert reply.status == 201, reply
    return str(reply.json["id"])


def test_proposal_adds_to_the_newest_text_what_it_does_not_state() -> None:
    assert fused_text([SAME, HERON], 1_000) == f"{SAME}\nIt leaves in autumn."
    assert fused_text([SAME, HERON], len(SAME) + 5) == SAME


def test_parts_are_paragraphs_or_else_sentences() -> None:
    assert split_parts("One. Two.\n\nThree.") == ["One. Two.", "Three."]
    assert split_parts("One is here. Two is there.") == ["One is here.", "Two is there."]


def test_fusion_stores_one_memory_and_marks_its_parents_merged(world: World, alice: Contract, pair: list[str]) -> None:
    run_jobs()
    proposed = alice.post("memories/fuse/?dry_run=true", {"ids": pair})
    assert (proposed.status, proposed.json["ids"]) == (200, pair[::-1])
    assert states(world, pair) == ["generated", "generated"]
    result = fuse_memories(alice, pair)
    run_jobs()
    memory = alice.get(f"memories/{result}/").json
    assert memory["content"] == proposed.json["content"] == f"{SAME}\nIt leaves in autumn."
    assert sorted(memory["parents"]) == sorted(pair)
    assert states(world, pair) == ["merged", "merged"]
    assert alice.get(f"memories/{pair[0]}/").json["superseded_by"] == result
    assert alice.search_contents("heron") == [memory["content"]]


@pytest.mark.parametrize("of", ["result", "parent"])
def test_undone_fusion_deletes_its_result_and_its_parents_are_searchable(
    world: World, alice: Contract, pair: list[str], of: str
) -> None:
    alice.post(f"memories/{pair[0]}/transition/", {"to": "activated"})
    result = fuse_memories(alice, pair)
    target = result if of == "result" else pair[1]
    rehearsed = alice.post(f"memories/{target}/unfuse/?dry_run=true", {})
    assert sorted(rehearsed.json["restored"]) == sorted(pair)
    assert states(world, pair) == ["merged", "merged"]
    undone = alice.post(f"memories/{target}/unfuse/", {})
    assert (undone.status, undone.json["deleted"]) == (200, [result])
    run_jobs()
    assert states(world, pair) == ["activated", "generated"]
    assert sorted(alice.search_contents("heron")) == sorted([HERON, SAME])
    assert alice.get(f"memories/{result}/").status == 404
    assert alice.post(f"memories/{pair[0]}/unfuse/", {}).status == 409


def test_fusion_is_not_undone_after_the_grace_period(
    world: World, alice: Contract, pair: list[str], superuser: Callable[[], psycopg.Connection]
) -> None:
    result = fuse_memories(alice, pair)
    superuser().execute("UPDATE vault_statetransition SET created_at = created_at - interval '31 days'")
    reply = alice.post(f"memories/{result}/unfuse/", {})
    assert (reply.status, "30 days" in reply.json["detail"]) == (409, True)
    assert states(world, pair) == ["merged", "merged"]


def test_split_stores_each_part_and_undo_takes_them_back(world: World, alice: Contract, pair: list[str]) -> None:
    body = {"parts": ["The heron nests by the mill.", "The heron leaves in autumn."]}
    assert alice.post(f"memories/{pair[0]}/split/?dry_run=true", body).status == 200
    reply = alice.post(f"memories/{pair[0]}/split/", body, idempotency_key="once")
    assert (reply.status, [memory["content"] for memory in reply.json["results"]]) == (201, body["parts"])
    assert alice.post(f"memories/{pair[0]}/split/", body, idempotency_key="once").json == reply.json
    parts = [row["id"] for row in reply.json["results"]]
    assert states(world, [pair[0]]) == ["merged"]
    undone = alice.post(f"memories/{parts[1]}/unfuse/", {})
    assert (undone.json["restored"], sorted(undone.json["deleted"])) == ([pair[0]], sorted(parts))
    assert states(world, [pair[0]]) == ["generated"]


def test_faults_of_a_fusion_are_named(alice: Contract, pair: list[str]) -> None:
    elsewhere = alice.add("The heron sleeps.", namespace="/team/notes")["id"]
    assert fields_at_fault(alice.post("memories/fuse/", {"ids": [pair[0]]})) == {"ids"}
    assert fields_at_fault(alice.post("memories/fuse/", {"ids": [pair[0], pair[0]]})) == {"ids"}
    assert fields_at_fault(alice.post("memories/fuse/", {"ids": [pair[0], elsewhere]})) == {"ids"}
    assert fields_at_fault(alice.post("memories/fuse/", {"ids": pair, "content": " "})) == {"content"}
    assert fields_at_fault(alice.post(f"memories/{pair[0]}/split/", {"parts": ["One."]})) == {"parts"}
    assert alice.post("memories/fuse/", {"ids": [pair[0], str(MISSING)]}).status == 404


def test_merged_and_held_memories_are_not_fused(world: World, alice: Contract, pair: list[str]) -> None:
    other = str(alice.add("The heron wades.", namespace="/team")["id"])
    assert alice.post(f"memories/{other}/freeze/", {"reason": "An audit."}).status == 200
    assert alice.post("memories/fuse/", {"ids": [pair[0], other]}).status == 423
    fuse_memories(alice, pair)
    assert alice.post("memories/fuse/", {"ids": [pair[0], pair[1]]}).status == 409
    assert states(world, [other]) == ["generated"]


def test_reader_and_stranger_neither_fuse_nor_split(
    world: World, alice: Contract, bob: Contract, charlie: Contract, pair: list[str]
) -> None:
    parts = {"parts": ["One.", "Two."]}
    for client, status in ((bob, 403), (charlie, 404)):
        assert client.post("memories/fuse/", {"ids": pair}).status == status
        assert client.post(f"memories/{pair[0]}/split/", parts).status == status
        assert client.post(f"memories/{pair[0]}/promote/", {"layer": "mid_term"}).status == status
    result = fuse_memories(alice, pair)
    assert bob.post(f"memories/{result}/unfuse/", {}).status == 403
    assert charlie.post(f"memories/{result}/unfuse/", {}).status == 404
    assert states(world, pair) == ["merged", "merged"]


def test_promotion_changes_the_layer_and_no_version(alice: Contract, pair: list[str]) -> None:
    address = f"memories/{pair[0]}/promote/"
    assert alice.post(f"{address}?dry_run=true", {"layer": "mid_term"}).json["ids"] == [pair[0]]
    memory = alice.post(address, {"layer": "mid_term"}, if_match='"1"').json
    assert (memory["layer"], memory["version"]) == ("mid_term", 1)
    run_jobs()
    for mode in ("lexical", "dense"):
        assert HERON in alice.search_contents("heron", mode=mode, layers=["mid_term"])
        assert HERON not in alice.search_contents("heron", mode=mode, layers=["long_term"])
    assert alice.post(address, {"layer": "mid_term"}).status == 409
    assert alice.post(address, {"layer": "long_term"}, if_match='"7"').status == 412
    assert fields_at_fault(alice.post(address, {"layer": "attic"})) == {"layer"}


def test_copy_names_its_source_and_goes_where_its_actor_may_write(
    alice: Contract, bob: Contract, charlie: Contract, pair: list[str]
) -> None:
    address = f"memories/{pair[0]}/copy/"
    assert alice.post(f"{address}?dry_run=true", {"namespace": "/team/notes"}).json["ids"] == [pair[0]]
    made = alice.post(address, {"namespace": "/team/notes"})
    assert (made.status, made.json["content"], made.json["namespace"]["path"]) == (201, HERON, "/team/notes")
    assert made.json["parents"] == [pair[0]]
    assert bob.post(address, {"namespace": "/team/notes"}).status == 403
    assert charlie.post(address, {"namespace": "/team/notes"}).status == 404
    assert alice.delete(f"memories/{pair[0]}/").status == 204
    assert alice.get(f"memories/{made.json['id']}/").status == 404


def test_pages_fuse_split_and_undo(world: World, alice: Contract, pair: list[str]) -> None:
    browser = signed_in(world.alice)
    asked = browser.post("/memories/fuse/", {"id": pair})
    assert "It leaves in autumn." in asked.text
    assert states(world, pair) == ["generated", "generated"]
    refused = browser.post("/memories/fuse/", {"id": pair[:1], "confirmed": "yes", "content": "One."})
    assert refused.status_code == 422
    done = browser.post("/memories/fuse/", {"id": pair, "confirmed": "yes", "content": "Both."}, follow=True)
    assert "Both." in done.text
    assert "Undo the fusion" in done.text
    browser.post(f"/memories/{pair[0]}/unfuse/")
    assert states(world, pair) == ["generated", "generated"]
    proposed = browser.get(f"/memories/{pair[0]}/split/")
    assert "It leaves in autumn." in proposed.text
    browser.post(f"/memories/{pair[0]}/split/", {"content": "One.\r\n\r\nTwo.", "version": "1"})
    assert states(world, pair) == ["merged", "generated"]
    nowhere = browser.post(f"/memories/{pair[1]}/promote/", {"layer": "nowhere"})
    assert (nowhere.status_code, 'id="operation-layer_error"' in nowhere.text) == (422, True)
    browser.post(f"/memories/{pair[1]}/promote/", {"layer": "short_term"})
    assert alice.get(f"memories/{pair[1]}/").json["layer"] == "short_term"
    copied = browser.post(
        f"/memories/{pair[1]}/copy/", {"namespace": "/team/notes", "new_namespace": "/team/notes"}, follow=True
    )
    assert "/team/notes" in copied.text
    assert browser.post(f"/memories/{pair[1]}/copy/", {"namespace": "no path"}).status_code == 422


def test_pages_offer_a_reader_no_operation(world: World, pair: list[str]) -> None:
    browser = signed_in(world.bob)
    page = browser.get(f"/memories/{pair[0]}/")
    assert "Split…" not in page.text
    assert browser.post("/memories/fuse/", {"id": pair, "confirmed": "yes", "content": "x"}).status_code == 403
    assert browser.get(f"/memories/{pair[0]}/split/").status_code == 403
    assert signed_in(world.charlie).get(f"/memories/{pair[0]}/split/").status_code == 404


def test_fusion_names_the_versions_that_were_read(world: World, alice: Contract, pair: list[str]) -> None:
    etag = alice.post("memories/fuse/?dry_run=true", {"ids": pair}).headers["ETag"]
    assert etag == '"1-1"'
    assert alice.patch(f"memories/{pair[1]}/", {"title": "Heron"}, if_match='"1"').status == 200
    for header in (etag, '"2-1"', '"1"', '"1-2-1"', '"x"'):
        assert alice.post("memories/fuse/", {"ids": pair}, if_match=header).code == "version_conflict"
    assert alice.post("memories/fuse/", {"ids": pair}, if_match="1-2").code == "invalid_etag"
    assert states(world, pair) == ["generated", "generated"]
    assert alice.post("memories/fuse/", {"ids": pair}, if_match='"7", "1-2"').status == 201


def test_page_shows_the_new_proposal_where_a_memory_has_changed(world: World, alice: Contract, pair: list[str]) -> None:
    browser = signed_in(world.alice)
    assert 'name="version" value="1-1"' in browser.post("/memories/fuse/", {"id": pair}).text
    assert alice.patch(f"memories/{pair[1]}/", {"content": "The heron eats eels."}, if_match='"1"').status == 200
    form = {"id": pair, "confirmed": "yes", "content": SAME, "version": "1-1"}
    refused = browser.post("/memories/fuse/", form)
    assert (refused.status_code, "The heron eats eels." in refused.text) == (422, True)
    assert states(world, pair) == ["generated", "generated"]
    assert browser.post("/memories/fuse/", form | {"version": "1-2"}).status_code == 303
    assert states(world, pair) == ["merged", "merged"]
