"""pipelines/ of the REST API: several operations run as one, all or none, with the rights of whoever runs them."""

import json
import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.http import QueryDict

from governance.tasks import schedules_start_task
from tests.factories import ApiReply, World
from tests.governance.tenants.test_bound_keys import create_bound_client
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import MISSING, Contract, fields_at_fault
from tests.vault.api.openapi import faults_of
from tests.vault.outbox import run_jobs
from vault.pipelines.examples import EXAMPLES, PACK
from vault.pipelines.rules import MOST_STEPS
from vault.web.pipeline_forms import StepForm, move_up, remove_step

Superuser = Callable[[], psycopg.Connection]
NOTES = {"namespace": "/team/notes"}
TEXTS = (
    "The heron nests by the river in spring. The heron eats fish from the river.",
    "The river floods in spring near the heron nests.",
    "Call ann@birds.example about the heron nests by the river.",
)
DIGEST: list[dict[str, Any]] = [
    {"op": "list", "filters": NOTES, "since_days": 7},
    {"op": "summarise", "ids": "$1.ids", "sentences": 2},
    {"op": "add", "content": "This week:\n$2.text", "title": "Digest", "namespace": "/team/digests"},
]
LISTED: dict[str, Any] = {"op": "list", "filters": NOTES}


def _fill(alice: Contract) -> list[str]:
    return [str(alice.add(text, **NOTES, tags=["birds"])["id"]) for text in TEXTS][::-1]


def _run(client: Contract, *steps: dict[str, Any], query: str = "", **headers: str) -> ApiReply:
    reply = client.post(f"pipelines/run/{query}", {"steps": list(steps)}, **headers)
    assert faults_of("POST", "/api/v1/pipelines/run/", reply) == []
    return reply


def _ids(client: Contract, namespace: str, **more: str) -> list[str]:
    query = "&".join(f"{name}={value}" for name, value in {"namespace": namespace, **more}.items())
    return [row["id"] for row in client.get(f"memories/?{query}").json["results"]]


def test_steps_run_as_one_once_and_are_audited_as_one(world: World, alice: Contract, olivia: Contract) -> None:
    ids = _fill(alice)
    rehearsed = _run(alice, *DIGEST, query="?dry_run=true").json
    assert (rehearsed["dry_run"], [step["count"] for step in rehearsed["steps"]]) == (True, [3, 2, 1])
    assert (rehearsed["steps"][2]["ids"], _ids(alice, "/team/digests")) == ([], [])
    ran = _run(alice, *DIGEST, idempotency_key="week-1")
    again = _run(alice, *DIGEST, idempotency_key="week-1")
    assert (ran.status, again.json, ran.json["steps"][0]["ids"]) == (200, ran.json, ids)
    (digest,) = _ids(alice, "/team/digests")
    assert ran.json["steps"][2]["ids"] == [digest]
    made = alice.get(f"memories/{digest}/").json
    assert made["content"] == "This week:\n" + ran.json["steps"][1]["text"]
    assert sorted(made["parents"]) == sorted(ran.json["steps"][1]["ids"])
    (entry,) = olivia.get("audit/?verb=pipeline.run").json["results"]
    assert set(entry["object_ids"]) == {*ids, digest}
    assert entry["detail"]["steps"] == "list, summarise, add"


def test_failing_third_step_leaves_nothing_changed(world: World, alice: Contract, olivia: Contract) -> None:
    ids = _fill(alice)
    assert olivia.post(f"memories/{ids[1]}/freeze/", {"reason": "Case 17"}).status == 200
    steps: list[dict[str, Any]] = [
        {"op": "tag", "ids": [ids[0]], "tags": ["old"]},
        {"op": "copy", "ids": [ids[0]], "namespace": "/team/c"},
    ]
    before = [alice.get(f"memories/{memory_id}/").json for memory_id in ids]
    failed = _run(alice, *steps, {"op": "archive", "ids": ids})
    assert (failed.status, failed.json["code"]) == (423, "held")
    assert failed.json["detail"].startswith(f"Step 3 (archive): memory {ids[1]}: ")
    after = [alice.get(f"memories/{memory_id}/").json for memory_id in ids]
    assert [row["version"] for row in after] == [row["version"] for row in before]
    assert {row["state"] for row in after} == {"generated"}
    assert (_ids(alice, "/team/c"), olivia.get("audit/?verb=pipeline.run").json["results"]) == ([], [])
    rehearsed = _run(alice, *steps, query="?dry_run=true").json["steps"]
    assert [(step["ids"], step["originals"]) for step in rehearsed] == [([ids[0]], []), ([], [ids[0]])]
    assert alice.get(f"memories/{ids[0]}/").json["tags"] == ["birds"]


