"""Export and import: what travels, what does not, and who may."""

import io
import json
import re
import zipfile
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from governance.database import acting
from governance.keys.signing_keys import key_id_of, signing_key
from governance.models import Job, Member
from governance.vocabulary import Topic
from tests.benchmarks.conftest import sample
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, contract, fields_at_fault
from tests.vault.layers.test_conversation_import import LONG, MID, SHORT
from tests.vault.outbox import run_jobs
from tests.vault.policies.policy_factories import create_policy
from tests.vault.store.hostile import ITEMS, PUBLIC, STATED, archive_of, valid_file
from vault.content.drafts import CubeDraft, SourceRef
from vault.cubes.services import cubes_add
from vault.exchange.items import FORMAT, ORIGIN
from vault.exchange.items import ORIGIN_FORMAT as FROM
from vault.models import Cube, CubeGrant, CubeSource, CubeVersion, Page, Stream
from vault.store.files import file_read, file_write
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
CUBE = {
    "nodes": [
        {"id": "n1", "memory": "Ana likes trains.", "metadata": {"key": "Travel", "tags": ["rail"], "type": "opinion"}},
        {"id": "n2", "memory": "Ana took a train on 1 May.", "metadata": {"created_at": "2026-05-01T08:00:00Z"}},
        {"id": "n3", "memory": "Bo likes tea.", "metadata": {"status": "deleted"}},
    ],
    "edges": [
        {"source": "n2", "target": "n1", "type": "MERGED_TO"},
        {"source": "n1", "target": "n2", "type": "PARENT"},
    ],
}
ROWS = [{"id": "g1", "memory": "Bo likes coffee.", "metadata": {"type": "fact"}}]


