"""One action on all that match: counted, done by a job in parts, cancelled, undone; and exports."""

import json
from collections.abc import AsyncIterator, Callable
from html import unescape
from typing import Any, cast
from uuid import UUID

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test.utils import CaptureQueriesContext

from governance.errors import Forbidden
from tests.factories import ApiReply, World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.openapi import faults_of
from tests.vault.outbox import run_jobs
from vault.api.lines import lines_response
from vault.listing.actions import export_lines

Superuser = Callable[[], psycopg.Connection]
ACTIONS = "memories/actions/"
NEXT_YEAR = "2099-01-01T00:00:00Z"
ALL = {"tags": "rota"}


@pytest.fixture
def ids(world: World) -> list[str]:
    """Five shared memories of alice's with one tag, the last frozen by olivia."""
    items = [{"content": f"Shift {number}.", "namespace": "/team", "tags": ["rota"]} for number in range(5)]
    reply = world.client("alice").post("memories/bulk/", {"items": items})
    found = [row["memory"]["id"] for row in reply.json["results"]]
    assert world.client("olivia").post(f"memories/{found[4]}/freeze/", {"reason": "Case 17"}).status == 200
    return found


def contents(world: World, namespace: str) -> list[str]:
    found = world.client("alice").get(f"memories/?namespace={namespace}").json["results"]
    return sorted(memory["content"] for memory in found)


def test_all_that_match_are_promoted_and_taken_back(world: World, ids: list[str]) -> None:
    body = {"action": "promote", "filters": ALL, "args": {"layer": "mid_term"}}
    counted = ask(world, "alice", body, dry=True).json
    assert (counted["count"], [row["code"] for row in counted["skipped"]]) == (4, ["held"])
    job = job_of(world, "alice", body)
    assert (job["result"]["changed"], job["result"]["codes"]) == (4, {"held": 1})
    assert [memory(world, memory_id)["layer"] for memory_id in ids] == ["mid_term"] * 4 + ["long_term"]
    assert undo(world, job)["result"]["changed"] == 4
    assert {memory(world, memory_id)["layer"] for memory_id in ids} == {"long_term"}


def test_all_that_match_are_copied_and_the_copies_taken_back(world: World, ids: list[str]) -> None:
    job = job_of(world, "alice", {"action": "copy", "filters": ALL, "args": {"namespace": "/team/copies"}})
    assert (job["result"]["changed"], job["result"]["codes"]) == (4, {"held": 1})
    assert contents(world, "/team/copies") == [f"Shift {number}." for number in range(4)]
    changed = world.client("alice").get("memories/?namespace=/team/copies").json["results"][0]["id"]
    assert world.client("alice").patch(f"memories/{changed}/", {"title": "Mine"}, if_match='"1"').status == 200
    undone = undo(world, job)["result"]
    assert (undone["changed"], undone["codes"]) == (3, {"conflict": 1})
    assert len(contents(world, "/team/copies")) == 1
    assert {memory(world, memory_id)["state"] for memory_id in ids} == {"generated"}


def test_all_that_match_are_split_and_the_whole_taken_back(world: World) -> None:
    alice = world.client("alice")
    two = alice.post("memories/", {"content": "The heron nests.\n\nThe otter swims.", "namespace": "/team/split"})
    single_part = alice.post("memories/", {"content": "One part", "namespace": "/team/split"})
    whole, single = (reply.json["results"][0]["id"] for reply in (two, single_part))
    job = job_of(world, "alice", {"action": "split", "ids": [whole, single]})
    assert (job["result"]["changed"], job["result"]["codes"]) == (1, {"conflict": 1})
    assert contents(world, "/team/split") == ["One part", "The heron nests.", "The otter swims."]
    assert memory(world, whole)["state"] == "merged"
    assert undo(world, job)["result"]["changed"] == 1
    assert contents(world, "/team/split") == ["One part", "The heron nests.\n\nThe otter swims."]


