"""The reference agent: the commands of its README against a running product and a scripted model."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from examples.agent import MOST_STEPS, Tool, file_tools
from tests.harness.product import RunningServer, installation
from tests.harness.servers import ROOT, Servers
from tests.harness.snippets import run_snippets

README = ROOT / "examples" / "README.md"
ANSWER = "The last ferry to Cacilhas leaves at 01:40 and costs 1.50 euros."
SENTENCE = "Be at the pier before 01:40."


def call(name: str, /, **arguments: str) -> dict[str, Any]:
    """A message of a model that calls one tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": name, "type": "function", "function": function}],
    }


def answer(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


async def answer_of(tool: Tool, **arguments: str) -> str:
    return await tool.run(**arguments)


class ScriptedModel:
    """Answers requests with the messages of a script, in order, and keeps what was asked."""

    def __init__(self, *script: dict[str, Any]) -> None:
        self._script = iter(script)
        self.asked: list[dict[str, Any]] = []

    def __call__(self, request: Request) -> Response:
        self.asked.append(request.get_json())
        choice = {"index": 0, "message": next(self._script), "finish_reason": "stop"}
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [choice]}
        return Response(json.dumps(body), mimetype="application/json")

    def text(self, request: int, role: str) -> str:
        """The messages of a role in the n-th request, as one text."""
        return "\n".join(
            message["content"] or "" for message in self.asked[request]["messages"] if message["role"] == role
        )


@pytest.fixture
def server(servers: Servers) -> Iterator[RunningServer]:
    """An installation of its own: the agents recall all that its owner may read."""
    with installation(servers.cluster) as started:
        started.start()
        yield started


@pytest.mark.full
def test_two_agents_share_a_pool_and_keep_their_tool_calls(
    server: RunningServer, httpserver: HTTPServer, tmp_path: Path
) -> None:
    model = ScriptedModel(
        call("list_files"),
        call("read_file", name="prices.txt"),
        call("read_file", name="timetable.txt"),
        call("read_file", name="tickets.txt"),
        answer(ANSWER),
        call("search_notes", query="When does the last ferry leave?"),
        answer(SENTENCE),
    )
    httpserver.expect_request("/v1/chat/completions").respond_with_handler(model)
    done = run_snippets(README, server, tmp_path, **{"http://127.0.0.1:11434/v1": httpserver.url_for("/v1")})
    httpserver.check_assertions()
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert {ANSWER, SENTENCE} <= set(done.stdout.splitlines())

    assert [tool["function"]["name"] for tool in model.asked[0]["tools"]] == ["list_files", "read_file", "search_notes"]
    assert "timetable.txt" in model.text(1, "tool")
    assert "There is no file prices.txt." in model.text(2, "tool")
    assert "Last ferry 01:40" in model.text(3, "tool")
    notes = model.text(5, "user")
    assert ANSWER in notes
    assert re.search(r"Earlier call: read_file\(name=prices\.txt\) failed", notes)
    assert ANSWER in model.text(6, "tool")
    assert not any(ANSWER in model.text(number, "system") for number in range(7))

    headers = {"Authorization": f"Bearer {server.first_run['api_key']}"}
    with httpx.Client(base_url=f"{server.base_url}/api/v1", headers=headers) as api:
        traces = api.post("/memories/tool-calls/search/", json={"top_k": 50}).json()["results"]
        outcomes = [(trace["memory"]["title"], trace["memory"]["metadata"]["outcome"]) for trace in traces]
        assert sorted(outcomes) == [
            ("list_files", "succeeded"),
            ("read_file", "failed"),
            ("read_file", "succeeded"),
            ("read_file", "succeeded"),
        ]


@pytest.mark.full
def test_task_without_an_answer_is_an_error_and_leaves_no_note(
    running_server: RunningServer, httpserver: HTTPServer, tmp_path: Path
) -> None:
    model = ScriptedModel(*[call("list_files")] * MOST_STEPS)
    httpserver.expect_request("/v1/chat/completions").respond_with_handler(model)
    done = run_snippets(README, running_server, tmp_path, **{"http://127.0.0.1:11434/v1": httpserver.url_for("/v1")})
    assert (done.returncode, f"reader: There is no answer after {MOST_STEPS} steps." in done.stderr) == (1, True)
    headers = {"Authorization": f"Bearer {running_server.first_run['api_key']}"}
    with httpx.Client(base_url=f"{running_server.base_url}/api/v1", headers=headers) as api:
        assert api.get("/memories/", params={"namespace": "/sessions/ferry"}).json()["results"] == []


@pytest.mark.parametrize("name", ["../agent.py", "/etc/passwd", "missing.txt", "."])
def test_file_outside_the_folder_is_not_read(name: str) -> None:
    with pytest.raises(ValueError, match="There is no file"):
        asyncio.run(answer_of(file_tools(ROOT / "examples" / "files")["read_file"], name=name))