def archive(**files: bytes) -> bytes:
    """A zip of files, named by their content's role."""
    names = {
        "tree": "cube/textual_memory.json",
        "rows": "cube/general.json",
        "settings": "cube/config.json",
        "cache": "cube/activation_memory.pickle",
        "chats": "conversations.json",
        "page": "chat.html",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for role, content in files.items():
            made.writestr(names[role], content)
    return buffer.getvalue()


def cube_folder() -> bytes:
    settings = b'{"api_key": "sk-planted"}'
    return archive(
        tree=json.dumps(CUBE).encode(), rows=json.dumps(ROWS).encode(), settings=settings, cache=b"\x80\x04."
    )


def chat_export() -> bytes:
    def node(parent: str | None, role: str, *parts: object) -> dict[str, Any]:
        message = {
            "id": f"{role}-{parts}",
            "author": {"role": role},
            "create_time": 1777622400,
            "content": {"parts": parts},
        }
        return {"parent": parent, "message": message}

    mapping = {
        "root": {"parent": None, "message": None},
        "rules": node("root", "system", ""),
        "draft": node("rules", "user", "Which buss?"),
        "asked": node("rules", "user", "Which bus goes to the mill?"),
        "answer": node("asked", "assistant", "Bus 7."),
        "picture": node("answer", "user", {"asset_pointer": "file-service://a"}),
    }
    chat = {"title": "The mill", "conversation_id": "c1", "current_node": "picture", "mapping": mapping}
    return archive(chats=json.dumps([chat]).encode(), page=b"<html>")


def import_file(client: Contract, content: bytes, **asked: str) -> dict[str, Any]:
    """The result of an import that ran to its end."""
    reply = client.raw(f"imports/?{urlencode(asked)}", content, content_type=FILE_TYPE)
    assert reply.status == 202, reply
    run_jobs()
    job = client.get(f"jobs/{reply.json['job']['id']}/").json
    assert job["status"] == "succeeded", job
    result: dict[str, Any] = job["result"]
    return result


def export_file(client: Contract, body: dict[str, Any] | None = None, form: str = "jsonl") -> bytes:
    reply = client.post("exports/", body or {})
    assert reply.status == 202, reply
    run_jobs()
    return client.get(f"exports/{reply.json['job']['id']}/{form}/").body


def line(number: int, content: str = "Ana takes the train.") -> bytes:
    return json.dumps({"id": f"m{number}", "versions": [{"content": content}]}).encode()


def jsonl(*lines: bytes) -> bytes:
    return b"\n".join([json.dumps({"format": FORMAT}).encode(), *lines])


def count_rows(world: World, name: str) -> int:
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
    file = export_file(alice)
    assert len(file.splitlines()) == MANY + 2
    counts = import_file(charlie, file, format="jsonl")["counts"]
    assert (counts["stored"], counts["versions"], counts["origins_missing"]) == (MANY + 1, 1, 0)
    assert digests(export_file(charlie)) == digests(file)
    with acting(world.charlie.actor):
        derived = CubeSource.objects.get()
        assert CubeVersion.objects.filter(cube_id=derived.source_id).count() == 2
        assert not CubeGrant.objects.exists()


def digests(file: bytes) -> list[tuple[tuple[str, ...], int]]:
    """For each memory of a file, the digests of its versions, and the number of its origins."""
    items = [json.loads(line) for line in file.splitlines()[1:]]
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
        (
            "csv",
            CSV,
            {"columns": "content:Note,tags:Labels"},
            ["Ana takes the train.", "Bo likes tea."],
            {"bad_time": 1, "empty": 1},
        ),
        ("mem0", MEM0, {}, ["Ana takes the train."], {"deleted": 1, "empty": 1}),
        (
            "markdown",
            MARKDOWN,
            {},
            ["Ana takes the train.", "Before any heading.", "```\n# no heading\n```"],
            {},
        ),
        (
            "memos",
            cube_folder(),
            {},
            ["Ana likes trains.", "Ana took a train on 1 May.", "Bo likes coffee."],
            {"configuration": 1, "deleted": 1, "not_text": 1},
        ),
        (
            "chatgpt",
            chat_export(),
            {},
            ["Bus 7.", "Which bus goes to the mill?"],
            {"no_words": 1, "not_text": 1, "other_branch": 1, "other_role": 1},
        ),
    ],
)
def test_file_of_another_system_is_imported_with_a_report(
    form: str, content: bytes, asked: dict[str, str], contents: list[str], left_out: dict[str, int], alice: Contract
) -> None:
    result = import_file(alice, content, format=form, namespace="/from/outside", **asked)
    assert (result["stored"], result["left_out"]) == (len(contents), left_out)
    assert sorted(alice.list_contents("namespace=/from/outside")) == contents
    assert import_file(alice, content, format=form, namespace="/from/outside", **asked)["counts"]["present"] == len(
        contents
    )
    assert len(alice.list_contents()) == len(contents)


def test_nodes_of_a_cube_come_with_edges_and_lineage_and_without_secrets(world: World, alice: Contract) -> None:
    assert import_file(alice, cube_folder(), format="memos")["counts"]["origins_missing"] == 0
    found = {memory["content"]: memory for memory in alice.get("memories/").json["results"]}
    merged, origin = found["Ana likes trains."], found["Ana took a train on 1 May."]
    assert (merged["title"], merged["tags"], merged["semantic_type"]) == ("Travel", ["rail"], "preference")
    assert merged["metadata"]["memos_edges"] == [{"type": "PARENT", "target": "n2"}]
    with acting(world.alice.actor):
        link = CubeSource.objects.get()
        assert (str(link.cube_id), str(link.source_id)) == (merged["id"], origin["id"])
    assert "sk-planted" not in json.dumps(list(found.values()))


