"""The blobs of a backup come from a folder or a bucket, and are restored into either. A backup is in either, too."""

import hashlib
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memos_web.backup.dump import blobs_copy
from memos_web.backup.manifest import (
    DUMP,
    MIGRATED,
    NAME,
    ROOT,
    BackupError,
    Manifest,
    Missing,
    manifest_read,
    manifest_text,
)
from memos_web.backup.places import MARK, BucketPlace, FolderPlace, Place, place_of
from memos_web.backup.restoration import blobs_load
from memos_web.config import BlobStoreChoice, Config, read_config
from tests.vault.stores import new_bucket, s3_server
from vault.providers.blobs_s3 import PART_BYTES
from vault.providers.registry import choose_blob_store

BLOBS = {"tenant/memory/1": b"sealed", "tenant/memory/2": b"", "other/memory/1": bytes(range(256))}
NOWHERE = BlobStoreChoice("bucket", "", "http://127.0.0.1:9", "us-east-1", "id", "secret")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as address:
        yield address


def config_of(choice: BlobStoreChoice | None, folder: Path) -> Config:
    folder.mkdir(exist_ok=True)
    environ = {"MEMOS_DATA_DIR": str(folder)}
    if choice is not None:
        environ |= {
            "MEMOS_BLOB_STORE": f"s3://{choice.bucket}/{choice.prefix}",
            "MEMOS_BLOB_STORE_URL": choice.endpoint,
            "MEMOS_BLOB_STORE_REGION": choice.region,
            "MEMOS_BLOB_STORE_KEY": f"{choice.key_id}:{choice.secret}",
        }
    return read_config(environ)


def build_config(kind: str, endpoint: str, folder: Path) -> Config:
    return config_of(new_bucket(endpoint) if kind == "s3" else None, folder)


@pytest.mark.parametrize(("before", "after"), [("s3", "s3"), ("s3", "folder"), ("folder", "s3"), ("folder", "folder")])
def test_blobs_are_restored_into_the_store_of_then(endpoint: str, tmp_path: Path, before: str, after: str) -> None:
    source = build_config(before, endpoint, tmp_path / "one")
    store = choose_blob_store(source.blob_store, source.data_dir)
    for name, content in BLOBS.items():
        store.write(name, content)
    place = FolderPlace(tmp_path / "backup")
    with place.writing(0) as write:
        files = blobs_copy(source, write)
    store.delete(BLOBS)
    target = build_config(after, endpoint, tmp_path / "two")
    blobs_load(target, place, files)
    restored = choose_blob_store(target.blob_store, target.data_dir)
    assert {entry.name: restored.read(entry.name) for entry in restored.entries()} == BLOBS


def test_store_that_does_not_answer_ends_backup_and_restore(tmp_path: Path) -> None:
    place = FolderPlace(tmp_path / "backup")
    with place.writing(0) as write:
        write("blobs/tenant/1", [b"sealed"])
    config = config_of(NOWHERE, tmp_path)
    with pytest.raises(BackupError, match="cannot be copied"):
        blobs_copy(config, lambda *_: "")
    with pytest.raises(BackupError, match="cannot be written"):
        blobs_load(config, place, ["blobs/tenant/1"])


def bucket_of(endpoint: str, tmp_path: Path) -> BucketPlace:
    choice = new_bucket(endpoint)
    environ = {
        "MEMOS_DATA_DIR": str(tmp_path),
        "MEMOS_BACKUP_STORE_URL": choice.endpoint,
        "MEMOS_BACKUP_STORE_REGION": choice.region,
        "MEMOS_BACKUP_STORE_KEY": f"{choice.key_id}:{choice.secret}",
    }
    place = place_of(read_config(environ), f"s3://{choice.bucket}/daily/")
    assert isinstance(place, BucketPlace)
    return place


def keys_in(place: BucketPlace) -> list[str]:
    return sorted(entry.name for entry in place._store.entries())


