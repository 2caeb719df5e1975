"""The pages of access, personas and presets: they work without a script, and refuse whom they should."""

from collections.abc import Callable

import psycopg
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from governance.vocabulary import RoleName
from governance.web.access_words import conditions_text
from tests.factories import World, database_time, person_add
from tests.governance.access.grants.test_grants import _but_denials
from tests.governance.tables import read_all_rows
from tests.governance.web.visitors import signed_in, statements
from tests.harness.cases import each_case

Superuser = Callable[[], psycopg.Connection]


@pytest.fixture
def memory_id(world: World) -> str:
    """A private memory of alice's."""
    reply = world.client("alice").post("memories/", {"content": "The otter sleeps."})
    found: str = reply.json["results"][0]["id"]
    return found


def form(world: World, **more: str) -> dict[str, str]:
    return {"holder": f"member:{world.bob.member.id}", "effect": "allow", "action": "read", **more}


def test_the_page_of_an_object_says_who_gets_what_is_given_to_an_agent(world: World, memory_id: str) -> None:
    page = signed_in(world.alice).get(f"/access/memory/{memory_id}/").content.decode()
    assert "Everybody who may use a shared assistant" in page


def test_a_grant_is_given_and_revoked_on_the_page_of_its_object(world: World, memory_id: str) -> None:
    alice, address = signed_in(world.alice), f"/access/memory/{memory_id}/"
    assert signed_in(world.bob).get(f"/memories/{memory_id}/").status_code == 404
    assert f'href="{address}"' in alice.get(f"/memories/{memory_id}/").content.decode()
    given = alice.post(address, form(world))
    assert (given.status_code, given["Location"]) == (303, address)
    page = alice.get(address).content.decode()
    assert "may read" in page
    assert signed_in(world.bob).get(f"/memories/{memory_id}/").status_code == 200
    revoke = page.partition('action="/access/grants/')[2].partition('"')[0]
    assert alice.post(f"/access/grants/{revoke}", {"from": "object"})["Location"] == address
    assert signed_in(world.bob).get(f"/memories/{memory_id}/").status_code == 404
    page = alice.get(address).content.decode()
    assert 'action="/access/grants/again/"' in page
    assert 'data-key="z"' in page
    for other in (world.bob, world.charlie):
        assert signed_in(other).post("/access/grants/again/")["Location"] == "/access/", "nothing of theirs was revoked"
    deed = page.partition('name="deed" value="')[2].partition('"')[0]
    assert alice.post("/access/grants/again/", {"deed": deed})["Location"] == address
    assert "may read" in alice.get(address).content.decode()
    assert signed_in(world.bob).get(f"/memories/{memory_id}/").status_code == 200


def test_page_shows_the_grants_of_an_earlier_time_without_revoking_them(world: World, memory_id: str) -> None:
    browser, address = signed_in(world.alice), f"/access/memory/{memory_id}/"
    assert browser.post(address, form(world)).status_code == 303
    at = database_time(world).removesuffix("+00:00")  # as a browser sends it, in the zone of the test, UTC
    revoke = browser.get(address).content.decode().partition('action="/access/grants/')[2].partition('"')[0]
    assert browser.post(f"/access/grants/{revoke}", {"from": "object"}).status_code == 303
    now, then = (browser.get(address, query).content.decode() for query in ({}, {"as_of": at}))
    assert "There are no grants here." in now
    assert '<span class="strong">bob</span>' in then
    assert revoke not in then
    assert "Choose a time in the past." in browser.get(address, {"as_of": "then"}).content.decode()


def test_a_path_leads_to_who_can_see_it(world: World, memory_id: str) -> None:
    alice = signed_in(world.alice)
    assert '<option value="/users/alice">' in alice.get("/access/").content.decode()
    asked = alice.get("/access/ask/?path=/users/alice")
    assert asked.status_code == 303
    assert asked["Location"].startswith("/access/namespace/")
    unknown = signed_in(world.bob).get("/access/ask/?path=/users/alice")
    assert unknown.status_code == 422
    assert 'value="/users/alice"' in unknown.content.decode()


