"""The blobs of a backup come from a folder or a bucket, and are restored into either."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memos_web.backup.dump import blobs_copy
from memos_web.backup.manifest import BackupError
from memos_web.backup.restoration import blobs_load
from memos_web.config import BlobStoreChoice, Config, read_config
from tests.vault.stores import new_bucket, s3_server
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
    blobs_copy(source, tmp_path / "backup")
    store.delete(BLOBS)
    target = build_config(after, endpoint, tmp_path / "two")
    blobs_load(target, tmp_path / "backup")
    restored = choose_blob_store(target.blob_store, target.data_dir)
    assert {entry.name: restored.read(entry.name) for entry in restored.entries()} == BLOBS


def test_store_that_does_not_answer_ends_backup_and_restore(tmp_path: Path) -> None:
    (tmp_path / "backup" / "tenant").mkdir(parents=True)
    (tmp_path / "backup" / "tenant" / "1").write_bytes(b"sealed")
    config = config_of(NOWHERE, tmp_path)
    with pytest.raises(BackupError, match="cannot be copied"):
        blobs_copy(config, tmp_path / "other")
    with pytest.raises(BackupError, match="cannot be written"):
        blobs_load(config, tmp_path / "backup")
