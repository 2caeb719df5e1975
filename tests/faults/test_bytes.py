"""Whoever takes the data directory finds no content in it: every file is searched for words that were stored."""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.harness.product import RunningServer, installation, wait_until
from tests.journeys.live import UNDONE, Live, number, superuser

pytestmark = pytest.mark.xdist_group("bytes")
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
def server() -> Iterator[RunningServer]:
    """An installation for these tests alone: its whole folder is searched."""
    with installation() as server:
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


def files_with(folder: Path, word: str) -> list[str]:
    """The files below `folder` that hold `word` in any encoding."""
    needles = [word.encode(encoding) for encoding in ENCODINGS] + [json.dumps(word).strip('"').encode()]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path.relative_to(folder)) for path in files if _holds(path, needles)]


def _holds(path: Path, needles: list[bytes]) -> bool:
    content = path.read_bytes()
    return any(needle in content for needle in needles)


def test_no_file_holds_a_word_of_what_was_stored(server: RunningServer, canaries: dict[str, str]) -> None:
    fill(Live.of(server), canaries)
    wait_until(lambda: number(server, UNDONE) == 0, seconds=30, why=server.report)
    with superuser(server) as connection:
        connection.execute("CHECKPOINT")
    running = {name: files_with(server.data_dir, word) for name, word in canaries.items()}
    assert server.stop() == 0
    stopped = {name: files_with(server.data_dir, word) for name, word in canaries.items()}
    log = server.log.read_text(encoding="utf-8")
    for name in SEALED:
        assert running[name] == stopped[name] == [], name
        assert canaries[name] not in log
    for name in CLEAR:  # labels and places, not content: and the proof that the search would find something
        assert any(file.startswith("pg/") for file in stopped[name]), name
    server.start()


def test_no_file_holds_a_key(server: RunningServer) -> None:
    live = Live.of(server)
    link = server.first_run["sign_in_link"].rstrip("/").rpartition("/")[2]
    for secret in (live.key, live.key.rpartition("_")[2], link):
        assert files_with(server.data_dir, secret) == ["first-run.json"]


def test_what_was_stored_is_still_there_for_who_has_the_key(server: RunningServer, canaries: dict[str, str]) -> None:
    contents = "\n".join(Live.of(server).contents("state=generated"))
    for name in ("changed content", "message", "chinese", "idempotent", "job", "question"):
        assert canaries[name] in contents, name
    assert canaries["erased"] not in contents


def test_a_stolen_copy_without_the_master_key_opens_nothing(server: RunningServer) -> None:
    """The keys that seal content lie apart from the database, and are themselves wrapped."""
    keys = server.data_dir / "keys"
    assert {path.stat().st_mode & 0o777 for path in keys.iterdir()} == {0o600}
    master = (keys / "master.key").read_bytes().strip()
    others = [path for path in server.data_dir.rglob("*") if path.is_file() and path.name != "master.key"]
    assert not any(master in path.read_bytes() for path in others)