def test_a_preview_says_what_a_grant_would_change_and_gives_none(
    world: World, memory_id: str, superuser: Superuser
) -> None:
    alice, address = signed_in(world.alice), f"/access/memory/{memory_id}/"
    alice.get(address)
    before = read_all_rows(superuser())
    page = alice.post(address, form(world, preview="yes")).content.decode()
    assert "bob could read this." in page
    assert f'value="member:{world.bob.member.id}" selected' in page
    again = alice.post(address, form(world, preview="yes", holder=f"member:{world.alice.member.id}")).content.decode()
    assert "No member could do more or less than now." in again
    after = read_all_rows(superuser())
    assert {table: rows for table, rows in before.items() if table.endswith("grant")} == {
        table: rows for table, rows in after.items() if table.endswith("grant")
    }
    assert signed_in(world.bob).get(f"/memories/{memory_id}/").status_code == 404
    assert signed_in(world.charlie).post(address, form(world, preview="yes")).status_code == 404
    assert signed_in(world.bob).post(address, form(world, preview="yes")).status_code == 404


def test_the_simulator_answers_with_the_rule_in_words(world: World, memory_id: str) -> None:
    olivia, address = signed_in(world.olivia), f"/access/memory/{memory_id}/"
    asked = f"{address}?as=member:{world.bob.member.id}&action=read"
    assert "This is private to somebody else." in olivia.get(asked).content.decode()
    olivia.post(address, form(world, purpose="treatment"))
    page = olivia.get(f"{asked}&purpose=treatment&channel=web").content.decode()
    assert 'class="sim-answer is-yes"' in page
    assert "A grant allows this." in page
    assert "would allow it, too" not in page
    member = signed_in(world.olivia).get(f"{address}?as=member:{world.alice.member.id}&action=read").content.decode()
    assert "would allow it, too" not in member
    olivia.post(address, form(world, holder=f"member:{world.alice.member.id}"))
    member = olivia.get(f"{address}?as=member:{world.alice.member.id}&action=read").content.decode()
    assert "The role editor allows this." in member
    assert "A grant would allow it, too:" in member
    assert "<code>role:editor" not in member
    key = olivia.get(f"{address}?as=api_key:{world.bob.key.id}&action=write").content.decode()
    assert 'class="sim-answer"' in key


def test_a_simulated_recall_marks_what_somebody_else_would_find(world: World, memory_id: str) -> None:
    world.client("alice").post("memories/", {"content": "The otter eats.", "namespace": "/team"})
    olivia = signed_in(world.olivia)
    page = olivia.get(f"/access/recall/?as=member:{world.bob.member.id}&q=otter").content.decode()
    assert "1 memory is within reach in all." in page
    assert "Of the 2 that you find, 1 would be recalled." in page
    key = olivia.get(f"/access/recall/?as=api_key:{world.alice.key.id}&q=otter").content.decode()
    assert "Of the 2 that you find, 2 would be recalled." in key
    for who in ("alice", "bob", "ada"):
        assert signed_in(world.person(who)).get("/access/recall/").status_code == 403
    stranger = signed_in(world.charlie).get(f"/access/recall/?as=member:{world.bob.member.id}&q=otter")
    assert "recalled" not in stranger.content.decode()


def test_it_says_who_may_what_and_by_which_rule(world: World, memory_id: str) -> None:
    olivia, address = signed_in(world.olivia), f"/access/memory/{memory_id}/"
    olivia.post(address, form(world, purpose="treatment, billing"))
    plain, asked = (olivia.get(address + query).content.decode() for query in ("", "?purpose=treatment&channel=web"))
    for page, rule in ((plain, "private"), (asked, "grant")):
        row = page.partition("/people/?name=bob")[2].partition("</tr>")[0]
        assert rule in row
    assert "The role editor allows this." in plain.partition("/people/?name=alice")[2].partition("</tr>")[0]


