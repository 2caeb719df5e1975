"""Blobs as files below a folder of this machine; the default."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from vault.providers.ports import BlobEntry, BlobStoreUnavailable

DRAFT = ".partial"  # how the name of a file ends that is not whole yet


class FolderBlobStore:
    """A file for each blob, for its owner alone. Web processes and workers on one machine share the folder."""

    is_remote = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def name(self) -> str:
        return f"folder {self._folder}"

    def write(self, name: str, content: bytes) -> None:
        path = self._folder / name
        draft = path.with_name(f"{path.name}.{uuid4().hex}{DRAFT}")
        try:
            self._make_folders(path.parent)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # the row gives up its copy next
            draft.replace(path)
            _sync_folder(path.parent)
        except OSError as error:
            with suppress(OSError):  # the first failure is the one to tell
                draft.unlink(missing_ok=True)
            raise BlobStoreUnavailable(f"The archive cannot be written: {error.strerror}.") from error

    def read(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BlobStoreUnavailable(f"The archive cannot be read: {error.strerror}.") from error

    def _make_folders(self, folder: Path) -> None:
        """Make a folder and its parents up to the store's root, each readable by its owner alone."""
        for parent in reversed([folder, *folder.parents]):
            if parent == self._folder or self._folder in parent.parents:
                parent.mkdir(exist_ok=True, mode=0o700)

    def delete(self, names: Iterable[str]) -> None:
        try:
            for name in names:
                (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise BlobStoreUnavailable(f"The archive cannot be written: {error.strerror}.") from error

    def entries(self, prefix: str = "") -> Iterator[BlobEntry]:
        """The blobs by prefix; unfinished files are entries too, so that they are collected."""
        try:
            for path in self._folder.rglob("*"):
                name = str(path.relative_to(self._folder))
                if name.startswith(prefix) and path.is_file():
                    yield BlobEntry(name, datetime.fromtimestamp(path.stat().st_mtime, UTC))
        except OSError as error:
            raise BlobStoreUnavailable(f"The archive cannot be read: {error.strerror}.") from error


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that the name of a new file survives a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
