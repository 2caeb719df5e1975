"""Exports of the audit log where machines share a blob store: each machine has the file, the store has sealed parts."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from pytest_django import Settings

from governance import shared_files
from governance.audit.reading.exports import exports_tidy
from governance.audit.reading.files import export_path
from governance.shared_files import PREFIX
from tests.factories import World
from tests.vault.api.contract import Contract, contract
from tests.vault.outbox import run_jobs
from tests.vault.stores import new_bucket, s3_server
from vault.deletion.deletion_job import blobs_delete
from vault.providers.registry import blob_store


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as address:
        yield address


@pytest.fixture
def ada(world: World, settings: Settings, endpoint: str) -> Contract:
    settings.MEMOS_BLOB_STORE = new_bucket(endpoint)
    return contract(world, "ada")


def list_parts(world: World) -> list[str]:
    return [entry.name for entry in blob_store().entries(f"{PREFIX}/{world.acme.id}/")]


def test_every_machine_hands_out_the_file(world: World, ada: Contract) -> None:
    made = ada.post("audit/export/", {}).json["id"]
    run_jobs()
    path = export_path(world.acme.id, UUID(made))
    whole = path.read_bytes()
    path.unlink()  # as on a machine that did not write it
    fetched = ada.get(f"audit/export/{made}/file/")
    assert (fetched.status, fetched.body) == (200, whole)
    assert path.stat().st_mode & 0o777 == 0o600
    parts = [blob_store().read(name) for name in list_parts(world)]
    assert parts
    assert not any(part is None or b"PK\x03\x04" in part for part in parts), "the store has sealed parts alone"


def test_parts_of_a_changed_file_are_not_handed_out(world: World, ada: Contract) -> None:
    made = ada.post("audit/export/", {}).json["id"]
    run_jobs()
    export_path(world.acme.id, UUID(made)).unlink()
    (name,) = list_parts(world)
    sealed = blob_store().read(name)
    assert sealed is not None
    blob_store().write(name, sealed[:-1] + bytes([sealed[-1] ^ 1]))
    assert ada.get(f"audit/export/{made}/file/").status == 503
    assert not export_path(world.acme.id, UUID(made)).exists()


def test_file_that_lacks_a_part_is_not_handed_out(world: World, ada: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_files, "PART", 1_000)
    made = ada.post("audit/export/", {}).json["id"]
    run_jobs()
    export_path(world.acme.id, UUID(made)).unlink()
    last = max(list_parts(world))
    assert not last.endswith("/000000"), "the file has several parts"
    blob_store().delete([last])
    assert ada.get(f"audit/export/{made}/file/").status == 404
    assert not export_path(world.acme.id, UUID(made)).exists()


def test_parts_go_with_their_time_and_with_their_organisation(world: World, ada: Contract, settings: Settings) -> None:
    ada.post("audit/export/", {})
    run_jobs()
    assert list_parts(world)
    exports_tidy()
    assert list_parts(world), "their time is not over"
    settings.AUDIT_EXPORT_DAYS = -1
    exports_tidy()
    assert not list_parts(world)
    settings.AUDIT_EXPORT_DAYS = 7
    ada.post("audit/export/", {})
    run_jobs()
    blobs_delete(world.acme.id)
    assert not list_parts(world)
