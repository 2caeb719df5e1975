"""Tests that the data directory has no readable content: every file is searched for stored words."""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.harness.product import RunningServer, installation, wait_until
from tests.harness.servers import Servers
from tests.journeys.live import UNDONE, Live, number, superuser

pytestmark = pytest.mark.full
PREFIX = 6  # bytes
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")
SEALED = (
    "content",
    "changed content",
    "title",
    "metadata key",
    "metadata value",
    "speaker",
    "session",
    "task",
    "message id",
    "message",
    "tool call",
    "subject",
    "question",
    "conversation title",
    "job",
    "idempotent",
    "erased",
    "chinese",
    "search",
    "refused",
)
CLEAR = ("tag", "path")


@pytest.fixture(scope="module")
def server(servers: Servers) -> Iterator[RunningServer]:
    """An installation for these tests alone: its whole folder is searched."""
    with installation(servers.cluster) as server:
        server.start()
        yield server


@pytest.fixture(scope="module")
def canaries() -> dict[str, str]:
    """A word for each place in which content can be; no text holds one by chance."""
    made = {name: f"canary{uuid4().hex}" for name in (*SEALED, *CLEAR)}
    made["chinese"] = "".join(chr(0x4E00 + byte * 70) for byte in uuid4().bytes)
    return made


def fill(live: Live, words: dict[str, str]) -> None:
    """Store each word by a way of its own."""
    body = {
        "content": f"The {words['content']} nests by the mill.",
        "title": words["title"],
        "metadata": {words["metadata key"]: {"deep": [words["metadata value"]]}},
        "subject": words["subject"],
        "task_id": words["task"],
        "tags": [words["tag"]],
        "namespace": f"/{words['path']}",
    }
    memory = live.done("POST", "memories/", body)["results"][0]
    live.done("PATCH", f"memories/{memory['id']}/", {"content": words["changed content"]}, if_match='"1"')
    messages = [
        {"role": "user", "name": words["speaker"], "content": words["message"], "message_id": words["message id"]},
        {"role": "assistant", "content": "", "tool_calls": [{"name": words["tool call"]}]},
        {"role": "user", "content": f"我在{words['chinese']}领养了一只狗。"},
    ]
    live.done("POST", "memories/", {"messages": messages, "session_id": words["session"]})
    live.done("POST", "memories/", {"content": words["idempotent"]}, idempotency_key="key")
    live.done("POST", "memories/?async=true", {"content": words["job"]})
    erased = live.done("POST", "memories/", {"content": words["erased"]})["results"][0]
    live.done("DELETE", f"memories/{erased['id']}/?purge=true")
    live.done("POST", "memories/search/", {"query": f"Where is {words['search']} {words['changed content']}?"})
    live.done("GET", f"memories/?session_id={words['session']}&speaker={words['speaker']}")
    assert live.call("POST", "memories/", {"content": words["refused"], "speling": 1})[0] == 400
    conversation = live.done("POST", "conversations/", {"title": words["conversation title"]})
    turns = f"conversations/{conversation['id']}/turns/"
    live.done("POST", turns, {"content": f"Who is {words['question']} {words['changed content']}?"})
    status, _ = live.read("POST", turns, {"content": f"Where is {words['question']}?"}, accept="text/event-stream")
    assert status == 200


@pytest.fixture(scope="module")
def filled_server(server: RunningServer, canaries: dict[str, str]) -> RunningServer:
    """With every word stored, and every job that this asked for done."""
    fill(Live.of(server), canaries)
    wait_until(lambda: number(server, UNDONE) == 0, seconds=30, why=server.report)
    return server


def files_with_each(folder: Path, words: dict[str, str]) -> dict[str, list[str]]:
    """For each name the files below `folder` that hold its word in any encoding. Each file is read once."""
    needles = {name: _encode(word) for name, word in words.items()}
    found: dict[str, list[str]] = {name: [] for name in words}
    for path in folder.rglob("*"):
        content = _content(path)
        begun = {needle[:PREFIX] for encoded in needles.values() for needle in encoded}
        begun = {
            beginning for beginning in begun if beginning in content
        }  # most words begin alike: look for that first
        for name, encoded in needles.items():
            if any(needle[:PREFIX] in begun and needle in content for needle in encoded):
                found[name].append(str(path.relative_to(folder)))
    return found


def _content(path: Path) -> bytes:
    """Empty for a folder, a socket, and a file that its server has just removed."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:
        return b""


def _encode(word: str) -> set[bytes]:
    return {*(word.encode(encoding) for encoding in ENCODINGS), json.dumps(word).strip('"').encode()}


def test_no_file_holds_a_word_of_what_was_stored(filled_server: RunningServer, canaries: dict[str, str]) -> None:
    with superuser(filled_server) as connection:
        connection.execute("CHECKPOINT")
    running = files_with_each(filled_server.data_dir, canaries)
    assert filled_server.stop() == 0
    stopped = files_with_each(filled_server.data_dir, canaries)
    log = filled_server.log.read_text(encoding="utf-8")
    for name in SEALED:
        assert running[name] == stopped[name] == [], name
        assert canaries[name] not in log
    for name in CLEAR:  # labels and places, not content: and the proof that the search would find something
        assert any(file.startswith("pg/") for file in stopped[name]), name
    filled_server.start()


def test_no_file_holds_a_key(server: RunningServer) -> None:
    live = Live.of(server)
    link = server.first_run["sign_in_link"].rstrip("/").rpartition("/")[2]
    secrets = {"key": live.key, "secret of the key": live.key.rpartition("_")[2], "link": link}
    assert files_with_each(server.data_dir, secrets) == {name: ["first-run.json"] for name in secrets}


def test_what_was_stored_is_there_for_who_has_the_key(filled_server: RunningServer, canaries: dict[str, str]) -> None:
    live = Live.of(filled_server)
    dialogue = live.contents("state=generated&semantic_type=dialogue")
    contents = "\n".join([*live.contents("state=generated"), *dialogue])
    for name in ("changed content", "message", "chinese", "idempotent", "job", "question"):
        assert canaries[name] in contents, name
    assert canaries["erased"] not in contents


def test_the_master_key_is_in_one_file_for_its_owner_only(server: RunningServer) -> None:
    keys = server.data_dir / "keys"
    assert {path.stat().st_mode & 0o777 for path in keys.iterdir()} == {0o600}
    master = (keys / "master.key").read_text(encoding="ascii").strip()
    assert files_with_each(server.data_dir, {"master key": master}) == {"master key": ["keys/master.key"]}
