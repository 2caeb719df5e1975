"""The list of memories: found, narrowed, paged, saved as a view; and actions on what was selected."""

import json
import re
from collections.abc import Callable
from html import unescape

import psycopg
import pytest
from django.test import Client

from tests.factories import World
from tests.governance.web.visitors import signed_in, statements
from tests.harness.cases import each_case
from tests.vault.outbox import run_jobs

Superuser = Callable[[], psycopg.Connection]


@pytest.fixture
def ids(world: World) -> list[str]:
    """Three shared memories of alice's, oldest first."""
    alice = world.client("alice")
    contents = ("Ana travels by train.", "Bo likes green tea.", "Ana cooks on Sundays.")
    replies = [
        alice.post("memories/", {"content": content, "namespace": "/team", "tags": ["team"]}) for content in contents
    ]
    return [reply.json["results"][0]["id"] for reply in replies]


def page_of(client: Client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200, response.content
    return unescape(response.content.decode())


def rows_of(page: str) -> list[str]:
    return re.findall(r'<tr data-id="([^"]+)"', page)


def test_the_list_shows_the_newest_first_and_a_search_the_best(world: World, ids: list[str]) -> None:
    client = signed_in(world.bob)
    assert rows_of(page_of(client, "/memories/")) == ids[::-1]
    found = page_of(client, "/memories/?q=tea&mode=lexical")
    assert rows_of(found) == [ids[1]]
    assert "green <mark>tea</mark>." in found
    assert rows_of(page_of(signed_in(world.charlie), "/memories/?q=tea")) == []


def test_one_memory_is_counted_in_the_singular(world: World, ids: list[str]) -> None:
    client = signed_in(world.alice)
    assert ">3 memories<" in page_of(client, "/memories/")
    assert world.client("alice").patch(f"memories/{ids[0]}/", {"tags": ["trains"]}, if_match='"1"').status == 200
    assert ">1 memory<" in page_of(client, "/memories/?tags=trains")


def test_filters_narrow_the_list_and_a_chip_takes_one_out(world: World, ids: list[str]) -> None:
    page = page_of(signed_in(world.alice), "/memories/?tags=team&semantic_type=event&layer=long_term")
    assert rows_of(page) == []
    assert "No memory matches" in page
    assert 'href="/memories/?layer=long_term&tags=team" aria-label="Clear Type event"' in page


def test_a_filter_that_cannot_be_used_says_so_and_shows_everything(world: World, ids: list[str]) -> None:
    page = page_of(signed_in(world.alice), "/memories/?state=lost")
    assert "The filter cannot be used." in page
    assert rows_of(page) == ids[::-1]


def test_a_script_gets_rows_with_facets_and_then_the_next_rows(
    world: World, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in(world.alice)
    part = page_of(client, "/memories/?tags=team", hx_request="true")
    assert "<html" not in part
    assert 'hx-swap-oob="innerHTML"' in part
    monkeypatch.setattr("vault.listing.selectors.PAGE", 2)
    first = page_of(client, "/memories/?tags=team")
    following = re.search(r'hx-get="(/memories/\?[^"]*after=[^"]+)"', first)
    assert following is not None
    assert rows_of(first) == ids[:0:-1]
    assert rows_of(page_of(client, following[1], hx_request="true")) == ids[:1]


def test_typed_searches_are_audited_and_never_count_as_use(world: World, ids: list[str], superuser: Superuser) -> None:
    client = signed_in(world.alice)
    page_of(client, "/memories/?q=tea")
    page_of(client, "/memories/")
    page_of(client, "/palette/?q=tea")
    run_jobs()
    verbs = superuser().execute("SELECT verb FROM governance_auditentry ORDER BY id DESC LIMIT 4").fetchall()
    assert {("memory.searched",), ("memory.listed",)} <= set(verbs)
    assert superuser().execute("SELECT count(*) FROM vault_cubeuse").fetchone() == (0,)


def test_pages_cost_few_statements(world: World, ids: list[str]) -> None:
    client = signed_in(world.alice)
    for address in ("/memories/", "/memories/?tags=team&state=generated", "/memories/?q=tea", "/memories/new/"):
        assert len(statements(client, address)) <= 20, address
    for address in (f"/memories/?selected={ids[0]}", f"/memories/{ids[0]}/pane/", f"/memories/{ids[0]}/", "/notices/"):
        assert len(statements(client, address)) <= 20, address


def test_the_palette_finds_memories_actions_and_pages(world: World, ids: list[str]) -> None:
    page = page_of(signed_in(world.alice), "/palette/?q=re")
    assert "Review" in page
    assert 'href="/memories/new/?content=re"' in page
    assert "Quotas" not in page
    assert signed_in(world.ada).get("/palette/?q=re").status_code == 403
    for text, address in (("export", "/exchange/"), ("trash", "/memories/?inactive=true")):
        page = page_of(signed_in(world.alice), f"/palette/?q={text}")
        assert page.index(f'href="{address}"') < page.index("/memories/new/"), "a page comes before actions"


def test_a_memory_is_added_by_hand(world: World) -> None:
    client = signed_in(world.alice)
    form = {"content": "Ana sings.", "title": "Song", "tags": "ana, song", "semantic_type": "fact"}
    refused = client.post("/memories/new/", form)
    assert (refused.status_code, "Ana sings." in refused.content.decode()) == (422, True)
    made = client.post("/memories/new/", {**form, "sensitivity": "internal"})
    page = page_of(client, made["Location"])
    for shown in ("Ana sings.", "Song", "/users/alice"):
        assert shown in page
    assert signed_in(world.bob).post("/memories/new/", form).status_code == 403


def test_a_view_is_saved_and_removed_on_the_page(world: World, ids: list[str]) -> None:
    client = signed_in(world.alice)
    made = client.post("/memories/views/", {"name": "Team", "query": "/memories/?tags=team"})
    assert made["Location"] == "/memories/?tags=team"
    assert 'href="/memories/?tags=team" data-view="tags=team">Team</a>' in page_of(client, "/memories/")
    address = re.search(r'action="(/memories/views/[^"]+/remove/)"', page_of(client, "/memories/"))
    assert address is not None
    assert signed_in(world.bob).post(address[1]).status_code == 404
    assert client.post(address[1]).status_code == 303
    assert "Delete view" not in page_of(client, "/memories/")


BULK = "/memories/bulk/"


def test_a_deletion_is_counted_first_then_done_then_taken_back(world: World, ids: list[str]) -> None:
    client = signed_in(world.alice)
    assert world.client("olivia").post(f"memories/{ids[2]}/freeze/", {"reason": "Case 17"}).status == 200
    asked = client.post(BULK, {"action": "delete", "id": ids})
    page = unescape(asked.content.decode())
    assert "<b>2</b><span>will be deleted</span>" in page
    assert "<b>1</b><span>stay: a hold covers them</span>" in page
    assert "Ana cooks on Sundays." not in page
    assert "Delete 2" in page
    assert len(rows_of(page_of(client, "/memories/"))) == 3
    client.post(BULK, {"action": "delete", "id": ids, "confirmed": "yes"})
    shown = page_of(client, "/memories/")
    assert rows_of(shown) == [ids[2]]
    assert "2 memories deleted" in shown
    assert shown.count(f'name="id" value="{ids[0]}@1"') == 1
    assert rows_of(page_of(client, "/memories/?deleted=true")) == [ids[1], ids[0]]
    client.post(BULK, {"action": "restore", "id": ids[:2], "confirmed": "yes"})
    assert len(rows_of(page_of(client, "/memories/"))) == 3


@each_case(
    ("form", "field", "value"),
    [
        ({"action": "tag", "tag": "rota"}, "tags", ["team", "rota"]),
        ({"action": "move", "namespace": "/team/notes"}, "namespace", "/team/notes"),
        ({"action": "expire", "expires_at": "2099-01-01"}, "expires_at", "2099-01-01T00:00:00Z"),
        ({"action": "freeze", "reason": "Case 17"}, "held", True),
    ],
)
def test_an_action_changes_what_was_selected_and_nothing_else(
    world: World, ids: list[str], form: dict[str, str], field: str, value: object
) -> None:
    client, api = signed_in(world.alice), world.client("alice")
    before = api.get(f"memories/{ids[0]}/").json[field]
    new_path = {"new_namespace": form.get("namespace", "")}
    assert client.post(BULK, {**form, **new_path, "id": ids[:2], "confirmed": "yes"}).status_code == 303

    def value_of(memory: str) -> object:
        found = api.get(f"memories/{memory}/").json[field]
        return found["path"] if isinstance(found, dict) else found

    assert [value_of(memory_id) for memory_id in ids[:2]] == [value, value]
    assert value_of(ids[2]) != value
    if form["action"] == "freeze":
        return
    page = page_of(client, "/memories/")
    assert f'action="{BULK}undo/"' in page
    versions = [api.get(f"memories/{memory_id}/").json["version"] for memory_id in ids[:2]]
    undo = {"action": form["action"], "id": [f"{ids[0]}@{versions[0]}", f"{ids[1]}@{versions[1]}"]}
    changed: dict[str, object] = {"tags": [], "namespace": "/team", "expires_at": None}
    assert api.patch(f"memories/{ids[1]}/", changed, if_match=f'"{versions[1]}"').status == 200
    assert signed_in(world.bob).post(f"{BULK}undo/", undo).status_code == 403
    signed_in(world.charlie).post(f"{BULK}undo/", undo)
    assert value_of(ids[0]) == value
    assert client.post(f"{BULK}undo/", undo).status_code == 303
    assert value_of(ids[0]) == (before["path"] if isinstance(before, dict) else before)
    assert "changed back" in page_of(client, "/memories/")


@pytest.mark.parametrize("more", [{}, {"all": "yes", "query": "/memories/?tags=team"}])
@pytest.mark.parametrize("action", ["move", "copy"])
def test_move_and_copy_offer_namespaces_and_ask_before_they_create_one(
    world: World, ids: list[str], action: str, more: dict[str, str]
) -> None:
    client, form = signed_in(world.alice), {"action": action, "id": ids[:2], **more}
    asked = unescape(client.post(BULK, form).content.decode())
    assert ('list="bulk-places"' in asked, '<option value="/team">' in asked) == (True, True)
    typed = form | {"confirmed": "yes", "namespace": "/tema"}
    question = client.post(BULK, typed)
    assert question.status_code == 422
    assert 'name="new_namespace" value="/tema"' in question.content.decode()
    run_jobs()
    assert world.client("alice").get("memories/?namespace=/tema").json["results"] == []
    assert client.post(BULK, typed | {"new_namespace": "/tema"}).status_code == 303
    run_jobs()
    assert len(world.client("alice").get("memories/?namespace=/tema").json["results"]) == (3 if more else 2)


def test_forms_with_a_namespace_offer_those_that_exist(world: World, ids: list[str]) -> None:
    client = signed_in(world.olivia)
    for address in ("/policies/new/retention/", "/policies/new/pii/", "/integrations/webhooks/new/", "/forms/"):
        assert '<option value="/team">' in page_of(client, address), address


@pytest.mark.parametrize(
    "form", [{"action": "tag", "tag": ""}, {"action": "move", "namespace": "notes"}, {"action": "x"}]
)
def test_an_action_without_its_arguments_changes_nothing(world: World, ids: list[str], form: dict[str, str]) -> None:
    response = signed_in(world.alice).post(BULK, {**form, "id": ids, "confirmed": "yes"})
    assert response.status_code == 422
    assert world.client("alice").get(f"memories/{ids[0]}/").json["version"] == 1


@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("ada", 403), ("charlie", 303)])
def test_who_may_not_changes_nothing_by_an_action(world: World, ids: list[str], who: str, status: int) -> None:
    form = {"action": "delete", "id": ids, "confirmed": "yes"}
    assert signed_in(world.person(who)).post(BULK, form).status_code == status
    assert world.client("alice").get("memories/").json["count"] == 3


