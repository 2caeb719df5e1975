"""Export and import: what travels, what does not, and who may."""

import json
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from governance.database import acting
from governance.models import Job
from governance.vocabulary import Topic
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract, contract
from tests.vault.outbox import run_jobs
from vault.cubes.drafts import CubeDraft, SourceRef
from vault.cubes.services import cubes_add
from vault.exchange.items import FORMAT, ORIGIN
from vault.models import Cube, CubeGrant, CubeSource, CubeVersion
from vault.vocabulary import SourceKind

FILE_TYPE = "application/octet-stream"
MANY = 200
CSV = b"Note,Labels,date\nAna takes the train.,travel;rail,2026-05-01\n,empty,\nBo likes tea.,,yesterday\n"
MEM0 = json.dumps(
    {
        "results": [
            {
                "id": "a1",
                "memory": "Ana takes the train.",
                "categories": ["travel"],
                "created_at": "2026-05-01T08:00:00Z",
            },
            {"id": "a2", "memory": "", "user_id": "ana"},
            {"id": "a3", "memory": "Bo likes tea.", "event": "DELETE"},
        ]
    }
).encode()
MARKDOWN = b"Before any heading.\n\n# Travel\n\nAna takes the train.\n\n## Drinks\n\n```\n# no heading\n```\n"


def imported(client: Contract, content: bytes, **asked: str) -> dict[str, Any]:
    """The result of an import that ran to its end."""
    reply = client.raw(f"imports/?{urlencode(asked)}", content, content_type=FILE_TYPE)
    assert reply.status == 202, reply
    run_jobs()
    job = client.get(f"jobs/{reply.json['job']['id']}/").json
    assert job["status"] == "succeeded", job
    result: dict[str, Any] = job["result"]
    return result


def exported(client: Contract, body: dict[str, Any] | None = None, form: str = "jsonl") -> bytes:
    reply = client.post("exports/", body or {})
    assert reply.status == 202, reply
    run_jobs()
    return client.get(f"exports/{reply.json['job']['id']}/{form}/").body


def line(number: int, content: str = "Ana takes the train.") -> bytes:
    return json.dumps({"id": f"m{number}", "versions": [{"content": content}]}).encode()


def jsonl(*lines: bytes) -> bytes:
    return b"\n".join([json.dumps({"format": FORMAT}).encode(), *lines])


def stored(world: World, name: str) -> int:
    with acting(world.person(name).actor):
        return Cube.objects.count() + Job.objects.filter(kind=Topic.MEMORIES_IMPORT).count()


def test_export_imported_elsewhere_has_equal_contents_versions_and_lineage(
    world: World, alice: Contract, charlie: Contract
) -> None:
    actor = world.alice.actor
    drafts = [CubeDraft(content=f"Heron {number} nests by the mill.", tags=("bird",)) for number in range(MANY)]
    parents = cubes_add(actor=actor, drafts=drafts)
    first = parents[0].cube
    origin = (SourceRef(first.id, 1, SourceKind.EXTRACT),)
    cubes_add(actor=actor, drafts=[CubeDraft(content="Herons nest.", sources=origin)])
    assert alice.patch(f"memories/{first.id}/", {"content": "Heron 0 left."}, if_match='"1"').status == 200
    file = exported(alice)
    assert len(file.splitlines()) == MANY + 2
    counts = imported(charlie, file, format="jsonl")["counts"]
    assert (counts["stored"], counts["versions"], counts["origins_missing"]) == (MANY + 1, 1, 0)
    assert digests(exported(charlie)) == digests(file)
    with acting(world.charlie.actor):
        derived = CubeSource.objects.get()
        assert CubeVersion.objects.filter(cube_id=derived.source_id).count() == 2
        assert not CubeGrant.objects.exists()


def digests(file: bytes) -> list[tuple[tuple[str, ...], int]]:
    """For each memory of a file, the digests of its versions, and the number of its origins."""
    items = [json.loads(one) for one in file.splitlines()[1:]]
    return sorted(
        (
            tuple(sha256(version["content"].encode()).hexdigest() for version in item["versions"]),
            len(item["made_from"]),
        )
        for item in items
    )


