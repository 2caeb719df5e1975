"""Freezing on the memory's page; legal holds made by one member and released by two."""

import re
from uuid import uuid4

import pytest
from django.test import Client

from governance.database import acting
from governance.vocabulary import RoleName
from tests.factories import World, person_add
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from vault.models import Hold

NASTY = '"><script>alert(1)</script>'


@pytest.fixture
def memory(world: World) -> str:
    body = {"content": "The pump leaks.", "namespace": "/team", "tags": ["pump"]}
    return str(world.client("alice").post("memories/", body).json["results"][0]["id"])


def is_held(world: World, memory_id: str) -> bool:
    return bool(world.client("olivia").get(f"memories/{memory_id}/").json["held"])


def test_a_memory_is_frozen_and_let_go_on_its_page(world: World, memory: str) -> None:
    browser, address = signed_in(world.alice), f"/memories/{memory}/"
    assert "Nothing holds this memory." in browser.get(address).content.decode()
    response = browser.post(f"{address}freeze/", {"reason": NASTY})
    assert (response.status_code, response["Location"]) == (303, address)
    page = browser.get(address).content.decode()
    assert "Frozen by alice:" in page
    assert NASTY not in page
    assert is_held(world, memory)
    assert browser.post(f"{address}unfreeze/").status_code == 303
    assert not is_held(world, memory)


def test_htmx_gets_only_the_fragment(world: World, memory: str) -> None:
    browser = signed_in(world.alice)
    for call, words in (("freeze", "Frozen by alice:"), ("unfreeze", "Nothing holds this memory.")):
        part = browser.post(f"/memories/{memory}/{call}/", {"reason": "Mine."}, headers={"HX-Request": "true"})
        assert part.status_code == 200
        assert part.content.decode().count("<section") == 1
        assert words in part.content.decode()
        assert "<html" not in part.content.decode()


def test_a_freeze_without_a_reason_is_a_422_with_the_form(world: World, memory: str) -> None:
    browser = signed_in(world.alice)
    for headers in ({}, {"HX-Request": "true"}):
        response = browser.post(f"/memories/{memory}/freeze/", {"reason": " "}, headers=headers)
        assert response.status_code == 422
        assert "Say why" in response.content.decode()
        assert 'name="reason"' in response.content.decode()
    assert not is_held(world, memory)


@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("ada", 403), ("charlie", 404)])
def test_who_may_not_freeze_is_refused(world: World, memory: str, who: str, status: int) -> None:
    browser = signed_in(world.person(who))
    assert browser.post(f"/memories/{memory}/freeze/", {"reason": "Mine."}).status_code == status
    assert browser.post(f"/memories/{memory}/unfreeze/").status_code == status
    assert not is_held(world, memory)


def test_a_reader_sees_the_freeze_and_no_button(world: World, memory: str) -> None:
    signed_in(world.alice).post(f"/memories/{memory}/freeze/", {"reason": "Mine."})
    page = signed_in(world.bob).get(f"/memories/{memory}/").content.decode()
    assert "Frozen by alice:" in page
    assert "unfreeze/" not in page


def test_two_members_release_a_hold_on_its_page(world: World, memory: str) -> None:
    olivia, sam = signed_in(world.olivia), signed_in(person_add(world.acme, "sam@acme.example", RoleName.ADMIN))
    made = olivia.post("/holds/", {"reason": "Case 17", "filters": '{"tags": "pump"}', "memory_id": "", "subject": ""})
    assert made.status_code == 303
    address = made["Location"]
    assert "Case 17" in sam.get("/holds/").content.decode()
    assert is_held(world, memory)
    page = signed_in(world.bob).get(f"/memories/{memory}/").content.decode()
    assert "A legal hold prevents changes to this memory" in page
    assert olivia.post(f"{address}release/").status_code == 303
    page = olivia.get(address).content.decode()
    assert "one approval of two" in page
    assert "Another member must approve" in page
    assert "Approve the release" not in page
    assert is_held(world, memory)
    assert "Approve the release" in sam.get(address).content.decode()
    assert sam.post(f"{address}release/").status_code == 303
    assert "This hold has ended." in sam.get(address).content.decode()
    assert not is_held(world, memory)


def test_what_to_hold_is_searched_for_and_counted_before_it_is_held(world: World, memory: str) -> None:
    olivia = signed_in(world.olivia)
    assert "Search for the memory first." in olivia.get("/holds/new/").content.decode()
    assert "No memory matches." in olivia.get("/holds/new/?q=zzzz").content.decode()
    page = olivia.get("/holds/new/?q=pump").content.decode()
    assert f'name="memory_id" value="{memory}"' in page
    assert "<mark>pump</mark>" in page
    form = {"over": "memory", "q": "pump", "memory_id": memory, "reason": "Case 17"}
    counted = olivia.post("/holds/", form | {"count": "yes"}).content.decode()
    assert "1 memory would be held now." in counted
    assert 'value="Case 17"' in counted
    assert f'value="{memory}" checked' in counted
    assert not is_held(world, memory)
    assert olivia.post("/holds/", form).status_code == 303
    assert is_held(world, memory)


