"""Keys are rotated at once or not at all; whoever has the file open goes on."""

import base64
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest

from governance.audit.checkpoints import public_key
from governance.errors import Conflict, Forbidden, KeyUnavailable
from governance.keys.moving import copy_contents
from governance.keys.places import place_at
from governance.keys.services import GENERAL, key_store
from governance.keys.store import SealedKeyStore
from governance.keys.tables import AUDIT_SIGNING, TOKENS
from governance.tenants.services import tenant_keys_rotate
from governance.vocabulary import Verb
from tests.factories import World
from tests.faults.kills import assert_all_there_once
from tests.governance.keys.stores import MemoryRegistry, rows_of, store_at, store_id_at
from tests.harness.product import RunningServer, installation
from tests.harness.servers import ROOT, Servers, clean_environ
from tests.journeys.live import Live, Writers

OLD, NEXT = b"the master key of this one test.", b"the master key that is to follow"
OTHER = b"a master key that comes too early"
SCOPES = ("general", TOKENS, AUDIT_SIGNING, "subject:1")
# Ends as by kill -9, in the middle of the transaction: after so many wrapped keys.
DYING = """
import os, sys
from uuid import UUID
from governance.keys import rotation as module
from tests.governance.keys.stores import store_at
store, sealed, seal = store_at(sys.argv[1], sys.argv[2].encode()), [], module.seal
store.check()
def dying(*args, **named):
    sealed.append(1)
    if len(sealed) == 2:
        os.kill(os.getpid(), 9)
    return seal(*args, **named)
module.seal = dying
store.rotate_master(sys.argv[3].encode()) if sys.argv[4] == "master" else store.rotate_tenant(UUID(sys.argv[5]))
"""


@pytest.fixture
def tenants(place: Path | str) -> dict[UUID, dict[str, UUID]]:
    """Three tenants with a key of each scope."""
    store = store_at(place, OLD, MemoryRegistry())
    return {
        tenant: {scope: store.key_for(tenant, scope).id for scope in SCOPES} for tenant in (uuid4() for _ in range(3))
    }


def open_all(store: SealedKeyStore, tenants: dict[UUID, dict[str, UUID]]) -> list[bytes]:
    found = [store.key_by_id(tenant, key_id) for tenant, keys in tenants.items() for key_id in keys.values()]
    return [key.secret for key in found if key]


def test_both_master_keys_open_the_store_until_the_former_one_is_dropped(
    place: Path | str, tenants: dict[UUID, dict[str, UUID]]
) -> None:
    serving = store_at(place, OLD)
    secrets = open_all(serving, tenants)
    assert len(secrets) == 12
    store_at(place, OLD).rotate_master(NEXT)
    following = store_at(place, NEXT)
    assert open_all(serving, tenants) == open_all(following, tenants) == secrets
    made = uuid4()
    key = serving.key_for(made, "general")
    assert following.key_by_id(made, key.id) == key
    assert following.opens_with(OLD)
    assert following.drop_masters() == 1
    assert open_all(following, tenants) == secrets
    for store in (serving, store_at(place, OLD)):
        with pytest.raises(KeyUnavailable, match="another master key"):
            store.key_for(made, "general")
    following.rotate_master(OLD)
    assert open_all(store_at(place, OLD), tenants) == secrets


def test_a_rotation_that_is_not_finished_is_not_followed_by_another(
    place: Path | str, tenants: dict[UUID, dict[str, UUID]]
) -> None:
    serving = store_at(place, OLD)
    serving.rotate_master(NEXT)
    before = rows_of(place)
    for refused in (
        lambda: store_at(place, NEXT).rotate_master(OTHER),  # processes with the first one would stop
        serving.drop_masters,  # with the former master key
    ):
        with pytest.raises(Conflict):
            refused()
    assert rows_of(place) == before
    assert len(open_all(serving, tenants)) == 12


def test_a_rotation_that_was_cut_off_before_the_note_is_noted_by_the_next_process(
    place: Path | str, tenants: dict[UUID, dict[str, UUID]]
) -> None:
    older, registry = rows_of(place), MemoryRegistry(noted=store_id_at(place))
    serving = store_at(place, OLD, registry)
    secrets = open_all(serving, tenants)
    store_at(place, OLD).rotate_tenant(next(iter(tenants)))  # notes it elsewhere
    assert registry.rotated == set()
    assert open_all(serving, tenants) == secrets
    assert len(registry.rotated) == 1
    copy_contents(older, place_at(place))
    for store in (serving, store_at(place, OLD, registry)):
        with pytest.raises(KeyUnavailable, match="from before a rotation"):
            store.key_for(next(iter(tenants)), "general")


def test_threads_go_on_while_keys_are_rotated(place: Path | str, tenants: dict[UUID, dict[str, UUID]]) -> None:
    registry = MemoryRegistry(noted=store_id_at(place))
    shared, rotating = store_at(place, OLD, registry), store_at(place, OLD, registry)
    secrets, done = open_all(shared, tenants), threading.Event()

    def read(store: SealedKeyStore) -> int:
        rounds = 0
        while not done.is_set() or not rounds:
            assert open_all(store, tenants) == secrets
            for tenant in tenants:
                key = store.key_for(tenant, f"subject:{rounds % 5}")
                assert store.key_by_id(tenant, key.id) == key
            rounds += 1
        return rounds

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read, store) for store in (shared, shared, store_at(place, OLD, registry))]
        try:
            for tenant in [*tenants, *tenants]:
                rotating.rotate_tenant(tenant)
            rotating.rotate_master(NEXT)
        finally:
            done.set()
        assert all(reader.result(timeout=60) for reader in readers)
    assert len(registry.rotated) == 7


