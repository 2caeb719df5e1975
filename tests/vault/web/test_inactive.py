"""Deleted, expired and archived memories are listed with the reason, opened, and brought back."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape

import psycopg
import pytest
from django.test import Client

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.policies.policy_factories import create_policy
from tests.vault.web.test_memory_list import page_of, rows_of

Superuser = Callable[[], psycopg.Connection]
PAGE, BULK = "/memories/?inactive=true", "/memories/bulk/"


@pytest.fixture
def inactive(world: World, alice: Contract, olivia: Contract, superuser: Superuser) -> dict[str, str]:
    """An archived, an expired and a deleted memory of alice's in /team, by kind."""
    texts = {"archived": "The weir was rebuilt.", "expired": "The mill is for sale.", "deleted": "Bo likes tea."}
    ids = {kind: alice.add(text, namespace="/team")["id"] for kind, text in texts.items()}
    alice.add("The heron stays.", namespace="/team")
    policy = create_policy(olivia, "retention", {"max_seconds": 86_400}, name="a day")
    alice.post(f"memories/{ids['archived']}/transition/", {"to": "archived", "reason": "old news"})
    alice.delete(f"memories/{ids['deleted']}/")
    superuser().execute(
        "UPDATE vault_cube SET expires_at = now() - interval '1 hour', expiry_policy = %s WHERE id = %s",
        [policy, ids["expired"]],
    )
    run_jobs()
    return ids


def test_inactive_memories_are_listed_with_kind_and_reason(world: World, inactive: dict[str, str]) -> None:
    shown = page_of(signed_in(world.alice), PAGE)
    assert rows_of(shown) == [inactive["deleted"], inactive["expired"], inactive["archived"]]
    for words in ("The mill is for sale.", "Expired", "Restorable until", "Archived", "old news", "Deleted"):
        assert words in shown
    assert "Policy a day" in " ".join(page_of(signed_in(world.olivia), PAGE).split())
    assert "a day" not in shown, "the name of a policy is for those who read policies"
    assert "The heron stays." not in shown
    for kind in inactive:
        assert f'state-{kind}">{kind.capitalize()}<' in shown
    assert "generated" not in shown.lower().partition('id="rows"')[2].partition("</tbody>")[0]


def test_list_of_the_api_has_them_and_narrows_them_by_state(
    alice: Contract, bob: Contract, charlie: Contract, inactive: dict[str, str]
) -> None:
    listed = alice.get("memories/?inactive=true").json["results"]
    assert {memory["id"] for memory in listed} == {*inactive.values()}
    archived = alice.get("memories/?inactive=true&state=archived").json["results"]
    assert [memory["id"] for memory in archived] == [inactive["archived"]]
    assert bob.get("memories/?inactive=true").status == 403
    assert charlie.get("memories/?inactive=true").json["results"] == []


def test_state_expired_lists_them_for_who_may_restore_them(
    alice: Contract, bob: Contract, charlie: Contract, inactive: dict[str, str], superuser: Superuser
) -> None:
    for _ in ("swept", "not swept yet"):
        (expired,) = alice.get("memories/?state=expired").json["results"]
        assert (expired["id"], expired["state"]) == (inactive["expired"], "expired")
        both = alice.get("memories/?state=expired&state=archived").json
        assert {memory["id"] for memory in both["results"]} == {inactive["expired"], inactive["archived"]}
        assert alice.get("memories/?state=expired&namespace=/elsewhere").json["count"] == 0
        assert bob.get("memories/?state=expired").json["results"] == []
        assert charlie.get("memories/?state=expired").json["results"] == []
        superuser().execute("UPDATE vault_cube SET state = 'generated' WHERE id = %s", [inactive["expired"]])
    body = {"query": "mill", "filters": {"OR": [{"state": {"in": ["expired"]}}]}}
    reply = alice.post("memories/search/", body).json
    assert (reply["results"], len(reply["notices"])) == ([], 1)
    superuser().execute("UPDATE vault_cube SET expires_at = now() - interval '90 days' WHERE state = 'generated'")
    assert alice.get("memories/?state=expired").json["results"] == [], "its grace period has ended"


def test_facets_count_every_state_for_who_may_restore(
    alice: Contract, bob: Contract, charlie: Contract, inactive: dict[str, str], superuser: Superuser
) -> None:
    def count_states(client: Contract, asked: str = "") -> dict[str, int]:
        return {row["value"]: row["count"] for row in client.get(f"memories/facets/{asked}").json["state"]}

    for _ in ("swept", "not swept yet"):
        assert count_states(alice) == {"generated": 1, "archived": 1, "expired": 1, "deleted": 1}
        assert count_states(alice, "?inactive=true") == {"archived": 1, "expired": 1, "deleted": 1}
        superuser().execute("UPDATE vault_cube SET state = 'generated' WHERE id = %s", [inactive["expired"]])
    assert count_states(alice, "?namespace=/elsewhere") == {}
    assert count_states(bob) == {"generated": 1, "archived": 1}
    assert bob.get("memories/facets/?inactive=true").status == 403
    assert count_states(charlie) == {}


