"""The content of archived memories lies in the blob store, is read there, and comes back on recall."""

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.conf import settings as django_settings
from moto.s3.models import s3_backends
from pytest_django import Settings

from governance.database import acting
from governance.models import OutboxEvent
from governance.policies.rules import QuotaTarget
from governance.vocabulary import Measure, QuotaTargetKind
from memos_web.config import BlobStoreChoice
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.stores import FOLDER, new_bucket, s3_server
from vault.content.blobs import REFERENCE
from vault.cubes.usage import usage_count
from vault.models import CubeVersion
from vault.providers.registry import blob_store

Superuser = Callable[[], psycopg.Connection]
HERON = "The heron nests by the mill."
DOWN = BlobStoreChoice("bucket", "", "http://127.0.0.1:9", "us-east-1", "id", "secret")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as address:
        yield address


BOTH = pytest.mark.parametrize("store", ["folder", "s3"], indirect=True)


@pytest.fixture(autouse=True)
def store(request: pytest.FixtureRequest, settings: Settings) -> str:
    """`folder`, unless a test asks for more."""
    kind = str(getattr(request, "param", "folder"))
    if kind == "s3":
        settings.MEMOS_BLOB_STORE = new_bucket(request.getfixturevalue("endpoint"))
    else:
        settings.MEMOS_BLOB_STORE = FOLDER
    return kind


@pytest.fixture
def heron(alice: Contract) -> str:
    """An archived memory of two versions."""
    memory_id = str(alice.add("The heron nests.", namespace="/team")["id"])
    assert alice.patch(f"memories/{memory_id}/", {"content": HERON}, if_match='"1"').status == 200
    archive(alice, memory_id)
    return memory_id


def archive(client: Contract, memory_id: str) -> None:
    assert client.post(f"memories/{memory_id}/transition/", {"to": "archived"}).status == 200
    run_jobs()


def recall(client: Contract, memory_id: str) -> None:
    assert client.post(f"memories/{memory_id}/transition/", {"to": "activated"}).status == 200
    run_jobs()


def list_stored_lengths(world: World) -> list[int]:
    """The bytes that the rows of all versions have."""
    with acting(world.alice.actor):
        return [len(bytes(cube_version.sealed)) for cube_version in CubeVersion.objects.order_by("cube_id", "number")]


def blobs() -> list[str]:
    return sorted(entry.name for entry in blob_store().entries())


def names(world: World, memory_id: str, *numbers: int) -> list[str]:
    return [f"{world.alice.actor.tenant_id}/{memory_id}/{number}" for number in numbers]


def check_index(olivia: Contract, **chosen: Any) -> dict[str, Any]:
    """Run a check of the index to its end; its result."""
    made = olivia.post("schedules/", {"kind": "index.check", "cron": "0 4 * * *", "settings": chosen})
    assert made.status == 201, made
    started = olivia.post(f"schedules/{made.json['id']}/run/", {})
    run_jobs()
    job = olivia.get(f"jobs/{started.json['job']['id']}/").json
    assert job["status"] == "succeeded", job
    result: dict[str, Any] = job["result"]
    return result


@BOTH
def test_archived_content_lies_in_the_store_and_is_read_there(
    world: World, alice: Contract, bob: Contract, charlie: Contract, heron: str
) -> None:
    assert list_stored_lengths(world) == [REFERENCE.size] * 2
    assert blobs() == names(world, heron, 1, 2)
    assert b"heron" not in b"".join(blob_store().read(blob) or b"" for blob in blobs())
    for reader in (alice, bob):
        assert reader.get(f"memories/{heron}/").json["content"] == HERON
    assert charlie.get(f"memories/{heron}/").status == 404
    versions = alice.get(f"memories/{heron}/versions/").json["results"]
    assert [version["content"] for version in versions] == [HERON, "The heron nests."]
    assert alice.get(f"memories/{heron}/diff/?from=1&to=2").status == 200
    assert [memory["id"] for memory in alice.get("memories/?state=archived").json["results"]] == [heron]


@BOTH
def test_search_of_the_archive_changes_no_state(world: World, alice: Contract, heron: str) -> None:
    assert alice.search_contents("heron mill", mode="lexical", min_score=0.1) == []
    assert alice.search_contents("heron mill", mode="lexical", include_archived=True) == [HERON]
    run_jobs()
    assert alice.get(f"memories/{heron}/").json["state"] == "archived"
    assert list_stored_lengths(world) == [REFERENCE.size] * 2


