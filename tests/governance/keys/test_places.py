"""A key store in PostgreSQL: destroyed keys are gone, a lost server is an honest failure, and moves lose nothing."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import StringIO
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.test import Client, override_settings

from governance.errors import Conflict, KeyUnavailable
from governance.keys.moving import copy_contents
from governance.keys.places import PostgresPlace, place_at
from governance.keys.rules import DataKey
from governance.keys.services import GENERAL, key_store, rotating_key_store
from governance.keys.store import ARRIVING, FOREIGN, SAME_DATABASE
from memos_web.backup.dump import keys_copy
from memos_web.backup.manifest import BackupError, Manifest
from memos_web.backup.places import FolderPlace
from memos_web.backup.restoration import _keys_check
from memos_web.config import ConfigError, read_config
from memos_web.management import checks
from tests.factories import World, client_for
from tests.governance.keys.stores import MemoryRegistry, rows_of, store_at, store_id_at
from tests.harness.servers import Servers

MASTER = b"the master key of this one test."
TENANT = uuid4()


def read_table(servers: Servers, url: str) -> bytes:
    """Return the bytes of the table of keys, as they are on the server's disk."""
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with psycopg.connect(servers.postgres.conninfo(database=str(name)), autocommit=True) as superuser:
        superuser.execute("CHECKPOINT")
        path = superuser.execute("SELECT pg_relation_filepath('memos_keys.data_key')").fetchone()
        content = superuser.execute("SELECT pg_read_binary_file(%s)", path).fetchone()
    return bytes(content[0]) if content else b""


def wrapped_keys(place: str) -> dict[str, bytes]:
    with place_at(place).open() as db:
        return dict(db.execute("SELECT scope, wrapped FROM data_key"))


def test_destroyed_key_leaves_neither_row_nor_bytes_in_the_tables(servers: Servers, key_store_url: str) -> None:
    store = store_at(key_store_url, MASTER, MemoryRegistry())
    kept, gone = store.key_for(TENANT, "subject:1"), store.key_for(TENANT, "subject:2")
    sealed = wrapped_keys(key_store_url)
    assert sealed["subject:2"] in read_table(servers, key_store_url)
    store.destroy(TENANT, "subject:2")
    content = read_table(servers, key_store_url)
    assert sealed["subject:1"] in content
    assert sealed["subject:2"] not in content
    assert sealed["subject:2"][-32:] not in content
    assert not {secret for secret in (kept.secret, gone.secret, MASTER) if secret in content}
    assert store.key_by_id(TENANT, gone.id) is None
    with pytest.raises(KeyUnavailable, match="destroyed"):
        store.key_for(TENANT, "subject:2")


def test_lost_server_is_503_until_it_is_back_and_lost_sessions_are_replaced(
    world: World, redis_address: str, servers: Servers, key_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresPlace, "mark_seconds", 0.0)
    client = client_for(world.alice.key.text)
    assert client.post("memories/", {"content": "The spare key lies in the cabinet."}).status == 201
    name = str(psycopg.conninfo.conninfo_to_dict(key_store_url)["dbname"])
    lines = StringIO()
    call_command("keystore_move", "--to", key_store_url, stderr=lines)
    assert re.fullmatch(r"moved \d+ keys to postgresql://.*\n", lines.getvalue())
    with (
        override_settings(KEY_STORE_URL=key_store_url),
        psycopg.connect(servers.postgres.conninfo(), autocommit=True) as superuser,
    ):

        def end_sessions(*, is_open: bool) -> None:
            superuser.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {is_open}".encode())
            superuser.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [name])

        for wrong, reason in (("nonsense", "name a postgresql"), ("postgresql://db/keys", "USER:PASSWORD")):
            with pytest.raises(CommandError, match=reason):
                call_command("keystore_move", "--to", wrong)
        key_store.cache_clear()
        assert client.get("memories/").json["results"][0]["content"].startswith("The spare key")
        assert checks.keys() == rotating_key_store().place.name
        end_sessions(is_open=True)
        assert client.get("memories/").status == 200
        end_sessions(is_open=False)
        refused = client.get("memories/")
        assert (refused.status, refused.code, refused.json["detail"]) == (
            503,
            "key_unavailable",
            "The key store does not answer.",
        )
        ready = Client().get("/readyz")
        assert (ready.status_code, ready.json()["checks"]["keys"]) == (503, "down")
        with pytest.raises(checks.Failed, match="not currently accepting connections") as failure:
            checks.keys()
        assert name in str(failure.value)
        end_sessions(is_open=True)
        assert client.get("memories/").status == 200
    key_store.cache_clear()