def test_the_navigation_shows_what_the_role_may_use(world: World) -> None:
    def links(who: str) -> set[str]:
        side = (
            page_of(signed_in(world.person(who)), "/you/").partition('<aside class="side"')[2].partition("</aside>")[0]
        )
        return set(re.findall(r'class="side-link"\s+href="([^"]+)"', side))

    assert {"/memories/", "/chat/", "/audit/", "/holds/", "/settings/members/"} <= links("olivia")
    assert {"/memories/", "/chat/", "/reviews/"} <= links("alice")
    assert not {"/audit/", "/holds/", "/settings/members/"} & links("alice")
    assert "/reviews/" not in links("bob")
    assert "/memories/" not in links("ada")


def test_the_purpose_is_true_on_every_page(world: World) -> None:
    client = signed_in(world.alice)
    assert client.post("/purpose/", {"purpose": "care", "next": "/account/"})["Location"] == "/account/"
    assert client.post("/purpose/", {"purpose": "care", "next": "https://evil.example/"})["Location"] == "/purpose/"
    for address in ("/memories/", "/chat/", "/account/", "/api/docs/", "/you/"):
        assert '<strong class="clip">care</strong>' in page_of(client, address), address
    assert '<strong class="clip">care</strong>' in client.get("/no/such/page/").content.decode()