@pytest.mark.parametrize("kind", ["s3", "folder"])
def test_written_files_are_read_and_only_what_has_a_manifest_is_a_backup(
    endpoint: str, tmp_path: Path, kind: str
) -> None:
    shelf: Place = bucket_of(endpoint, tmp_path) if kind == "s3" else FolderPlace(tmp_path)
    large = random.Random(7).randbytes(PART_BYTES * 2 + 5)
    sizes = {"large": large, "exact": large[:PART_BYTES], "empty": b"", "below/small": b"x"}
    with shelf.below("one").writing(0) as write:
        for name, content in sizes.items():
            chunks = (content[start : start + 1_000_000] for start in range(0, len(content), 1_000_000))
            assert write(name, chunks) == hashlib.sha256(content).hexdigest()
        assert shelf.complete() == []
        write(NAME, [b"{}"])
    assert shelf.complete() == ["one"]
    for name, content in sizes.items():
        assert b"".join(shelf.below("one").read(name)) == content
    with pytest.raises(Missing):
        list(shelf.below("one").read("other"))
    with pytest.raises(BackupError, match="is there already"), shelf.below("one").writing(0):
        pass
    shelf.below("one").remove()
    assert shelf.complete() == []
    with pytest.raises(BackupError, match="holds no backup"):
        manifest_read(shelf.below("one"))


@pytest.mark.parametrize("kind", ["s3", "folder"])
def test_backup_that_fails_leaves_nothing(endpoint: str, tmp_path: Path, kind: str) -> None:
    shelf: Place = bucket_of(endpoint, tmp_path) if kind == "s3" else FolderPlace(tmp_path / "daily")

    def fail_late() -> Iterator[bytes]:
        yield bytes(PART_BYTES * 2)
        raise BackupError("pg_dump failed: no space")

    def write_backup() -> None:
        with shelf.below("one").writing(0) as write:
            write("small", [b"x"])
            write(DUMP, fail_late())

    with pytest.raises(BackupError, match="no space"):
        write_backup()
    if isinstance(shelf, BucketPlace):
        assert keys_in(shelf) == []
        uploads = shelf._store._client.list_multipart_uploads(Bucket=shelf.config.backup_store.bucket)
        assert uploads.get("Uploads", []) == []
    else:
        assert list((tmp_path / "daily").iterdir()) == []


def test_partial_backup_in_a_bucket_goes_after_a_day_and_complete_ones_stay(endpoint: str, tmp_path: Path) -> None:
    shelf = bucket_of(endpoint, tmp_path)
    for name, files in {"killed": (MARK, DUMP), "done": (MARK, DUMP, NAME), "foreign": ("notes",)}.items():
        for file in files:
            shelf._store.write(f"{name}/{file}", b"x")
    client, bucket = shelf._store._client, shelf.config.backup_store.bucket
    client.create_multipart_upload(Bucket=bucket, Key=f"daily/killed/{DUMP}")
    before = keys_in(shelf)
    with shelf.below("two").writing(0) as write:
        write(NAME, [b"{}"])
    assert set(before) < set(keys_in(shelf)), "another process may be writing them"
    shelf._remove_partial_backups(datetime.now(UTC) + timedelta(seconds=1))
    assert {name.split("/")[0] for name in keys_in(shelf)} == {"done", "foreign", "two"}
    assert "Uploads" not in client.list_multipart_uploads(Bucket=bucket)
    assert shelf.complete() == ["done", "two"]


def test_newest_copies_stay_and_one_is_fetched(endpoint: str, tmp_path: Path) -> None:
    shelf = bucket_of(endpoint, tmp_path)
    shelf._store.write("notes", b"x")
    for number in range(4):
        path = tmp_path / f"keystore-{number}.sqlite3"
        path.write_bytes(b"key %d" % number)
        copied = shelf.add(path, pattern="keystore-*.sqlite3", most=2)
    assert keys_in(shelf) == ["keystore-2.sqlite3", "keystore-3.sqlite3", "notes"]
    with place_of(shelf.config, copied).fetched() as fetched:
        assert fetched.read_bytes() == b"key 3"
    with pytest.raises(Missing), shelf.below("keystore-0.sqlite3").fetched():
        pass


def test_manifest_that_names_files_outside_of_the_backup_is_refused(tmp_path: Path) -> None:
    last = {app: max(path.stem for path in (ROOT / app / "migrations").glob("0*.py")) for app in MIGRATED}
    for name in ("checkpoints/../../stolen", "/etc/passwd", "checkpoints//x", "a\\b"):
        place = FolderPlace(tmp_path / hashlib.sha256(name.encode()).hexdigest())
        with place.writing(0) as write:
            write(NAME, [manifest_text(Manifest("", "", last, {}, {name: "0" * 64}))])
        with pytest.raises(BackupError, match="no name of a file"):
            manifest_read(place)
