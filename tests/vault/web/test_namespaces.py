"""The pages of namespaces: the tree, a new one, its facts, changes and a move with its preview."""

from html import unescape

import pytest

from governance.database import acting
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.outbox import run_jobs
from vault.models import Namespace


@pytest.fixture
def team(world: World) -> str:
    reply = world.client("alice").post("namespaces/", {"path": "/team", "quota": 9})
    assert world.client("alice").post("namespaces/", {"path": "/team/notes", "kind": "expert"}).status == 201
    return str(reply.json["id"])


def path_of(world: World, namespace_id: str) -> str:
    with acting(world.alice.actor):
        return Namespace.objects.get(id=namespace_id).path


def test_tree_shows_kind_owner_and_quota(world: World, team: str) -> None:
    page = signed_in(world.alice).get("/namespaces/").content.decode()
    assert f'href="/namespaces/{team}/"' in page
    assert "New namespace" in page
    assert "expert" in page
    assert "/ 9" in page
    reader = signed_in(world.bob).get("/namespaces/").content.decode()
    assert f'href="/namespaces/{team}/"' in reader
    assert "New namespace" not in reader
    assert team not in signed_in(world.charlie).get("/namespaces/").content.decode()


def test_editor_makes_one_on_the_page(world: World) -> None:
    browser = signed_in(world.alice)
    assert "is yours alone." in browser.get("/namespaces/new/").content.decode()
    refused = browser.post("/namespaces/", {"path": "team", "kind": "shared", "quota": "7"})
    assert refused.status_code == 422
    assert 'value="7"' in refused.content.decode()
    done = browser.post("/namespaces/", {"path": "/team", "kind": "shared", "quota": "7"})
    assert done.status_code == 303
    assert "/ 7" in browser.get(done["Location"]).content.decode()
    again = browser.post("/namespaces/", {"path": "/team", "kind": "shared"})
    assert "Choose another path" in again.content.decode()


def test_who_may_not_make_or_change_is_refused(world: World, team: str) -> None:
    for who, status in (("bob", 403), ("ada", 403), ("charlie", 404)):
        browser = signed_in(world.person(who))
        assert browser.post(f"/namespaces/{team}/", {"read_only": "yes"}).status_code == status
        assert browser.post(f"/namespaces/{team}/move/", {"path": "/x", "confirmed": "yes"}).status_code == status
        assert browser.post(f"/namespaces/{team}/delete/", {"confirmed": "yes"}).status_code == status
    assert signed_in(world.bob).post("/namespaces/", {"path": "/bobs", "kind": "shared"}).status_code == 403
    assert "move-title" not in signed_in(world.bob).get(f"/namespaces/{team}/").content.decode()
    assert path_of(world, team) == "/team"


def test_owner_changes_it_and_sees_the_fault_of_a_form(world: World, team: str) -> None:
    browser, address = signed_in(world.alice), f"/namespaces/{team}/"
    assert browser.post(address, {"quota": "many"}).status_code == 422
    assert browser.post(address, {"quota": "", "kind": "expert", "read_only": "yes"}).status_code == 303
    page = browser.get(address).content.decode()
    assert "read-only" in page
    assert "Its owner and grantees write here" in page


def test_move_is_previewed_then_done_by_a_job(world: World, team: str) -> None:
    browser, address = signed_in(world.alice), f"/namespaces/{team}/move/"
    preview = unescape(browser.post(address, {"path": "/old"}).content.decode())
    assert "2 namespaces would move. Nothing was changed." in preview
    assert "<code>/old/notes</code>" in preview
    assert path_of(world, team) == "/team"
    assert browser.post(address, {"path": "/team/below"}).status_code == 422
    done = browser.post(address, {"path": "/old", "confirmed": "yes"})
    assert done["Location"].startswith("/jobs/")
    run_jobs()
    assert path_of(world, team) == "/old"


def test_deletion_is_refused_with_counts_then_confirmed(world: World, team: str) -> None:
    browser, address = signed_in(world.alice), f"/namespaces/{team}/delete/"
    refused = browser.post(address, {"confirmed": "yes"})
    assert refused.status_code == 422
    assert "The namespace is not empty: 1 namespace below." in unescape(refused.content.decode())
    (notes,) = [row["id"] for row in world.client("alice").get("namespaces/?path=/team/notes").json["results"]]
    asked = browser.post(f"/namespaces/{notes}/delete/").content.decode()
    assert ("Delete the namespace" in asked, path_of(world, notes)) == (True, "/team/notes")
    assert browser.post(f"/namespaces/{notes}/delete/", {"confirmed": "yes"})["Location"] == "/namespaces/"
    assert browser.post(address, {"confirmed": "yes"}).status_code == 303
    assert "/team" not in browser.get("/namespaces/").content.decode()


def test_namespace_is_mounted_and_unmounted_on_its_page(world: World, team: str) -> None:
    browser, address = signed_in(world.alice), f"/namespaces/{team}/mounts/"
    assert browser.post(address, {}).status_code == 422
    assert browser.post(address, {"task_id": "ticket-17", "writable": "yes"}).status_code == 303
    assert browser.post(address, {"task_id": "ticket-17"}).status_code == 422
    page = browser.get(f"/namespaces/{team}/").content.decode()
    assert "ticket-17" in page
    assert "writable" in page
    (mount,) = world.client("alice").get("mounts/").json["results"]
    assert signed_in(world.bob).post(f"{address}{mount['id']}/remove/").status_code == 403
    assert signed_in(world.charlie).post(f"{address}{mount['id']}/remove/").status_code == 404
    assert browser.post(f"{address}{mount['id']}/remove/").status_code == 303
    assert world.client("alice").get("mounts/").json["results"] == []


def test_who_may_not_add_memories_is_offered_no_mount(world: World, team: str) -> None:
    assert "id_task_id" not in signed_in(world.bob).get(f"/namespaces/{team}/").content.decode()
    assert signed_in(world.bob).post(f"/namespaces/{team}/mounts/", {"task_id": "t"}).status_code == 403
    assert signed_in(world.charlie).post(f"/namespaces/{team}/mounts/", {"task_id": "t"}).status_code == 404