def test_each_operation_does_what_its_own_service_does(world: World, alice: Contract) -> None:
    ids = _fill(alice)
    screened = _run(alice, LISTED, {"op": "screen", "ids": "$1.ids"}, {"op": "tag", "ids": "$2.ids", "tags": ["pii"]})
    assert screened.json["steps"][2]["ids"] == [ids[0]]
    assert _ids(alice, "/team/notes", tags="pii") == [ids[0]]
    found = _run(alice, {"op": "search", "query": "When does the river flood?", "filters": NOTES, "limit": 1})
    assert found.json["steps"][0]["ids"] == [ids[1]]
    copied = {"op": "copy", "ids": "$1.ids", "namespace": "/team/merged"}
    merged = _run(
        alice, LISTED, copied, {"op": "fuse", "ids": "$2.ids"}, {"op": "promote", "ids": "$3.ids", "layer": "mid_term"}
    )
    assert merged.status == 200, merged.json
    (fused,) = _ids(alice, "/team/merged")
    assert (merged.json["steps"][3]["ids"], alice.get(f"memories/{fused}/").json["layer"]) == ([fused], "mid_term")
    later: list[dict[str, Any]] = [{"op": "expire", "ids": "$1.ids", "in_days": 30}, {"op": "archive", "ids": "$1.ids"}]
    assert _run(alice, LISTED, *later).status == 200
    assert (_ids(alice, "/team/notes"), len(_ids(alice, "/team/notes", state="archived"))) == ([], 3)
    restored = _run(alice, {"op": "list", "filters": NOTES, "inactive": True}, {"op": "restore", "ids": "$1.ids"})
    assert sorted(restored.json["steps"][1]["ids"]) == sorted(ids) == sorted(_ids(alice, "/team/notes"))
    moved = _run(
        alice, LISTED, {"op": "move", "ids": "$1.ids", "namespace": "/team/moved"}, {"op": "delete", "ids": [fused]}
    )
    assert (moved.status, len(_ids(alice, "/team/moved")), _ids(alice, "/team/merged")) == (200, 3, [])
    alice.post("namespaces/", {"path": "/team/cache", "kind": "pipeline_cache"})
    for text in ("first", "second"):
        entry = {"op": "add", "content": text, "namespace": "/team/cache", "key": "k"}
        assert _run(alice, entry).status == 200
    assert len(_ids(alice, "/team/cache")) == 1
    nothing = _run(alice, LISTED, *DIGEST[1:], {"op": "fuse", "ids": "$1.ids"}).json["steps"]
    assert [step["count"] for step in nothing] == [0, 0, 0, 0]


@each_case(
    ("steps", "fields"),
    [
        ([], {"steps"}),
        ([{"op": "explode"}], {"steps.0"}),
        ([{"op": "list", "colour": "red"}], {"steps.0.colour"}),
        ([{"op": "list", "filters": {"colour": "red"}}], {"steps.0.filters.colour"}),
        ([{"op": "tag", "ids": "$1.ids", "tags": ["x"]}], {"steps.0.ids"}),
        ([LISTED, {"op": "archive", "ids": "$3.ids"}, {"op": "archive", "ids": "$1.ids"}], {"steps.1.ids"}),
        ([LISTED, {"op": "add", "content": "$1.text"}], {"steps.1.content"}),
        ([LISTED, {"op": "archive", "ids": "$1.ids"}, LISTED], {"steps.2.op"}),
        ([LISTED, {"op": "archive", "ids": ["the heron"]}], {"steps.1.ids.0"}),
        ([{"op": "add", "content": "a\x00b"}], {"steps.0.content"}),
        ([LISTED] * (MOST_STEPS + 1), {"steps"}),
    ],
)
def test_steps_that_cannot_run_are_refused_with_their_places(
    alice: Contract, steps: list[dict[str, Any]], fields: set[str]
) -> None:
    assert fields_at_fault(_run(alice, *steps)) == fields


