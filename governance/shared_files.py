"""Files and mails that every machine of an installation can read, where machines share a store.

A file is written on the machine whose worker made it. It is also kept in the store, in sealed parts, and a machine that
lacks the file fetches it: its folder is a cache. Mails for want of a mail server are kept there alone, sealed.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Protocol
from uuid import UUID, uuid4

from governance.ids import uuid7
from governance.keys.services import GENERAL, open_sealed, seal_for

PART = 4 * 1024 * 1024  # bytes of a part before it is sealed
PREFIX = "exports"
MAIL = "mail"
TENANTS_OWN = (PREFIX, MAIL)  # what ends with a tenant, and with its time


class Entry(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def written_at(self) -> datetime: ...


class PartStore(Protocol):
    """Sealed bytes by name, as the vault's blob store has them. Every method raises Unavailable."""

    def write(self, name: str, content: bytes) -> None: ...
    def read(self, name: str) -> bytes | None: ...
    def delete(self, names: Iterable[str]) -> None: ...
    def entries(self, prefix: str = "") -> Iterator[Entry]: ...


_find_store: list[Callable[[], PartStore | None]] = []


def share_files_by(find: Callable[[], PartStore | None]) -> None:
    """Name the store of this installation. find: returns None where machines share none."""
    _find_store[:] = [find]


def shared_store() -> PartStore | None:
    """Return the store that machines share; None where there is none."""
    return _find_store[0]() if _find_store else None


def file_share(tenant_id: UUID, file_id: UUID, path: Path) -> None:
    """Keep a file for other machines. Never inside a transaction. Raises KeyUnavailable; Unavailable."""
    store = shared_store()
    if store is None:
        return
    with path.open("rb") as file:
        for number in count():
            part = file.read(PART)
            if not part:
                break
            name = _part_name(tenant_id, file_id, number)
            store.write(name, seal_for(tenant_id=tenant_id, scope=GENERAL, place=name.encode(), plaintext=part))


def file_fetch(tenant_id: UUID, file_id: UUID, path: Path, *, size: int) -> bool:
    """Write a file that another machine shared to a path; return whether all its bytes are there.

    Never inside a transaction. Raises KeyUnavailable; Unavailable.
    """
    store = shared_store()
    if store is None or store.read(_part_name(tenant_id, file_id, 0)) is None:
        return False
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(f".{uuid4().hex}")
    draft.touch(mode=0o600)
    try:
        with draft.open("wb") as file:
            for number in count():
                name = _part_name(tenant_id, file_id, number)
                sealed = store.read(name)
                if sealed is None:
                    break
                part = open_sealed(tenant_id=tenant_id, place=name.encode(), blob=sealed)
                if part is None:  # the key of the organisation was destroyed
                    return False
                file.write(part)
        if draft.stat().st_size != size:  # a part is gone
            return False
        draft.replace(path)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
    return True


def mail_share(tenant_id: UUID, mail: bytes) -> bool:
    """Keep a mail for other machines; return whether there is a store. Raises KeyUnavailable; Unavailable."""
    store = shared_store()
    if store is None:
        return False
    name = f"{MAIL}/{tenant_id}/{uuid7()}"
    store.write(name, seal_for(tenant_id=tenant_id, scope=GENERAL, place=name.encode(), plaintext=mail))
    return True


def shared_mails(tenant_id: UUID) -> Iterator[bytes]:
    """Yield a tenant's shared mails, oldest first. Raises KeyUnavailable; Unavailable."""
    store = shared_store()
    names = sorted(entry.name for entry in store.entries(f"{MAIL}/{tenant_id}/")) if store else []
    for name in names:
        sealed = store.read(name) if store else None
        mail = open_sealed(tenant_id=tenant_id, place=name.encode(), blob=sealed) if sealed else None
        if mail is not None:
            yield mail


def shared_files_discard(tenant_id: UUID) -> None:
    """Delete all shared files and mails of a tenant. Never inside a transaction. Raises Unavailable."""
    store = shared_store()
    if store is not None:
        store.delete([entry.name for kind in TENANTS_OWN for entry in store.entries(f"{kind}/{tenant_id}/")])


def shared_files_tidy(before: datetime) -> int:
    """Delete the parts of files, and mails, that were shared before a time; return their number. Raises Unavailable."""
    store = shared_store()
    if store is None:
        return 0
    found = (entry for kind in TENANTS_OWN for entry in store.entries(f"{kind}/"))
    old = [entry.name for entry in found if entry.written_at < before]
    store.delete(old)
    return len(old)


def _part_name(tenant_id: UUID, file_id: UUID, number: int) -> str:
    return f"{PREFIX}/{tenant_id}/{file_id}/{number:06}"
