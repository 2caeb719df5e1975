"""Tests that purged content leaves the files and the write-ahead log of PostgreSQL (promise 8, for purged memories).

The attacker has the data directory. Everything that a purged memory left (each version's sealed bytes, its vectors and
its keyed tokens) is looked for as PostgreSQL writes them, byte by byte.
"""

import logging
import struct
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.factories import World
from tests.harness.evidence import Evidence
from tests.harness.servers import Servers, needs_maintain
from tests.vault.api.contract import Contract, contract
from tests.vault.outbox import run_jobs
from vault.cubes import table_rewrite
from vault.cubes.storage import ReclaimState, list_missing_rights, list_remaining_copies, reclaim_state, storage_reclaim

logger = logging.getLogger(__name__)  # pytest shows what it says if a test fails
Superuser = Callable[[], psycopg.Connection]
CHUNK = 24  # bytes: a record of the log may be cut at the border of its page, so several pieces are looked for
MEMORIES = 5
NOW = timedelta()
FILES = "SELECT relname::text, pg_relation_filenode(oid) FROM pg_class WHERE relname ~ '^vault_' AND relkind = 'r'"
AGO = "clock_timestamp() - make_interval(hours => %s)"


@pytest.fixture
def alice(world: World) -> Contract:
    return contract(world, "alice")


def traces(connection: psycopg.Connection, cube_id: UUID) -> dict[str, list[bytes]]:
    """Pieces of what is stored of a memory, as they lie on disk."""
    sealed = connection.execute("SELECT sealed FROM vault_cubeversion WHERE cube_id = %s", [cube_id]).fetchall()
    vectors = connection.execute("SELECT halfvec_send(vector) FROM vault_embedding WHERE cube_id = %s", [cube_id])
    hashes = connection.execute("SELECT content_hash FROM vault_cube WHERE id = %s", [cube_id]).fetchall()
    return {
        "sealed": [piece for (blob,) in sealed for piece in pieces(bytes(blob))],
        # Whole: a piece of a vector may be that of another test's text, and all tests write one log.
        "vector": [swap_halves(bytes(sent)[4:]) for (sent,) in vectors],
        "hash": [bytes(row[0]) for row in hashes],
    }


def swap_halves(sent: bytes) -> bytes:
    """Halves in the order of the network, as this machine stores them."""
    count = len(sent) // 2
    return struct.pack(f"={count}H", *struct.unpack(f">{count}H", sent))


def pieces(whole: bytes) -> list[bytes]:
    some = (whole[at : at + CHUNK] for at in range(0, len(whole) - CHUNK + 1, CHUNK))
    return [piece for piece in some if any(piece)]  # zeros stand everywhere


def count_traces(servers: Servers, connection: psycopg.Connection, wanted: dict[str, list[bytes]]) -> dict[str, int]:
    """Count the pieces of each kind in the files of this test's database, of the cluster and of the log."""
    folder = servers.postgres.folder
    row = connection.execute("SELECT oid::text FROM pg_database WHERE datname = current_database()").fetchone()
    assert row is not None
    left = {kind: set(some) for kind, some in wanted.items()}
    shared = [folder / "base" / "pgsql_tmp", folder / "global", folder / "pg_wal"]
    for path in files_below(folder / "base" / row[0], *shared):
        content = path.read_bytes()
        found = {kind: {piece for piece in some if piece in content} for kind, some in left.items()}
        if any(found.values()):
            logger.info("%s has %s", path, {kind: len(some) for kind, some in found.items()})
        left = {kind: left[kind] - found[kind] for kind in left}
    return {kind: len(set(some)) - len(left[kind]) for kind, some in wanted.items()}


def files_below(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file())


def store_memories(alice: Contract, superuser: Superuser) -> tuple[list[str], dict[str, list[bytes]]]:
    """Memories of two versions each, with vectors and statistics, and their traces; all of it is on disk."""
    ids = [alice.add(f"Canary {number} sings of {uuid4().hex}.", namespace="/team")["id"] for number in range(MEMORIES)]
    for id in ids:
        assert alice.patch(f"memories/{id}/", {"content": f"Changed {id}."}, if_match='"1"').status == 200
    run_jobs()
    connection = superuser()
    connection.execute("ANALYZE")
    wanted: dict[str, list[bytes]] = {"sealed": [], "vector": [], "hash": []}
    for id in ids:
        for kind, some in traces(connection, UUID(id)).items():
            wanted[kind] += some
    connection.execute("CHECKPOINT")
    return ids, wanted


def purge(alice: Contract, ids: list[str]) -> None:
    for id in ids:
        assert alice.delete(f"memories/{id}/?purge=true").status == 204


