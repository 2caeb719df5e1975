"""Editing a memory in the browser: a version with a reason, two texts where another was saved, and the way back."""

from uuid import UUID

import pytest

from governance.audit.reading.queries import AuditQuery
from governance.audit.reading.selectors import entries_by_day
from governance.errors import Forbidden
from governance.vocabulary import Verb
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case

FORM = {
    "version": "1",
    "title": "How Ana travels",
    "content": "Ana travels by bus.",
    "tags": "ana, bus",
    "semantic_type": "preference",
    "sensitivity": "internal",
    "reason": "She moved.",
}


@pytest.fixture
def address(world: World) -> str:
    reply = world.client("alice").post("memories/", {"content": "Ana travels by train.", "namespace": "/team"})
    return f"/memories/{reply.json['results'][0]['id']}/"


def test_an_edit_saves_a_version_with_its_reason(world: World, address: str) -> None:
    client = signed_in(world.alice)
    assert 'value="1"' in client.get(f"{address}edit/").content.decode()
    assert client.post(f"{address}edit/", FORM)["Location"] == address
    page = client.get(address).content.decode()
    for shown in ("Ana travels by bus.", "She moved.", "How Ana travels", ">bus</a>", "Preference"):
        assert shown in page


def test_a_conflict_shows_both_texts_and_overwrites_nothing(world: World, address: str) -> None:
    other = world.client("olivia")
    assert other.patch(f"/api/v1{address}", {"content": "Ana travels by boat."}, if_match='"1"').status == 200
    client = signed_in(world.alice)
    refused = client.post(f"{address}edit/", FORM)
    page = refused.content.decode()
    assert refused.status_code == 409
    assert "saved version 2 while you were writing" in page
    assert "Ana travels by <ins>boat</ins>." in page
    assert "Ana travels by <ins>bus</ins>." in page
    assert '<input type="hidden" name="version" value="2">' in page
    assert other.get(f"/api/v1{address}").json["content"] == "Ana travels by boat."
    assert client.post(f"{address}edit/", {**FORM, "version": "2"}).status_code == 303
    assert other.get(f"/api/v1{address}").json["version"] == 3


@each_case(
    "wrong",
    [{"content": " "}, {"content": "a\x00b"}, {"tags": "x" * 101}, {"semantic_type": "x"}, {"expires_at": "soon"}],
)
def test_a_form_that_cannot_be_saved_keeps_what_was_typed(world: World, address: str, wrong: dict[str, str]) -> None:
    refused = signed_in(world.alice).post(f"{address}edit/", {**FORM, **wrong})
    assert refused.status_code == 422
    assert "She moved." in refused.content.decode()
    assert world.client("alice").get(f"/api/v1{address}").json["version"] == 1


def test_a_rollback_on_the_page_brings_the_text_back(world: World, address: str) -> None:
    client = signed_in(world.alice)
    client.post(f"{address}edit/", FORM)
    assert client.post(f"{address}rollback/", {"version": "1", "present": "1"}).status_code == 412
    assert client.post(f"{address}rollback/", {"version": "1", "present": "2"})["Location"] == address
    page = client.get(address).content.decode()
    assert "Rolled back to version 1" in page
    assert world.client("alice").get(f"/api/v1{address}").json["content"] == "Ana travels by train."


@each_case(("who", "status"), [("bob", 403), ("ada", 403), ("charlie", 404)])
@each_case("call", ["edit/", "rollback/"])
def test_who_may_not_change_it_changes_nothing(world: World, address: str, who: str, status: int, call: str) -> None:
    client = signed_in(world.person(who))
    assert client.post(f"{address}{call}", {**FORM, "present": "1"}).status_code == status
    if call == "edit/":
        assert client.get(f"{address}edit/").status_code == status
    assert world.client("alice").get(f"/api/v1{address}").json["version"] == 1


def test_what_is_held_offers_no_edit(world: World, address: str) -> None:
    client = signed_in(world.alice)
    assert world.client("olivia").post(f"/api/v1{address}freeze/", {"reason": "Case 17"}).status == 200
    assert client.get(f"{address}edit/").status_code == 423
    assert f'href="{address}edit/"' not in client.get(address).content.decode()


def test_readers_are_shown_to_who_may_read_the_audit_log(world: World, address: str) -> None:
    signed_in(world.bob).get(address)
    page = signed_in(world.olivia).get(f"{address}readers/", headers={"HX-Request": "true"}).content.decode()
    assert "bob" in page
    assert "Opened" in page
    assert signed_in(world.alice).get(f"{address}readers/").status_code == 403
    assert signed_in(world.charlie).get(f"{address}readers/").status_code == 404


def test_use_over_time_counts_readings_by_day_of_the_reader(world: World, address: str) -> None:
    memory_id = UUID(address.split("/")[2])
    for _ in range(3):
        assert signed_in(world.alice).get(address).status_code == 200
    query = AuditQuery(object_id=memory_id)
    reads = entries_by_day(actor=world.olivia.actor, query=query, verbs=[Verb.MEMORY_READ], days=30)
    assert (len(reads), sum(reads[:-2]), sum(reads)) == (30, 0, 3)
    assert sum(entries_by_day(actor=world.olivia.actor, query=query, verbs=[Verb.MEMORY_DELETED], days=30)) == 0
    assert sum(entries_by_day(actor=world.charlie.actor, query=query, verbs=[*Verb], days=30)) == 0
    with pytest.raises(Forbidden):
        entries_by_day(actor=world.bob.actor, query=query, verbs=[Verb.MEMORY_READ], days=30)
    page = signed_in(world.olivia).get(f"{address}readers/").content.decode()
    assert "3 reads in 30 days" in page
    assert 'class="is-on"' in page
