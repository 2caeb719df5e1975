"""`manage.py` where nothing was started yet, and with words that it does not know."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.harness.servers import ROOT, clean_environ

pytestmark = pytest.mark.full

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


# Each command as `manage.py` runs it, in one process: starting Python takes longer than any of them.
EACH = """
import contextlib, io, json, sys
import manage

def done(words):
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["manage.py", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = manage.main()
        except SystemExit as ended:
            code = ended.code
    return [code or 0, out.getvalue(), err.getvalue()]

print(json.dumps([done(words) for words in json.loads(sys.argv[1])]))
"""


def manage_each(commands: Sequence[Sequence[str]], **environ: str) -> list[tuple[int, str, str]]:
    """Exit code, stdout and stderr of each command."""
    done = subprocess.run(
        [sys.executable, "-c", EACH, json.dumps(commands)],
        cwd=ROOT,
        env={**clean_environ(), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


def test_where_nothing_was_started_each_command_says_so_and_makes_nothing(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    commands = [(name, *words) for name, words in COMMANDS.items()]
    for words, (code, out, err) in zip(commands, manage_each(commands, MEMOS_DATA_DIR=str(nowhere)), strict=True):
        assert (code, out) == (1, ""), words
        assert f"there is no installation at {nowhere}" in err, words
        assert err.count("\n") == 1, words
    assert list(tmp_path.iterdir()) == []


def test_a_command_leaves_nothing_where_it_is_called_from(tmp_path: Path) -> None:
    manage("sign_in_link", *COMMANDS["sign_in_link"], folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


WRONG = [("up", "--port"), ("doctor", "-x"), ("tenant_create",), ("benchmark", "ingest", "-x")]


def test_options_and_unknown_commands_are_reported_before_anything_was_started(tmp_path: Path) -> None:
    commands = [*WRONG, ("tenant_create", "--help"), ("createsuperuser",), ("help", "--commands")]
    *wrong, options, unknown, listed = manage_each(commands, MEMOS_DATA_DIR=str(tmp_path / "nowhere"))
    for words, (code, out, err) in zip(WRONG, wrong, strict=True):
        assert (code, out) == (2, ""), words
        assert err.startswith("memos: "), words
        assert err.count("\n") == 1, words
    assert (options[0], options[2]) == (0, "")
    assert "--owner" in options[1]
    assert unknown[0] == 1
    assert "Unknown command: 'createsuperuser'" in unknown[2]
    assert "tenant_create" in listed[1].split()
    assert not {"createsuperuser", "changepassword"} & set(listed[1].split())


def test_help_lists_our_commands_first_each_with_what_it_does(tmp_path: Path) -> None:
    done = manage("--help", MEMOS_DATA_DIR=str(tmp_path))
    ours, _, others = done.stdout.partition("Commands of Django and libraries:")
    listed = dict(line.split(maxsplit=1) for line in ours.splitlines() if line.startswith("    "))
    assert {"up", "migrate", "doctor", "benchmark", *COMMANDS} <= set(listed)
    assert all(len(told) > 10 for told in listed.values())
    indented = [line for line in ours.partition("Commands:")[2].splitlines() if line]
    assert len(indented) == len(listed), "one line for each command"
    assert "showmigrations" in others
    assert "showmigrations" not in listed
