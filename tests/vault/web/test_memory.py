"""The page of one memory, and the pane that is the same without the frame."""

import re

import pytest
from django.test import Client

from tests.factories import World
from tests.governance.web.visitors import signed_in, statements
from vault.web.memories import metadata_lines

MEMORY = {
    "content": "Ana travels by train.\n  Always.",
    "title": "Ana's journeys",
    "tags": ["travel"],
    "metadata": {"team": "sales", "row": {"id": 42}},
    "session_id": "session-7",
    "sensitivity": "confidential",
    "semantic_type": "preference",
    "event_time": "2026-03-01T09:30:00Z",
}


def store_memory(world: World, **fields: object) -> str:
    reply = world.client("alice").post("memories/", {**MEMORY, **fields})
    assert reply.status == 201
    return f"/memories/{reply.json['results'][0]['id']}/"


def test_page_shows_the_fields_of_a_memory(world: World) -> None:
    page = signed_in(world.alice).get(store_memory(world)).content.decode()
    for shown in ("Ana travels by train.\n  Always.", "Ana&#x27;s journeys", "travel", "sales", "session-7"):
        assert shown in page
    for shown in ("confidential", "preference", "1 Mar 2026, 09:30", "/users/alice"):
        assert shown in page


def test_the_pane_is_the_same_without_the_frame(world: World) -> None:
    client, address = signed_in(world.alice), store_memory(world)
    part = client.get(address, headers={"HX-Request": "true"})
    assert "HX-Request" in part["Vary"]
    assert "Ana travels by train." in part.content.decode()
    assert "<html" not in part.content.decode()
    assert f'href="{address}"' in part.content.decode()


def change_memory(world: World, address: str, **fields: object) -> None:
    present = world.client("alice").get(f"/api/v1{address}").json["version"]
    reply = world.client("alice").patch(f"/api/v1{address}", fields, if_match=f'"{present}"')
    assert reply.status == 200, reply.json


def test_its_versions_are_listed_newest_first_and_the_last_two_compared(world: World) -> None:
    address = store_memory(world)
    change_memory(world, address, content="Ana travels by bus.\n  Always.", tags=["bus"])
    page = signed_in(world.alice).get(address).content.decode()
    assert re.findall(r'class="version-number">(\d+)<', page) == ["2", "1"]
    assert "Ana travels by <del>train</del>.\n  Always." in page
    assert "Ana travels by <ins>bus</ins>.\n  Always." in page
    assert "<del>travel</del> <ins>bus</ins>" in page
    assert "Roll back to version 1" in page


def test_deletions_restores_and_states_stand_between_the_versions(world: World) -> None:
    address = store_memory(world)
    alice = world.client("alice")
    assert alice.delete(f"/api/v1{address}").status == 204
    assert alice.post(f"/api/v1{address}restore/").status == 200
    for state in ("archived", "activated"):
        reply = alice.post(f"/api/v1{address}transition/", {"to": state})
        assert reply.status == 200, reply.json
    change_memory(world, address, content="Ana travels by bus.")
    page = signed_in(world.alice).get(address).content.decode()
    entries = re.findall(r'class="version-number">(\d+)<|class="is-change"><span class="timeline-note">([^<]+)<', page)
    words = [number or change for number, change in entries]
    assert words == ["2", "archived → activated", "generated → archived", "restored", "deleted", "1"]


def test_a_version_is_compared_with_the_present_one_by_its_address(world: World) -> None:
    address = store_memory(world)
    change_memory(world, address, content="Ana travels by bus.")
    change_memory(world, address, content="Ana travels by boat.\n  Always.")
    page = signed_in(world.alice).get(f"{address}?compare=1").content.decode()
    assert "by <del>train</del>" in page
    assert "by <ins>boat</ins>" in page
    assert "Roll back to version 1" in page
    assert "Roll back" not in signed_in(world.alice).get(f"{address}?compare=7").content.decode()


@pytest.mark.parametrize(("who", "status"), [("alice", 200), ("olivia", 200), ("bob", 404), ("charlie", 404)])
def test_only_those_who_may_read_it_see_it(world: World, who: str, status: int) -> None:
    response = signed_in(world.person(who)).get(store_memory(world))
    assert response.status_code == status
    assert ("Ana travels" in response.content.decode()) == (status == 200)


def test_a_foreign_memory_looks_like_none(world: World) -> None:
    client = signed_in(world.charlie)
    foreign, none = store_memory(world), "/memories/019f0000-0000-7000-8000-000000000000/"
    same = [
        re.sub(r"[0-9a-f-]{36}|name=\"csrfmiddlewaretoken\" value=\"\w+\"", "", client.get(address).content.decode())
        for address in (foreign, none)
    ]
    assert same[0] == same[1]


def test_nobody_reads_it_without_signing_in(world: World) -> None:
    assert Client().get(store_memory(world)).status_code == 303


def test_nothing_in_it_is_markup(world: World) -> None:
    nasty = '"><script>alert(1)</script><svg onload=alert(1) hx-get=/x>'
    address = store_memory(world, content=nasty, title=nasty, tags=[nasty], metadata={nasty: nasty}, session_id=nasty)
    page = signed_in(world.alice).get(address).content.decode()
    assert "<script>alert" not in page
    assert "<svg onload" not in page
    assert page.count("&quot;&gt;&lt;script&gt;alert(1)") >= 6


def test_it_costs_few_queries(world: World) -> None:
    client, address = signed_in(world.alice), store_memory(world)
    change_memory(world, address, content="Ana travels by bus.")
    assert len(statements(client, address)) <= 20


def test_metadata_that_is_no_text_is_shown_as_json() -> None:
    assert metadata_lines({"a": "text", "b": {"y": 1, "x": "茶"}, "c": None}) == [
        ("a", "text"),
        ("b", '{"x": "茶", "y": 1}'),
        ("c", "null"),
    ]


def test_the_page_opens_for_who_may_not_read_the_version_before(world: World) -> None:
    """The former version was private, and the memory then moved to where others read."""
    address = store_memory(world)
    assert world.client("alice").post(f"/api/v1{address}move/", {"namespace": "/team"}).status == 200
    assert signed_in(world.bob).get(address).status_code == 200
    assert signed_in(world.bob).get(f"{address}?compare=1").status_code == 422
