"""The Python client: its retries and errors against a scripted server, everything else against a running product."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from memos_client import ConnectionFailed, Held, InvalidKey, Memos, MemosError, RateLimited, ServerError
from memos_client.item_rules import NewItem, labels_of_path, path_of_labels
from memos_client.items import Items

from tests.harness.product import RunningServer
from tests.harness.servers import ROOT, clean_environ

CLIENT = ROOT / "clients/python"
SNIPPETS = re.findall(r"```python\n(.*?)```", (CLIENT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
MEMORY: dict[str, Any] = {
    "id": "7",
    "version": 1,
    "content": "tea",
    "title": "",
    "namespace": {"path": "/home"},
    "persona": None,
    "state": "activated",
    "layer": "long_term",
    "semantic_type": "fact",
    "tags": [],
    "metadata": {},
    "speaker": "",
    "session_id": "",
    "event_time": None,
    "created_at": "2026-05-01T10:00:00Z",
    "updated_at": "2026-05-01T10:00:00Z",
    "expires_at": None,
}


class Scripted(httpx.BaseTransport):
    """Answers with each of `answers` in turn: a status with headers, or an error of the connection."""

    def __init__(self, *answers: tuple[int, dict[str, str], Any] | Exception) -> None:
        self.answers = iter(answers)
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        status, headers, body = answer
        return httpx.Response(status, headers=headers, json=body)


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each wait, in order. The client does not wait in tests."""
    found: list[float] = []
    monkeypatch.setattr("memos_client.blocking.time.sleep", found.append)
    return found


def client(script: Scripted, **options: Any) -> Memos:
    return Memos("http://memos.example", "mos_test", transport=script, **options)


def problem(status: int, code: str, **headers: str) -> tuple[int, dict[str, str], Any]:
    body = {"title": "No", "detail": "Not now.", "code": code, "request_id": "r1"}
    return status, headers, body


def test_a_busy_server_is_asked_again_with_the_same_key_after_the_time_it_names(waits: list[float]) -> None:
    script = Scripted(problem(503, "busy", **{"Retry-After": "2"}), (201, {}, {"results": [MEMORY]}))
    assert client(script).add("tea").content == "tea"
    first, second = script.requests
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]
    assert waits == [2.0]


def test_a_broken_connection_is_tried_until_the_retries_are_used_up(waits: list[float]) -> None:
    script = Scripted(*[httpx.ConnectError("refused")] * 3)
    with pytest.raises(ConnectionFailed, match="refused"):
        client(script, retries=2).get("7")
    assert (len(script.requests), waits) == (3, [0.25, 0.5])


def test_a_change_whose_connection_broke_is_not_sent_again() -> None:
    script = Scripted((200, {}, MEMORY), httpx.ReadError("reset"))
    memos = client(script)
    with pytest.raises(ConnectionFailed):
        memos.update(memos.get("7"), content="coffee")
    assert len(script.requests) == 2
    assert script.requests[1].headers["If-Match"] == '"1"'


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "unauthenticated", InvalidKey),
        (423, "held", Held),
        (429, "quota_exhausted", RateLimited),
        (500, "internal", ServerError),
    ],
)
def test_a_refusal_that_does_not_pass_is_raised_at_once(
    status: int, code: str, kind: type[Exception], waits: list[float]
) -> None:
    script = Scripted(problem(status, code))
    with pytest.raises(kind, match=code):
        client(script).get("7")
    assert waits == []


