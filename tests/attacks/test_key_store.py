"""A key store that is lost, damaged or another's: nothing is served, nothing is blank, and no new keys are made."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from django.test import Client, override_settings

from governance.errors import KeyUnavailable
from governance.keys.places import SqlitePlace
from governance.keys.services import GENERAL, key_store, open_sealed, rotating_key_store, seal_for
from governance.keys.store import FOREIGN, KEY_MISSING, OLDER, OTHER_MASTER
from governance.tenants.services import tenant_keys_rotate
from tests.factories import World, client_for
from tests.governance.keys.stores import MemoryRegistry, store_at
from tests.governance.web.visitors import link_for, signed_in
from tests.harness.cases import each_case
from tests.harness.databases import Clone
from tests.harness.product import RunningServer, installation
from tests.harness.servers import ROOT, Servers

MISSING, DAMAGED = SqlitePlace.missing, SqlitePlace.damaged
MASTER = b"the master key of this one test."
TENANT = uuid4()


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite(path: Path) -> None:
    path.write_bytes(b"this is no database, and no key is in it" * 50)


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def replace_by_an_empty_database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("VACUUM")


def replace_by_another(path: Path) -> None:
    """The store of another installation with the same master key."""
    path.unlink()
    with override_settings(KEY_STORE_PATH=path):
        from django.conf import settings

        store_at(path, settings.MASTER_KEY).key_for(TENANT, GENERAL)


LOSSES = {
    remove: MISSING,
    empty: DAMAGED,
    overwrite: DAMAGED,
    cut_off: DAMAGED,
    replace_by_an_empty_database: DAMAGED,
    replace_by_another: FOREIGN,
}
losses = each_case(("lose", "reason"), LOSSES.items(), ids=lambda value: getattr(value, "__name__", ""))


@contextmanager
def restart_process(**settings: object) -> Iterator[None]:
    """As in a process that starts now."""
    with override_settings(**settings):
        key_store.cache_clear()
        yield
    key_store.cache_clear()


@losses
def test_lost_store_of_a_running_product_is_answered_503(
    world: World, redis_address: str, key_store_path: Path, lose: Callable[[Path], None], reason: str
) -> None:
    client = client_for(world.alice.key.text)
    made = client.post("memories/", {"content": "The spare key lies in the cabinet."})
    address = f"memories/{made.json['results'][0]['id']}/"
    assert client.get(address).json["content"].startswith("The spare key")
    assert Client().get("/readyz").json()["checks"]["keys"] == "up"
    copy = key_store_path.with_suffix(".backup")
    shutil.copy(key_store_path, copy)
    lose(key_store_path)
    after = key_store_path.read_bytes() if key_store_path.exists() else None
    for _ in range(2):
        replies = [
            client.get(address),
            client.get("memories/"),
            client.post("memories/", {"content": "Another one."}),
            client.post("memories/search/", {"query": "spare key"}),
        ]
        assert [(reply.status, reply.code) for reply in replies] == [(503, "key_unavailable")] * 4
    assert {reply.json["detail"] for reply in replies} == {reason}
    ready = Client().get("/readyz")
    assert (ready.status_code, ready.json()["checks"]["keys"]) == (503, "down")
    assert (key_store_path.read_bytes() if key_store_path.exists() else None) == after, "nothing is made in its place"
    shutil.copy(copy, key_store_path)
    assert client.get(address).json["content"].startswith("The spare key"), "the backup heals it, without a restart"
    assert Client().get("/readyz").json()["checks"]["keys"] == "up"


@losses
def test_lost_store_is_refused_by_a_process_that_starts(
    world: World, key_store_path: Path, lose: Callable[[Path], None], reason: str
) -> None:
    lose(key_store_path)
    with restart_process(), pytest.raises(KeyUnavailable, match=reason):
        key_store().check()
    assert key_store_path.exists() == (lose is not remove)


def test_another_master_key_is_refused_before_any_key_is_made(world: World, key_store_path: Path) -> None:
    before = key_store_path.read_bytes()
    with restart_process(MASTER_KEY=MASTER):
        for use in (
            key_store().check,
            lambda: key_store().key_for(uuid4(), GENERAL),
            lambda: seal_for(tenant_id=world.acme.id, scope=GENERAL, place=b"row", plaintext=b"words"),
        ):
            with pytest.raises(KeyUnavailable, match=OTHER_MASTER):
                use()
    assert key_store_path.read_bytes() == before


def test_key_that_an_older_copy_lacks_is_a_503_and_not_blank(world: World, key_store_path: Path) -> None:
    older = key_store_path.with_suffix(".older")
    shutil.copy(key_store_path, older)
    blob = seal_for(tenant_id=world.acme.id, scope="subject:new", place=b"row", plaintext=b"words")
    shutil.copy(older, key_store_path)
    with pytest.raises(KeyUnavailable, match=KEY_MISSING):
        open_sealed(tenant_id=world.acme.id, place=b"row", blob=blob)


def test_older_copy_without_the_keys_of_a_tenant_is_refused_and_no_new_ones_are_made(
    world: World, key_store_path: Path
) -> None:
    older = key_store_path.with_suffix(".older")
    shutil.copy(key_store_path, older)
    client = client_for(world.charlie.key.text)
    assert client.post("memories/", {"content": "The spare key lies in the cabinet."}).status == 201
    assert Client().get("/readyz").json()["checks"]["keys"] == "up"
    shutil.copy(older, key_store_path)
    before = key_store_path.read_bytes()
    for reply in (
        client.post("memories/", {"content": "Another one."}),
        client.post("memories/search/", {"query": "spare key"}),
    ):
        assert (reply.status, reply.code, reply.json["detail"]) == (503, "key_unavailable", KEY_MISSING)
    ready = Client().get("/readyz")
    assert (ready.status_code, ready.json()["checks"]["keys"]) == (503, "down")
    with restart_process(), pytest.raises(KeyUnavailable, match=KEY_MISSING):
        key_store().check()
    assert key_store_path.read_bytes() == before


ROTATIONS: dict[str, Callable[[World], object]] = {
    "tenant": lambda world: tenant_keys_rotate(actor=world.olivia.actor),
    "master": lambda world: rotating_key_store().rotate_master(MASTER),
}


@pytest.mark.parametrize("what", ROTATIONS)
def test_copy_from_before_a_rotation_is_refused_and_the_one_from_after_it_serves(
    world: World, key_store_path: Path, what: str
) -> None:
    """It has a key for everything, and would seal under those that were given up."""
    client = client_for(world.alice.key.text)
    made = client.post("memories/", {"content": "The spare key lies in the cabinet."})
    address = f"memories/{made.json['results'][0]['id']}/"
    older, newer = key_store_path.with_suffix(".older"), key_store_path.with_suffix(".newer")
    shutil.copy(key_store_path, older)
    ROTATIONS[what](world)
    assert client.get(address).json["content"].startswith("The spare key")
    assert client.post("memories/", {"content": "Another one."}).status == 201
    shutil.copy(key_store_path, newer)
    shutil.copy(older, key_store_path)
    for _ in range(2):
        for reply in (client.get(address), client.post("memories/", {"content": "A third one."})):
            assert (reply.status, reply.code, reply.json["detail"]) == (503, "key_unavailable", OLDER)
    assert Client().get("/readyz").json()["checks"]["keys"] == "down"
    with restart_process(), pytest.raises(KeyUnavailable, match=OLDER):
        key_store().check()
    assert key_store_path.read_bytes() == older.read_bytes()
    shutil.copy(newer, key_store_path)
    with restart_process():
        key_store().check()
        assert client.get(address).json["content"].startswith("The spare key")


def test_copy_from_before_a_finished_rotation_of_the_master_key_is_refused_with_the_reason(
    world: World, key_store_path: Path
) -> None:
    older = key_store_path.with_suffix(".older")
    shutil.copy(key_store_path, older)
    rotating_key_store().rotate_master(MASTER)
    with restart_process(MASTER_KEY=MASTER):
        assert rotating_key_store().drop_masters() == 1
        key_store().check()
        shutil.copy(older, key_store_path)
        with pytest.raises(KeyUnavailable, match="from before a rotation"):
            key_store().check()


def test_copy_that_is_moved_over_the_file_is_noticed_at_the_next_call(world: World, key_store_path: Path) -> None:
    """Also by a process that has the keys in memory: the file, not the memory, says what is valid."""
    seal_for(tenant_id=world.acme.id, scope=GENERAL, place=b"row", plaintext=b"words")
    other = key_store_path.with_name("other.sqlite3")
    store_at(other, MASTER).key_for(TENANT, GENERAL)
    other.replace(key_store_path)
    with pytest.raises(KeyUnavailable):
        seal_for(tenant_id=world.acme.id, scope=GENERAL, place=b"row", plaintext=b"words")


def test_used_store_beside_a_new_database_is_refused(database: Clone, key_store_path: Path) -> None:
    """PostgreSQL was lost and made anew: the old keys must not become those of an empty database."""
    from django.conf import settings

    store_at(key_store_path, settings.MASTER_KEY).key_for(TENANT, GENERAL)
    with pytest.raises(KeyUnavailable, match=FOREIGN):
        key_store().check()


def test_the_note_in_the_database_cannot_be_changed(world: World, superuser: Callable[[], psycopg.Connection]) -> None:
    for statement in (
        "UPDATE governance_keystorenote SET store_id = gen_random_uuid()",
        "DELETE FROM governance_keystorenote",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            superuser().execute(statement.encode())
    with pytest.raises(psycopg.errors.UniqueViolation):
        superuser().execute("INSERT INTO governance_keystorenote (id, store_id) VALUES (1, gen_random_uuid())")
    with pytest.raises(psycopg.errors.CheckViolation):
        superuser().execute("INSERT INTO governance_keystorenote (id, store_id) VALUES (0, gen_random_uuid())")


@pytest.mark.parametrize("master", [MASTER, MASTER[::-1]])
def test_used_store_beside_a_database_with_tenants_and_no_note_is_refused(tmp_path: Path, master: bytes) -> None:
    path, registry = tmp_path / "keystore.sqlite3", MemoryRegistry()
    store_at(path, MASTER, registry).key_for(TENANT, GENERAL)
    with pytest.raises(KeyUnavailable, match=FOREIGN if master == MASTER else OTHER_MASTER):
        store_at(path, master, MemoryRegistry(ids=frozenset({TENANT}))).check()


def test_missing_store_of_a_database_with_tenants_is_refused(tmp_path: Path) -> None:
    registry = MemoryRegistry(ids=frozenset({TENANT}))
    with pytest.raises(KeyUnavailable, match=MISSING):
        store_at(tmp_path / "keystore.sqlite3", MASTER, registry).check()
    assert list(tmp_path.iterdir()) == []


# Starts


@pytest.fixture(scope="module")
def started_server(servers: Servers) -> Iterator[RunningServer]:
    """An installation for the test alone: it loses its keys."""
    with installation(servers.cluster) as server:
        server.start()
        yield server


def refuse_start(server: RunningServer) -> str:
    """The one line with which `up` ends by itself."""
    done = subprocess.run(
        [sys.executable, "manage.py", "up"],
        cwd=ROOT,
        env=server.settings(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode in {1, 2}, done.stderr
    assert done.stdout == ""
    return done.stderr.splitlines()[-1]


@contextmanager
def move_away(path: Path) -> Iterator[None]:
    aside = path.with_name(f"{path.name}.aside")
    path.rename(aside)
    try:
        yield
        assert not path.exists(), "nothing was made in its place"
    finally:
        aside.rename(path)


@pytest.mark.full
def test_without_its_keys_it_is_not_ready_and_a_start_is_refused_with_one_line(started_server: RunningServer) -> None:
    keys = started_server.data_dir / "keys"
    with move_away(keys / "keystore.sqlite3"):
        assert not started_server.is_ready()
        doctor = started_server.manage("doctor")
        assert doctor.returncode == 1
        assert f"FAIL  key store: {keys / 'keystore.sqlite3'}: {MISSING}" in doctor.stdout
    assert started_server.is_ready()
    started_server.stop()
    with move_away(keys / "master.key"):
        assert "master.key is missing" in refuse_start(started_server)
        with move_away(keys / "keystore.sqlite3"):
            assert "master.key is missing" in refuse_start(started_server), "there is a database"
        assert "master.key is missing" in started_server.manage("doctor").stderr
    with move_away(keys / "keystore.sqlite3"):
        assert f"memos: {MISSING}" in refuse_start(started_server)


def test_another_django_key_ends_sessions_and_opens_and_loses_nothing(world: World) -> None:
    """It signs what browsers and sessions hold for a while; keys, links and content hang on the master key."""
    memory = client_for(world.alice.key.text).post("memories/", {"content": "The spare key hangs by the weir."}).json
    browser, link = signed_in(world.alice), link_for(world.alice)
    assert browser.get("/memories/").status_code == 200
    with override_settings(SECRET_KEY="another, as of a start without the file"):
        assert browser.get("/memories/").status_code == 303, "to the sign-in page"
        again = client_for(world.alice.key.text).get(f"memories/{memory['results'][0]['id']}/")
        assert again.json["content"].startswith("The spare key")
        assert Client().post(link).status_code == 303
        assert Client().get("/readyz").json()["checks"]["keys"] == "up"
