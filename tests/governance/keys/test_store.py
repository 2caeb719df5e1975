"""The key store: keys in a file of their own, made once, gone for good."""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from stat import S_IMODE
from uuid import UUID, uuid4

import pytest
from django.test import Client, override_settings

from governance.errors import KeyUnavailable
from governance.keys.services import (
    GENERAL,
    credential_hash,
    key_store,
    open_sealed,
    seal_for,
    subject_scope,
    token_maker,
)
from tests.governance.keys.stores import MemoryRegistry, store_at
from tests.harness.servers import ROOT, clean_environ

pytestmark = pytest.mark.usefixtures("database")
TENANT, OTHER = uuid4(), uuid4()
MASTER = b"the master key of this one test."
MAKE_KEY = """
import sys
from uuid import UUID
from tests.governance.keys.stores import store_at
store = store_at(sys.argv[1], sys.argv[2].encode())
sys.stdin.readline()
for number in range(20):
    key = store.key_for(UUID(sys.argv[3]), f"subject:{number}")
    print(key.id, key.secret.hex())
"""


def test_what_is_sealed_for_a_scope_opens_again(key_store_path: Path) -> None:
    blob = seal_for(tenant_id=TENANT, scope=GENERAL, place=b"row", plaintext=b"words")
    assert open_sealed(tenant_id=TENANT, place=b"row", blob=blob) == b"words"
    assert open_sealed(tenant_id=TENANT, place=b"row", blob=memoryview(blob)) == b"words"


def test_a_blob_in_the_wrong_place_or_tenant_does_not_open(key_store_path: Path) -> None:
    blob = seal_for(tenant_id=TENANT, scope=GENERAL, place=b"row 1", plaintext=b"words")
    with pytest.raises(KeyUnavailable):
        open_sealed(tenant_id=TENANT, place=b"row 2", blob=blob)
    with pytest.raises(KeyUnavailable):
        open_sealed(tenant_id=OTHER, place=b"row 1", blob=blob)  # it has no such key


@pytest.mark.parametrize("position", [0, 20, -1])
def test_a_tampered_blob_is_a_failure_and_not_an_erased_one(key_store_path: Path, position: int) -> None:
    blob = bytearray(seal_for(tenant_id=TENANT, scope=GENERAL, place=b"row", plaintext=b"words"))
    blob[position] ^= 1
    with pytest.raises(KeyUnavailable) as failure:
        open_sealed(tenant_id=TENANT, place=b"row", blob=bytes(blob))
    assert failure.value.status == 503


def test_what_was_sealed_under_a_destroyed_key_is_none(key_store_path: Path) -> None:
    scope = subject_scope(uuid4())
    blob = seal_for(tenant_id=TENANT, scope=scope, place=b"row", plaintext=b"words")
    kept = seal_for(tenant_id=TENANT, scope=GENERAL, place=b"row", plaintext=b"kept")
    key_store().destroy(TENANT, scope)
    key_store.cache_clear()  # as a process that starts now
    assert open_sealed(tenant_id=TENANT, place=b"row", blob=blob) is None
    assert open_sealed(tenant_id=TENANT, place=b"row", blob=kept) == b"kept"


def test_a_destroyed_key_leaves_no_copy_in_any_file_of_the_store(key_store_path: Path) -> None:
    scopes = [subject_scope(uuid4()) for _ in range(30)]
    for scope in scopes:
        seal_for(tenant_id=TENANT, scope=scope, place=b"row", plaintext=b"words")
    files = list(key_store_path.parent.iterdir())
    assert files == [key_store_path] or {file.name for file in files} == {
        key_store_path.name,
        f"{key_store_path.name}-journal",
    }
    with closing(sqlite3.connect(key_store_path)) as db:
        rows = dict(db.execute("SELECT scope, wrapped FROM data_key"))
    wrapped = [rows[scope] for scope in scopes[::2]]
    for scope in scopes[::2]:
        key_store().destroy(TENANT, scope)
    left = b"".join(file.read_bytes() for file in key_store_path.parent.iterdir())
    assert not [key for key in wrapped if key in left or key[-32:] in left]
    assert scopes[1].encode() in left


def test_another_master_key_is_a_failure_that_asks_to_come_again(place: Path | str) -> None:
    first = store_at(place, MASTER)
    key = first.key_for(TENANT, GENERAL)
    second = store_at(place, MASTER[::-1])
    for ask in (partial(second.key_for, TENANT, GENERAL), partial(second.key_by_id, TENANT, key.id)):
        with pytest.raises(KeyUnavailable) as failure:
            ask()
        assert (failure.value.status, failure.value.code) == (503, "key_unavailable")


def test_another_master_key_shows_before_a_key_is_asked_for(place: Path | str) -> None:
    store_at(place, MASTER).check()
    store_at(place, MASTER).key_for(TENANT, GENERAL)
    store_at(place, MASTER).check()
    with pytest.raises(KeyUnavailable, match="another master key"):
        store_at(place, MASTER[::-1]).check()


