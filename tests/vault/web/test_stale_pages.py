"""A page that was opened before another member's change: its buttons act on the version that it showed, or on none."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.outbox import run_jobs

BULK = "/memories/bulk/"
FORM = re.compile(r'<form[^>]*action="{action}".*?</form>', re.DOTALL)
FIELD = re.compile(r'<input[^>]*name="([a-z_]+)"[^>]*value="([^"]*)"')
CHANGED = "This memory has changed since you read it."


@pytest.fixture
def memory(world: World) -> str:
    return _add_memory(world, "The pump leaks.")


def _add_memory(world: World, content: str) -> str:
    body = {"content": content, "namespace": "/team", "tags": ["team"]}
    return str(world.client("alice").post("memories/", body).json["results"][0]["id"])


def _edit_memory(world: World, memory_id: str) -> None:
    """Another member makes a version."""
    present = world.client("olivia").get(f"memories/{memory_id}/").json["version"]
    reply = world.client("olivia").patch(
        f"memories/{memory_id}/", {"tags": ["team", f"after {present}"]}, if_match=f'"{present}"'
    )
    assert reply.status == 200, reply


def _read_memory(world: World, memory_id: str) -> dict[str, Any]:
    found: dict[str, Any] = world.client("olivia").get(f"memories/{memory_id}/").json
    return found


def _fields(browser: Client, address: str, action: str, position: int = 0) -> dict[str, Any]:
    """The hidden fields of a form on a page, as a browser sends them."""
    page = browser.get(address).content.decode()
    forms = re.findall(FORM.pattern.replace("{action}", re.escape(action)), page, re.DOTALL)
    found: dict[str, Any] = {}
    for name, value in FIELD.findall(forms[position]):
        found.setdefault(name, []).append(unescape(value))
    return found


def _archive_memory(world: World, memory_id: str) -> None:
    assert world.client("alice").post(f"memories/{memory_id}/transition/", {"to": "archived"}).status == 200


@pytest.mark.parametrize(
    ("form", "button", "more"),
    [
        ("freeze/", "freeze/", {"reason": "Case 17"}),
        (BULK, BULK, {"action": "freeze", "reason": "Case 17", "confirmed": "yes"}),
        (BULK, BULK, {"action": "delete"}),
        (BULK, BULK, {"action": "delete", "confirmed": "yes"}),
        (BULK, BULK, {"action": "archive", "confirmed": "yes"}),
        (BULK, BULK, {"action": "tag", "tag": "rota", "confirmed": "yes"}),
        (BULK, BULK, {"action": "move", "namespace": "/team", "confirmed": "yes"}),
    ],
)
def test_button_of_a_stale_page_is_refused_and_changes_nothing(
    world: World, memory: str, form: str, button: str, more: dict[str, str]
) -> None:
    browser, address = signed_in(world.alice), f"/memories/{memory}/"
    action = form if form == BULK else address + form
    target = button if button == BULK else address + button
    stale = _fields(browser, address, action)
    _edit_memory(world, memory)
    before = _read_memory(world, memory)
    refused = browser.post(target, stale | more)
    assert (refused.status_code, CHANGED in unescape(refused.content.decode())) == (412, True)
    assert (f'href="{address}">Back to the page' in refused.content.decode()) is ("next" in stale)
    assert _read_memory(world, memory) == before
    assert browser.post(target, _fields(browser, address, action) | more).status_code in {200, 303}
    assert (_read_memory(world, memory) != before) is ("confirmed" in more or button != BULK)


def test_recall_of_a_stale_page_is_refused(world: World, memory: str) -> None:
    browser, address = signed_in(world.alice), f"/memories/{memory}/"
    _archive_memory(world, memory)
    stale = _fields(browser, address, BULK)
    _edit_memory(world, memory)
    assert browser.post(f"{address}recall/", stale).status_code == 412
    assert _read_memory(world, memory)["state"] == "archived"
    assert browser.post(f"{address}recall/", _fields(browser, address, BULK)).status_code == 303
    assert _read_memory(world, memory)["state"] == "activated"


def test_undo_of_a_fusion_on_a_stale_page_is_refused(world: World, memory: str) -> None:
    browser, alice = signed_in(world.alice), world.client("alice")
    other = _add_memory(world, "The pump is old.")
    run_jobs()
    made = alice.post("memories/fuse/", {"ids": [memory, other]}).json["id"]
    address = f"/memories/{made}/"
    stale = _fields(browser, address, BULK)
    _edit_memory(world, made)
    assert browser.post(f"{address}unfuse/", stale).status_code == 412
    assert _read_memory(world, memory)["state"] == "merged"
    assert browser.post(f"{address}unfuse/", _fields(browser, address, BULK)).status_code == 303
    assert _read_memory(world, memory)["state"] != "merged"


def test_end_of_a_freeze_on_a_stale_page_is_refused(world: World, memory: str) -> None:
    browser, address = signed_in(world.alice), f"/memories/{memory}/"
    assert browser.post(f"{address}freeze/", {"reason": "Mine."}).status_code == 303
    fields = _fields(browser, address, f"{address}unfreeze/")
    assert fields["version"] == ["1"]
    assert browser.post(f"{address}unfreeze/", fields | {"version": "7"}).status_code == 412
    assert _read_memory(world, memory)["held"] is True
    assert browser.post(f"{address}unfreeze/", fields).status_code == 303
    assert _read_memory(world, memory)["held"] is False


def test_selection_of_a_stale_list_leaves_out_what_changed(world: World, memory: str) -> None:
    browser, other = signed_in(world.alice), _add_memory(world, "The pump is old.")
    page = browser.get("/memories/").content.decode()
    chosen = re.findall(r'type="checkbox"[^>]*name="id" value="([^"]+)"', page)
    assert sorted(chosen) == sorted([f"{memory}@1", f"{other}@1"])
    _edit_memory(world, memory)
    asked = unescape(browser.post(BULK, {"action": "archive", "id": chosen}).content.decode())
    assert "<b>1</b><span>stay: they changed since you read them</span>" in asked
    browser.post(BULK, {"action": "archive", "id": chosen, "confirmed": "yes"})
    assert (_read_memory(world, memory)["state"], _read_memory(world, other)["state"]) == ("generated", "archived")
    assert "1 memory changed, 1 left out" in browser.get("/memories/").content.decode()


def test_undo_of_what_was_changed_since_is_refused(world: World, memory: str) -> None:
    browser, olivia = signed_in(world.alice), world.client("olivia")
    trash = {"action": "delete", "id": memory, "confirmed": "yes"}
    browser.post(BULK, trash)
    browser.post(BULK, {"action": "restore", "id": memory, "confirmed": "yes"})
    undo = _fields(browser, "/memories/", BULK, position=-1)
    assert undo["action"] == ["delete"]
    _edit_memory(world, memory)
    assert browser.post(BULK, undo).status_code == 412
    assert olivia.get(f"memories/{memory}/").status == 200


def test_who_may_not_change_the_memory_learns_nothing_of_its_version(world: World, memory: str) -> None:
    for who, status in (("bob", 403), ("charlie", 404)):
        browser = signed_in(world.person(who))
        for version in ("1", "7"):
            assert browser.post(f"/memories/{memory}/recall/", {"version": version}).status_code == status


def test_refused_form_leads_back_to_its_own_page_only(world: World, memory: str) -> None:
    browser, address = signed_in(world.alice), f"/memories/{memory}/"
    for before, leads in (
        (f"http://testserver{address}", True),
        ("https://evil.example/", False),
        (f"http://testserver{address}recall/", False),
    ):
        refused = browser.post(f"{address}recall/", {"version": "7"}, headers={"Referer": before})
        assert (refused.status_code, f'href="{before}"' in refused.content.decode()) == (412, leads)