@pytest.mark.parametrize(
    "body",
    [
        {"action": "promote", "args": {"layer": "mid_term"}},
        {"action": "copy", "args": {"namespace": "/team/copies"}},
        {"action": "split"},
    ],
    ids=lambda body: str(body["action"]),
)
def test_reader_and_stranger_promote_copy_and_split_nothing(world: World, ids: list[str], body: dict[str, Any]) -> None:
    assert ask(world, "bob", {**body, "ids": ids}).status == 403
    assert job_of(world, "charlie", {**body, "ids": ids})["result"]["changed"] == 0
    assert {memory(world, memory_id)["layer"] for memory_id in ids} == {"long_term"}


def test_promotion_without_a_layer_and_copy_without_a_place_are_refused(world: World, ids: list[str]) -> None:
    assert ask(world, "alice", {"action": "promote", "ids": ids}).status == 400
    assert ask(world, "alice", {"action": "copy", "ids": ids}).status == 400


def test_page_counts_before_it_promotes_what_was_chosen(world: World, ids: list[str]) -> None:
    client = signed_in(world.alice)
    form = {"id": ids, "action": "promote", "next": "/memories/"}
    asked = client.post("/memories/bulk/", form).content.decode()
    assert "<b>4</b>" in asked
    assert 'name="layer"' in asked
    answer = client.post("/memories/bulk/", {**form, "confirmed": "yes", "layer": "mid_term"})
    assert (answer.status_code, answer.headers["Location"].startswith("/jobs/")) == (303, True)
    run_jobs()
    assert [memory(world, memory_id)["layer"] for memory_id in ids] == ["mid_term"] * 4 + ["long_term"]


def ask(world: World, name: str, body: dict[str, Any], *, dry: bool = False, **headers: str) -> ApiReply:
    address = f"{ACTIONS}?dry_run=true" if dry else ACTIONS
    reply = world.client(name).post(address, body, **headers)
    assert faults_of("POST", f"/api/v1/{ACTIONS}", reply) == []
    return reply


def job_of(world: World, name: str, body: dict[str, Any]) -> dict[str, Any]:
    reply = ask(world, name, body)
    assert reply.status == 202, reply.json
    run_jobs()
    found: dict[str, Any] = world.client(name).get(f"jobs/{reply.json['job']['id']}/").json
    return found


def memory(world: World, memory_id: str) -> dict[str, Any]:
    found: dict[str, Any] = world.client("alice").get(f"memories/{memory_id}/").json
    return found


def undo(world: World, job: dict[str, Any]) -> dict[str, Any]:
    reply = world.client("alice").post(f"jobs/{job['id']}/undo/")
    assert reply.status == 202, reply.json
    run_jobs()
    found: dict[str, Any] = world.client("alice").get(f"jobs/{reply.json['id']}/").json
    return found


@pytest.mark.parametrize(
    ("action", "args", "field", "value"),
    [
        ("tag", {"tags": ["week"]}, "tags", ["rota", "week"]),
        ("expire", {"expires_at": NEXT_YEAR}, "expires_at", NEXT_YEAR),
        ("move", {"namespace": "/archive"}, "namespace", "/archive"),
    ],
)
def test_an_action_changes_all_that_match_and_is_undone(
    world: World, ids: list[str], action: str, args: dict[str, str], field: str, value: object, superuser: Superuser
) -> None:
    def read_field(memory_id: str) -> object:
        found = memory(world, memory_id)[field]
        return found["path"] if isinstance(found, dict) else found

    before = [read_field(memory_id) for memory_id in ids]
    counted = ask(world, "alice", {"action": action, "filters": ALL, "args": args}, dry=True).json
    assert (counted["count"], counted["skipped"]) == (4, [{"id": ids[4], "code": "held"}])
    job = job_of(world, "alice", {"action": action, "filters": ALL, "args": args, "expected_count": 4})
    assert (job["status"], job["done"], job["total"], job["progress"]) == ("succeeded", 5, 5, 1.0)
    assert (job["result"]["changed"], job["result"]["codes"]) == (4, {"held": 1})
    assert [read_field(memory_id) for memory_id in ids] == [value] * 4 + before[4:]
    undone = undo(world, job)
    assert (undone["status"], undone["result"]["changed"]) == ("succeeded", 4)
    assert [read_field(memory_id) for memory_id in ids] == before
    assert superuser().execute("SELECT count(*) FROM vault_actionitem").fetchone() == (4,)