def test_a_persona_that_was_chosen_is_that_of_new_memories(world: World) -> None:
    client = signed_in(world.alice)
    made = world.client("alice").post("personas/", {"name": "Alice at work"}).json
    assert client.post("/persona/", {"persona": made["id"], "next": "/memories/"}).status_code == 303
    form = {"content": "Alice sings.", "semantic_type": "fact", "sensitivity": "internal"}
    assert "Alice at work" in page_of(client, client.post("/memories/new/", form)["Location"])
    assert signed_in(world.bob).post("/persona/", {"persona": made["id"]}).status_code == 404
    assert signed_in(world.charlie).post("/persona/", {"persona": made["id"]}).status_code == 404


def test_hits_are_sorted_by_time_where_that_is_asked(world: World, ids: list[str]) -> None:
    client = signed_in(world.alice)
    ana = {ids[0], ids[2]}
    found = {order: rows_of(page_of(client, f"/memories/?q=Ana&mode=lexical&order={order}")) for order in ORDERS}
    assert [item for item in found["newest"] if item in ana] == [ids[2], ids[0]]
    assert [item for item in found["oldest"] if item in ana] == [ids[0], ids[2]]
    assert found["expiring"] == []
    assert set(found["best"]) == ana


def test_the_list_is_copied_as_a_call_that_answers_the_same(world: World, ids: list[str]) -> None:
    client = signed_in(world.alice)
    shown = page_of(client, "/memories/?tags=team")
    assert "'http://testserver/api/v1/memories/?tags=team'" in shown
    assert world.client("alice").get("memories/?tags=team").json["count"] == 3
    searched = page_of(client, "/memories/?q=tea")
    body = re.search(r"-d '(.*?)' http://testserver/api/v1/memories/search/", searched)
    assert body is not None
    assert world.client("alice").post("memories/search/", json.loads(body[1])).status == 200
    shown = page_of(client, "/memories/?layer=mid_term&layer=long_term")
    assert "'http://testserver/api/v1/memories/?layer=mid_term&amp;layer=long_term'" in shown.replace(
        "&layer", "&amp;layer"
    )
    former = page_of(client, "/memories/?tag=team")
    assert "'http://testserver/api/v1/memories/?tags=team'" in former, "as views of 0.1.0 have it"


