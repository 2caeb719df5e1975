"""A namespace restored as of a time: equal versions, later memories deleted, held and purged ones named."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import psycopg
import pytest

from governance.database import acting
from tests.factories import World, database_time
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract, fields_at_fault
from tests.vault.outbox import run_jobs
from vault.models import Namespace

FIELDS = ("content", "title", "tags", "metadata", "semantic_type", "importance", "event_time", "subject", "speaker")


def memory(client: Contract, memory_id: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"memories/{memory_id}/").json
    return found


def change_memory(client: Contract, memory_id: str, **changes: Any) -> None:
    version = memory(client, memory_id)["version"]
    assert client.patch(f"memories/{memory_id}/", changes, if_match=f'"{version}"').status == 200


@pytest.fixture
def team(world: World, alice: Contract) -> dict[str, str]:
    """Ids by name: memories of /team and below, and the time before they changed."""
    ids = {
        name: str(alice.add(f"The {name} nests.", namespace=path, tags=[name], metadata={"bird": name})["id"])
        for name, path in (
            ("heron", "/team"),
            ("crane", "/team"),
            ("stork", "/team/notes"),
            ("ibis", "/team"),
            ("gull", "/team"),
        )
    }
    with acting(world.alice.actor):
        ids["/team"] = str(Namespace.objects.get(path="/team").id)
    ids["at"] = database_time(world)
    return ids


def change(alice: Contract, team: dict[str, str]) -> str:
    """Edit, delete, move away, hold, purge, and add one."""
    change_memory(alice, team["heron"], content="The heron left.", tags=["gone"], importance=0.9, subject="customer-1")
    assert alice.delete(f"memories/{team['crane']}/").status == 204
    assert alice.post(f"memories/{team['stork']}/move/", {"namespace": "/elsewhere"}).status == 200
    change_memory(alice, team["ibis"], content="The ibis left.")
    assert alice.post(f"memories/{team['ibis']}/freeze/", {"reason": "Case 17"}).status == 200
    assert alice.delete(f"memories/{team['gull']}/?purge=true").status == 204
    return str(alice.add("The owl came later.", namespace="/team")["id"])


def restore_namespace(client: Contract, team: dict[str, str], at: str) -> dict[str, Any]:
    reply = client.post(f"namespaces/{team['/team']}/restore/", {"as_of": at})
    assert reply.status == 202, reply
    run_jobs()
    job: dict[str, Any] = client.get(f"jobs/{reply.json['job']['id']}/").json
    assert job["status"] == "succeeded", job
    return job


def test_each_memory_becomes_what_it_was(alice: Contract, team: dict[str, str]) -> None:
    before = {name: memory(alice, team[name]) for name in ("heron", "crane", "stork")}
    later = change(alice, team)
    job = restore_namespace(alice, team, team["at"])
    assert (job["result"]["changed"], job["result"]["codes"]) == (4, {"held": 1})
    for name, was in before.items():
        is_now = memory(alice, team[name])
        assert {field: is_now[field] for field in FIELDS} == {field: was[field] for field in FIELDS}
        assert is_now["namespace"] == was["namespace"]
    assert memory(alice, team["heron"])["version"] == 3
    assert memory(alice, team["crane"])["version"] == 1
    assert alice.get(f"memories/{later}/").status == 404
    assert alice.get(f"memories/{team['gull']}/").status == 404
    assert memory(alice, team["ibis"])["content"] == "The ibis left."
    run_jobs()
    found = alice.search_contents("heron stork crane owl left", namespaces=["/team", "/team/notes"])
    assert found == ["The crane nests.", "The heron nests.", "The ibis left.", "The stork nests."]


def test_memory_that_was_deleted_then_is_deleted_again(world: World, alice: Contract, team: dict[str, str]) -> None:
    address = f"memories/{team['crane']}/"
    assert alice.delete(address).status == 204
    at = database_time(world)
    assert alice.post(f"{address}restore/").status == 200
    change_memory(alice, team["crane"], content="The crane is back.")
    reply = alice.post(f"namespaces/{team['/team']}/restore/?dry_run=true", {"as_of": at})
    assert (reply.json["count"], reply.json["restored"]) == (1, 1)
    assert restore_namespace(alice, team, at)["result"]["changed"] == 1
    assert alice.get(address).status == 404
    restore_namespace(alice, team, team["at"])  # the restoration was a deletion, and can be taken back
    assert memory(alice, team["crane"])["content"] == "The crane nests."


def test_page_of_the_past_leaves_out_what_was_deleted_and_marks_what_was_held(
    world: World, alice: Contract, team: dict[str, str]
) -> None:
    assert alice.delete(f"memories/{team['crane']}/").status == 204
    assert alice.post(f"memories/{team['ibis']}/freeze/", {"reason": "Case 17"}).status == 200
    at = database_time(world)
    assert alice.post(f"memories/{team['crane']}/restore/").status == 200
    assert alice.post(f"memories/{team['ibis']}/unfreeze/").status == 200
    page = signed_in(world.alice).get(f"/namespaces/{team['/team']}/past/", {"at": at}).content.decode()
    assert "The crane nests." not in page
    assert page.count("held then") == 1


def test_preview_counts_and_names_what_stays(alice: Contract, team: dict[str, str]) -> None:
    change(alice, team)
    reply = alice.post(f"namespaces/{team['/team']}/restore/?dry_run=true", {"as_of": team["at"]})
    assert reply.json == {
        "dry_run": True,
        "count": 4,
        "changed": 3,
        "deleted": 1,
        "added": 1,
        "restored": 0,
        "unchanged": 0,
        "obstacles": {"held": 1},
        "held": [team["ibis"]],
        "purged": [team["gull"]],
    }
    assert memory(alice, team["heron"])["version"] == 2


def test_restore_in_parts_changes_each_memory_once(
    alice: Contract, team: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vault.jobs.restoration.PART", 2)
    change(alice, team)
    assert restore_namespace(alice, team, team["at"])["result"]["changed"] == 4
    assert memory(alice, team["heron"])["version"] == 3


def test_restore_is_taken_back_by_another(world: World, alice: Contract, team: dict[str, str]) -> None:
    later = change(alice, team)
    changed_at = database_time(world)
    restore_namespace(alice, team, team["at"])
    restore_namespace(alice, team, changed_at)
    assert memory(alice, team["heron"])["content"] == "The heron left."
    assert memory(alice, team["stork"])["namespace"]["path"] == "/elsewhere"
    assert alice.get(f"memories/{later}/").status == 200
    assert alice.get(f"memories/{team['crane']}/").status == 404


def test_redacted_version_stays_redacted(alice: Contract, team: dict[str, str]) -> None:
    change_memory(alice, team["heron"], content="The heron left.")
    assert alice.post(f"memories/{team['heron']}/redact/", {"version": 1}).status == 200
    assert restore_namespace(alice, team, team["at"])["result"]["codes"] == {"redacted": 1}
    assert memory(alice, team["heron"])["content"] == "The heron left."


def test_who_may_not_write_restores_nothing(
    olivia: Contract, alice: Contract, bob: Contract, charlie: Contract, team: dict[str, str]
) -> None:
    address, body = f"namespaces/{team['/team']}/restore/", {"as_of": team["at"]}
    for dry in ("", "?dry_run=true"):
        assert bob.post(address + dry, body).status == 403
        assert charlie.post(address + dry, body).status == 404
    assert fields_at_fault(alice.post(address, {"as_of": "2999-01-01T00:00:00Z"})) == {"as_of"}
    assert olivia.post("namespaces/", {"path": "/team/board", "kind": "expert"}).status == 201
    assert alice.post(address, body).status == 403


def test_right_that_is_lost_before_the_job_runs_is_lost_for_the_job(
    world: World, olivia: Contract, alice: Contract, team: dict[str, str]
) -> None:
    change(alice, team)
    job = alice.post(f"namespaces/{team['/team']}/restore/", {"as_of": team["at"]}).json["job"]["id"]
    assert olivia.patch(f"members/{world.alice.member.id}/", {"role": "viewer"}).status == 200
    run_jobs()
    assert alice.get(f"jobs/{job}/").json["error"]["code"] == "forbidden"
    assert memory(olivia, team["heron"])["version"] == 2


def test_page_shows_then_and_now_and_restores_after_a_preview(
    world: World, alice: Contract, team: dict[str, str]
) -> None:
    change(alice, team)
    browser, address = signed_in(world.alice), f"/namespaces/{team['/team']}/past/"
    page = unescape(browser.get(address, {"at": team["at"]}).content.decode())
    assert "The heron nests." in page
    assert "The heron left." not in page
    assert "changed since" in page
    assert "The owl came later." not in page
    assert ("The crane nests." in page, "deleted since" in page) == (True, True)
    assert "The crane nests." not in signed_in(world.bob).get(address, {"at": team["at"]}).content.decode()
    preview = unescape(browser.post(address, {"at": team["at"]}).content.decode())
    assert "4 memories would change. Nothing was changed." in preview
    assert f'<a href="/memories/{team["ibis"]}/">The ibis left.</a>' in preview
    assert "Purged, cannot come back: a memory in /team," in preview
    assert team["gull"] not in preview
    assert browser.post(address, {"at": "2999-01-01T00:00", "confirmed": "yes"}).status_code == 422
    done = browser.post(address, {"at": team["at"], "confirmed": "yes"})
    assert done["Location"].startswith("/jobs/")
    run_jobs()
    assert memory(alice, team["heron"])["content"] == "The heron nests."


def test_page_of_the_past_tells_of_deletions_restorations_and_expiry(
    world: World, alice: Contract, team: dict[str, str], superuser: Callable[[], psycopg.Connection]
) -> None:
    assert alice.delete(f"memories/{team['crane']}/").status == 204
    assert alice.post(f"memories/{team['crane']}/restore/").status == 200
    superuser().execute("UPDATE vault_cube SET expires_at = now() WHERE id = %s", [team["gull"]])
    expired, address = database_time(world), f"/namespaces/{team['/team']}/past/"

    def read_row(words: str, at: str) -> str:
        page = " ".join(unescape(signed_in(world.alice).get(address, {"at": at}).content.decode()).split())
        return next((row for row in page.split("<li>") if words in row), "")

    crane = read_row("The crane nests.", team["at"])
    assert re.search("· deleted <time.*· restored <time.*unchanged", crane)
    assert re.search("· expired <time.*expired since", read_row("The gull nests.", team["at"]))
    assert read_row("The gull nests.", expired) == ""
    assert read_row("The crane nests.", expired).count("<time") == 0


def test_page_offers_a_reader_no_restore(world: World, team: dict[str, str]) -> None:
    address = f"/namespaces/{team['/team']}/past/"
    assert "restore-title" not in signed_in(world.bob).get(address).content.decode()
    assert signed_in(world.bob).post(address, {"at": team["at"], "confirmed": "yes"}).status_code == 403
    assert signed_in(world.charlie).get(address).status_code == 404
