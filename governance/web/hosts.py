"""Configuration for the programs that connect to this installation, as their users paste it."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

KEY = "YOUR_KEY"


@dataclass(frozen=True)
class Host:
    """A program that connects. place: where its configuration goes; text: the configuration."""

    code: str
    name: str | Promise
    place: str | Promise
    text: str


def list_hosts(base: str) -> list[Host]:
    """Return the hosts of MCP, then the clients in code. base: the address of this installation, without a slash."""
    mcp, bearer = f"{base}/mcp/", f"Bearer {KEY}"
    in_terminal = _("In a terminal")
    server = f'"url": "{mcp}",\n      "headers": {{"Authorization": "{bearer}"}}'
    gemini = f'gemini mcp add --scope user --transport http --header "Authorization: {bearer}" memos {mcp}'
    return [
        Host(
            "claude-code",
            "Claude Code",
            in_terminal,
            f'claude mcp add --transport http memos {mcp} --header "Authorization: {bearer}"',
        ),
        Host(
            "claude-desktop",
            "Claude Desktop",
            'claude_desktop_config.json, after pip install "./clients/python[mcp]"',
            _servers("mcpServers", f'"command": "memos-mcp",\n      {_environment(base)}'),
        ),
        Host("cursor", "Cursor", ".cursor/mcp.json", _servers("mcpServers", server)),
        Host(
            "vscode", "Visual Studio Code", ".vscode/mcp.json", _servers("servers", f'"type": "http",\n      {server}')
        ),
        Host(
            "codex",
            "Codex",
            "~/.codex/config.toml",
            f'[mcp_servers.memos]\nurl = "{mcp}"\nhttp_headers = {{ "Authorization" = "{bearer}" }}',
        ),
        Host("gemini", "Gemini CLI", in_terminal, gemini),
        Host(
            "mem0",
            _("mem0 client"),
            _("Programs that use mem0's Python client work without changes, except for the address."),
            f'from mem0 import MemoryClient\nclient = MemoryClient(api_key="{KEY}", host="{base}/mem0")',
        ),
        Host(
            "python",
            _("Python client"),
            "pip install ./clients/python",
            f'from memos_client import Memos\nmemos = Memos(url="{base}", api_key="{KEY}")',
        ),
        Host("rest", "REST", in_terminal, f'curl -H "Authorization: {bearer}" "{base}/api/v1/memories/"'),
    ]


def _servers(name: str, server: str) -> str:
    return f'{{\n  "{name}": {{\n    "memos": {{\n      {server}\n    }}\n  }}\n}}'


def _environment(base: str) -> str:
    return f'"env": {{"MEMOS_URL": "{base}", "MEMOS_API_KEY": "{KEY}"}}'
