"""`manage.py` where nothing was started yet, and with words that it does not know."""

import subprocess
import sys
from pathlib import Path

import pytest

from memos_web.command_line import CommandLine
from tests.harness.servers import ROOT, clean_environ

pytestmark = pytest.mark.long

COMMANDS = {
    "doctor": (),
    "sign_in_link": ("--tenant", "home", "--email", "owner@localhost"),
    "tenant_create": ("acme", "--owner", "olivia@acme.example"),
    "vector_index": (),
    "benchmark": ("ingest",),
}


def manage(*words: str, folder: Path = ROOT, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *words],
        cwd=folder,
        env={**clean_environ(), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_where_nothing_was_started_a_command_says_so_and_makes_nothing(name: str, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    done = manage(name, *COMMANDS[name], MEMOS_DATA_DIR=str(nowhere))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"there is no installation at {nowhere}" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_command_leaves_nothing_where_it_is_called_from(tmp_path: Path) -> None:
    manage("sign_in_link", *COMMANDS["sign_in_link"], folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_options_are_told_before_anything_was_started(tmp_path: Path) -> None:
    done = manage("tenant_create", "--help", MEMOS_DATA_DIR=str(tmp_path / "nowhere"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "--owner" in done.stdout


@pytest.mark.parametrize(
    "words", [("up", "--port"), ("doctor", "-x"), ("tenant_create",), ("benchmark", "ingest", "-x")]
)
def test_a_wrong_option_is_one_line(words: tuple[str, ...], tmp_path: Path) -> None:
    done = manage(*words, MEMOS_DATA_DIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("memos: ")
    assert done.stderr.count("\n") == 1


def test_commands_for_passwords_are_not_there(tmp_path: Path) -> None:
    done = manage("createsuperuser", MEMOS_DATA_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "Unknown command: 'createsuperuser'" in done.stderr
    listed = manage("help", "--commands", MEMOS_DATA_DIR=str(tmp_path)).stdout.split()
    assert "tenant_create" in listed
    assert not {"createsuperuser", "changepassword"} & set(listed)


def test_help_lists_our_commands_first_each_with_what_it_does(tmp_path: Path) -> None:
    done = manage("--help", MEMOS_DATA_DIR=str(tmp_path))
    ours, _, others = done.stdout.partition("Commands of Django and libraries:")
    listed = dict(line.split(maxsplit=1) for line in ours.splitlines() if line.startswith("    "))
    assert {"up", "doctor", "benchmark", *COMMANDS} <= set(listed)
    assert all(len(told) > 10 for told in listed.values())
    assert "migrate" in others
    assert "migrate" not in listed


def test_help_lists_our_commands_first_in_one_line_each() -> None:
    lines = CommandLine(["manage.py"]).main_help_text().splitlines()
    ours = lines[lines.index("Commands:") + 1 : lines.index("Commands of Django and libraries:") - 1]
    assert {line.split()[0] for line in ours} >= {"up", "doctor", "demo", "tenant_create", "audit_verify"}
    assert all(line.startswith("    ") and len(line.split()) > 1 for line in ours)
