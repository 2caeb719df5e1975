"""Row 14: whatever is sent to any operation is answered as the API's document says, and never with 5xx."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command

from tests.harness.evidence import Evidence
from tests.harness.product import RunningServer, installation
from tests.harness.servers import Servers

pytestmark = pytest.mark.full
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
EXAMPLES_SMALL, EXAMPLES_FULL = 2, 30  # for each operation and kind of input
CASES = re.compile(r"(\d+) generated, (\d+) passed")
# Asked last: what they set may refuse every later request.
LIMITING = "^/api/v1/(quotas|policies)/"
TENANT, MAIL = "home", "victor@localhost"


@pytest.fixture(scope="module")
def server(servers: Servers) -> Iterator[RunningServer]:
    """An installation for this test alone: what is sent may change or remove anything in its tenant."""
    with installation(servers.cluster) as server:
        server.start()
        yield server


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    """Without the calls that take a file: tests/vault/store and tests/vault/exchange send hostile ones."""
    file = tmp_path / "schema.yaml"
    call_command("spectacular", file=str(file))
    document = yaml.safe_load(file.read_text())
    del document["paths"]["/api/v1/packs/verify/"], document["paths"]["/api/v1/imports/"]
    file.write_text(yaml.safe_dump(document))
    return file


def _viewers_key(server: RunningServer) -> str:
    made = server.manage("member_add", "--tenant", TENANT, "--email", MAIL, "--role", "viewer", "--json")
    assert made.returncode == 0, made.stderr
    told = server.manage("apikey_create", "--tenant", TENANT, "--member", MAIL, "--json")
    assert told.returncode == 0, told.stderr
    return str(json.loads(told.stdout)["api_key"])


def _run(server: RunningServer, schema: Path, key: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Schemathesis over the operations of `schema`, by the holder of `key`."""
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        *("run", str(schema), "--url", server.base_url, "--header", f"Authorization: Bearer {key}"),
        *("--checks", CHECKS, "--workers", "1", "--generation-deterministic"),
        *("--suppress-health-check", "all", "--continue-on-failure", "--warnings", "off", "--no-color"),
        *options,
    ]
    return subprocess.run(command, cwd=schema.parent, capture_output=True, text=True, timeout=3600, check=False)


@pytest.mark.parametrize("role", ["viewer", "owner"])
def test_bad_input_to_any_operation_is_answered_as_documented(
    server: RunningServer, schema: Path, role: str, full_size: bool, evidence: Evidence
) -> None:
    key = server.first_run["api_key"] if role == "owner" else _viewers_key(server)
    phases, count = ("examples,coverage,fuzzing,stateful", EXAMPLES_FULL) if full_size else ("fuzzing", EXAMPLES_SMALL)
    generated = 0
    # A viewer sets no limits, so that all may be asked at once.
    parts = [("--exclude-path-regex", LIMITING), ("--include-path-regex", LIMITING)] if role == "owner" else [()]
    for part in parts:
        done = _run(server, schema, key, "--phases", phases, "--max-examples", str(count), *part)
        assert done.returncode == 0, done.stdout[-8000:]
        found = CASES.search(done.stdout)
        assert found is not None, done.stdout[-2000:]
        assert found[1] == found[2]
        generated += int(found[1])
    assert generated > len(_operations(schema)) > 100
    figures = {"operations": len(_operations(schema)), "cases": generated, "failures": 0}
    evidence(row=14, name=f"bad-input-{role}", figures=figures)


def test_a_reply_that_is_not_as_documented_shows(server: RunningServer, schema: Path) -> None:
    """The mutant: a document that promises a field which no reply has."""
    document = yaml.safe_load(schema.read_text())
    reply = document["paths"]["/api/v1/me/"]["get"]["responses"]["200"]["content"]["application/json"]
    reply["schema"] = {"type": "object", "required": ["promised"]}
    schema.write_text(yaml.safe_dump(document))
    done = _run(server, schema, server.first_run["api_key"], "--include-path", "/api/v1/me/", "--phases", "fuzzing")
    assert done.returncode == 1, done.stdout[-2000:]
    assert "promised" in done.stdout


def _operations(schema: Path) -> list[tuple[str, str]]:
    paths = yaml.safe_load(schema.read_text())["paths"]
    return [(path, method) for path, methods in paths.items() for method in methods]
