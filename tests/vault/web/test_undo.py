"""Undo of a member's last deeds from every page and from the overview."""

import re
from html import unescape

from django.test import Client

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.outbox import run_jobs

BULK, OVERVIEW, OTHER_PAGE = "/memories/bulk/", "/overview/", "/memories/add/"


def add(world: World, text: str) -> str:
    reply = world.client("alice").post("memories/", {"content": text, "namespace": "/team"})
    found: str = reply.json["results"][0]["id"]
    return found


def read_undo_forms(client: Client, address: str) -> list[tuple[str, dict[str, list[str]]]]:
    """Return the address and the fields of each form of a page that undoes something."""
    page = client.get(address).content.decode()
    found = re.findall(
        r'<form method="post" action="([^"]+)"[^>]*>((?:(?!</form>).)*?>Undo<.*?)</form>', page, re.DOTALL
    )
    forms: list[tuple[str, dict[str, list[str]]]] = []
    for to, body in found:
        fields: dict[str, list[str]] = {}
        for name, value in re.findall(r'name="([^"]+)" value="([^"]*)"', body):
            fields.setdefault(name, []).append(unescape(value))
        forms.append((to, fields))
    return forms


def read_tags(world: World, memory_id: str) -> list[str]:
    found: list[str] = world.client("alice").get(f"memories/{memory_id}/").json["tags"]
    return found


def test_deed_is_undone_from_another_page_after_its_message(world: World) -> None:
    memory_id, client = add(world, "The weir was rebuilt."), signed_in(world.alice)
    client.post(BULK, {"action": "tag", "confirmed": "yes", "tag": "river", "id": [memory_id], "next": "/memories/"})
    assert "1 memory changed" in client.get("/memories/").content.decode()
    for _ in range(2):
        ((address, fields),) = read_undo_forms(client, OTHER_PAGE)
    assert (fields["next"], read_tags(world, memory_id)) == ([OTHER_PAGE], ["river"])
    for other in (world.bob, world.charlie):
        assert read_undo_forms(signed_in(other), OTHER_PAGE) == []
    assert client.post(address, fields)["Location"] == OTHER_PAGE
    assert read_tags(world, memory_id) == []
    assert "1 memory changed back" in client.get(OTHER_PAGE).content.decode()
    assert read_undo_forms(client, OTHER_PAGE) == []


def test_overview_lists_deeds_and_jobs_with_undo_newest_first(world: World) -> None:
    first, second, client = add(world, "The weir was rebuilt."), add(world, "Bo likes tea."), signed_in(world.alice)
    client.post(BULK, {"action": "copy", "confirmed": "yes", "namespace": "/team", "id": [second]})
    run_jobs()
    for memory_id in (first, second):
        client.post(BULK, {"action": "delete", "confirmed": "yes", "id": [memory_id]})
    client.get("/memories/")
    latest, before, job = read_undo_forms(client, OVERVIEW)[:3]
    assert (latest[1]["id"], before[1]["id"]) == ([f"{second}@1"], [f"{first}@1"])
    assert re.fullmatch(r"/jobs/[^/]+/undo/", job[0])
    client.post(before[0], before[1])
    assert world.client("alice").get(f"memories/{first}/").status == 200
    assert world.client("alice").get(f"memories/{second}/").status == 404
    assert [form[1].get("id") for form in read_undo_forms(client, OVERVIEW)[:2]] == [[f"{second}@1"], None]
    for other in (world.bob, world.charlie):
        assert read_undo_forms(signed_in(other), OVERVIEW) == []


def test_deed_that_cannot_be_undone_any_more_is_not_offered_again(world: World) -> None:
    memory_id, client = add(world, "The weir was rebuilt."), signed_in(world.alice)
    path = f"/access/memory/{memory_id}/"
    client.post(path, {"holder": f"member:{world.bob.member.id}", "effect": "allow", "action": "read"})
    page = client.get(path).content.decode()
    (revoke,) = re.findall(r'action="(/access/grants/[^"]+)"', page)
    client.post(revoke)
    assert world.client("alice").delete(f"memories/{memory_id}/").status == 204
    ((address, fields),) = read_undo_forms(client, OTHER_PAGE)
    assert client.post(address, fields).status_code == 404
    assert read_undo_forms(client, OTHER_PAGE) == []


def test_role_and_invitation_come_back_by_undo(world: World) -> None:
    client, bob = signed_in(world.olivia), f"members/{world.bob.member.id}/"
    members = "/settings/members/"
    assert client.post(f"{members}{world.bob.member.id}/role/", {"role": "editor"})["Location"] == members
    assert "bob@acme.example has the role Editor now." in client.get(members).content.decode()
    ((address, fields),) = read_undo_forms(client, OTHER_PAGE)
    for other in (world.bob, world.charlie):
        assert signed_in(other).post(address, fields | {"role": "owner"}).status_code in {403, 404}
    client.post(address, fields)
    assert world.client("olivia").get(bob).json["role"] == "viewer"
    client.post(members, {"email": "vera@acme.example", "role": "auditor"})
    (invited,) = world.client("olivia").get("invitations/").json["results"]
    client.post(f"/settings/invitations/{invited['id']}/revoke/")
    assert "The invitation of vera@acme.example was revoked." in client.get(members).content.decode()
    ((address, fields),) = read_undo_forms(client, OTHER_PAGE)
    client.post(address, fields)
    (again,) = world.client("olivia").get("invitations/").json["results"]
    assert (again["email"], again["role"]) == ("vera@acme.example", "auditor")


def test_own_role_is_changed_after_a_question(world: World) -> None:
    assert world.client("olivia").patch(f"members/{world.ada.member.id}/", {"role": "admin"}).status == 200
    client, address = signed_in(world.ada), f"/settings/members/{world.ada.member.id}/role/"
    assert "Change your own role?" in client.post(address, {"role": "viewer"}).content.decode()
    assert world.client("olivia").get(f"members/{world.ada.member.id}/").json["role"] == "admin"
    assert client.post(address, {"role": "viewer", "confirmed": "yes"}).status_code == 303
    assert world.client("olivia").get(f"members/{world.ada.member.id}/").json["role"] == "viewer"