@pytest.mark.parametrize(("who", "status"), [("bob", 404), ("ada", 404), ("charlie", 404)])
def test_who_may_not_share_sees_and_gives_nothing(
    world: World, memory_id: str, superuser: Superuser, who: str, status: int
) -> None:
    visitor, address, database = signed_in(world.person(who)), f"/access/memory/{memory_id}/", superuser()
    before = _but_denials(read_all_rows(database))
    assert visitor.get(address).status_code == status
    assert visitor.post(address, form(world)).status_code == status
    assert visitor.post("/access/grants/019f0000-0000-7000-8000-000000000000/revoke/").status_code == 404
    assert _but_denials(read_all_rows(database)) == before


@each_case(
    "wrong",
    [{"holder": "planet:x"}, {"holder": "member:x"}, {"action": "eat"}, {"effect": "?"}, {"expires_at": "soon"},
     {"expires_at": "2001-01-01T00:00"}, {"address": "nowhere"}, {"begins": "8"}],
)  # fmt: skip
def test_a_form_that_cannot_be_used_is_shown_again(world: World, memory_id: str, wrong: dict[str, str]) -> None:
    response = signed_in(world.alice).post(f"/access/memory/{memory_id}/", form(world, **wrong))
    assert response.status_code == 422
    assert 'role="alert"' in response.content.decode()


def test_the_page_of_an_object_costs_the_same_for_many_members(world: World, memory_id: str) -> None:
    alice, address = signed_in(world.alice), f"/access/memory/{memory_id}/"
    alice.post(address, form(world))
    alice.get(address)

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert alice.get(address).status_code == 200
        return len(queries)

    few = cost()
    for number in range(5):
        person_add(world.acme, f"more{number}@acme.example", RoleName.VIEWER)
    assert cost() == few <= 40


def test_personas_are_made_renamed_and_removed(world: World) -> None:
    alice = signed_in(world.alice)
    assert alice.post("/personas/", {"name": "at work", "kind": "user"}).status_code == 303
    page = alice.get("/personas/").content.decode()
    assert "at work" in page
    again = alice.post("/personas/", {"name": "at work"})
    assert again.status_code == 422
    address = next(part.partition('"')[0] for part in page.split('href="')[1:] if ">at work<" in part[:80])
    assert signed_in(world.bob).get(address).status_code == 404
    assert signed_in(world.charlie).get(address).status_code == 404
    assert alice.post(address, {"name": ""}).status_code == 422
    assert alice.post(address, {"name": "at the ward"}).status_code == 303
    assert signed_in(world.bob).post(f"{address}delete/").status_code == 404
    assert "at the ward" in alice.get(f"{address}delete/").content.decode()
    assert alice.post(f"{address}delete/").status_code == 303
    assert "at the ward" not in alice.get("/personas/").content.decode()


def test_presets_are_made_changed_applied_and_removed(world: World) -> None:
    olivia = signed_in(world.olivia)
    olivia.get("/presets/")
    made = olivia.post("/presets/", {"name": "clerk", "role": "viewer", "purpose": "billing", "scopes": "chat"})
    assert made.status_code == 303
    assert olivia.post("/presets/", {"name": "clerk"}).status_code == 422
    page = olivia.get("/presets/").content.decode()
    address = next(part.partition('"')[0] for part in page.split('href="')[1:] if ">clerk<" in part[:80])
    assert olivia.post(address, {"name": "clerk", "namespaces": "nowhere"}).status_code == 422
    assert olivia.post(address, {"name": "front desk", "role": "viewer"}).status_code == 303
    for who, status in (("alice", 403), ("bob", 403), ("charlie", 404)):
        visitor = signed_in(world.person(who))
        for method in (visitor.get, visitor.post):
            assert method(address).status_code == status
        assert visitor.post(f"{address}apply/", {"holder": "member:x"}).status_code == status
        assert visitor.post(f"{address}remove/").status_code == status
    applied = olivia.post(f"{address}apply/", {"holder": f"member:{world.alice.member.id}"})
    assert applied.status_code == 303
    assert world.client("alice").get("me/").json["roles"] == ["viewer"]
    assert "front desk" in olivia.get(applied["Location"]).content.decode()
    assert olivia.post(f"{address}remove/").status_code == 303
    assert olivia.get(address).status_code == 404


