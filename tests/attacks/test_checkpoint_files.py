"""Files of signed checkpoints after a crash, a full disk, or an edit: the last is reported, the others repaired."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from governance.audit.checkpoints import checkpoint_folder, checkpoint_write, checkpoints_outside, find_torn_files
from governance.audit.verifier import Unreadable
from tests.factories import World
from tests.governance.audit.logs import entries_make, log_make, seal_all
from tests.harness.cases import each_case


def verify(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command("audit_verify", "--json", "--tenant", "acme", stdout=out)
    (found,) = json.loads(out.getvalue())["tenants"]
    assert isinstance(found, dict)
    return found


def checkpoint_file(world: World) -> Path:
    (path,) = checkpoint_folder(world.acme.id).iterdir()
    return path


@each_case("left", [1, 40, 200, -2, -1])
def test_a_torn_last_line_is_reported_and_repaired_by_the_next_write(world: World, left: int) -> None:
    """left: the bytes of the last line that reached the disk; the last case lacks the line end alone."""
    log_make(world.alice.actor, 60)
    path, before = checkpoint_file(world), checkpoints_outside(world.acme.id)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:left])
    whole = before if left == -1 else before[:-1]
    assert checkpoints_outside(world.acme.id) == whole
    found = verify()
    assert (found["intact"], found["checkpoints_outside"]) == (True, len(whole))
    assert found["incomplete_files"] == ([] if left == -1 else [str(path)])
    entries_make(world.alice.actor, 1)
    seal_all(world.acme.id)
    assert checkpoints_outside(world.acme.id)[:-1] == whole
    assert find_torn_files(world.acme.id) == []
    assert path.read_bytes().count(b"\n") == len(whole) + 1


@pytest.mark.parametrize("left", [b"\0" * 300, b"\xff\xfe", b"{"])
def test_bytes_that_a_power_failure_left_are_taken_for_a_torn_line(world: World, left: bytes) -> None:
    seal_all(world.acme.id)
    path, before = checkpoint_file(world), checkpoints_outside(world.acme.id)
    path.write_bytes(path.read_bytes() + left)
    assert checkpoints_outside(world.acme.id) == before
    assert verify()["intact"]
    entries_make(world.alice.actor, 1)
    seal_all(world.acme.id)
    assert len(checkpoints_outside(world.acme.id)) == len(before) + 1


def test_a_damaged_line_before_the_last_is_tampering(world: World) -> None:
    log_make(world.alice.actor, 60)
    path = checkpoint_file(world)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0][:100] + b"\n" + b"".join(lines[1:]))
    with pytest.raises(Unreadable, match="was changed after it was written"):
        checkpoints_outside(world.acme.id)
    with pytest.raises(CommandError, match="was changed after it was written"):
        verify()
    entries_make(world.alice.actor, 1)
    seal_all(world.acme.id)  # writing goes on, and repairs nothing that was changed
    assert path.read_bytes().startswith(lines[0][:100] + b"\n")


def test_a_folder_that_cannot_be_written_leaves_no_row_of_a_checkpoint(world: World, tmp_path: Path) -> None:
    seal_all(world.other.id)
    checkpoint_folder(world.acme.id).parent.joinpath(str(world.acme.id)).write_text("a file in place of the folder")
    with pytest.raises(OSError, match=r"exists|directory"):
        seal_all(world.acme.id)
    checkpoint_folder(world.acme.id).unlink()
    assert checkpoint_write(world.acme.id) is not None
    assert len(checkpoints_outside(world.acme.id)) == 1