@pytest.mark.usefixtures("world", "redis_address")
def test_another_master_key_is_not_ready() -> None:
    seal_for(tenant_id=TENANT, scope=GENERAL, place=b"row", plaintext=b"words")
    assert Client().get("/readyz").json()["checks"]["keys"] == "up"
    with override_settings(MASTER_KEY=MASTER):
        key_store.cache_clear()
        answer = Client().get("/readyz")
    key_store.cache_clear()
    assert (answer.status_code, answer.json()["checks"]["keys"]) == (503, "down")


def test_no_key_lies_in_the_file_as_it_is(key_store_path: Path) -> None:
    key = store_at(key_store_path, MASTER).key_for(TENANT, GENERAL)
    content = key_store_path.read_bytes()
    assert key.secret not in content
    assert MASTER not in content


def test_the_file_and_its_folder_are_their_owners_only(key_store_path: Path) -> None:
    store_at(key_store_path, MASTER).key_for(TENANT, GENERAL)
    assert S_IMODE(key_store_path.stat().st_mode) == 0o600
    assert S_IMODE(key_store_path.parent.stat().st_mode) == 0o700


def test_a_store_that_cannot_be_opened_is_a_503(tmp_path: Path) -> None:
    path = tmp_path / "keystore.sqlite3"
    path.write_bytes(b"this is no database, and no key is in it" * 50)
    for store in (store_at(path, MASTER), store_at(tmp_path / "keystore.sqlite3" / "below", MASTER)):
        with pytest.raises(KeyUnavailable):
            store.check()


def test_a_missing_store_is_a_503_where_a_key_is_asked_for() -> None:
    with override_settings(KEY_STORE_PATH=Path("/proc/no/such/place")):
        key_store.cache_clear()
        with pytest.raises(KeyUnavailable):
            seal_for(tenant_id=TENANT, scope=GENERAL, place=b"row", plaintext=b"words")
    key_store.cache_clear()


def test_a_key_is_durable_before_it_is_used(place: Path | str) -> None:
    made = store_at(place, MASTER).key_for(TENANT, GENERAL)
    again = store_at(place, MASTER)
    assert again.key_for(TENANT, GENERAL).secret == made.secret
    assert again.key_by_id(TENANT, made.id) == made
    for tenant_id, key_id in ((OTHER, made.id), (TENANT, UUID(int=7))):
        with pytest.raises(KeyUnavailable):
            again.key_by_id(tenant_id, key_id)


def test_two_processes_that_make_the_same_keys_at_once_get_the_same_ones(place: Path | str) -> None:
    store_at(place, MASTER).check()
    arguments = [sys.executable, "-c", MAKE_KEY, str(place), MASTER.decode(), str(TENANT)]
    makers = [
        subprocess.Popen(
            arguments, cwd=ROOT, env=clean_environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write("go\n")
        maker.stdin.flush()
    answers = [maker.communicate(timeout=60)[0] for maker in makers]
    assert answers[0] == answers[1]
    assert len(set(answers[0].splitlines())) == 20


def test_threads_that_make_the_same_keys_at_once_get_the_same_ones(place: Path | str) -> None:
    scopes = [subject_scope(uuid4()) for _ in range(15)]
    barrier = threading.Barrier(4)
    found: list[tuple[str, bytes]] = []

    registry = MemoryRegistry()

    def make() -> None:
        store = store_at(place, MASTER, registry)
        store.key_for(TENANT, "tenant")
        for scope in scopes:
            barrier.wait(timeout=10)
            found.append((scope, store.key_for(TENANT, scope).secret))

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(found) == 4 * len(scopes)
    assert len(set(found)) == len(scopes)


@dataclass
class InterruptedRegistry(MemoryRegistry):
    """Once, while it is asked for the store, another process does `meanwhile`: after or before the answer is read."""

    meanwhile: Callable[[], object] | None = None
    is_read_before: bool = True

    def find_store_id(self) -> UUID | None:
        answer, meanwhile, self.meanwhile = self.noted, self.meanwhile, None
        if meanwhile is None:
            return answer
        meanwhile()
        return answer if self.is_read_before else self.noted


@pytest.mark.parametrize("is_read_before", [True, False])
@pytest.mark.parametrize("is_made", [True, False])
def test_a_store_that_another_process_makes_and_uses_meanwhile_is_taken(
    place: Path | str, is_read_before: bool, is_made: bool
) -> None:
    if is_made:
        store_at(place, MASTER, MemoryRegistry()).check()
    registry = InterruptedRegistry(is_read_before=is_read_before)
    another = store_at(place, MASTER, registry)
    registry.meanwhile = partial(another.key_for, TENANT, GENERAL)
    key = store_at(place, MASTER, registry).key_for(TENANT, GENERAL)
    assert key == another.key_for(TENANT, GENERAL)


def test_tokens_of_two_tenants_have_nothing_in_common(key_store_path: Path) -> None:
    assert token_maker(TENANT).token("word", "tea") == token_maker(TENANT).token("word", "tea")
    assert token_maker(TENANT).token("word", "tea") != token_maker(OTHER).token("word", "tea")
    assert token_maker(TENANT).hash("tea") != token_maker(OTHER).hash("tea")


def test_a_credential_is_hashed_under_a_key_of_its_own() -> None:
    assert len(credential_hash("mos_a_b")) == 32
    assert credential_hash("mos_a_b") == credential_hash("mos_a_b") != credential_hash("mos_a_c")
