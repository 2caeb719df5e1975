"""The MCP Inspector's command line, unchanged, over both transports of a running product."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.product import RunningServer

INSPECTOR = Path(__file__).parent / "inspector" / "node_modules" / ".bin" / "mcp-inspector"
CLIENT = Path(__file__).parents[2] / "clients" / "python" / "src"

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        not INSPECTOR.exists() or shutil.which("node") is None,
        reason="*** THE MCP INSPECTOR IS NOT INSTALLED: IT IS NOT TRIED (make node-packages) ***",
    ),
]


def run_inspector(server: RunningServer, transport: str, *asked: str) -> dict[str, Any]:
    """The answer that the Inspector prints."""
    key = server.first_run["api_key"]
    if transport == "http":
        to = [f"{server.base_url}/mcp/", "--transport", "http", "--header", f"Authorization: Bearer {key}"]
    else:
        settings = {"MEMOS_URL": server.base_url, "MEMOS_API_KEY": key, "PYTHONPATH": str(CLIENT)}
        to = [part for name, value in settings.items() for part in ("-e", f"{name}={value}")]
        to += [sys.executable, "-m", "memos_client.mcp_stdio"]
    command = [str(INSPECTOR), "--cli", *to, *asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_inspector_lists_tools_and_calls_them(running_server: RunningServer, transport: str) -> None:
    tools = run_inspector(running_server, transport, "--method", "tools/list")["tools"]
    assert {"add_memory", "search_memories", "memory_context"} <= {tool["name"] for tool in tools}
    text = f"The inspector came over {transport}."
    call = ("--method", "tools/call", "--tool-name")
    run_inspector(running_server, transport, *call, "add_memory", "--tool-arg", f"content={text}")
    answer = run_inspector(
        running_server, transport, *call, "search_memories", "--tool-arg", f"query=inspector over {transport}"
    )
    assert text in json.dumps(answer)
    resources = run_inspector(running_server, transport, "--method", "resources/templates/list")
    assert "memos://memories/{memory_id}" in json.dumps(resources)