def test_all_that_match_a_namespace_and_a_tag_are_held_without_a_query_by_hand(world: World, memory: str) -> None:
    olivia = signed_in(world.olivia)
    assert '<option value="/team"' in olivia.get("/holds/new/?over=query").content.decode()
    form = {"over": "query", "namespace": "/team", "tag": "pump", "filters": "", "reason": "Case 17"}
    assert (
        "0 memories would be held now."
        in olivia.post("/holds/", form | {"tag": "drill", "count": "yes"}).content.decode()
    )
    made = olivia.post("/holds/", form)
    assert made.status_code == 303
    assert is_held(world, memory)


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("bob", 403), ("ada", 403)])
def test_who_may_not_hold_is_offered_no_form(world: World, memory: str, who: str, status: int) -> None:
    browser = signed_in(world.person(who))
    assert browser.get("/holds/new/?q=pump").status_code == status
    counted = browser.post("/holds/", {"memory_id": memory, "reason": "x", "count": "yes"})
    assert counted.status_code == status


def test_a_stranger_finds_no_memory_to_hold(world: World, memory: str) -> None:
    charlie = signed_in(world.charlie)
    assert memory not in charlie.get("/holds/new/?q=pump").content.decode()
    assert charlie.post("/holds/", {"memory_id": memory, "reason": "x"}).status_code == 422


@each_case(
    ("form", "told"),
    [
        ({"reason": "", "subject": "c"}, "Say why"),
        ({"reason": "x"}, "Fill in just one"),
        ({"reason": "x", "subject": "c", "filters": '{"tags": "x"}'}, "Fill in just one"),
        ({"reason": "x", "memory_id": "no id"}, "no memory with this id"),
        ({"reason": "x", "memory_id": str(uuid4())}, "no memory with this id"),
        ({"reason": "x", "filters": "tags = x"}, "This is no query."),
        ({"reason": "x", "filters": "[1]"}, "This is no query."),
        ({"reason": "x", "filters": '{"colour": 1}'}, "A query has no field colour. Its fields are: "),
        ({"reason": "x", "filters": '{"tags": 1}'}, "The query cannot be used at tags: "),
        ({"reason": "x", "filters": "{}"}, "An empty query would hold everything."),
    ],
)
def test_a_form_that_cannot_be_used_comes_back_with_what_was_given(
    world: World, form: dict[str, str], told: str
) -> None:
    response = signed_in(world.olivia).post("/holds/", form)
    assert response.status_code == 422
    page = response.content.decode()
    assert told in page
    assert f'value="{form["reason"]}"' in page
    with acting(world.olivia.actor):
        assert not Hold.objects.exists()


def test_single_member_is_asked_to_add_a_second(world: World) -> None:
    charlie = signed_in(world.charlie)
    address = charlie.post("/holds/", {"reason": "Case 17", "subject": "carla"})["Location"]
    response = charlie.post(f"{address}release/")
    assert response.status_code == 409
    assert "Add a second one first" in response.content.decode()


@each_case(("who", "status"), [("alice", 403), ("bob", 403), ("ada", 403), ("charlie", 404)])
def test_holds_are_for_those_who_govern(world: World, who: str, status: int) -> None:
    address = signed_in(world.olivia).post("/holds/", {"reason": "Case 17", "subject": "carla"})["Location"]
    browser = signed_in(world.person(who))
    assert browser.get(address).status_code == status
    assert browser.post(f"{address}release/").status_code == status
    assert "Case 17" not in browser.get("/holds/").content.decode()
    assert Client().get(address).status_code == 303


def test_a_page_of_holds_leads_to_the_older_ones(world: World) -> None:
    browser = signed_in(world.olivia)
    for number in range(31):
        browser.post("/holds/", {"reason": f"Case {number}.", "subject": "carla"})
    page = browser.get("/holds/").content.decode()
    assert "Case 30." in page
    assert "Case 0." not in page
    older = re.search(r'href="(/holds/\?before=[^"]+)"', page)
    assert older is not None
    assert "Case 0." in browser.get(older[1]).content.decode()


def test_a_hold_names_what_its_ids_mean(world: World) -> None:
    api, olivia = world.client("olivia"), signed_in(world.olivia)
    nurse = api.post("personas/", {"name": "Night nurse", "kind": "agent"}).json["id"]
    memory = api.post("memories/", {"content": "Pump.", "namespace": "/ward"}).json["results"][0]["id"]
    by_query = olivia.post("/holds/", {"reason": "x", "filters": f'{{"persona": "{nurse}"}}'})
    assert "Night nurse" in olivia.get(by_query["Location"]).content.decode()
    by_id = olivia.post("/holds/", {"reason": "y", "memory_id": memory})
    page = olivia.get(by_id["Location"]).content.decode()
    assert "in /ward" in page
    assert f'href="/memories/{memory}/"' in page
    assert "Pump." not in page