def test_states_expired_and_deleted_are_listed(
    world: World, alice: Contract, bob: Contract, inactive: dict[str, str]
) -> None:
    client = signed_in(world.alice)
    for states in (["deleted"], ["expired"], ["deleted", "archived"], ["expired", "deleted"]):
        asked = "&".join(f"state={state}" for state in states)
        wanted = {inactive[state] for state in states}
        assert {memory["id"] for memory in alice.get(f"memories/?{asked}").json["results"]} == wanted
        page = page_of(client, f"/memories/?{asked}")
        assert {*rows_of(page)} == wanted
        for state in states:
            assert f'state-{state}">{state.capitalize()}<' in page
        assert ('value="restore"' in page) == ("archived" not in states)
    assert bob.get("memories/?state=deleted").json["results"] == []
    assert rows_of(page_of(signed_in(world.bob), "/memories/?state=deleted")) == []
    run = {"action": "restore", "all": "yes", "query": "/memories/?state=deleted", "confirmed": "yes"}
    assert client.post(BULK, run | {"expires_at": _tomorrow()}).status_code == 303
    run_jobs()
    assert rows_of(page_of(client, PAGE)) == [inactive["expired"], inactive["archived"]]


@pytest.mark.parametrize("kind", ["deleted", "expired"])
def test_row_opens_the_content_for_who_may_restore_it(world: World, inactive: dict[str, str], kind: str) -> None:
    address = f"/memories/{inactive[kind]}/"
    for part in (address, f"{address}pane/"):
        shown = page_of(signed_in(world.alice), part)
        assert "Restore…" in shown
        assert kind.capitalize() in shown
        for person in (world.bob, world.charlie):
            assert signed_in(person).get(part).status_code == 404


def test_pane_of_an_inactive_memory_is_there_after_a_reload(world: World, inactive: dict[str, str]) -> None:
    address = f"{PAGE}&selected={inactive['deleted']}"
    assert "Restore…" in page_of(signed_in(world.alice), address).partition('id="reader"')[2]


def test_selected_ones_are_brought_back_together(world: World, alice: Contract, inactive: dict[str, str]) -> None:
    client = signed_in(world.alice)
    form = {"action": "restore", "id": list(inactive.values())}
    assert "<b>3</b>" in unescape(client.post(BULK, form).content.decode())
    refused = client.post(BULK, form | {"confirmed": "yes"})
    assert (refused.status_code, "needs a new expiry" in refused.content.decode()) == (422, True)
    assert client.post(BULK, form | {"confirmed": "yes", "expires_at": _tomorrow()}).status_code == 303
    assert rows_of(page_of(client, PAGE)) == []
    states = {kind: alice.get(f"memories/{cube_id}/").json["state"] for kind, cube_id in inactive.items()}
    assert states == {"archived": "activated", "expired": "generated", "deleted": "generated"}


def test_all_that_match_are_brought_back_by_a_job(world: World, alice: Contract, inactive: dict[str, str]) -> None:
    asked = {"action": "restore", "filters": {"namespace": "/team"}, "args": {"expires_at": _tomorrow()}}
    reply = alice.post("memories/actions/", asked)
    assert reply.status == 202, reply
    run_jobs()
    assert alice.get("memories/?inactive=true").json["results"] == []
    assert alice.post(f"jobs/{reply.json['job']['id']}/undo/").status == 202
    run_jobs()
    left = {memory["id"] for memory in alice.get("memories/?inactive=true").json["results"]}
    assert left == {inactive["archived"], inactive["deleted"]}


def _tomorrow() -> str:
    return f"{datetime.now(UTC) + timedelta(hours=20):%Y-%m-%dT%H:%M:%SZ}"


def test_undo_is_offered_only_for_deleted_ones(world: World, inactive: dict[str, str]) -> None:
    client = signed_in(world.alice)
    restore = {"action": "restore", "confirmed": "yes"}
    assert _offers_undo(client, restore | {"id": [inactive["deleted"]]})
    assert not _offers_undo(client, restore | {"id": [inactive["archived"]]})


def _offers_undo(client: Client, form: dict[str, object]) -> bool:
    client.post(BULK, form)
    return bool(client.session["undo"].get("action") == "delete")


def test_expired_memory_is_restored_by_the_api_with_a_new_expiry_only(
    alice: Contract, bob: Contract, charlie: Contract, inactive: dict[str, str]
) -> None:
    address = f"memories/{inactive['expired']}/restore/"
    refused = alice.post(address)
    assert (refused.status, refused.json["errors"][0]["field"]) == (400, "expires_at")
    assert "has expired" in refused.json["detail"]
    assert [client.post(address).status for client in (bob, charlie)] == [403, 404]
    assert alice.post(address, {"expires_at": _tomorrow()}).status == 200


def test_archived_memory_that_expired_is_listed_as_expired(
    world: World, superuser: Superuser, inactive: dict[str, str]
) -> None:
    statement = "UPDATE vault_cube SET expires_at = now() - interval '1 minute' WHERE id = %s"
    superuser().execute(statement, [inactive["archived"]])
    page = page_of(signed_in(world.alice), f"/memories/{inactive['archived']}/")
    assert ("Expired" in page, "old news" in page) == (True, False)