def test_the_list_of_grants_is_everybodys_own(world: World, memory_id: str) -> None:
    alice = signed_in(world.alice)
    alice.post(f"/access/memory/{memory_id}/", form(world))
    for who, sees in (("olivia", True), ("alice", True), ("bob", True), ("ada", False), ("charlie", False)):
        page = signed_in(world.person(who)).get("/access/")
        assert page.status_code == 200
        assert (memory_id in page.content.decode()) is sees, who


@pytest.mark.parametrize("address", ["/access/", "/personas/", "/presets/"])
def test_nobody_sees_them_without_signing_in(world: World, address: str) -> None:
    assert Client().get(address).status_code == 303


@pytest.fixture
def namespace_id(world: World) -> str:
    """A shared namespace of olivia's."""
    reply = world.client("olivia").post("memories/", {"content": "Rota.", "namespace": "/team/rota"})
    found: str = reply.json["results"][0]["namespace"]["id"]
    return found


def test_grants_are_listed_by_name_with_conditions_as_sentences(
    world: World, namespace_id: str, memory_id: str
) -> None:
    olivia = signed_in(world.olivia)
    conditions = {"purpose": "treatment, billing", "channel": "chat", "begins": "08:00", "until": "18:00"}
    assert olivia.post(f"/access/namespace/{namespace_id}/", form(world, **conditions)).status_code == 303
    assert olivia.post(f"/access/memory/{memory_id}/", form(world)).status_code == 303
    for address in ("/access/", f"/access/namespace/{namespace_id}/"):
        page = olivia.get(address).content.decode()
        assert "/team/rota" in page
        for told in ("for billing or treatment", "through chat", "every day from 08:00 to 18:00 UTC", "may read"):
            assert told in page, told
        assert "[&#x27;" not in page
        assert "otter" not in page
    listed = olivia.get("/access/").content.decode()
    assert namespace_id not in listed.replace(f"/access/namespace/{namespace_id}/", "")
    assert "in /users/alice" in listed
    chinese = olivia.get("/access/", headers={"Accept-Language": "zh-CN"}).content.decode()
    assert "用途为 billing 或 treatment" in chinese


def test_denied_member_does_not_see_the_objects_name(world: World, namespace_id: str) -> None:
    address = f"/access/namespace/{namespace_id}/"
    assert signed_in(world.olivia).post(address, form(world, effect="deny")).status_code == 303
    bob = signed_in(world.bob).get("/access/").content.decode()
    assert "may not read" in bob
    assert "/team/rota" not in bob
    assert "/team/rota" in signed_in(world.olivia).get("/access/").content.decode()


@pytest.mark.parametrize("allowed_to", ["member", "role"])
def test_an_allowance_beside_it_does_not_tell_the_name_of_what_is_denied(
    world: World, namespace_id: str, allowed_to: str
) -> None:
    olivia, address = signed_in(world.olivia), f"/access/namespace/{namespace_id}/"
    role = {"holder": "role:viewer"} if allowed_to == "role" else {}
    for more in (role, {"effect": "deny"}):
        assert olivia.post(address, form(world, **more)).status_code == 303
    bob = signed_in(world.bob).get("/access/").content.decode()
    assert "may read" in bob
    assert "may not read" in bob
    assert "/team/rota" not in bob
    assert olivia.get("/access/").content.decode().partition("datatable")[2].count("/team/rota") == 2


@pytest.mark.parametrize("more", [{}, {"purpose": "treatment"}, {"channel": "chat"}])
def test_what_is_granted_is_named_to_whom_can_read_it_now(world: World, memory_id: str, more: dict[str, str]) -> None:
    assert signed_in(world.alice).post(f"/access/memory/{memory_id}/", form(world, **more)).status_code == 303
    bob = signed_in(world.bob).get("/access/").content.decode()
    assert memory_id in bob
    assert ("in /users/alice" in bob) is (not more)


