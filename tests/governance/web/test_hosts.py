"""The configuration that the page of integrations offers: each is of the form that its program reads."""

import json
import shlex
import tomllib

from governance.web.hosts import list_hosts

BASE = "https://memos.example/below"


def test_each_configuration_has_its_form_and_the_address() -> None:
    hosts = {host.code: host for host in list_hosts(BASE)}
    for host in hosts.values():
        assert BASE in host.text
    for code, name in (("claude-desktop", "mcpServers"), ("cursor", "mcpServers"), ("vscode", "servers")):
        assert list(json.loads(hosts[code].text)[name]) == ["memos"]
    assert json.loads(hosts["vscode"].text)["servers"]["memos"]["type"] == "http"
    codex = tomllib.loads(hosts["codex"].text)["mcp_servers"]["memos"]
    assert codex == {"url": f"{BASE}/mcp/", "http_headers": {"Authorization": "Bearer YOUR_KEY"}}
    for code in ("claude-code", "gemini", "rest"):
        assert "Authorization: Bearer YOUR_KEY" in shlex.split(hosts[code].text)
    for code in ("mem0", "python"):
        compile(hosts[code].text, code, "exec")