ORDERS = ("best", "newest", "oldest", "expiring")


def test_a_cursor_tells_nothing_of_when_a_memory_of_another_expires(world: World) -> None:
    def made(who: str, day: int, **fields: object) -> str:
        body = {"content": f"Of day {day}.", "expires_at": f"2099-01-0{day}T00:00:00Z", **fields}
        memory_id: str = world.client(who).post("memories/", body).json["results"][0]["id"]
        return memory_id

    first, own, last = made("alice", 1), made("alice", 2), made("alice", 4)
    private = made("olivia", 3)
    browser = signed_in(world.alice)
    assert rows_of(page_of(browser, f"/memories/?order=expiring&after={own}")) == [last]
    assert rows_of(page_of(browser, f"/memories/?order=expiring&after={private}")) == [first, own, last]


def test_a_search_that_nothing_matches_says_so_above_the_nearest(world: World, ids: list[str]) -> None:
    run_jobs()
    client = signed_in(world.bob)
    unknown = page_of(client, "/memories/?q=Zebulon+on+a+holiday&mode=dense")
    assert "No memory matches this search." in unknown
    assert set(rows_of(unknown)) <= set(ids)
    assert "No memory matches this search." not in page_of(client, "/memories/?q=green+tea")
    assert "No match. The nearest memories" in page_of(client, "/palette/?q=Zebulon+on+a+holiday")
    assert "No match" not in page_of(client, "/palette/?q=tea")