@needs_maintain
@pytest.mark.parametrize("small", [0, table_rewrite.SMALL_BYTES], ids=["copied", "small"])
def test_purged_memories_leave_files_and_log(
    alice: Contract,
    superuser: Superuser,
    servers: Servers,
    evidence: Evidence,
    monkeypatch: pytest.MonkeyPatch,
    small: int,
) -> None:
    monkeypatch.setattr(table_rewrite, "SMALL_BYTES", small)
    ids, wanted = store_memories(alice, superuser)
    connection = superuser()
    before = count_traces(servers, connection, wanted)
    assert all(before[kind] == len(set(some)) for kind, some in wanted.items()), "the search finds what is there"
    purge(alice, ids)
    connection.execute("VACUUM")
    connection.execute("CHECKPOINT")
    after_vacuum = count_traces(servers, connection, wanted)
    assert any(after_vacuum.values()), "VACUUM alone would do, or the search is blind"
    assert storage_reclaim(wait=NOW) > 0
    left = count_traces(servers, connection, wanted)
    assert left == dict.fromkeys(wanted, 0)
    figures = {
        "purged memories": MEMORIES,
        "pieces looked for": sum(len(set(some)) for some in wanted.values()),
        "found before the purge": sum(before.values()),
        "found after the purge and VACUUM": sum(after_vacuum.values()),
        "found after the task": sum(left.values()),
    }
    evidence(row=8, name="purged", figures=figures)
    assert alice.add("Afterwards.", namespace="/team")["id"]


@needs_maintain
def test_tables_are_rewritten_only_for_a_purge_that_has_waited(alice: Contract, superuser: Superuser) -> None:
    connection = superuser()
    ids = [alice.add(f"Note {number}.", namespace="/team")["id"] for number in range(2)]
    assert alice.delete(f"memories/{ids[0]}/").status == 204, "it can be restored"
    files: dict[str, int] = dict(connection.execute(FILES).fetchall())
    assert storage_reclaim(wait=NOW) == 0
    assert alice.delete(f"memories/{ids[1]}/?purge=true").status == 204
    assert storage_reclaim() == 0, "others may follow"
    assert dict(connection.execute(FILES).fetchall()) == files
    assert storage_reclaim(wait=NOW) > 0
    assert dict(connection.execute(FILES).fetchall()) != files
    assert storage_reclaim(wait=NOW) == 0


@needs_maintain
def test_purge_in_a_transaction_that_is_still_open_waits_for_the_next_rewriting(
    alice: Contract, app_connection: psycopg.Connection
) -> None:
    app_connection.execute("BEGIN")
    gone = alice.add("A note.", namespace="/team")["id"]
    assert alice.delete(f"memories/{gone}/?purge=true").status == 204
    assert storage_reclaim(wait=NOW) == 0, "it began after the open one"
    app_connection.execute("COMMIT")
    assert storage_reclaim(wait=NOW) > 0


@needs_maintain
def test_transaction_of_another_role_that_reads_purged_rows_is_waited_for(
    alice: Contract, superuser: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = alice.add("A note.", namespace="/team")["id"]
    reader, paused = superuser(), list[float]()
    reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    reader.execute("SELECT count(*) FROM vault_cube")
    assert alice.delete(f"memories/{gone}/?purge=true").status == 204
    monkeypatch.setattr(table_rewrite, "TRIES", 2)
    assert storage_reclaim(wait=NOW, pause=paused.append) == 0
    assert paused == [table_rewrite.PAUSE_SECONDS] * 2
    reader.execute("COMMIT")
    monkeypatch.undo()
    assert storage_reclaim(wait=NOW) > 0
    assert storage_reclaim(wait=NOW) == 0


@needs_maintain
def test_writing_transaction_of_another_database_is_waited_for(
    alice: Contract, superuser: Superuser, servers: Servers
) -> None:
    ids, wanted = store_memories(alice, superuser)
    connection, paused = superuser(), list[float]()
    with psycopg.connect(connection.info.dsn, dbname="postgres", password=connection.info.password) as elsewhere:
        elsewhere.execute("SELECT pg_current_xact_id()")
        purge(alice, ids)

        def end_writing(seconds: float) -> None:
            paused.append(seconds)
            elsewhere.rollback()

        assert storage_reclaim(wait=NOW, pause=end_writing) > 0
    assert paused
    assert count_traces(servers, connection, wanted) == dict.fromkeys(wanted, 0)


@needs_maintain
def test_bytes_that_stay_for_longer_than_promised_show(alice: Contract, superuser: Superuser) -> None:
    connection = superuser()
    assert reclaim_state() is ReclaimState.UP, "nothing was promised yet"
    assert storage_reclaim() == 0
    assert reclaim_state() is ReclaimState.UP
    connection.execute(f"UPDATE governance_heartbeat SET at = {AGO} WHERE part = 'purged bytes'", [25])
    assert reclaim_state() is ReclaimState.LATE
    assert storage_reclaim() == 0
    assert reclaim_state() is ReclaimState.UP
    connection.execute("CREATE TABLE maintenance.vault_cube (id uuid)")
    assert reclaim_state() is ReclaimState.AT_WORK


@needs_maintain
def test_without_the_rights_nothing_is_tried_and_the_gap_is_named(world: World, superuser: Superuser) -> None:
    assert (list_missing_rights(), list_remaining_copies()) == ([], [])
    superuser().execute("REVOKE MAINTAIN ON vault_embedding FROM memos_maintainer")
    assert list_missing_rights() == ["the right MAINTAIN on every table"]
    assert storage_reclaim(wait=NOW) == 0


def test_the_role_reads_nothing(world: World, superuser: Superuser) -> None:
    connection = superuser()
    connection.execute("SET ROLE memos_maintainer")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT 1 FROM vault_cubeversion")
