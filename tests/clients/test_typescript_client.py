"""The TypeScript client: generated from the schema as it is now, compiled, and run against a product."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.harness.product import RunningServer, installation
from tests.harness.servers import ROOT, Servers, clean_environ

CLIENT = ROOT / "clients/typescript"
SNIPPETS = re.findall(r"```ts\n(.*?)```", (CLIENT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
COMPILER = ["--strict", "--target", "es2022", "--module", "nodenext", "--types", "node"]

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        not (CLIENT / "node_modules").is_dir() or shutil.which("node") is None,
        reason="*** THE PACKAGES OF THE TYPESCRIPT CLIENT ARE NOT INSTALLED: IT IS NOT TRIED (make node-packages) ***",
    ),
]


def done(*command: str, folder: Path, environ: dict[str, str] | None = None) -> str:
    """The output of a command that succeeds."""
    ran = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=240)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has the client, built from the schema of this checkout, among its packages."""
    project = tmp_path_factory.mktemp("typescript")
    built = project / "node_modules/memos-client"
    shutil.copytree(CLIENT, built, ignore=shutil.ignore_patterns("node_modules", "dist", "schema.*"))
    for package in (CLIENT / "node_modules").iterdir():
        (project / "node_modules" / package.name).symlink_to(package)
    environ = {**clean_environ(), "DJANGO_SETTINGS_MODULE": "memos_web.settings.test"}
    schema = ("spectacular", "--format", "openapi-json", "--file", str(built / "schema.json"))
    done(sys.executable, "manage.py", *schema, folder=ROOT, environ=environ)
    (built / "node_modules").symlink_to(CLIENT / "node_modules")
    done("npm", "run", "build", folder=built)
    (project / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    return project


@pytest.fixture(scope="module")
def server(servers: Servers) -> Iterator[RunningServer]:
    """An installation for the snippets only: memories of other tests would change what they print."""
    with installation(servers.cluster) as started:
        started.start()
        yield started


def run(project: Path, source: str, environ: dict[str, str]) -> str:
    """Compile a program and run it; its output."""
    (project / "program.ts").write_text(source, encoding="utf-8")
    done("node_modules/.bin/tsc", *COMPILER, "program.ts", folder=project)
    return done("node", "program.js", folder=project, environ={**clean_environ(), **environ})


def test_snippets_of_the_readme_compile_and_run_in_their_order(project: Path, server: RunningServer) -> None:
    environ = {"MEMOS_URL": server.base_url, "MEMOS_API_KEY": server.first_run["api_key"]}
    search, change, namespaces = (run(project, snippet, environ) for snippet in SNIPPETS)
    assert "Anna moved to Lisbon in March." in search
    assert change == "2 Anna moved to Porto in May.\n412 version_conflict\n"
    assert "/users/" in namespaces


def test_memories_are_read_page_by_page(project: Path, server: RunningServer) -> None:
    environ = {"MEMOS_URL": server.base_url, "MEMOS_API_KEY": server.first_run["api_key"]}
    source = """
        import { createMemos, type Memory } from "memos-client";
        const memos = createMemos();
        const added = [];
        for (const content of ["Page 1.", "Page 2.", "Page 3."]) {
          added.push(...(await memos.add({ content, tags: ["p"] })).results);
        }
        const found: Memory[] = [];
        for await (const memory of memos.memories({ tags: ["p"], page_size: 2 })) found.push(memory);
        console.log(found.map((memory) => memory.content).join(" "), added.length);
        console.log((await memos.context("page")).tokens > 0);
    """
    assert run(project, source, environ) == "Page 3. Page 2. Page 1. 3\ntrue\n"


def test_body_that_the_schema_does_not_know_is_not_compiled(project: Path) -> None:
    source = SNIPPETS[0].replace("top_k: 3", 'top_k: "3"')
    with pytest.raises(AssertionError, match=r"not assignable to type 'number'"):
        run(project, source, {})


def test_busy_server_is_asked_again_with_the_same_key(project: Path, httpserver: HTTPServer) -> None:
    keys: list[str] = []

    def handler(request: Request) -> Response:
        keys.append(request.headers["Idempotency-Key"])
        body: dict[str, object] = {"code": "busy", "detail": "Not now."} if len(keys) < 3 else {"results": []}
        return Response(json.dumps(body), 503 if len(keys) < 3 else 200, {"Retry-After": "0.01"}, "application/json")

    httpserver.expect_request("/api/v1/memories/search/").respond_with_handler(handler)
    source = """
        import { createMemos } from "memos-client";
        console.log((await createMemos().search("tea")).length);
    """
    assert run(project, source, {"MEMOS_URL": httpserver.url_for(""), "MEMOS_API_KEY": "mos_test"}) == "0\n"
    assert (len(keys), len(set(keys))) == (3, 1)