def test_database_of_the_data_is_refused_however_it_is_named(key_store_url: str) -> None:
    aliased = key_store_url.replace("?host=", "?application_name=other&host=")
    registry = MemoryRegistry(of_data=place_at(aliased).database())
    with pytest.raises(KeyUnavailable, match=SAME_DATABASE):
        store_at(key_store_url, MASTER, registry).check()
    assert place_at(key_store_url).mark() is None, "nothing was made"
    data = {"DATABASE_URL": "postgresql://memos_app:a@db/memos", "DATABASE_OWNER_URL": "postgresql://owner:a@db/memos"}
    for url, reason in {
        "postgresql://memos_keys:secret@db:5432/memos": "is the database of DATABASE_URL",
        "postgresql://memos_app:secret@db/keys": "has the role of DATABASE_URL",
        "postgresql://owner:secret@db/keys": "has the role of DATABASE_OWNER_URL",
        "postgresql://db/keys": "postgresql://USER",
        "mysql://memos_keys:secret@db/keys": "postgresql://USER",
    }.items():
        with pytest.raises(ConfigError, match=reason) as refusal:
            read_config({**data, "MEMOS_KEY_STORE_URL": url})
        assert "secret" not in str(refusal.value)


def test_address_keeps_its_tls_and_timeouts_and_shows_no_password() -> None:
    url = "postgresql://keys:secret@one,two/keys?sslmode=verify-full&sslrootcert=/ca.pem&options=-cwork_mem%3D8MB"
    config = read_config({"MEMOS_KEY_STORE_URL": url})
    place = place_at(config.key_store_url)
    assert isinstance(place, PostgresPlace)
    given = place.parameters
    assert (given["sslmode"], given["sslrootcert"], given["host"]) == ("verify-full", "/ca.pem", "one,two")
    assert given["connect_timeout"] == 3
    assert {"-cwork_mem=8MB", "search_path=memos_keys"} <= set(given["options"].split())
    assert "secret" not in place.name + repr(config)


def test_moved_keys_are_followed_there_and_back_and_none_is_lost_or_revived(
    tmp_path: Path, key_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresPlace, "mark_seconds", 0.0)
    path = tmp_path / "keystore.sqlite3"
    registry = MemoryRegistry()
    serving = store_at(path, MASTER, registry)
    keys = {scope: serving.key_for(TENANT, scope) for scope in (GENERAL, "subject:1", "subject:2", "subject:3")}
    copy_contents(rows_of(path), place_at(key_store_url), coming_from={"of a killed move"})
    with pytest.raises(KeyUnavailable, match=re.escape(ARRIVING)):
        store_at(key_store_url, MASTER, registry).check()
    serving.destroy(TENANT, "subject:1")  # after the first copy
    late = serving.key_for(TENANT, "subject:4")
    assert store_at(path, MASTER, registry).move(place_at(key_store_url)) == 5
    assert store_at(path, MASTER, registry).move(place_at(key_store_url)) is None, "it is there already"
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert not [wrapped for wrapped in wrapped_keys(key_store_url).values() if wrapped[-32:] in content]
    moved = store_at(key_store_url, MASTER, registry)
    for store in (serving, moved, store_at(path, MASTER, registry)):
        assert store.key_by_id(TENANT, keys["subject:1"].id) is None
        assert store.key_by_id(TENANT, late.id) == late
        assert store.key_for(TENANT, GENERAL) == keys[GENERAL]
        store.destroy(TENANT, f"subject:{2 + (store is moved)}")
    made = serving.key_for(TENANT, "subject:5")
    assert serving.place.name == moved.place.name
    assert moved.key_by_id(TENANT, made.id) == made
    assert serving.fingerprints() == moved.fingerprints()
    assert moved.move(place_at(path)) == 4
    for store in (serving, moved, store_at(path, MASTER, registry), store_at(key_store_url, MASTER, registry)):
        assert store.place.address == str(path) or store.key_for(TENANT, GENERAL) == keys[GENERAL]
        assert store.key_by_id(TENANT, keys["subject:2"].id) is None
        assert store.key_by_id(TENANT, made.id) == made
        assert store.place.address == str(path)


