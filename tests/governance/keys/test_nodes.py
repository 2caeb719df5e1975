"""Nodes share keys and blobs, or refuse to serve and say which differ."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client, override_settings

from governance.errors import KeyUnavailable, Unavailable
from governance.keys.places import place_at
from governance.keys.services import key_store, open_sealed, rotating_key_store, seal_for
from memos_web.celery import refuse_unsafe_role
from memos_web.fellows import join_fellows, refuse_strangers
from memos_web.management.checks import Failed, keys
from tests.factories import World
from tests.governance.keys.stores import store_at

pytestmark = pytest.mark.usefixtures("redis_address")


@pytest.fixture
def joined(world: World) -> Iterator[None]:
    """The first node, whose session stays open."""
    join_fellows()
    yield
    connection.close()
    connection.settings_dict["OPTIONS"].pop("application_name", None)


@contextmanager
def node(**settings: object) -> Iterator[None]:
    """Another node on the same database."""
    with override_settings(**settings):
        key_store.cache_clear()
        yield
    key_store.cache_clear()


def nodes_at_ready() -> tuple[int, str]:
    reply = Client().get("/readyz")
    return reply.status_code, reply.json()["checks"]["nodes"]


@pytest.mark.usefixtures("joined")
def test_node_with_copied_keys_refuses_to_serve_and_one_with_the_shared_store_reads_them(
    world: World, key_store_path: Path, tmp_path: Path, key_store_url: str
) -> None:
    other = tmp_path / "other" / "keystore.sqlite3"
    shutil.copytree(key_store_path.parent, other.parent)
    assert nodes_at_ready() == (200, "up")
    with node(KEY_STORE_PATH=other):
        for refused in (join_fellows, refuse_strangers):
            with pytest.raises(KeyUnavailable, match=r"^The process at this machine uses another key store: "):
                refused()
        with pytest.raises(SystemExit, match=r"^memos: .* uses another key store: .* MEMOS_KEY_STORE_URL$"):
            refuse_unsafe_role()
        assert nodes_at_ready() == (503, "other keys")
    with node(KEY_STORE_PATH=key_store_path):  # another process on this machine
        join_fellows()
    assert nodes_at_ready() == (200, "up")
    rotating_key_store().move(place_at(key_store_url))
    sealed = seal_for(tenant_id=world.acme.id, scope="subject:1", place=b"row", plaintext=b"words")
    with pytest.raises(Failed, match=r"it has moved to postgresql://.*: set MEMOS_KEY_STORE_URL"):
        keys()
    with node(KEY_STORE_URL=key_store_url, KEY_STORE_PATH=tmp_path / "none"):
        refuse_strangers()  # the first node has followed, or will
        join_fellows()
        assert keys() == place_at(key_store_url).name
        assert open_sealed(tenant_id=world.acme.id, place=b"row", blob=sealed) == b"words"
        assert nodes_at_ready() == (200, "up")
    with node(KEY_STORE_PATH=other), pytest.raises(KeyUnavailable, match=r"uses another key store"):
        join_fellows()
    with node(KEY_STORE_PATH=tmp_path / "none"), pytest.raises(KeyUnavailable, match=r"is missing"):
        key_store().check()
    assert store_at(other, b"the master key of all the tests.").find(world.acme.id, "subject:1") is None


@pytest.mark.usefixtures("joined")
def test_node_with_other_blobs_refuses_to_serve_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with node(DATA_DIR=tmp_path / "other"):
        with pytest.raises(Unavailable, match=r"^The process at this machine uses another blob store: "):
            join_fellows()
        connection.settings_dict["OPTIONS"].pop("application_name")  # as a command, which never joins
        with pytest.raises(Unavailable, match=r"another blob store"):
            refuse_strangers()