@pytest.mark.parametrize(
    ("action", "args"),
    [
        ("tag", {"tags": ["week"]}),
        ("expire", {"expires_at": NEXT_YEAR}),
        ("move", {"namespace": "/a"}),
        ("delete", {}),
    ],
)
def test_an_action_on_forty_takes_no_more_statements_than_on_four(
    world: World, action: str, args: dict[str, str]
) -> None:
    def statements(tag: str, count: int) -> int:
        items = [{"content": f"{tag} {number}.", "namespace": "/team", "tags": [tag]} for number in range(count)]
        assert world.client("alice").post("memories/bulk/", {"items": items}).status == 201
        run_jobs()
        assert ask(world, "alice", {"action": action, "filters": {"tags": tag}, "args": args}).status == 202
        with CaptureQueriesContext(connection) as captured:
            run_jobs()
        named = ("vault_cubeversion", "governance_auditentry", "UPDATE vault_cube", 'UPDATE "vault_cube"')
        return sum(any(item in query["sql"] for item in named) for query in captured.captured_queries)

    few = statements("four", 4)
    assert 0 < statements("forty", 40) <= few


def test_a_quota_that_all_exceed_together_leaves_out_those_that_exceed_it(world: World, ids: list[str]) -> None:
    """Each version takes as many bytes as its words."""
    olivia = world.client("olivia")
    used = next(quota for quota in olivia.get("quotas/").json["results"] if quota["holder"]["kind"] == "tenant")["used"]
    limits = {"bytes": used["bytes"] + used["bytes"] // len(ids) * 2}
    assert olivia.send("PUT", "quotas/", {"holder": {"kind": "tenant", "id": None}, "limits": limits}).status == 200
    job = job_of(world, "alice", {"action": "tag", "ids": ids[:4], "args": {"tags": ["week"]}})
    assert (job["status"], job["result"]["codes"]) == ("succeeded", {"quota_exceeded": 2})
    assert sorted("week" in memory(world, memory_id)["tags"] for memory_id in ids[:4]) == [False, False, True, True]


def test_deleted_memories_come_back_and_restored_ones_go_again(world: World, ids: list[str]) -> None:
    alice = world.client("alice")
    job = job_of(world, "alice", {"action": "delete", "filters": ALL})
    assert [alice.get(f"memories/{memory_id}/").status for memory_id in ids] == [404] * 4 + [200]
    restored = job_of(world, "alice", {"action": "restore", "filters": ALL})
    assert restored["result"]["changed"] == 4
    assert [alice.get(f"memories/{memory_id}/").status for memory_id in ids] == [200] * 5
    assert undo(world, restored)["result"]["changed"] == 4
    assert undo(world, job)["result"]["changed"] == 4
    assert [alice.get(f"memories/{memory_id}/").status for memory_id in ids] == [200] * 5


def test_undoing_leaves_what_was_changed_since(world: World, ids: list[str]) -> None:
    job = job_of(world, "alice", {"action": "expire", "ids": ids[:2], "args": {"expires_at": NEXT_YEAR}})
    version = memory(world, ids[0])["version"]
    changed = {"expires_at": "2098-01-01T00:00:00Z"}
    assert world.client("alice").patch(f"memories/{ids[0]}/", changed, if_match=f'"{version}"').status == 200
    undone = undo(world, job)
    assert (undone["result"]["changed"], undone["result"]["codes"]) == (1, {"conflict": 1})
    assert memory(world, ids[0])["expires_at"] == changed["expires_at"]
    assert memory(world, ids[1])["expires_at"] is None


def test_undoing_a_freeze_leaves_the_freezes_of_others(world: World, ids: list[str]) -> None:
    assert world.client("alice").post(f"memories/{ids[0]}/freeze/", {"reason": "Mine"}).status == 200
    job = job_of(world, "olivia", {"action": "freeze", "ids": ids[:2], "args": {"reason": "Case 18"}})
    assert job["result"]["changed"] == 2
    reply = world.client("olivia").post(f"jobs/{job['id']}/undo/")
    assert reply.status == 202, reply.json
    run_jobs()
    assert [memory(world, memory_id)["held"] for memory_id in ids[:2]] == [True, False]


def test_undoing_an_unfreeze_freezes_again_for_the_same_reason(world: World, ids: list[str]) -> None:
    olivia = world.client("olivia")
    assert world.client("alice").post(f"memories/{ids[1]}/freeze/", {"reason": "Mine"}).status == 200
    job = job_of(world, "olivia", {"action": "unfreeze", "ids": [ids[0], ids[1], ids[4]]})
    assert [memory(world, memory_id)["held"] for memory_id in (ids[0], ids[1], ids[4])] == [False, True, False]
    assert olivia.post(f"jobs/{job['id']}/undo/").status == 202
    run_jobs()
    assert [memory(world, memory_id)["held"] for memory_id in (ids[0], ids[1], ids[4])] == [False, True, True]
    assert "Case 17" in signed_in(world.olivia).get(f"/memories/{ids[4]}/").content.decode()


@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("charlie", 404)])
def test_who_may_not_freeze_undoes_no_unfreeze(world: World, ids: list[str], who: str, status: int) -> None:
    job = job_of(world, "olivia", {"action": "unfreeze", "ids": ids[4:]})
    assert world.client(who).post(f"jobs/{job['id']}/undo/").status == status
    assert memory(world, ids[4])["held"] is False