def memoryos_folder(**changed: Any) -> bytes:
    """A zip as somebody makes it of a data directory, with the assistant's file beside the user's."""
    files: dict[str, Any] = {
        "users/maya/short_term.json": SHORT,
        "users/maya/mid_term.json": MID,
        "users/maya/long_term_user.json": LONG,
        "assistants/a/long_term_assistant.json": {"assistant_knowledge": []},
        **changed,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for name, content in files.items():
            made.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return buffer.getvalue()


def test_memoryos_folder_becomes_pages_and_facts_once_with_a_report(world: World, alice: Contract) -> None:
    content = memoryos_folder()
    tried = alice.raw("imports/?format=memoryos&dry_run=true", content, content_type=FILE_TYPE).json
    assert (tried["new"], tried["present"], tried["left_out"]) == (6, 0, 4)
    assert {"place": "agent_response of page 3", "reason": "says_nothing"} in tried["places"]
    result = import_file(alice, content, format="memoryos")
    assert result["left_out"] == {"assistant_knowledge": 1, "says_nothing": 3}
    assert (result["counts"]["stored"] >= 6, result["counts"]["pages"]) == (True, 3)
    with acting(world.alice.actor):
        assert [page.at.day for page in Page.objects.order_by("position")] == [1, 2, 3]
        assert {cube.source for cube in Cube.objects.all()} == {"import"}
        stored_now = Cube.objects.count()
    again = import_file(alice, content, format="memoryos")
    assert (again["stored"], again["counts"]["pages"]) == (0, 0)
    with acting(world.alice.actor):
        assert Cube.objects.count() == stored_now
    tried = alice.raw("imports/?format=memoryos&dry_run=true", content, content_type=FILE_TYPE).json
    assert (tried["new"], tried["present"]) == (0, 6)
    assert "3 pages of conversations" in signed_in(world.alice).get("/exchange/").content.decode()


def test_memoryos_folder_of_several_parts_is_stored_whole(world: World, alice: Contract) -> None:
    pages = [
        {"user_input": f"I saw heron {at}.", "agent_response": "Noted well.", "timestamp": f"2026-05-02 10:{at:02}:00"}
        for at in range(60)
    ]
    lines = {"user_profiles": {}, "knowledge_base": [{"knowledge": f"Likes heron {at}."} for at in range(130)]}
    content = memoryos_folder(**{"users/maya/short_term.json": pages, "users/maya/long_term_user.json": lines})
    counts = import_file(alice, content, format="memoryos")["counts"]
    assert counts["pages"] == 61
    with acting(world.alice.actor):
        assert Cube.objects.filter(semantic_type="fact", has_sources=False).count() >= 130


def test_refused_messages_of_a_memoryos_folder_are_left_out_and_the_others_stored(
    alice: Contract, olivia: Contract
) -> None:
    create_policy(olivia, "pii", {"action": "refuse"})
    pages = [
        {"user_input": text, "agent_response": "Noted well.", "timestamp": f"2026-05-02 10:{at:02}:00"}
        for at, text in enumerate(["I saw a heron.", "Write to joe@corp.com.", "I saw an otter.", "I saw a kite."])
    ]
    lines = {"user_profiles": {}, "knowledge_base": [{"knowledge": "Likes herons."}, {"knowledge": "Is bo@corp.com."}]}
    changed = {"users/maya/short_term.json": pages, "users/maya/long_term_user.json": lines}
    result = import_file(alice, memoryos_folder(**changed), format="memoryos")
    refused = [part for part in result["places"] if part["reason"] == "pii_refused"]
    assert ([part["place"] for part in refused], result["left_out"]["pii_refused"]) == (["message 5", "fact 2"], 2)
    contents = alice.list_contents()
    assert not [text for text in contents if "corp.com" in text]
    assert {"I saw a heron.", "I saw an otter.", "I saw a kite.", "Likes herons."} <= set(contents)


@each_case(
    "changed",
    [
        {"users/bo/short_term.json": SHORT},
        {"users/maya/short_term.json": b"{"},
        {"users/maya/short_term.json": [1]},
        {"users/maya/mid_term.json": {"sessions": [1]}},
        {"users/maya/long_term_user.json": [1]},
    ],
)
def test_memoryos_folder_that_is_none_is_refused(changed: dict[str, Any], world: World, alice: Contract) -> None:
    reply = alice.raw("imports/?format=memoryos", memoryos_folder(**changed), content_type=FILE_TYPE)
    assert reply.status == 400
    assert count_rows(world, "alice") == 0


def test_locomo_file_becomes_pages_of_its_sessions_with_a_report(world: World, alice: Contract) -> None:
    conversation = sample("conv-26")
    conversation["conversation"]["session_1"][0]["img_url"] = ["https://pictures.example/1.jpg"]
    conversation["conversation"]["session_2"][1]["text"] = " "
    content = json.dumps([conversation]).encode()
    tried = alice.raw("imports/?format=locomo&dry_run=true", content, content_type=FILE_TYPE).json
    assert (tried["new"], tried["present"], tried["left_out"]) == (3, 0, 3)
    assert {"place": "picture of turn D1:1", "reason": "no_words"} in tried["places"]
    result = import_file(alice, content, format="locomo")
    assert result["left_out"] == {"beside": 1, "no_words": 1, "says_nothing": 1}
    assert result["counts"]["pages"] == 2
    assert import_file(alice, content, format="locomo")["stored"] == 0
    with acting(world.alice.actor):
        assert Stream.objects.count() == 2
    shown = signed_in(world.alice).get("/exchange/").content.decode()
    assert "2 pages of conversations" in shown
    assert "told about the conversation, not said in it" in shown


def test_pack_is_imported_with_its_signer_and_a_changed_one_is_refused(world: World, alice: Contract) -> None:
    content = valid_file()
    tried = alice.raw("imports/?format=mempack&dry_run=true", content, content_type=FILE_TYPE).json
    signer = {"pack": "acme/herons", "version": "1.0.0", "key_id": key_id_of(PUBLIC), "is_own": False}
    assert (tried["new"], tried["signer"]) == (2, signer)
    result = import_file(alice, content, format="mempack", namespace="/birds")
    assert (result["stored"], result["signer"]) == (2, signer)
    assert sorted(alice.list_contents("namespace=/birds")) == [
        "The heron fishes at dawn.",
        "The heron nests by the mill.",
    ]
    assert import_file(alice, content, format="mempack")["counts"]["present"] == 2
    assert "which this installation does not know" in signed_in(world.alice).get("/exchange/").content.decode()
    refused = alice.raw("imports/?format=mempack", changed_pack(), content_type=FILE_TYPE)
    assert refused.status == 400
    assert "another digest" in refused.body.decode()


def changed_pack() -> bytes:
    """The valid pack with other words in a memory, under the signature that it had."""
    with zipfile.ZipFile(io.BytesIO(valid_file())) as pack:
        return archive_of({name: pack.read(name).replace(b"mill", b"lake") for name in pack.namelist()})


def test_pack_of_this_installation_is_signed_by_its_own_key(alice: Contract) -> None:
    key = signing_key()
    content = file_write(STATED, ITEMS, public_key=key.public_key(), sign=key.sign)
    tried = alice.raw("imports/?format=mempack&dry_run=true", content, content_type=FILE_TYPE).json
    assert tried["signer"]["is_own"] is True


def test_export_as_a_pack_is_signed_by_the_tenant_and_holds_what_policies_let_out(
    world: World, olivia: Contract, charlie: Contract
) -> None:
    olivia.add("The heron nests by the mill.", namespace="/birds", tags=["bird"])
    olivia.add("Write to ana@example.org about herons.", namespace="/birds")
    olivia.add("Carla fears herons.", namespace="/birds", subject="carla")
    olivia.add("The nest is worth much.", namespace="/birds", sensitivity="confidential")
    olivia.add("Bo likes tea.", namespace="/drinks")
    keys = olivia.get("exports/key/").json
    content = export_file(olivia, {"filters": {"namespace": "/birds"}}, "mempack")
    pack = file_read(content)
    assert pack.manifest.public_key == keys["signing_key"] != charlie.get("exports/key/").json["signing_key"]
    assert pack.manifest.description == "Left out: sensitivity: 1, subject: 1."
    again = file_read(export_file(olivia, {"filters": {"namespace": "/birds"}}, "mempack"))
    assert again.items == pack.items
    result = import_file(charlie, content, format="mempack", namespace="/birds")
    assert (result["stored"], result["signer"]["is_own"]) == (2, False)
    assert sorted(charlie.list_contents()) == ["The heron nests by the mill.", "Write to [email] about herons."]
    assert import_file(olivia, content, format="mempack", namespace="/own")["signer"]["is_own"] is True


def test_pack_is_refused_without_the_right_to_sign_for_the_organisation(world: World, olivia: Contract) -> None:
    secret = olivia.add("The nest is worth much.", sensitivity="confidential", namespace="/birds")
    job = olivia.post("exports/", {"ids": [secret["id"]]}).json["job"]["id"]
    run_jobs()
    for who, status in (("alice", 403), ("bob", 403), ("charlie", 404)):
        assert contract(world, who).get(f"exports/{job}/mempack/").status == status, who
    own = contract(world, "alice").post("exports/", {}).json["job"]["id"]
    run_jobs()
    assert contract(world, "alice").get(f"exports/{own}/mempack/").status == 403
    for part in ("0", "2", "x", ""):
        assert fields_at_fault(olivia.get(f"exports/{job}/mempack/?part={part}")) == {"part"}, part
    refused = olivia.get(f"exports/{job}/mempack/")
    assert (refused.status, "sensitivity: 1" in refused.body.decode()) == (409, True)


def test_export_of_a_persona_or_a_question_holds_only_its_memories(alice: Contract) -> None:
    alice.add("Ana takes the train.", persona="alice")
    alice.add("Bo likes tea.")
    assert contents_of(export_file(alice, {"filters": {"persona": "alice"}})) == ["Ana takes the train."]
    assert contents_of(export_file(alice, {"query": "train", "filters": {"persona": "alice"}})) == [
        "Ana takes the train."
    ]
    assert contents_of(export_file(alice, {"query": "train"}))[0] == "Ana takes the train."
    assert fields_at_fault(alice.post("exports/", {"query": "train", "filters": {"namespace": "/none"}})) == {"query"}
    memory = alice.get("memories/").json["results"][0]["id"]
    assert fields_at_fault(alice.post("exports/", {"query": "train", "ids": [memory]})) == {"ids"}


def contents_of(file: bytes) -> list[str]:
    return [json.loads(line)["versions"][-1]["content"] for line in file.splitlines()[1:]]


def test_page_offers_a_pack_to_who_may_sign_and_exports_a_persona(world: World, olivia: Contract) -> None:
    olivia.add("The heron nests by the mill.", namespace="/birds")
    browser = signed_in(world.olivia)
    assert browser.post("/exchange/export/", {"namespace": "/birds", "query": "heron"}).status_code == 303
    assert browser.post("/exchange/export/", {"persona": "nobody", "query": "x"}).status_code == 422
    run_jobs()
    page = browser.get("/exchange/").content.decode()
    (path,) = re.findall(r"/exchange/[0-9a-f-]{36}/mempack/\?part=1", page)
    assert browser.get(path).status_code == 200
    assert "/mempack/" not in signed_in(world.alice).get("/exchange/").content.decode()


def sealed_export(sender: Contract, recipient: str, path: str) -> bytes:
    reply = sender.post("exports/", {"filters": {"namespace": path}})
    run_jobs()
    return sender.get(f"exports/{reply.json['job']['id']}/jsonl/?recipient={recipient}").body


def test_travel_preferences_go_from_phone_to_desktop_encrypted_after_time_offline(
    alice: Contract, charlie: Contract
) -> None:
    key = charlie.get("exports/key/").json["public_key"]
    assert key != alice.get("exports/key/").json["public_key"]
    phone = alice.add("Prefers the window seat.", namespace="/travel")
    alice.add("Is allergic to nuts.", namespace="/health")
    first = sealed_export(alice, key, "/travel")
    assert b"window" not in first
    assert import_file(charlie, first, format="jsonl")["stored"] == 1
    alice.add("Takes night trains.", namespace="/travel")  # the desktop is offline
    assert alice.patch(f"memories/{phone['id']}/", {"content": "Prefers the aisle seat."}, if_match='"1"').status == 200
    later = sealed_export(alice, key, "/travel")
    counts = import_file(charlie, later, format="jsonl", on_conflict="update")["counts"]
    assert (counts["stored"], counts["updated"]) == (1, 1)
    assert sorted(charlie.list_contents()) == ["Prefers the aisle seat.", "Takes night trains."]
    for broken in (later[:-1], later[:60], later[:-20] + b"\0" * 20, later[:8], later + later[48:]):
        assert charlie.raw("imports/?format=jsonl", broken, content_type=FILE_TYPE).status == 400
    refused = alice.raw("imports/?format=jsonl", later, content_type=FILE_TYPE)
    assert (refused.status, "another key" in refused.body.decode()) == (400, True)


def test_export_to_what_is_no_key_is_refused(world: World, alice: Contract) -> None:
    alice.add("Takes night trains.")
    job = alice.post("exports/", {}).json["job"]["id"]
    run_jobs()
    for key in ("", "00", "zz" * 32, "00" * 32):  # without a key too, never a readable file
        refused = alice.get(f"exports/{job}/jsonl/?recipient={key}")
        assert fields_at_fault(refused) == {"recipient"}, key
    browser = signed_in(world.alice)
    assert alice.get("exports/key/").json["public_key"] in browser.get("/exchange/").content.decode()
    assert browser.get(f"/exchange/{job}/jsonl/?recipient=").status_code in range(400, 500)
    assert browser.get(f"/exchange/{job}/jsonl/?recipient={'ab' * 32}").status_code == 200


def test_memory_that_differs_from_its_file_is_a_conflict_until_an_update_is_asked_for(alice: Contract) -> None:
    import_file(alice, jsonl(line(1)), format="jsonl")
    changed = jsonl(line(1, "Ana takes the bus."), line(2, "Bo likes tea."))
    reply = alice.raw("imports/?format=jsonl&dry_run=true", changed, content_type=FILE_TYPE)
    assert (reply.json["new"], reply.json["present"], reply.json["conflicts"]) == (1, 0, 1)
    assert alice.list_contents() == ["Ana takes the train."]
    assert import_file(alice, changed, format="jsonl")["counts"]["conflicts"] == 1
    assert sorted(alice.list_contents()) == ["Ana takes the train.", "Bo likes tea."]
    assert import_file(alice, changed, format="jsonl", on_conflict="update")["counts"]["updated"] == 1
    (memory,) = [
        memory for memory in alice.get("memories/").json["results"] if memory["content"] == "Ana takes the bus."
    ]
    assert (memory["version"], memory["metadata"][ORIGIN], memory["source"]) == (2, "m1", "import")


@pytest.mark.parametrize("who", ["bob", "charlie"])
def test_file_without_permission_is_refused_and_writes_nothing(who: str, world: World, alice: Contract) -> None:
    alice.add("Ana takes the train.")
    job = alice.post("exports/", {}).json["job"]["id"]
    run_jobs()
    other = contract(world, who)
    before = count_rows(world, who)
    assert other.get(f"exports/{job}/jsonl/").status == (404 if who == "charlie" else 403)
    if who == "bob":
        assert other.raw("imports/?format=jsonl", jsonl(line(1)), content_type=FILE_TYPE).status == 403
    assert count_rows(world, who) == before


def test_markdown_export_has_a_section_for_each_memory(alice: Contract) -> None:
    alice.add("Ana takes the train.", title="Travel")
    assert export_file(alice, form="markdown") == b"## Travel\n\nAna takes the train.\n\n"


def test_page_exports_a_file(world: World, alice: Contract) -> None:
    alice.add("Ana takes the train.")
    browser = signed_in(world.alice)
    assert browser.post("/exchange/export/", {"namespace": ""}).status_code == 303
    run_jobs()
    assert "/jsonl/" in browser.get("/exchange/").content.decode()


def make_upload(content: bytes) -> Any:
    return SimpleUploadedFile("memories.jsonl", content)


def test_viewer_has_no_import_form_and_cannot_post_one(world: World) -> None:
    browser = signed_in(world.bob)
    page = browser.get("/exchange/")
    assert page.status_code == 200
    assert 'id="import"' not in page.content.decode()
    assert browser.post("/exchange/", {"format": "jsonl", "file": make_upload(jsonl(line(1)))}).status_code == 403


def texts_by_id(client: Contract) -> dict[str, str]:
    return {memory["id"]: memory["content"] for memory in client.get("memories/").json["results"]}


def add_shared(client: Contract, number: int, form: str = "jsonl") -> str:
    memory = client.add("The mill opens at nine.", namespace="/team", metadata={ORIGIN: f"m{number}", FROM: form})
    return str(memory["id"])


@pytest.mark.parametrize("how", ["written", "imported", "own", "renamed"])
def test_import_changes_no_memory_that_another_import_of_the_member_did_not_store(
    how: str, world: World, alice: Contract, bob: Contract, olivia: Contract
) -> None:
    with acting(world.olivia.actor):
        Member.objects.filter(id=world.bob.member.id).update(role=world.alice.member.role)
    assert olivia.post("namespaces/", {"path": "/team", "kind": "shared"}).status == 201
    match how:
        case "written":
            add_shared(bob, 1)
        case "imported":
            import_file(bob, jsonl(line(1, "The mill opens at nine.")), format="jsonl", namespace="/team")
        case "own":
            add_shared(alice, 1)
        case "renamed":
            import_file(alice, jsonl(line(7, "The mill opens at nine.")), format="jsonl", namespace="/team")
            (memory,) = bob.get("memories/?namespace=/team").json["results"]
            given = {"metadata": {ORIGIN: "m1", FROM: "jsonl"}}
            assert bob.patch(f"memories/{memory['id']}/", given, if_match='"1"').status == 200
    before = texts_by_id(bob)
    asked = {"format": "jsonl", "on_conflict": "update"}
    private = jsonl(line(1, "Ana sees a doctor."))
    check = alice.raw(f"imports/?{urlencode(asked)}&dry_run=true", private, content_type=FILE_TYPE)
    assert (check.json["new"], check.json["conflicts"]) == (1, 0)
    counts = import_file(alice, private, **asked)["counts"]
    assert (counts["stored"], counts["updated"]) == (1, 0)
    assert texts_by_id(bob) == before
    assert sorted(texts_by_id(alice).values()) == ["Ana sees a doctor.", "The mill opens at nine."]


def test_import_into_a_namespace_meets_what_imports_stored_there_and_below(
    world: World, alice: Contract, olivia: Contract
) -> None:
    for path in ("/team", "/team/mill", "/other"):
        assert olivia.post("namespaces/", {"path": path, "kind": "shared"}).status == 201
    asked = {"format": "jsonl", "on_conflict": "update"}
    import_file(alice, jsonl(line(1)), namespace="/team/mill", **asked)
    assert import_file(alice, jsonl(line(1, "Ana walks.")), namespace="/other", **asked)["counts"]["stored"] == 1
    assert import_file(alice, jsonl(line(1, "Ana rides.")), namespace="/team", **asked)["counts"]["updated"] == 1
    assert sorted(texts_by_id(alice).values()) == ["Ana rides.", "Ana walks."]
    counts = import_file(alice, memos_of_other_form(), namespace="/team", format="mem0", on_conflict="update")["counts"]
    assert (counts["stored"], counts["updated"]) == (1, 0)


def memos_of_other_form() -> bytes:
    """A file of another system whose memory has the same id."""
    return json.dumps([{"id": "m1", "memory": "Bo likes tea."}]).encode()


def test_refused_memories_of_a_file_are_left_out_with_place_and_reason(alice: Contract, olivia: Contract) -> None:
    create_policy(olivia, "pii", {"action": "refuse"})
    create_policy(olivia, "retention", {"max_seconds": 86_400}, name="two")
    late = {"id": "m3", "expires_at": "2090-01-01T00:00:00Z", "versions": [{"content": "Bo likes tea."}]}
    file = jsonl(line(1), line(2, "Write to joe@corp.com."), json.dumps(late).encode(), line(4, "Cy swims."))
    result = import_file(alice, file, format="jsonl")
    assert sorted(alice.list_contents()) == ["Ana takes the train.", "Cy swims."]
    assert (result["stored"], result["left_out"]) == (2, {"expires_at": 1, "pii_refused": 1})
    assert sorted((part["place"], part["reason"]) for part in result["places"]) == [
        ("memory 2", "pii_refused"),
        ("memory 3", "expires_at"),
    ]
    changed = jsonl(line(1, "Ana is at ana@corp.com."), line(4, "Cy runs."))
    result = import_file(alice, changed, format="jsonl", on_conflict="update")
    assert (result["counts"]["updated"], result["left_out"]) == (1, {"pii_refused": 1})
    assert sorted(alice.list_contents()) == ["Ana takes the train.", "Cy runs."]


def test_repeated_import_of_ids_that_are_redacted_changes_nothing(alice: Contract, olivia: Contract) -> None:
    create_policy(olivia, "pii", {"action": "redact"})
    ids = (
        "joe@corp.com",
        "ana@corp.com",
        "[email]",
        "+1 212 555 0187",
        *(f"{number}@corp.com" for number in range(30)),
    )
    lines = [json.dumps({"id": name, "versions": [{"content": f"Note {n}."}]}).encode() for n, name in enumerate(ids)]
    for stored, present in ((len(ids), 0), (0, len(ids))):
        counts = import_file(alice, jsonl(*lines), format="jsonl", on_conflict="update")["counts"]
        assert (counts["stored"], counts["present"], counts["updated"]) == (stored, present, 0)
    memories = alice.get("memories/?page_size=100").json["results"]
    assert len({memory["metadata"][ORIGIN] for memory in memories}) == len(memories)
    assert not any("corp" in memory["metadata"][ORIGIN] for memory in memories)


def test_own_export_is_here_already_and_another_member_gets_a_copy(olivia: Contract, charlie: Contract) -> None:
    texts = ("The heron nests by the mill.", "The kingfisher dives.")
    drafts = [{"content": text, "namespace": "/birds"} for text in texts]
    kept, edited = (olivia.post("memories/", draft).json["results"][0] for draft in drafts)
    content = export_file(olivia, {"ids": [kept["id"], edited["id"]]})
    checked = olivia.raw("imports/?dry_run=true", content, content_type=FILE_TYPE).json
    assert (checked["new"], checked["present"], checked["conflicts"]) == (0, 2, 0)
    changed = content.replace(b"The kingfisher dives.", b"The kingfisher sings.")
    counts = import_file(olivia, changed, on_conflict="update")["counts"]
    assert (counts["stored"], counts["present"], counts["updated"]) == (0, 1, 1)
    memory = olivia.get(f"memories/{edited['id']}/").json
    assert (memory["content"], memory["metadata"]) == ("The kingfisher sings.", {})
    assert import_file(charlie, content)["counts"]["stored"] == 2, "charlie cannot read those: nothing of them is told"
    assert olivia.get(f"memories/{edited['id']}/").json["content"] == "The kingfisher sings."


def test_memory_of_an_own_export_that_may_not_be_changed_is_left_out_and_the_others_are_updated(
    world: World, alice: Contract, olivia: Contract
) -> None:
    texts = ("The heron nests by the mill.", "The kingfisher dives.")
    drafts = [{"content": text, "namespace": "/birds"} for text in texts]
    closed, free = (olivia.post("memories/", draft).json["results"][0] for draft in drafts)
    content = export_file(alice, {"ids": [closed["id"], free["id"]]})
    denied = {"principal": {"kind": "member", "id": str(world.alice.member.id)}, "action": "write", "effect": "deny"}
    assert olivia.post("grants/", denied | {"object": {"type": "memory", "id": closed["id"]}}).status == 201
    changed = content.replace(b"nests", b"sings").replace(b"dives", b"sings")
    result = import_file(alice, changed, on_conflict="update")
    assert (result["counts"]["updated"], result["left_out"]) == (1, {"forbidden": 1})
    assert olivia.get(f"memories/{closed['id']}/").json["content"] == texts[0]