def test_allowed_object_in_a_denied_namespace_shows_no_path(world: World) -> None:
    made = world.client("olivia").post("memories/", {"content": "Rota.", "namespace": "/team/rota"})
    memory, olivia = made.json["results"][0], signed_in(world.olivia)
    assert olivia.post(f"/access/memory/{memory['id']}/", form(world)).status_code == 303
    assert "in /team/rota" in signed_in(world.bob).get("/access/").content.decode()
    denied = olivia.post(f"/access/namespace/{memory['namespace']['id']}/", form(world, effect="deny"))
    assert denied.status_code == 303
    bob = signed_in(world.bob).get("/access/").content.decode()
    assert memory["id"] in bob
    assert "/team/rota" not in bob


def test_a_persona_is_named_to_whom_may_use_it_now(world: World) -> None:
    nurse = world.client("olivia").post("personas/", {"name": "Night nurse", "kind": "agent"}).json["id"]
    olivia = signed_in(world.olivia)
    assert olivia.post(f"/access/persona/{nurse}/", form(world)).status_code == 303
    assert "Night nurse" in signed_in(world.bob).get("/access/").content.decode()
    assert olivia.post(f"/access/persona/{nurse}/", form(world, effect="deny")).status_code == 303
    assert "Night nurse" not in signed_in(world.bob).get("/access/").content.decode()


def test_grant_with_unreadable_conditions_is_shown_as_conditional() -> None:
    assert conditions_text({"moon": "full", "not_before": "2027-01-01T00:00:00+00:00"}) == [
        "under a condition that is not known here (moon)",
        "from 2027-01-01T00:00:00+00:00 on",
    ]


@pytest.mark.parametrize("who", ["olivia", "bob"])
def test_the_list_of_grants_costs_the_same_for_many(world: World, namespace_id: str, who: str) -> None:
    olivia, api, reader = signed_in(world.olivia), world.client("olivia"), signed_in(world.person(who))

    def give(path: str) -> None:
        made = api.post("memories/", {"content": path, "namespace": path}).json["results"][0]["namespace"]["id"]
        assert olivia.post(f"/access/namespace/{made}/", form(world)).status_code == 303

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert reader.get("/access/").status_code == 200
        return len(queries)

    give("/team/0")
    few = cost()
    for number in range(1, 5):
        give(f"/team/{number}")
    assert cost() == few <= 40


def test_the_page_of_an_object_costs_few_statements(world: World, memory_id: str) -> None:
    olivia, address = signed_in(world.olivia), f"/access/memory/{memory_id}/"
    olivia.get(address)  # finds what a process keeps
    found = statements(olivia, address)
    assert len(found) <= 18, "\n".join(" ".join(text.split())[:120] for text in found)


def test_grant_on_a_namespace_is_given_on_the_list_by_those_who_manage(world: World) -> None:
    world.client("alice").post("memories/", {"content": "The otter sleeps.", "namespace": "/river"})
    olivia, sent = signed_in(world.olivia), form(world, path="/river", action="write")
    assert 'id="add-grant"' in olivia.get("/access/").content.decode()
    assert 'id="add-grant"' not in signed_in(world.bob).get("/access/").content.decode()
    for other, status in ((world.bob, 403), (world.charlie, 404)):
        assert signed_in(other).post("/access/", sent).status_code == status
    assert "/river" not in signed_in(world.bob).get("/access/").content.decode().partition("<table")[2]
    unknown = olivia.post("/access/", form(world, path="/river", action="nothing"))
    assert (unknown.status_code, "add-grant" in unknown.content.decode()) == (422, True)
    assert olivia.post("/access/", sent)["Location"] == "/access/"
    page = olivia.get("/access/").content.decode()
    assert "may write" in page.partition("<table")[2]
    assert "/river" in page.partition("<table")[2]


def test_grant_on_a_memory_is_listed_by_its_place_without_an_id(world: World, memory_id: str) -> None:
    signed_in(world.alice).post(f"/access/memory/{memory_id}/", form(world))
    page = signed_in(world.olivia).get("/access/").content.decode()
    assert f'href="/access/memory/{memory_id}/"' in page
    assert f">{memory_id}<" not in page