def test_a_page_undoes_an_unfreeze(world: World, ids: list[str]) -> None:
    client = signed_in(world.olivia)
    form = {"action": "unfreeze", "id": ids[4], "confirmed": "yes", "next": f"/memories/{ids[4]}/"}
    assert client.post("/memories/bulk/", form).status_code == 303
    page = client.get(f"/memories/{ids[4]}/").content.decode()
    since = page.partition('name="since" value="')[2].partition('"')[0]
    undoing = {"action": "freeze", "id": ids[4], "confirmed": "yes", "since": unescape(since)}
    assert client.post("/memories/bulk/", undoing | {"since": "once"}).status_code == 422
    assert memory(world, ids[4])["held"] is False
    assert client.post("/memories/bulk/", undoing).status_code == 303
    assert memory(world, ids[4])["held"] is True
    assert "Case 17" in client.get(f"/memories/{ids[4]}/").content.decode()


def test_an_action_that_changes_nothing_is_not_undone(world: World, ids: list[str]) -> None:
    job = job_of(world, "alice", {"action": "tag", "ids": ids[:1], "args": {"tags": ["rota"]}})
    assert job["result"]["changed"] == 0
    assert undo(world, job)["result"]["changed"] == 0
    assert memory(world, ids[0])["tags"] == ["rota"]


def test_who_may_not_change_memories_changes_none(world: World, ids: list[str], superuser: Superuser) -> None:
    body = {"action": "delete", "filters": ALL}
    assert ask(world, "bob", body, dry=True).status == 403
    assert ask(world, "bob", body).status == 403
    stranger = ask(world, "charlie", body, dry=True)
    assert (stranger.status, stranger.json["count"], stranger.json["skipped"]) == (200, 0, [])
    other = ask(world, "charlie", {"action": "delete", "ids": ids}, dry=True).json
    assert (other["count"], {row["code"] for row in other["skipped"]}) == (0, {"not_found"})
    assert job_of(world, "charlie", body)["result"]["changed"] == 0
    assert superuser().execute("SELECT count(*) FROM vault_cube WHERE deleted_at IS NOT NULL").fetchone() == (0,)
    assert superuser().execute("SELECT count(*) FROM vault_actionitem").fetchone() == (0,)


