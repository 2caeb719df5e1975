"""Tests of what killed backups leave: the next backup in the same folder removes it."""

from pathlib import Path

from memos_web.backup.manifest import DUMP
from memos_web.backup.places import PARTIAL, _lock_folder, _remove_partial_backups


def _make_partial(folder: Path) -> Path:
    folder.mkdir()
    (folder / DUMP).write_bytes(b"half")
    return folder


def test_partial_backup_of_a_killed_process_is_removed_and_other_folders_stay(tmp_path: Path) -> None:
    killed, at_work = (_make_partial(tmp_path / f"{name}{PARTIAL}") for name in ("killed", "at-work"))
    foreign = tmp_path / f"notes{PARTIAL}"
    foreign.mkdir()
    with _lock_folder(at_work):
        _remove_partial_backups(tmp_path)
    assert [path.exists() for path in (killed, at_work, foreign)] == [False, True, True]
