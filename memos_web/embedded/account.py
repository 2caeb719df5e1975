"""The unprivileged system account that runs PostgreSQL and Redis if root starts the product."""

import os
import pwd
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from memos_web.embedded.errors import StartError

ACCOUNT_NAME = "pgserver"


@dataclass(frozen=True)
class Account:
    """A system user by its numeric ids."""

    uid: int
    gid: int


def server_account() -> Account | None:
    """Return the account for the servers, created if missing; None if this process does not run as root."""
    if os.geteuid() != 0:
        return None
    entry = _find() or _make()
    return Account(uid=entry.pw_uid, gid=entry.pw_gid)


def give(path: Path, account: Account | None) -> None:
    """Make the account the owner of `path` and everything below it, and let it reach `path`. None: do nothing."""
    if account is None:
        return
    for entry in [path, *path.rglob("*")]:
        os.chown(entry, account.uid, account.gid, follow_symlinks=False)
    open_parents(path, account)


def open_parents(path: Path, account: Account) -> None:
    """Add the right to pass to each folder above `path` that the account could not pass."""
    for parent in path.parents:
        status = parent.stat()
        if not _may_pass(status, account):
            parent.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)


def open_programs(folder: Path, account: Account | None) -> None:
    """Let the account read installed programs, which a strict umask may have made readable for root only."""
    if account is None:
        return
    open_parents(folder, account)
    if folder.stat().st_mode & stat.S_IROTH:
        return
    for entry in [*folder.rglob("*"), folder]:
        if not entry.is_symlink():
            _open_for_reading(entry)


def _open_for_reading(entry: Path) -> None:
    mode = stat.S_IMODE(entry.stat().st_mode)
    passing = stat.S_IXOTH if mode & stat.S_IXUSR else 0
    entry.chmod(mode | stat.S_IROTH | passing)


def _may_pass(status: os.stat_result, account: Account) -> bool:
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def _find() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(ACCOUNT_NAME)
    except KeyError:
        return None


def _make() -> pwd.struct_passwd:
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT_NAME]
    try:
        made = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise StartError(f"started by root, and there is no useradd to make the user {ACCOUNT_NAME}") from error
    entry = _find()  # useradd may fail because another start made the user
    if entry is None:
        raise StartError(f"cannot make the user {ACCOUNT_NAME}: {made.stderr.strip()}")
    return entry