def test_an_answer_that_is_no_json_is_an_error_with_its_status() -> None:
    class Gateway(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            return httpx.Response(502, text="<html>bad gateway</html>")

    with pytest.raises(ServerError, match="502 unknown: Bad Gateway"):
        Memos("http://memos.example", "mos_test", transport=Gateway()).me()


def test_a_client_without_address_or_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMOS_URL", raising=False)
    with pytest.raises(MemosError, match="MEMOS_URL"):
        Memos()


def test_pages_are_read_one_after_another() -> None:
    pages = [
        {"results": [MEMORY], "next": "http://memos.example/api/v1/memories/?cursor=2"},
        {"results": [], "next": None},
    ]
    script = Scripted(*[(200, {}, page) for page in pages])
    assert [memory.id for memory in client(script).memories(tags="x", page_size=1)] == ["7"]
    assert [request.url.query for request in script.requests] == [b"page_size=1&tags=x", b"cursor=2"]


def test_the_context_of_the_calls_is_sent() -> None:
    script = Scripted((200, {}, {}))
    client(script, purpose="care", task="t1").me()
    headers = script.requests[0].headers
    assert (headers["X-Memory-Purpose"], headers["X-Memory-Task"]) == ("care", "t1")
    assert "X-Memory-Session" not in headers


def test_the_modules_that_block_are_made_from_the_others() -> None:
    namespace: dict[str, Any] = {"__name__": "make_blocking", "__file__": str(CLIENT / "make_blocking.py")}
    exec((CLIENT / "make_blocking.py").read_text(encoding="utf-8"), namespace)
    source = CLIENT / "src/memos_client"
    for name, made in namespace["MADE"].items():
        text = namespace["blocking"]((source / f"{name}.py").read_text(encoding="utf-8"), name)
        assert text == (source / f"{made}.py").read_text(encoding="utf-8"), made


def test_change_to_none_is_sent_and_what_was_not_named_is_not() -> None:
    script = Scripted((200, {}, MEMORY), (200, {}, MEMORY))
    memos = client(script)
    memos.update(memos.get("7"), overwrite=True, expires_at=None)
    request = script.requests[1]
    assert (request.headers["If-Match"], json.loads(request.content)) == ("*", {"expires_at": None})


def test_items_of_a_store_are_written_replaced_and_deleted_by_their_keys() -> None:
    """No framework is needed: this is what the adapters for LangGraph and others stand on."""
    stored = {**MEMORY, "namespace": {"path": "/s/my+20team"}, "metadata": {"store_key": "k", "store_value": {"a": 1}}}
    page = {"results": [stored], "next": None}
    script = Scripted((200, {}, page), (200, {}, page), (204, {}, None), (201, {}, {"results": [stored]}))
    items = Items(client(script), "/s")
    (found,) = items.get([(("my team",), "k"), (("my team",), "K")]).values()
    assert (found.namespace, found.key, found.value) == (("my team",), "k", {"a": 1})
    items.put([NewItem(("my team",), "k", None), NewItem(("my team",), "new", {"text": "Tea."}, "Tea.", ttl=0.5)])
    deleted, added = script.requests[2:]
    assert (deleted.method, deleted.url.path) == ("DELETE", "/api/v1/memories/7/")
    assert json.loads(added.content) == {
        "content": "Tea.",
        "namespace": "/s/my+20team",
        "metadata": {
            "value.text": "Tea.",
            "store_key": "new",
            "store_value": {"text": "Tea."},
            "store_ttl_minutes": 0.5,
        },
        "ttl_seconds": 30,
        "allow_duplicates": True,
    }


@pytest.mark.parametrize("label", ["my team", "a/b", "a+20b", "..", "安娜", "😀", "%41", "\u2028"])
def test_label_of_a_namespace_comes_back_from_its_path(label: str) -> None:
    path = path_of_labels("/s", [label, "x"])
    assert path.count("/") == 3
    assert labels_of_path("/s", path) == (label, "x")


@pytest.mark.long
def test_one_command_builds_a_wheel_with_types_and_the_bridge(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "uv", "build", "--quiet", "--wheel", "--out-dir", str(tmp_path), str(CLIENT)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("memos_client-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"memos_client/py.typed", "memos_client/mcp_stdio.py", "memos_client/blocking.py"} <= set(names)
    assert not any("django" in name.lower() for name in names)


@pytest.mark.long
def test_folder_of_the_client_installs_by_pip_as_its_readme_says(tmp_path: Path) -> None:
    assert "\npip install ./clients/python\n" in (CLIENT / "README.md").read_text(encoding="utf-8")
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path)]
    subprocess.run([*command, "./clients/python"], check=True, capture_output=True, timeout=120, cwd=ROOT)
    program = "import memos_client; print(memos_client.__file__)"
    environ = {**clean_environ(), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environ, check=True, capture_output=True, text=True)
    assert done.stdout.startswith(str(tmp_path))


@pytest.fixture
def environ(running_server: RunningServer) -> dict[str, str]:
    own = {
        "MEMOS_URL": running_server.base_url,
        "MEMOS_API_KEY": running_server.first_run["api_key"],
        "PYTHONPATH": str(CLIENT / "src"),
    }
    return {**clean_environ(), **own}


@pytest.mark.long
def test_every_snippet_of_the_readme_runs(environ: dict[str, str]) -> None:
    assert len(SNIPPETS) >= 7
    for snippet in SNIPPETS:
        done = subprocess.run(
            [sys.executable, "-c", snippet], env=environ, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, (snippet, done.stderr)
        answers = done.stdout.count("From your memories:\n“The heron nests on the north island.”")
        assert answers == (2 if "memos.ask(" in snippet else 0), done.stdout


@pytest.mark.long
def test_a_program_that_speaks_mcp_on_standard_input_reaches_the_server(environ: dict[str, str]) -> None:
    import asyncio

    from mcp import Client, StdioServerParameters

    async def act() -> tuple[set[str], str, list[float]]:
        program = StdioServerParameters(command=sys.executable, args=["-m", "memos_client.mcp_stdio"], env=environ)
        steps: list[float] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            steps.append(progress)

        async with Client(program) as agent:
            tools = {tool.name for tool in (await agent.list_tools()).tools}
            added = await agent.call_tool("add_memory", {"content": "The spare tyre is in the shed."})
            assert added.structured_content is not None, added
            identity = added.structured_content["memories"][0]["id"]
            said = [{"role": "user", "content": f"My crate number {number} is red."} for number in range(60)]
            await agent.call_tool("add_conversation", {"messages": said}, progress_callback=note)
            (resource,) = (await agent.read_resource(f"memos://memories/{identity}")).contents
            return tools, json.loads(resource.text)["memory"]["content"], steps  # type: ignore[union-attr]

    tools, content, steps = asyncio.run(act())
    assert {"add_memory", "search_memories"} <= tools
    assert content == "The spare tyre is in the shed."
    assert steps == [50, 60]


def test_the_program_says_what_is_missing() -> None:
    environ = {**clean_environ(), "PYTHONPATH": str(CLIENT / "src")}
    environ.pop("MEMOS_URL", None)
    done = subprocess.run(
        [sys.executable, "-m", "memos_client.mcp_stdio"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stderr) == (2, "memos-mcp: set MEMOS_URL and MEMOS_API_KEY\n")
    assert os.environ.get("MEMOS_URL") is None
