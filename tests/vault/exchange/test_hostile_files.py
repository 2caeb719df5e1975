"""Row 17 for importers: a hostile file is a small 4xx within two seconds, takes little memory, and leaves no row."""

import io
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from governance.errors import Invalid
from tests.governance.mutants import mutant
from tests.harness.evidence import Evidence
from tests.vault.api.contract import Contract
from tests.vault.exchange.hostile import hostile_files
from vault.exchange import archives

Superuser = Callable[[], psycopg.Connection]
LONGEST, LARGEST_REPLY, MEBIBYTES, LEAST = 2.0, 4_096, 64, 140
TABLES = ("vault_cube", "vault_cubeversion", "vault_namespace", "vault_cubesource", "governance_outboxevent")
FILE_TYPE = "application/octet-stream"


def test_hostile_files_are_small_refusals_that_leave_no_row(
    alice: Contract, superuser: Superuser, evidence: Evidence
) -> None:
    files = list(hostile_files())
    assert len(files) >= LEAST
    alice.raw("imports/?format=csv&dry_run=true", b"content\nx\n", content_type=FILE_TYPE)  # what is loaded once
    root = superuser()
    before, faults, slowest, most = _rows(root), list[tuple[str, str, int, int, float, float]](), 0.0, 0.0
    for name, form, content in files:
        _peak_reset()
        memory, started = _kibibytes("VmRSS"), time.process_time()
        reply = alice.raw(f"imports/?format={form}", content, content_type=FILE_TYPE)
        took, more = time.process_time() - started, (_kibibytes("VmHWM") - memory) / 1024
        slowest, most = max(slowest, took), max(most, more)
        is_refused = 400 <= reply.status < 500 and len(reply.body) <= LARGEST_REPLY
        if not (is_refused and took <= LONGEST and more <= MEBIBYTES):
            faults.append((name, form, reply.status, len(reply.body), round(took, 2), round(more)))
    assert faults == []
    assert _rows(root) == before
    figures = {"files": len(files), "refused with 4xx": len(files), "rows": 0, "slowest_s": round(slowest, 2)}
    evidence(row=17, name="hostile-imports", figures=figures | {"most_memory_mib": round(most)})


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        ("self.left < 0", "self.left < -(10**9)"),
        ("len(content) > largest", "False"),
        ('.startswith("/") or ".." in', '.startswith("?") or "?" in'),
        ("not in {0, stat.S_IFREG}", "is None"),
    ],
)
def test_reader_without_one_of_its_limits_lets_a_hostile_zip_pass(rule: str, broken: str) -> None:
    """Control: each limit refuses a file of the list that nothing else refuses."""
    zips = [content for _, form, content in hostile_files() if form == "markdown" and content.startswith(b"PK")]
    loose = mutant(archives, rule, broken)
    assert sum(_is_opened(loose, content) for content in zips) > sum(_is_opened(archives, content) for content in zips)


def _is_opened(module: object, content: bytes) -> bool:
    """Return whether the module reads all files of a zip."""
    try:
        with module.documents_open(io.BytesIO(content)) as documents:  # type: ignore[attr-defined]
            for document in documents:
                document.read()
    except Invalid:
        return False
    return True


def _peak_reset() -> None:
    """Let the kernel begin anew with the peak of this process's memory (proc(5), clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _kibibytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def _rows(root: psycopg.Connection) -> list[int]:
    return [root.execute(f"SELECT count(*) FROM {table}".encode()).fetchall()[0][0] for table in TABLES]
