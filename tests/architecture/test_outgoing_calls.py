"""Every outgoing call goes through `governance.transport`: the modules that know a network library are these."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("governance", "vault", "memos_web")
LIBRARIES = frozenset(
    {
        "aiohttp", "boto3", "botocore", "ftplib", "http.client", "httpcore2", "httpx", "httpx2", "openai", "requests",
        "smtplib", "socket", "ssl", "storages", "urllib.request", "urllib3", "xmlrpc",
    }
)  # fmt: skip
ALLOWED = {
    "governance/transport.py": "the transport itself",
    "governance/outbound.py": "looks names up for it, and opens the connections of syslog, bounded in time",
    "governance/requests_adapter.py": "the session of sign-in servers, webhooks and syncs, sent by the transport",
    "governance/accounts/allauth_adapters.py": "hands that session to the library of sign-in servers",
    "governance/accounts/oidc.py": "catches the errors of that session",
    "governance/audit/reading/transports.py": "syslog, over connections of `governance.outbound`",
    "vault/exchange/sync/client.py": "calls by that session",
    "vault/providers/openai_endpoint.py": "the client of models, with the transport",
    "vault/providers/openai_llm.py": "calls by that client",
    "vault/providers/engines.py": "calls the engine's own calls, by the transport",
    "vault/providers/openai_embedder.py": "calls by that client",
    "vault/providers/blobs_s3.py": "signs requests by botocore, and sends them by the transport",
    "memos_web/management/checks.py": "asks the language model for `doctor`, by the transport",
    "memos_web/management/proxy_check.py": "asks the installation's own address for `doctor`, as its operator says",
    "memos_web/inside.py": "calls the application in this process, over no network",
    # Between the processes of one installation, over its own sockets.
    "memos_web/embedded/folders.py": "no call",
    "memos_web/embedded/health_check.py": "no call",
    "memos_web/embedded/launcher.py": "no call",
    "memos_web/embedded/messages.py": "no call",
    "memos_web/embedded/preparation.py": "no call",
    "memos_web/embedded/product_programs.py": "no call",
    "memos_web/embedded/redis.py": "no call",
    "memos_web/embedded/supervisor.py": "no call",
    "memos_web/embedded/web_process.py": "no call",
}
# Of the modules that use httpx2, openai or requests: each builds its client with the transport, or builds none.
CLIENTS = ("Client(", "AsyncClient(", "Session(", "OpenAI(", "S3Storage(", "HTTPTransport(", "ConnectionPool(")
BUILDERS = {
    "governance/transport.py": {"ConnectionPool("},
    "governance/requests_adapter.py": {"Session("},
    "governance/accounts/allauth_adapters.py": {"Session("},
    "vault/exchange/sync/client.py": {"Session("},
    "vault/providers/openai_endpoint.py": {"OpenAI(", "Client("},
    "vault/providers/blobs_s3.py": {"S3Storage("},
    "vault/providers/engines.py": {"Client("},
    "memos_web/management/checks.py": {"Client("},
    "memos_web/inside.py": {"AsyncClient("},
}


def network_libraries(source: str) -> set[str]:
    """The network libraries that a module imports, however it writes it."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in LIBRARIES if any(part == name or part.startswith(f"{name}.") for part in found)}


def sources() -> dict[str, str]:
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if "migrations" not in path.parts
    }


def built_clients(source: str) -> set[str]:
    """The kinds of clients that a module makes, or makes a class of its own of."""
    tree = ast.parse(source)
    names = [ast.unparse(node.func).rpartition(".")[2] for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names += [
        ast.unparse(base).rpartition(".")[2]
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for base in node.bases
    ]
    return {kind for kind in CLIENTS for name in names if f"{name}(" in {kind, f"Outgoing{kind}"}}


def test_modules_that_know_a_network_library_are_listed() -> None:
    assert {name for name, source in sources().items() if network_libraries(source)} == set(ALLOWED)


def test_clients_are_built_where_they_get_the_transport() -> None:
    known = {name: source for name, source in sources().items() if network_libraries(source)}
    found = {name: built_clients(source) for name, source in known.items()}
    assert {name: kinds for name, kinds in found.items() if kinds} == BUILDERS


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import httpx", {"httpx"}),
        ("import urllib.request as calls", {"urllib.request"}),
        ("from urllib import request", {"urllib.request"}),
        ("from urllib.parse import urlsplit", set()),
        ("def call():\n    from boto3.session import Session", {"boto3"}),
        ("from requests.adapters import HTTPAdapter", {"requests"}),
        ("from governance.requests_adapter import post", set()),
    ],
)
def test_import_of_any_form_is_listed(source: str, found: set[str]) -> None:
    assert network_libraries(source) == found