@pytest.mark.parametrize(
    ("form", "content", "asked", "contents", "left_out"),
    [
        ("csv", CSV, {"columns": "content:Note,tags:Labels"}, ["Ana takes the train."], {"bad_time": 1, "empty": 1}),
        ("mem0", MEM0, {}, ["Ana takes the train."], {"deleted": 1, "empty": 1}),
        (
            "markdown",
            MARKDOWN,
            {},
            ["Ana takes the train.", "Before any heading.", "```\n# no heading\n```"],
            {},
        ),
    ],
)
def test_file_of_another_system_is_imported_with_a_report(
    form: str, content: bytes, asked: dict[str, str], contents: list[str], left_out: dict[str, int], alice: Contract
) -> None:
    result = imported(alice, content, format=form, namespace="/from/outside", **asked)
    assert (result["stored"], result["left_out"]) == (len(contents), left_out)
    assert sorted(alice.listed("namespace=/from/outside")) == contents
    assert imported(alice, content, format=form, namespace="/from/outside", **asked)["counts"]["present"] == len(
        contents
    )
    assert len(alice.listed()) == len(contents)


def test_memory_that_differs_from_its_file_is_a_conflict_until_an_update_is_asked_for(alice: Contract) -> None:
    imported(alice, jsonl(line(1)), format="jsonl")
    changed = jsonl(line(1, "Ana takes the bus."), line(2, "Bo likes tea."))
    reply = alice.raw("imports/?format=jsonl&dry_run=true", changed, content_type=FILE_TYPE)
    assert (reply.json["new"], reply.json["present"], reply.json["conflicts"]) == (1, 0, 1)
    assert alice.listed() == ["Ana takes the train."]
    assert imported(alice, changed, format="jsonl")["counts"]["conflicts"] == 1
    assert sorted(alice.listed()) == ["Ana takes the train.", "Bo likes tea."]
    assert imported(alice, changed, format="jsonl", on_conflict="update")["counts"]["updated"] == 1
    (memory,) = [one for one in alice.get("memories/").json["results"] if one["content"] == "Ana takes the bus."]
    assert (memory["version"], memory["metadata"][ORIGIN], memory["source"]) == (2, "m1", "import")


@pytest.mark.parametrize("who", ["bob", "charlie"])
def test_file_without_permission_is_refused_and_writes_nothing(who: str, world: World, alice: Contract) -> None:
    alice.add("Ana takes the train.")
    job = alice.post("exports/", {}).json["job"]["id"]
    run_jobs()
    other = contract(world, who)
    before = stored(world, who)
    assert other.get(f"exports/{job}/jsonl/").status == (404 if who == "charlie" else 403)
    if who == "bob":
        assert other.raw("imports/?format=jsonl", jsonl(line(1)), content_type=FILE_TYPE).status == 403
    assert stored(world, who) == before


def test_markdown_export_has_a_section_for_each_memory(alice: Contract) -> None:
    alice.add("Ana takes the train.", title="Travel")
    assert exported(alice, form="markdown") == b"## Travel\n\nAna takes the train.\n\n"


def test_page_checks_imports_and_exports_a_file(world: World, alice: Contract) -> None:
    browser = signed_in(world.alice)
    assert browser.get("/exchange/").status_code == 200
    tried = browser.post("/exchange/", {"format": "jsonl", "file": uploaded(jsonl(line(1))), "try": "yes"})
    assert "1 new, 0 here already" in tried.content.decode()
    assert alice.listed() == []
    assert browser.post("/exchange/", {"format": "jsonl"}).status_code == 422
    assert browser.post("/exchange/", {"format": "jsonl", "file": uploaded(jsonl(line(1)))}).status_code == 303
    assert browser.post("/exchange/export/", {"namespace": ""}).status_code == 303
    run_jobs()
    assert alice.listed() == ["Ana takes the train."]
    page = browser.get("/exchange/").content.decode()
    assert "1 memory stored" in page
    assert "/jsonl/" in page


def uploaded(content: bytes) -> Any:
    return SimpleUploadedFile("memories.jsonl", content)


def test_viewer_has_no_import_form_and_cannot_post_one(world: World) -> None:
    browser = signed_in(world.bob)
    page = browser.get("/exchange/")
    assert page.status_code == 200
    assert 'id="import"' not in page.content.decode()
    assert browser.post("/exchange/", {"format": "jsonl", "file": uploaded(jsonl(line(1)))}).status_code == 403