@BOTH
def test_recalled_content_is_back_in_the_database(world: World, alice: Contract, heron: str) -> None:
    recall(alice, heron)
    assert min(list_stored_lengths(world)) > REFERENCE.size
    assert alice.search_contents("heron mill", mode="dense") == [HERON]
    assert alice.get(f"memories/{heron}/").json["state"] == "activated"
    archive(alice, heron)
    assert list_stored_lengths(world) == [REFERENCE.size] * 2
    assert alice.get(f"memories/{heron}/").json["content"] == HERON


def test_recall_is_one_click_on_the_page(world: World, alice: Contract, heron: str) -> None:
    client = signed_in(world.alice)
    assert HERON in client.get(f"/memories/{heron}/").content.decode()
    answer = client.post(f"/memories/{heron}/recall/")
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/memories/{heron}/")
    assert alice.get(f"memories/{heron}/").json["state"] == "activated"


def test_reader_and_stranger_recall_nothing(
    world: World, alice: Contract, bob: Contract, charlie: Contract, heron: str
) -> None:
    assert bob.post(f"memories/{heron}/transition/", {"to": "activated"}).status == 403
    assert charlie.post(f"memories/{heron}/transition/", {"to": "activated"}).status == 404
    assert signed_in(world.bob).post(f"/memories/{heron}/recall/").status_code == 403
    assert signed_in(world.charlie).post(f"/memories/{heron}/recall/").status_code == 404
    run_jobs()
    assert list_stored_lengths(world) == [REFERENCE.size] * 2


@BOTH
def test_archived_memory_is_changed_copied_and_rolled_back(world: World, alice: Contract, heron: str) -> None:
    assert alice.patch(f"memories/{heron}/", {"tags": ["bird"]}, if_match='"2"').status == 200
    copied = alice.post(f"memories/{heron}/copy/", {"namespace": "/team/copies"})
    assert (copied.status, copied.json["content"]) == (201, HERON)
    rolled = alice.post(f"memories/{heron}/rollback/", {"version": 1})
    assert (rolled.status, rolled.json["content"]) == (200, "The heron nests.")


def test_content_counts_the_same_wherever_it_lies(world: World, alice: Contract) -> None:
    memory_id = str(alice.add(HERON, namespace="/team")["id"])
    before = _count_bytes_used(world)
    archive(alice, memory_id)
    assert _count_bytes_used(world) == before > len(HERON)


def _count_bytes_used(world: World) -> int:
    with acting(world.alice.actor):
        return usage_count(QuotaTarget(QuotaTargetKind.TENANT, world.alice.actor.tenant_id), Measure.BYTES)


@BOTH
def test_purge_deletes_the_blobs(world: World, alice: Contract, heron: str) -> None:
    assert alice.delete(f"memories/{heron}/?purge=true").status == 204
    run_jobs()
    assert blobs() == []


def test_purge_of_a_recalled_memory_deletes_what_it_left(world: World, alice: Contract, heron: str) -> None:
    recall(alice, heron)
    assert blobs() == names(world, heron, 1, 2)
    assert alice.delete(f"memories/{heron}/?purge=true").status == 204
    run_jobs()
    assert blobs() == []


@BOTH
def test_redaction_deletes_the_blob_of_its_version(world: World, alice: Contract, heron: str) -> None:
    assert alice.post(f"memories/{heron}/redact/", {"version": 1}).status == 200
    run_jobs()
    assert blobs() == names(world, heron, 2)
    assert alice.get(f"memories/{heron}/versions/1/").json["content"] == ""


def test_erasure_of_a_subject_deletes_the_blobs(world: World, olivia: Contract, alice: Contract) -> None:
    memory_id = str(alice.add("Mina likes tea.", namespace="/team", subject="mina")["id"])
    archive(alice, memory_id)
    assert blobs() == names(world, memory_id, 1)
    (subject,) = olivia.get("subjects/?reference=mina").json["results"]
    assert olivia.post(f"subjects/{subject['id']}/erase/").status == 202
    run_jobs()
    assert blobs() == []


def test_held_memory_stays_where_it_is(world: World, alice: Contract) -> None:
    memory_id = str(alice.add(HERON, namespace="/team")["id"])
    assert alice.post(f"memories/{memory_id}/transition/", {"to": "archived"}).status == 200
    assert alice.post(f"memories/{memory_id}/freeze/", {"reason": "Case 17"}).status == 200
    run_jobs()
    assert blobs() == []
    assert min(list_stored_lengths(world)) > REFERENCE.size