def test_runs_and_stored_pipelines_stay_within_the_rights_of_the_runner(
    world: World, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    ids = _fill(alice)
    body = {"name": "Tidy", "steps": [LISTED, {"op": "archive", "ids": "$1.ids"}]}
    stored = {who: client.post("pipelines/", body).json for who, client in (("alice", alice), ("bob", bob))}
    assert _run(bob, LISTED).json["steps"][0]["ids"] == ids
    assert bob.post(f"pipelines/{stored['bob']['id']}/run/").status == 403
    assert _run(bob, {"op": "add", "content": "x", **NOTES}).status == 403
    assert _run(charlie, {"op": "archive", "ids": ids[:1]}).status == 404
    assert _run(charlie, LISTED).json["steps"][0]["ids"] == []
    bound = create_bound_client(world, world.alice, namespaces=("/team/other",))
    assert _run(bound, LISTED).json["steps"][0]["ids"] == []
    assert _run(bound, {"op": "archive", "ids": ids[:1]}).status in {403, 404}
    address = f"pipelines/{stored['alice']['id']}/"
    for client in (bob, charlie, bound):
        assert {client.get(address).status, client.post(f"{address}run/").status, client.delete(address).status} == {
            404
        }
    assert bound.post("pipelines/", body).status == 403
    assert _ids(alice, "/team/notes") == ids, "nobody else archived anything"
    assert [row["id"] for row in alice.get("pipelines/").json["results"]] == [stored["alice"]["id"]]
    renamed = alice.patch(address, {"name": "Archive a project"}).json
    assert renamed == {**stored["alice"], "name": "Archive a project"} == alice.get(address).json
    assert fields_at_fault(alice.patch(address, {"steps": [{"op": "explode"}]})) == {"steps.0"}
    assert alice.post(f"{address}run/").json["steps"][1]["ids"] == ids
    assert (alice.delete(address).status, alice.get(address).status) == (204, 404)


def test_schedule_runs_only_a_pipeline_of_its_owner_and_names_it(
    world: World, olivia: Contract, alice: Contract, charlie: Contract
) -> None:
    mine, others, foreign = (
        client.post("pipelines/", {"name": name, "steps": [LISTED]}).json["id"]
        for client, name in ((olivia, "Weekly otters"), (alice, "Tag"), (charlie, "Herons"))
    )
    schedule = {"kind": "pipeline.run", "cron": "0 3 * * 1"}
    for wrong in (others, foreign, str(MISSING)):
        refused = olivia.post("schedules/", {**schedule, "settings": {"pipeline": wrong}})
        assert fields_at_fault(refused) == {"settings.pipeline"}
    made = olivia.post("schedules/", {**schedule, "settings": {"pipeline": mine}}).json["id"]
    assert fields_at_fault(olivia.patch(f"schedules/{made}/", {"settings": {"pipeline": others}})) == {
        "settings.pipeline"
    }
    browser = signed_in(world.olivia)
    for page in ("/schedules/", "/jobs/"):
        assert "Weekly otters" in browser.get(page).content.decode()
    assert (
        f'<option value="{mine}">Weekly otters</option>'
        in browser.get("/jobs/schedules/new/?kind=pipeline.run").content.decode()
    )
    sent = {"rhythm": "hour", "timezone": "UTC", "enabled": "on", "settings-pipeline": others}
    assert browser.post("/jobs/schedules/new/?kind=pipeline.run", sent).status_code == 422
    assert olivia.delete(f"pipelines/{mine}/").status == 204
    assert olivia.patch(f"schedules/{made}/", {"enabled": False}).status == 200
    assert "of another member, or removed" in browser.get("/schedules/").content.decode()


def test_schedule_and_ended_import_run_a_pipeline_of_the_owner(
    olivia: Contract, alice: Contract, bob: Contract, superuser: Superuser
) -> None:
    ids = _fill(alice)
    steps = [LISTED, {"op": "tag", "ids": "$1.ids", "tags": ["seen"]}]
    mine = olivia.post("pipelines/", {"name": "Tag", "steps": steps}).json["id"]
    schedule = {"kind": "pipeline.run", "cron": "0 3 * * 1"}
    wrong = olivia.post("schedules/", {**schedule, "settings": {"pipeline": "x"}})
    assert fields_at_fault(wrong) == {"settings.pipeline"}
    assert bob.post("schedules/", {**schedule, "settings": {"pipeline": mine}}).status == 403
    gone = olivia.post("pipelines/", {"name": "Gone", "steps": steps}).json["id"]
    made, idle = (
        olivia.post("schedules/", {**schedule, "settings": {"pipeline": one, "on": event}}).json["id"]
        for one, event in ((mine, "import"), (gone, ""))
    )
    assert olivia.delete(f"pipelines/{gone}/").status == 204
    due = "UPDATE governance_schedule SET next_run_at = now() - interval '1 minute' WHERE id = %s"
    for one in (made, idle):
        superuser().execute(due, [one])
    schedules_start_task()
    run_jobs()
    rows = olivia.get("schedules/").json["results"]
    ended = {row["settings"]["pipeline"]: olivia.get(f"jobs/{row['last_job']}/").json["status"] for row in rows}
    assert ended == {mine: "succeeded", gone: "failed"}
    assert _ids(alice, "/team/notes", tags="seen") == ids
    file = b"content\nThe otter swims.\n"
    imported = alice.raw("imports/?format=csv&namespace=/team/notes", file, content_type="application/octet-stream")
    assert imported.status == 202, imported
    run_jobs()
    assert len(_ids(alice, "/team/notes", tags="seen")) == 4, "the import started the pipeline again"


def test_page_builds_a_pipeline_step_by_step_and_tries_runs_and_saves_it(world: World, alice: Contract) -> None:
    ids = _fill(alice)
    browser = signed_in(world.alice)
    assert "Weekly digest" in browser.get("/pipelines/").text
    assert "the memories of step 1" in browser.get("/pipelines/new/?example=archive").text
    form: dict[str, Any] = {"name": "Tidy", "op": ["list"], "step1-filters": "/team/notes", "action": "add"}
    added = browser.post("/pipelines/new/", {**form, "added": "archive"}).text
    assert '<input type="hidden" name="op" value="archive">' in added
    assert re.search(r'value="\$1.ids"[^>]* checked', added), "a new step takes the memories of the one before"
    form |= {"op": ["list", "archive"], "step2-ids": "$1.ids"}
    wrong = browser.post("/pipelines/new/", {**form, "step1-limit": "many", "action": "save"})
    assert (wrong.status_code, "many" in wrong.text) == (422, True)
    broken = browser.post("/pipelines/new/", {**form, "op": ["archive", "list"], "action": "save"})
    assert (broken.status_code, "Step 1, Takes" in broken.text) == (422, True)
    tried = browser.post("/pipelines/new/", {**form, "action": "dry"})
    assert (tried.status_code, tried.text.count("3 memories"), "Nothing was changed." in tried.text) == (200, 2, True)
    assert f'href="/memories/{ids[0]}/"' in tried.text
    saved = browser.post("/pipelines/new/", {**form, "action": "save"})
    assert "Pipeline saved" in browser.get(saved["Location"]).content.decode()
    assert saved.status_code == 303
    viewer = signed_in(world.bob).post("/pipelines/new/", {**form, "action": "run"})
    assert (viewer.status_code, "Step 2 (archive)" in viewer.text, len(_ids(alice, "/team/notes"))) == (403, True, 3)
    assert signed_in(world.bob).get(saved["Location"]).status_code == 404
    assert browser.post(saved["Location"], {**form, "action": "run"}).status_code == 200
    assert _ids(alice, "/team/notes") == []
    assert browser.post(f"{saved['Location']}remove/")["Location"] == "/pipelines/"
    assert "Tidy" not in browser.get("/pipelines/").text


def test_page_takes_and_gives_the_steps_as_json(world: World, alice: Contract) -> None:
    _fill(alice)
    browser = signed_in(world.alice)
    form = {"name": "Tidy", "steps": json.dumps([LISTED, {"op": "archive", "ids": "$1.ids"}])}
    saved = browser.post("/pipelines/new/", {**form, "action": "save"})
    assert saved.status_code == 303
    assert "&quot;op&quot;: &quot;archive&quot;" in browser.get(f"{saved['Location']}?json").text
    wrong = browser.post(saved["Location"], {**form, "steps": '[{"op": "archive", "ids": "$2.ids"}]'})
    assert (wrong.status_code, "Step 1, Takes" in wrong.text) == (422, True)
    given = {"name": "Tidy", "op": ["list"], "step1-filters": "/team/notes", "action": "json"}
    assert "&quot;under&quot;: &quot;/team/notes&quot;" in browser.post("/pipelines/new/", given).text


@pytest.mark.parametrize("step", [step for steps in EXAMPLES.values() for step in steps])
def test_form_of_a_step_gives_the_step_back(step: dict[str, Any]) -> None:
    """The form is filled from a step and sent as it is."""
    packs = [(PACK, "A pack")]
    shown = StepForm(step["op"], 4, packs, step=step)
    sent = QueryDict(mutable=True)
    for bound in shown:
        value = bound.value()
        sent.setlist(bound.html_name, value if isinstance(value, list) else [] if value in (None, False) else [value])
    form = StepForm(step["op"], 4, packs, sent)
    assert form.is_valid(), form.errors
    assert form.step() == step | (
        {"ids": [step["ids"]] if isinstance(step["ids"], str) else step["ids"]} if "ids" in step else {}
    )


def test_references_follow_steps_that_are_moved_and_removed() -> None:
    steps: list[dict[str, Any]] = [
        {"op": "list"},
        {"op": "search", "query": "otters"},
        {"op": "summarise", "ids": ["$1.ids", "$2.ids"]},
        {"op": "add", "content": "$3.text"},
    ]
    assert move_up(steps, 2)[2]["ids"] == ["$2.ids", "$1.ids"]
    assert move_up(steps, 1) == steps
    left = remove_step(steps, 1)
    assert [step.get("ids", step.get("content")) for step in left] == [None, ["$1.ids"], "$2.text"]