def test_a_question_before_a_deed_names_what_its_reader_may_see(world: World, ids: list[str]) -> None:
    asked = {"action": "delete", "id": ids[:2]}
    page = unescape(signed_in(world.alice).post("/memories/bulk/", asked).content.decode())
    assert "will be deleted" in page
    assert "Ana travels by train." in page
    assert "Bo likes green tea." in page
    assert "Ana cooks on Sundays." not in page
    assert "Ana travels by train." not in signed_in(world.charlie).post("/memories/bulk/", asked).content.decode()
    alice = signed_in(world.alice)
    alice.post("/memories/bulk/", {"action": "delete", "id": ids[0], "confirmed": "yes"})
    back = unescape(alice.post("/memories/bulk/", {"action": "restore", "id": ids[0]}).content.decode())
    assert "Ana travels by train." in back


def test_namespace_that_does_not_exist_is_created_once_confirmed(world: World) -> None:
    client = signed_in(world.alice)
    form = {"content": "Ana sings.", "semantic_type": "fact", "sensitivity": "internal", "namespace": "/choir"}
    asked = client.post("/memories/new/", form)
    assert (asked.status_code, "There is no namespace /choir." in asked.content.decode()) == (422, True)
    assert client.post("/memories/new/", form | {"new_namespace": "/other"}).status_code == 422
    made = client.post("/memories/new/", form | {"new_namespace": "/choir"})
    assert "/choir" in page_of(client, made["Location"])
    assert client.post("/memories/new/", form).status_code == 303, "the namespace exists now"
    bob = signed_in(world.bob)
    assert bob.post("/memories/new/", form | {"namespace": "/quiet", "new_namespace": "/quiet"}).status_code == 403


def test_filter_by_the_id_of_a_persona_shows_its_name_and_number(world: World) -> None:
    alice = world.client("alice")
    nurse = alice.post("personas/", {"name": "Night nurse", "kind": "agent"}).json["id"]
    alice.post("memories/", {"content": "Ward 3 is quiet.", "persona": "Night nurse", "namespace": "/team"})
    page = signed_in(world.bob).get(f"/memories/?persona={nurse}").content.decode()
    assert page.count("Night nurse") >= 2, "in the chip and in the facet"
    assert not re.search(rf">\s*{nurse}", page)
    assert signed_in(world.charlie).get(f"/memories/?persona={nurse}").status_code == 200