@BOTH
@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_damaged_blob_is_reported(olivia: Contract, alice: Contract, heron: str, damage: str) -> None:
    name = blobs()[0]
    whole = blob_store().read(name) or b""
    if damage == "missing":
        blob_store().delete([name])
    else:
        blob_store().write(name, whole[:-1] + bytes([whole[-1] ^ 1]))
    result = check_index(olivia)
    assert (result["faults"], result["skipped"]) == ({"blob": 1}, [{"id": heron, "code": "blob"}])
    refused = alice.get(f"memories/{heron}/versions/1/")
    assert (refused.status, refused.code) == (503, "blob_store_unavailable")
    assert damage in refused.json["detail"]
    blob_store().write(name, whole)
    assert check_index(olivia)["faults"] == {}


def test_sound_archive_has_no_fault(olivia: Contract, heron: str) -> None:
    assert check_index(olivia) == {"changed": 0, "faults": {}, "codes": {}, "skipped": []}


def test_check_moves_what_was_left_in_the_database(
    world: World, olivia: Contract, alice: Contract, superuser: Superuser
) -> None:
    alice.add(HERON, namespace="/team")
    run_jobs()
    superuser().execute("UPDATE vault_cube SET state = 'archived'")
    check_index(olivia)
    assert list_stored_lengths(world) == [REFERENCE.size]


@BOTH
def test_blobs_of_no_row_are_collected_after_a_day(
    world: World, olivia: Contract, heron: str, store: str, endpoint: str
) -> None:
    orphan = f"{world.alice.actor.tenant_id}/{UUID(int=7)}/1"
    other = f"{UUID(int=9)}/{UUID(int=7)}/1"
    for name in (orphan, other):
        blob_store().write(name, b"left behind")
    assert "orphans" not in check_index(olivia)
    _age_blobs(store)
    assert check_index(olivia)["orphans"] == 1
    assert blobs() == sorted([*names(world, heron, 1, 2), other])


def _age_blobs(store: str) -> None:
    """Two days; S3's times are the server's, so its model is told."""
    if store == "folder":
        for path in (Path(django_settings.DATA_DIR) / "blobs").rglob("*"):
            moment = path.stat().st_mtime - timedelta(days=2).total_seconds()
            os.utime(path, (moment, moment))
        return
    for backend in s3_backends.values():
        for bucket in backend["global"].buckets.values():
            for key in bucket.keys.values():
                key.last_modified -= timedelta(days=2)


def test_store_that_is_down_leaves_the_content_in_the_database(
    world: World, alice: Contract, settings: Settings
) -> None:
    reachable = settings.MEMOS_BLOB_STORE
    memory_id = str(alice.add(HERON, namespace="/team")["id"])
    run_jobs()
    settings.MEMOS_BLOB_STORE = DOWN
    archive(alice, memory_id)
    assert min(list_stored_lengths(world)) > REFERENCE.size
    assert alice.get(f"memories/{memory_id}/").json["content"] == HERON
    settings.MEMOS_BLOB_STORE = reachable
    with acting(world.alice.actor):
        assert OutboxEvent.objects.filter(done_at=None, topic="blobs.due").update(available_at="2000-01-01T00:00Z") == 1
    run_jobs()
    assert list_stored_lengths(world) == [REFERENCE.size]


@pytest.mark.parametrize(
    "change",
    [
        "sealed = vault_blob_reference('other')",
        "sealed = '\\x01'",
        "sealed = vault_blob_reference(sealed), terms = '{}'",
        "sealed = vault_blob_reference(sealed), reason = 'other'",
    ],
)
def test_database_lets_a_version_change_in_no_other_way(
    alice: Contract, superuser: Superuser, heron: str, change: str
) -> None:
    recall(alice, heron)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        superuser().execute(f"UPDATE vault_cubeversion SET {change} WHERE number = 2".encode())


def test_restored_memory_of_the_archive_is_readable(world: World, alice: Contract, heron: str) -> None:
    assert alice.delete(f"memories/{heron}/").status == 204
    run_jobs()
    assert alice.post(f"memories/{heron}/restore/", {}).status == 200
    assert alice.get(f"memories/{heron}/").json["content"] == HERON
