"""Snippets of the documentation, run in order as they stand, as a reader of a clone would run them."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.harness.product import RunningServer
from tests.harness.servers import ROOT

BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
KEPT_FROM_READERS = "mos_…"  # where a page shows a key


def run_snippets(page: Path, server: RunningServer, folder: Path, **other: str) -> subprocess.CompletedProcess[str]:
    """Run the shell and Python blocks of a page in `folder`. Only the address and the key are those of `server`.

    other: texts of the page that are replaced, by what replaces them.
    """
    script = script_of(blocks_of(page))
    known = {"http://127.0.0.1:8000": server.base_url, KEPT_FROM_READERS: server.first_run["api_key"], **other}
    for shown, used in known.items():
        script = script.replace(shown, used)
    return subprocess.run(
        ["sh"],
        input=script,
        cwd=folder,
        env=environ_of(server, folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def blocks_of(guide: Path) -> list[tuple[str, str]]:
    """The language and text of each code block."""
    return [(found[1], found[2]) for found in BLOCK.finditer(guide.read_text(encoding="utf-8"))]


def script_of(blocks: list[tuple[str, str]]) -> str:
    """One shell script of all blocks in order. A shell's variables are those of the Python blocks, too."""
    parts = ["set -e"]
    for language, text in blocks:
        if language == "sh":
            parts.append(f"{text}echo")  # answers of the API end without a line feed
        if language == "python":
            parts.append(f"python3 - <<'END_OF_BLOCK'\n{text}END_OF_BLOCK")
    return "\n".join(parts)


def environ_of(server: RunningServer, folder: Path) -> dict[str, str]:
    """The environment of a reader in `folder`: a clone of the repository with the server's data directory."""
    for name in ("manage.py", "examples"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").symlink_to(sys.prefix)  # that of the tests, which may be for another Python
    (folder / "var").symlink_to(server.data_dir)
    (folder / ".curlrc").write_text("fail-with-body\n", encoding="utf-8")  # a refused call ends the script
    own = {
        "CURL_HOME": str(folder),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),
        "MEM0_DIR": str(folder / "mem0"),
        "MEM0_TELEMETRY": "False",
    }
    return {**server.settings(), **own}