def test_a_right_that_is_lost_before_the_job_runs_is_lost_for_the_job(world: World, ids: list[str]) -> None:
    reply = ask(world, "alice", {"action": "delete", "filters": ALL})
    olivia = world.client("olivia")
    assert olivia.patch(f"members/{world.alice.member.id}/", {"role": "viewer"}).status == 200
    run_jobs()
    job = world.client("alice").get(f"jobs/{reply.json['job']['id']}/").json
    assert (job["status"], job["error"]["code"]) == ("failed", "forbidden")
    assert olivia.get("memories/?tags=rota").json["count"] == 5


@each_case(
    ("body", "field"),
    [
        ({"action": "delete", "filters": {}}, "filters"),
        ({"action": "delete"}, "ids"),
        ({"action": "delete", "ids": ["%"], "filters": ALL}, "ids.0"),
        ({"action": "tag", "filters": ALL}, "tags"),
        ({"action": "move", "filters": ALL, "args": {"namespace": "team"}}, "namespace"),
        ({"action": "expire", "filters": ALL, "args": {"expires_at": "2001-01-01T00:00:00Z"}}, "expires_at"),
        ({"action": "tag", "filters": {"mood": "good"}, "args": {"tags": ["a"]}}, "filters.mood"),
        ({"action": "burn", "filters": ALL}, "action"),
        ({"action": "delete", "filters": ALL, "when": "now"}, "when"),
    ],
)
def test_what_cannot_be_asked_is_refused_at_once(
    world: World, body: dict[str, Any], field: str, superuser: Superuser
) -> None:
    reply = ask(world, "alice", body)
    assert (reply.status, reply.json["errors"][0]["field"]) == (400, field)
    assert superuser().execute("SELECT count(*) FROM governance_job").fetchone() == (0,)


def test_another_count_than_expected_is_a_conflict(world: World, ids: list[str]) -> None:
    assert ask(world, "alice", {"action": "delete", "filters": ALL, "expected_count": 5}).status == 409


def test_the_same_key_asks_for_one_job(world: World, ids: list[str], superuser: Superuser) -> None:
    body = {"action": "delete", "filters": ALL}
    first, second = (ask(world, "alice", body, idempotency_key="once") for _ in range(2))
    assert first.json == second.json
    assert superuser().execute("SELECT count(*) FROM governance_job").fetchone() == (1,)


