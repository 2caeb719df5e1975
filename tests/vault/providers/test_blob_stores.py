"""Each blob store does what the port says: a folder of this machine, and a bucket of a server that speaks S3."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pytest_django import Settings

from memos_web.config import BlobStoreChoice, ConfigError, read_config
from tests.vault.stores import FOLDER, new_bucket, s3_server
from vault.providers.blobs_folder import FolderBlobStore
from vault.providers.ports import BlobStore, BlobStoreUnavailable
from vault.providers.registry import blob_store

SEALED = bytes(range(256)) * 40


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as address:
        yield address


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> BlobStore:
    settings.DATA_DIR = tmp_path
    is_folder = request.param == "folder"
    settings.MEMOS_BLOB_STORE = FOLDER if is_folder else new_bucket(request.getfixturevalue("endpoint"))
    return blob_store()


def names(store: BlobStore, prefix: str = "") -> set[str]:
    return {entry.name for entry in store.entries(prefix)}


def test_written_blob_is_read_as_it_was(store: BlobStore) -> None:
    store.write("tenant/cube/1", SEALED)
    assert store.read("tenant/cube/1") == SEALED
    store.write("tenant/cube/1", b"anew")
    assert store.read("tenant/cube/1") == b"anew"
    assert names(store) == {"tenant/cube/1"}


def test_missing_blob_is_none(store: BlobStore) -> None:
    assert store.read("tenant/cube/1") is None
    assert list(store.entries()) == []


def test_deleted_blobs_are_missing(store: BlobStore) -> None:
    for number in range(3):
        store.write(f"tenant/cube/{number}", SEALED)
    store.delete(["tenant/cube/0", "tenant/cube/2", "tenant/cube/9"])
    assert names(store) == {"tenant/cube/1"}
    store.delete([])


def test_entries_are_those_with_the_prefix_and_their_time(store: BlobStore) -> None:
    store.write("one/cube/1", SEALED)
    store.write("other/cube/1", SEALED)
    (entry,) = store.entries("one/")
    assert entry.name == "one/cube/1"
    assert abs(datetime.now(UTC) - entry.written_at) < timedelta(minutes=1)


def test_the_name_of_a_store_holds_no_secret(store: BlobStore) -> None:
    assert "of the tests" not in store.name
    assert store.name.startswith(("folder ", "s3://"))


def test_server_that_is_down_is_unavailable(settings: Settings) -> None:
    settings.MEMOS_BLOB_STORE = BlobStoreChoice("bucket", "", "http://127.0.0.1:9", "us-east-1", "id", "secret")
    store = blob_store()
    for call in (
        lambda: store.write("a/b/1", b"x"),
        lambda: store.read("a/b/1"),
        lambda: store.delete(["a/b/1"]),
        lambda: list(store.entries()),
    ):
        with pytest.raises(BlobStoreUnavailable, match="gave no usable answer"):
            call()


def test_bucket_that_does_not_exist_is_unavailable(settings: Settings, endpoint: str) -> None:
    settings.MEMOS_BLOB_STORE = BlobStoreChoice("no-such-bucket", "", endpoint, "us-east-1", "id", "secret")
    with pytest.raises(BlobStoreUnavailable, match="NoSuchBucket"):
        blob_store().write("a/b/1", b"x")


def test_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BlobStoreUnavailable):
        FolderBlobStore(tmp_path / "file").write("a/b/1", b"x")


def test_files_of_the_folder_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    FolderBlobStore(tmp_path / "blobs").write("a/b/1", b"x")
    assert (tmp_path / "blobs/a/b/1").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "blobs/a").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"MEMOS_BLOB_STORE": "/var/blobs"}, "s3://BUCKET"),
        ({"MEMOS_BLOB_STORE": "s3://b"}, "s3://BUCKET"),
        ({"MEMOS_BLOB_STORE": "s3://bucket", "MEMOS_BLOB_STORE_KEY": "id"}, "ID:SECRET"),
        ({"MEMOS_BLOB_STORE": "s3://bucket", "MEMOS_BLOB_STORE_URL": "minio:9000"}, "http://"),
    ],
)
def test_odd_settings_are_refused(environ: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_config(environ)


def test_settings_name_a_bucket() -> None:
    environ = {"MEMOS_BLOB_STORE": "s3://bucket/a/b/", "MEMOS_BLOB_STORE_KEY": "id:se:cret"}
    choice = read_config(environ).blob_store
    assert (choice.bucket, choice.prefix, choice.key_id, choice.secret) == ("bucket", "a/b", "id", "se:cret")
    assert "se:cret" not in repr(choice)
