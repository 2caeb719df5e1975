"""A host of the protocol's TypeScript SDK, as most editors are, signs in by OAuth at a running product."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
import pytest

from memos_web.version import VERSION
from tests.address.test_public_address import form_of
from tests.harness.product import RunningServer

HERE = Path(__file__).parent
SDK = HERE / "inspector" / "node_modules" / "@modelcontextprotocol" / "sdk"
LINK = re.compile(r"http://\S+/sign-in/\S+/")

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        not SDK.exists() or shutil.which("node") is None,
        reason="*** THE MCP SDK FOR TYPESCRIPT IS NOT INSTALLED: IT IS NOT TRIED (make node-packages) ***",
    ),
]


def test_host_connects_by_oauth_and_works(running_server: RunningServer) -> None:
    command = ["node", str(HERE / "typescript_host.mjs"), str(SDK), f"{running_server.base_url}/mcp/"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as host:
        assert host.stdin is not None
        assert host.stdout is not None
        asked = host.stdout.readline()
        if not asked:
            pytest.fail(host.communicate()[1])
        said, errors = host.communicate(consent(running_server, json.loads(asked)["asks"]) + "\n", timeout=60)
    assert host.returncode == 0, errors
    done = json.loads(said)
    assert done["version"] == VERSION
    assert "search_memories" in done["tools"]
    assert "The lynx sleeps in the old mill." in [memory["content"] for memory in done["found"]["memories"]]
    assert done["wrong"]["isError"]
    assert "question" in done["wrong"]["content"][0]["text"]
    assert len(done["resources"]) > 2
    assert "old mill" in done["read"]["contents"][0]["text"]


def consent(server: RunningServer, address: str) -> str:
    """Sign in as the owner, allow what is asked, and return the code."""
    made = server.manage("sign_in_link", "--tenant", "home", "--email", "owner@localhost")
    link = LINK.findall(made.stdout + made.stderr)[0]
    with httpx2.Client(trust_env=False, timeout=30) as browser:
        browser.post(link, **form_of(browser.get(link)))
        asked = browser.get(address)
        page = browser.get(urljoin(address, asked.headers["location"]))
        token = re.findall(r'name="request" value="([^"]+)"', page.text)[0]
        fields = form_of(page, answer="yes", days="30", request=token)
        fields["data"]["scopes"] = ["memories:read", "memories:write"]
        sent = browser.post(urljoin(address, "/connect/"), **fields)
    assert sent.status_code == 303, sent.text
    return parse_qs(urlsplit(sent.headers["location"]).query)["code"][0]