def test_a_cancelled_job_keeps_the_parts_that_are_done(
    world: World, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vault.listing.actions.PART", 2)
    job = job_of(world, "alice", {"action": "tag", "filters": ALL, "args": {"tags": ["week"]}})
    assert (job["done"], job["result"]["changed"]) == (5, 4)
    waiting = ask(world, "alice", {"action": "delete", "filters": ALL}).json["job"]
    assert world.client("alice").post(f"jobs/{waiting['id']}/cancel/").status == 202
    run_jobs()
    assert world.client("alice").get("memories/?tags=rota").json["count"] == 5


def test_an_export_is_read_as_its_reader_may_read_now(world: World, ids: list[str], superuser: Superuser) -> None:
    job = job_of(world, "bob", {"action": "export", "filters": ALL})
    assert (job["result"]["changed"], job["undo_until"]) == (5, None)
    address = f"{ACTIONS}{job['id']}/file/"
    world.client("alice").delete(f"memories/{ids[0]}/")
    reply = world.client("bob").get(address)
    lines = [json.loads(line) for line in reply.body.decode().splitlines()]
    assert [line["id"] for line in lines] == ids[1:]
    assert lines[0]["content"] == "Shift 1."
    entry = (
        superuser()
        .execute("SELECT object_ids::text[] FROM governance_auditentry WHERE verb = 'memory.exported'")
        .fetchall()
    )
    assert entry == [(ids[1:],)]
    assert world.client("alice").get(address).status == 403
    assert world.client("charlie").get(address).status == 404


@pytest.mark.parametrize(
    ("ended", "rule"),
    [
        ("UPDATE governance_apikey SET revoked_at = now()", "revoked"),
        ("UPDATE governance_member SET removed_at = now()", "revoked"),
        (
            "UPDATE governance_member m SET role_id = r.id FROM governance_role r"
            " WHERE r.tenant_id = m.tenant_id AND r.name = 'auditor'",
            "role:auditor",
        ),
    ],
)
def test_a_download_ends_with_the_key_the_membership_and_the_role(
    world: World, ids: list[str], monkeypatch: pytest.MonkeyPatch, superuser: Superuser, ended: str, rule: str
) -> None:
    job = job_of(world, "bob", {"action": "export", "filters": ALL})
    monkeypatch.setattr("vault.listing.actions.PART", 2)
    actor, database = world.bob.key_actor(), superuser()
    reply = lines_response(export_lines(actor=actor, job_id=UUID(job["id"])), actor=actor, path="/file/")
    received: list[bytes] = []

    async def download() -> None:
        async for part in cast(AsyncIterator[bytes], reply.streaming_content):
            received.append(part)
            database.execute(ended)

    with pytest.raises(Forbidden):
        async_to_sync(download)()
    assert [json.loads(line)["id"] for line in b"".join(received).splitlines()] == ids[:2]
    denied = "SELECT detail->>'rule' FROM governance_auditentry WHERE outcome = 'denied'"
    assert database.execute(denied).fetchall() == [(rule,)]
    read = "SELECT count(*) FROM governance_auditentry WHERE verb = 'memory.exported'"
    assert database.execute(read).fetchone() == (1,)


def test_an_unfinished_export_has_no_file(world: World, ids: list[str]) -> None:
    job = ask(world, "bob", {"action": "export", "filters": ALL}).json["job"]
    assert world.client("bob").get(f"{ACTIONS}{job['id']}/file/").status == 409


def test_the_page_counts_all_that_match_and_leads_to_the_job(world: World, ids: list[str]) -> None:
    client = signed_in(world.alice)
    form = {"action": "expire", "all": "yes", "query": "/memories/?tags=rota", "next": "/memories/?tags=rota"}
    page = unescape(client.post("/memories/bulk/", form).content.decode())
    assert "<b>4</b><span>will be changed</span>" in page
    assert "<b>1</b><span>stay: a hold covers them</span>" in page
    assert "Set expiry 4" in page
    refused = client.post("/memories/bulk/", {**form, "confirmed": "yes", "expires_at": "2001-01-01T00:00"})
    assert refused.status_code == 422
    done = client.post("/memories/bulk/", {**form, "confirmed": "yes", "expires_at": "2099-01-01T00:00"})
    assert done["Location"].startswith("/jobs/")
    run_jobs()
    page = unescape(client.get(done["Location"]).content.decode())
    assert "4 memories, 1 left out" in page
    assert "Undo" in page
    assert memory(world, ids[0])["expires_at"] == NEXT_YEAR
    client.post(f"{done['Location']}undo/")
    run_jobs()
    assert memory(world, ids[0])["expires_at"] is None


def test_a_search_is_not_all_that_match(world: World, ids: list[str]) -> None:
    form = {"action": "delete", "all": "yes", "query": "/memories/?q=shift"}
    assert signed_in(world.alice).post("/memories/bulk/", form).status_code == 422


def test_the_page_exports_what_was_selected(world: World, ids: list[str]) -> None:
    client = signed_in(world.bob)
    form = {"action": "export", "id": ids[:2], "next": "/memories/"}
    assert "<b>2</b><span>will be exported</span>" in unescape(client.post("/memories/bulk/", form).content.decode())
    done = client.post("/memories/bulk/", {**form, "confirmed": "yes"})
    run_jobs()
    page = unescape(client.get(done["Location"]).content.decode())
    assert "/file/" in page
