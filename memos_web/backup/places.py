"""Places of backups: a folder of this machine, or a bucket of a service that speaks S3.

A backup is written completely or not at all: a folder gets its name last, and a bucket its manifest.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

from memos_web.backup.manifest import DUMP, NAME, BackupError, Missing, Readable
from memos_web.config import Config, bucket_read
from vault.providers.ports import BlobStoreUnavailable

if TYPE_CHECKING:
    from vault.providers.blobs_s3 import S3BlobStore

PARTIAL = ".partial"  # ends the name of a folder that is being written
MARK = "backup.partial"  # an object beside those of a backup that is being written, or removed
STALE = timedelta(days=1)  # after which such a backup in a bucket counts as one of a killed process
CHUNK = 1 << 20

Write = Callable[[str, Iterable[bytes]], str]  # name, content → SHA-256 in hex


class Place(Readable, Protocol):
    """A backup, or the place of several. Every method raises BackupError if the place does not answer."""

    def below(self, name: str) -> "Place":
        """The place of one of several backups."""

    def complete(self) -> list[str]:
        """Names of the complete backups below this place."""

    def writing(self, size: int) -> AbstractContextManager[Write]:
        """Write a new backup; what is written is a backup if the block ends without an error. size: of the database,
        in bytes."""

    def remove(self) -> None:
        """Remove a backup."""

    def add(self, path: Path, *, pattern: str, most: int) -> str:
        """Copy one file below this place, remove all but the newest `most` whose names match, and return its place."""

    def fetched(self) -> AbstractContextManager[Path]:
        """Yield this one file as a file of this machine."""


def place_of(config: Config, text: str) -> Place:
    """Return the place that a person named: `s3://BUCKET[/PREFIX]` or a folder. Raises BackupError."""
    if not text.startswith("s3://"):
        return FolderPlace(Path(text).absolute())
    if (found := bucket_read(text)) is None:
        raise BackupError(f"{text} is no bucket: write s3://BUCKET/PREFIX")
    return BucketPlace(replace(config, backup_store=replace(config.backup_store, bucket=found[0], prefix=found[1])))


@dataclass(frozen=True)
class FolderPlace:
    folder: Path

    @property
    def name(self) -> str:
        return str(self.folder)

    def below(self, name: str) -> Place:
        return FolderPlace(self.folder / name)

    def complete(self) -> list[str]:
        return sorted(path.parent.name for path in self.folder.glob(f"*/{NAME}"))

    @contextmanager
    def writing(self, size: int) -> Iterator[Write]:
        if self.folder.exists():
            raise BackupError(f"{self.folder} is there already: name a new folder")
        draft = self.folder.with_name(f"{self.folder.name}{PARTIAL}")
        try:
            _remove_partial_backups(self.folder.parent)
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True, mode=0o700)
            with _lock_folder(draft):
                yield lambda name, content: write_file(draft / name, content)
                draft.rename(self.folder)
        except OSError as error:
            raise BackupError(f"cannot write {self.folder}: {error.strerror}") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def read(self, name: str) -> Iterator[bytes]:
        try:
            with (self.folder / name).open("rb") as file:
                while chunk := file.read(CHUNK):
                    yield chunk
        except (FileNotFoundError, NotADirectoryError) as error:
            raise Missing(f"{self.folder / name} is missing") from error
        except OSError as error:
            raise BackupError(f"{self.folder / name} cannot be read: {error.strerror}") from error

    def remove(self) -> None:
        shutil.rmtree(self.folder)

    def add(self, path: Path, *, pattern: str, most: int) -> str:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            target = self.folder / path.name
            draft = target.with_name(f"{target.name}{PARTIAL}")
            write_file(draft, FolderPlace(path.parent).read(path.name))
            draft.rename(target)
            for older in sorted(self.folder.glob(pattern))[:-most]:
                older.unlink()
        except OSError as error:
            raise BackupError(f"cannot write {self.folder}: {error.strerror}") from error
        return str(target)

    @contextmanager
    def fetched(self) -> Iterator[Path]:
        if not os.access(self.folder, os.R_OK):
            raise BackupError(f"cannot read {self.folder}: it is missing, or belongs to others")
        yield self.folder


@dataclass(frozen=True)
class BucketPlace:
    """config.backup_store: the bucket, its prefix, and the key for it."""

    config: Config

    @property
    def name(self) -> str:
        choice = self.config.backup_store
        return f"s3://{choice.bucket}/{choice.prefix}".rstrip("/")

    def below(self, name: str) -> Place:
        prefix = f"{self.config.backup_store.prefix}/{name}".lstrip("/")
        return self._at(prefix)

    def complete(self) -> list[str]:
        with self._answering():
            return sorted(name for name in self._store.folders() if self._store.has(f"{name}/{NAME}"))

    @contextmanager
    def writing(self, size: int) -> Iterator[Write]:
        with self._answering():
            if next(self._store.entries(), None) is not None:
                raise BackupError(f"{self.name} is there already: name a new prefix")
            self._parent._remove_partial_backups(datetime.now(UTC) - STALE)
            self._store.write(MARK, b"")
        try:
            yield lambda name, content: self._write(name, content, size)
        except BaseException:
            with suppress(BackupError):  # the first failure is the one to tell; the mark lets a later backup do this
                self.remove()
            raise
        with self._answering():
            self._store.delete([MARK])

    def _write(self, name: str, content: Iterable[bytes], size: int) -> str:
        digest = hashlib.sha256()
        with self._answering():
            self._store.write_parts(name, _hashed(content, digest.update), size=size)
        return digest.hexdigest()

    def read(self, name: str) -> Iterator[bytes]:
        with self._answering():
            for part in self._store.read_parts(name):
                if part is None:
                    raise Missing(f"{self.name}/{name} is missing")
                yield part

    def remove(self) -> None:
        """Remove the manifest before the rest, and the mark last: what a killed process leaves is no backup."""
        with self._answering():
            self._store.write(MARK, b"")
            self._store.delete([NAME])
            self._store.delete([entry.name for entry in self._store.entries() if entry.name != MARK])
            self._store.delete([MARK])

    def add(self, path: Path, *, pattern: str, most: int) -> str:
        fixed, _, ending = pattern.partition("*")
        with self._answering():
            self._store.write_parts(path.name, FolderPlace(path.parent).read(path.name), size=0)
            names = sorted(entry.name for entry in self._store.entries(fixed) if entry.name.endswith(ending))
            self._store.delete(names[:-most])
        return f"{self.name}/{path.name}"

    @contextmanager
    def fetched(self) -> Iterator[Path]:
        parent, _, name = self.config.backup_store.prefix.rpartition("/")
        with TemporaryDirectory(prefix="memos-keys-") as scratch:
            path = Path(scratch) / "keystore"
            write_file(path, self._at(parent).read(name))
            yield path

    def _remove_partial_backups(self, before: datetime) -> None:
        """Remove what killed backups left below this prefix before a time."""
        for name in self._store.folders():
            place = self._at(f"{self.config.backup_store.prefix}/{name}".lstrip("/"))
            is_partial = self._store.has(f"{name}/{MARK}") and not self._store.has(f"{name}/{NAME}")
            if is_partial and all(entry.written_at < before for entry in place._store.entries()):
                place.remove()
        self._store.abort_uploads(ending=f"/{DUMP}", before=before)

    def _at(self, prefix: str) -> "BucketPlace":
        return BucketPlace(replace(self.config, backup_store=replace(self.config.backup_store, prefix=prefix)))

    @property
    def _parent(self) -> "BucketPlace":
        return self._at(self.config.backup_store.prefix.rpartition("/")[0])

    @cached_property
    def _store(self) -> "S3BlobStore":
        from vault.providers.blobs_s3 import S3BlobStore

        choice = self.config.backup_store
        return S3BlobStore(
            bucket=choice.bucket,
            prefix=choice.prefix,
            endpoint=choice.endpoint,
            region=choice.region,
            key_id=choice.key_id,
            secret=choice.secret,
        )

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except BlobStoreUnavailable as error:
            raise BackupError(f"{self.name} cannot be used: {error.detail}") from error


def write_file(path: Path, content: Iterable[bytes]) -> str:
    """Write a file, its folders too, and return its SHA-256 in hex."""
    digest = hashlib.sha256()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        for chunk in _hashed(content, digest.update):
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _hashed(content: Iterable[bytes], update: Callable[[bytes], None]) -> Iterator[bytes]:
    for chunk in content:
        update(chunk)
        yield chunk


def _remove_partial_backups(parent: Path) -> None:
    """Remove what killed backups left in this folder. One that is being written holds a lock."""
    for path in parent.glob(f"*{PARTIAL}"):
        if (path / DUMP).is_file():
            with suppress(BlockingIOError), _lock_folder(path):
                shutil.rmtree(path)


@contextmanager
def _lock_folder(path: Path) -> Iterator[None]:
    """Hold a lock on a folder. Raises BlockingIOError where another process has it."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(folder)
