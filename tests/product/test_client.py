"""MemOS's published client, unchanged, against a running product: only its address and its key are ours."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.product import RunningServer
from tests.harness.servers import ROOT, clean_environ

PACKAGES = ROOT / "build" / "memos-client"
PROGRAM = Path(__file__).parent / "client_program.py"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not (PACKAGES / "memos").is_dir(),
        reason="*** THE PACKAGE OF MEMOS IS NOT INSTALLED: ITS CLIENT IS NOT TRIED (make memos-client) ***",
    ),
]


def test_memory_is_added_searched_changed_and_deleted_by_the_client(
    running_server: RunningServer, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(PACKAGES), running_server.base_url, running_server.first_run["api_key"]],
        cwd=tmp_path,
        env={**clean_environ(), "MEMOS_BASE_PATH": str(tmp_path)},  # where the package writes its log
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])
    refusals = answers.pop("refusals")
    assert "Faro" in answers.pop("chat")
    assert answers.pop("messages")[:2] == [
        ["user", "My sister Mia lives in Lisbon."],
        ["user", "Mia lives in Faro."],
    ]
    assert answers == {
        "added": True,
        "found": ["My sister Mia lives in Porto.", ["family"], "c1"],
        "listed": ["My sister Mia lives in Lisbon."],
        "one": "My sister Mia lives in Lisbon.",
        "status": "completed",
        "feedback": True,
        "chunks": ["text", "end"],
        "refused": [1, 501, ""],
        "deleted": True,
        "left": 1,
    }
    assert [status for status, _ in refusals] == [404, 400]
    assert all(message for _, message in refusals)