def test_keys_are_made_and_destroyed_by_other_threads_during_moves(tmp_path: Path, key_store_url: str) -> None:
    path, registry, done = tmp_path / "keystore.sqlite3", MemoryRegistry(), threading.Event()
    serving = store_at(path, MASTER, registry)
    serving.key_for(TENANT, GENERAL)

    def write(name: str) -> tuple[list[DataKey], list[DataKey]]:
        made: list[DataKey] = []
        gone: list[DataKey] = []
        while not done.is_set() or len(made) < 4:
            scope = f"subject:{name}:{len(made)}"
            made.append(serving.key_for(TENANT, scope))
            if len(made) % 4 == 0:
                gone.append(made[-1])
                serving.destroy(TENANT, scope)
        return made, gone

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write, name) for name in "ab"]
        try:
            for place in (key_store_url, path, key_store_url):
                assert store_at(path, MASTER, registry).move(place_at(place))
        finally:
            done.set()
        results = [writer.result(timeout=60) for writer in writers]
    last = store_at(key_store_url, MASTER, registry)
    for made, gone in results:
        assert [last.key_by_id(TENANT, key.id) for key in made] == [None if key in gone else key for key in made]


def test_move_that_is_killed_before_its_end_is_completed_by_whoever_follows(tmp_path: Path, key_store_url: str) -> None:
    path, registry = tmp_path / "keystore.sqlite3", MemoryRegistry()
    key = store_at(path, MASTER, registry).key_for(TENANT, GENERAL)
    store_at(path, MASTER, registry).move(place_at(key_store_url))
    with place_at(key_store_url).transaction() as db:
        db.execute("INSERT INTO move VALUES ('coming', %s)", (b"",))  # the last step is missing
    with pytest.raises(KeyUnavailable, match=re.escape(ARRIVING)):
        store_at(key_store_url, MASTER, registry).check()
    assert store_at(path, MASTER, registry).key_for(TENANT, GENERAL) == key
    assert store_at(key_store_url, MASTER, registry).key_for(TENANT, GENERAL) == key


def test_place_with_other_keys_is_refused_and_stays_as_it_is(tmp_path: Path, key_store_url: str) -> None:
    registry = MemoryRegistry()
    store_at(tmp_path / "keystore.sqlite3", MASTER, registry).key_for(TENANT, GENERAL)
    store_at(key_store_url, MASTER, MemoryRegistry()).key_for(TENANT, GENERAL)
    before = rows_of(key_store_url)
    with pytest.raises(KeyUnavailable, match=FOREIGN):
        store_at(key_store_url, MASTER, registry).check()
    with pytest.raises(Conflict):
        store_at(tmp_path / "keystore.sqlite3", MASTER, registry).move(place_at(key_store_url))
    with pytest.raises(KeyUnavailable, match="another master key"):
        store_at(key_store_url, MASTER[::-1], MemoryRegistry(noted=store_id_at(key_store_url))).check()
    assert rows_of(key_store_url) == before


def test_copy_of_the_keys_is_a_file_that_is_restored_into_an_empty_database(tmp_path: Path, key_store_url: str) -> None:
    store = store_at(key_store_url, MASTER, MemoryRegistry())
    key = store.key_for(TENANT, GENERAL)
    store.destroy(TENANT, "subject:1")
    config = replace(
        read_config({"MEMOS_KEY_STORE_URL": key_store_url, "MEMOS_DATA_DIR": str(tmp_path)}), master_key=MASTER
    )
    copy = Path(keys_copy(config, FolderPlace(tmp_path / "copies")))
    assert [copy] == list(copy.parent.iterdir())
    assert copy.stat().st_mode & 0o777 == 0o600
    before = rows_of(key_store_url)
    manifest = Manifest(at="", key_store_id=str(store_id_at(copy)), migrations={}, tables={}, files={})
    place = place_at(key_store_url)
    place.remove()
    for wrong, keys in ((replace(manifest, key_store_id=str(TENANT)), copy), (manifest, copy.parent), (manifest, None)):
        with pytest.raises(BackupError):
            _keys_check(config, wrong, keys)
        assert place.mark(is_fresh=True) is None, "a failed restoration leaves nothing behind"
    assert _keys_check(config, manifest, copy) is not None
    assert rows_of(key_store_url) == before
    assert _keys_check(config, manifest, None) is None, "keys in place stay"
    assert store_at(key_store_url, MASTER).key_by_id(TENANT, key.id) == key