def test_a_tenant_seals_under_new_keys_and_opens_what_the_former_sealed(
    place: Path | str, tenants: dict[UUID, dict[str, UUID]]
) -> None:
    serving, tenant = store_at(place, OLD), next(iter(tenants))
    secrets = open_all(serving, tenants)
    assert store_at(place, OLD).rotate_tenant(tenant) == 2
    assert open_all(serving, tenants) == secrets
    for scope in (TOKENS, AUDIT_SIGNING):
        assert serving.key_for(tenant, scope).id == tenants[tenant][scope]
    for scope in ("general", "subject:1"):
        assert serving.key_for(tenant, scope).id != tenants[tenant][scope]
    serving.destroy(tenant, "subject:1")
    assert serving.key_by_id(tenant, tenants[tenant]["subject:1"]) is None
    with place_at(place).open() as db:
        left = db.execute("SELECT count(*) FROM data_key WHERE scope LIKE 'subject:1%'").fetchone()
    assert left == (2,)


@pytest.mark.parametrize("what", ["master", "tenant"])
def test_a_rotation_that_is_killed_changed_nothing_and_is_done_the_next_time(
    place: Path | str, tenants: dict[UUID, dict[str, UUID]], what: str
) -> None:
    secrets, tenant = open_all(store_at(place, OLD), tenants), next(iter(tenants))
    words = [str(place), OLD.decode(), NEXT.decode(), what, str(tenant)]
    environ = {**clean_environ(), "DJANGO_SETTINGS_MODULE": "memos_web.settings.test"}
    killed = subprocess.run([sys.executable, "-c", DYING, *words], cwd=ROOT, env=environ, check=False, timeout=60)
    assert killed.returncode == -9
    store = store_at(place, OLD)
    assert open_all(store, tenants) == secrets
    assert not store.opens_with(NEXT)
    assert store.key_for(tenant, "general").id == tenants[tenant]["general"]
    if what == "master":
        store.rotate_master(NEXT)
        assert open_all(store_at(place, NEXT), tenants) == secrets
    else:
        assert store.rotate_tenant(tenant) == 2
        assert open_all(store_at(place, OLD), tenants) == secrets


def test_only_who_manages_operations_rotates_the_keys_of_their_own_tenant(
    world: World, key_store_path: Path, superuser: Callable[[], psycopg.Connection]
) -> None:
    def keys() -> list[UUID]:
        return [key_store().key_for(tenant.id, GENERAL).id for tenant in (world.acme, world.other)]

    acme, other = keys()
    signed = public_key(world.acme.id)
    for person in (world.alice, world.bob):
        with pytest.raises(Forbidden):
            tenant_keys_rotate(actor=person.actor)
    tenant_keys_rotate(actor=world.charlie.actor)
    assert keys()[0] == acme
    assert keys()[1] != other
    tenant_keys_rotate(actor=world.olivia.actor)
    assert keys()[0] != acme
    assert public_key(world.acme.id) == signed, "checkpoints that were signed are verified as before"
    rows = superuser().execute(
        "SELECT tenant_id FROM governance_auditentry WHERE verb = %s ORDER BY id", [Verb.KEYS_ROTATED]
    )
    assert [row[0] for row in rows] == [world.other.id, world.acme.id]


@pytest.mark.full
def test_a_running_product_serves_through_a_rotation(servers: Servers) -> None:
    with installation(servers.cluster) as server:
        server.start()
        live = Live.of(server)
        stored = live.done("POST", "memories/", {"content": "The heron nests by the mill."})["results"][0]["id"]
        before = (server.data_dir / "keys" / "master.key").read_text()
        writers = Writers(live, "/rotated")
        with writers.writing(2):
            for words in (("--tenant", "home"), ()):
                done = server.manage("keys_rotate", *words)
                assert done.returncode == 0, done.stderr
        assert writers.acknowledged
        assert writers.refusals == []
        assert_all_there_once(server, writers)
        assert live.done("GET", f"memories/{stored}/")["content"] == "The heron nests by the mill."
        later = live.done("POST", "memories/", {"content": "The otter swims."})["results"][0]["id"]
        assert (server.data_dir / "keys" / "master.key").read_text() != before
        assert server.stop() == 0
        server.start()
        assert server.manage("keys_rotate", "--finish").returncode == 0
        for memory, content in ((stored, "The heron nests by the mill."), (later, "The otter swims.")):
            assert live.done("GET", f"memories/{memory}/")["content"] == content
        assert_all_there_once(server, writers)
        assert _refuses_master(server, before)


def _refuses_master(server: RunningServer, master: str) -> bool:
    store_path = server.data_dir / "keys" / "keystore.sqlite3"
    with pytest.raises(KeyUnavailable, match="another master key"):
        store_at(store_path, base64.b64decode(master)).check()
    return os.path.exists(store_path)
