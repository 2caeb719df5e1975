"""Search files, a dump and the archive for bytes of a deleted tenant (row 8, for tenants).

The attacker has the data directory with the write-ahead log, a dump of the database, the blob store, today's key store,
and the sealed bytes of a backup that was made before.
"""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
from django.conf import settings

from governance.keys.services import open_sealed
from tests.attacks.test_erased_subject import vectors
from tests.attacks.test_purged_bytes import count_traces, files_below, pieces, traces
from tests.factories import World
from tests.harness.evidence import Evidence
from tests.harness.servers import Servers, needs_maintain
from tests.vault.api.contract import Contract, contract
from tests.vault.deletion.test_deletion import end_grace_period, request_deletion
from tests.vault.outbox import run_jobs
from vault.cubes.storage import storage_reclaim
from vault.providers.registry import blob_store

Superuser = Callable[[], psycopg.Connection]
CANARY = "vermilion"
PLACE = f"/{uuid4().hex}"


def dump_rows(connection: psycopg.Connection) -> bytes:
    """All rows of all tables as a dump has them."""
    tables = connection.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname"
    ).fetchall()
    lines = []
    for (table,) in tables:
        lines += [row[0] for row in connection.execute(f"SELECT one::text FROM {table} AS one".encode()).fetchall()]
    return "\n".join(lines).encode()


def pieces_in_dump(connection: psycopg.Connection, wanted: dict[str, list[bytes]]) -> int:
    """The pieces that a dump has: bytes are written as hexadecimal digits, names as they are."""
    dump = dump_rows(connection)
    return sum(piece in dump or piece.hex().encode() in dump for some in wanted.values() for piece in set(some))


def give_own_names(world: World, connection: psycopg.Connection) -> list[bytes]:
    """Rename the tenant and a member as no other test does: all tests write one log. Returns what rows have."""
    tenant, address = uuid4().hex, f"{uuid4().hex}@acme.example"
    connection.execute("UPDATE governance_tenant SET name = %s WHERE id = %s", [tenant, world.acme.id])
    connection.execute("UPDATE governance_user SET email = %s WHERE id = %s", [address, world.alice.member.user_id])
    return [tenant.encode(), address.encode(), PLACE.encode()]


@needs_maintain
def test_nothing_of_a_deleted_tenant_is_left(
    world: World, superuser: Superuser, servers: Servers, evidence: Evidence, full_size: bool
) -> None:
    connection = superuser()
    names = give_own_names(world, connection)
    alice, olivia, charlie = (contract(world, name) for name in ("alice", "olivia", "charlie"))
    ids = [_store_memory(alice, number) for number in range(20 if full_size else 4)]
    conversation = alice.post("conversations/", {"title": f"Doors {CANARY}"}).json["id"]
    asked = alice.post(f"conversations/{conversation}/turns/", {"content": f"Which door is {CANARY}?"})
    assert asked.status == 201
    foreign = charlie.add("The otter swims.", namespace="/mine")["id"]
    run_jobs()
    wanted: dict[str, list[bytes]] = {"sealed": [], "vector": vectors(connection, ids), "hash": [], "name": names}
    for id in ids:
        found = traces(connection, UUID(id))
        wanted["sealed"] += found["sealed"]
        wanted["hash"] += found["hash"]
    titles = connection.execute("SELECT sealed_title FROM vault_conversation WHERE id = %s", [conversation]).fetchall()
    wanted["sealed"] += [piece for (blob,) in titles for piece in pieces(bytes(blob))]
    backup = connection.execute("SELECT cube_id, number, sealed FROM vault_cubeversion WHERE cube_id = ANY(%s)", [ids])
    sealed = [(cube_id, number, bytes(blob)) for cube_id, number, blob in backup.fetchall()]
    connection.execute("CHECKPOINT")
    before = count_traces(servers, connection, wanted)
    assert all(before[kind] == len(set(some)) for kind, some in wanted.items()), "the search finds what is there"
    assert pieces_in_dump(connection, wanted) >= len(set(wanted["sealed"] + wanted["name"]))
    assert alice.post(f"memories/{ids[-1]}/transition/", {"to": "archived"}).status == 200
    run_jobs()
    assert list(blob_store().entries()), "one memory is in the archive"

    request_deletion(olivia)
    end_grace_period(superuser)
    run_jobs()
    assert storage_reclaim(wait=timedelta()) > 0
    left = count_traces(servers, connection, wanted)
    assert left == dict.fromkeys(wanted, 0)
    in_dump = pieces_in_dump(connection, wanted)
    assert in_dump == 0
    assert list(blob_store().entries()) == []
    files = list(files_below(Path(settings.DATA_DIR)))
    assert not [path for path in files if CANARY.encode() in path.read_bytes()]
    recovered = [
        open_sealed(tenant_id=world.acme.id, place=cube_id.bytes + number.to_bytes(4), blob=blob)
        for cube_id, number, blob in sealed
    ]
    assert recovered == [None] * len(sealed)
    assert charlie.get(f"memories/{foreign}/").json["content"] == "The otter swims."
    figures = {
        "memories of the tenant": len(ids),
        "pieces looked for in files, log and dump": sum(len(set(some)) for some in wanted.values()),
        "found before": sum(before.values()),
        "found after the deletion in files and log": sum(left.values()),
        "found after the deletion in a dump": in_dump,
        "sealed versions of a backup that today's keys open": sum(text is not None for text in recovered),
    }
    evidence(row=8, name="deleted-tenant", figures=figures)


def _store_memory(alice: Contract, number: int) -> str:
    made = alice.add(f"The door is {CANARY}, said {number}, {uuid4().hex}.", namespace=PLACE)
    change = {"title": f"Door {CANARY} {number}", "metadata": {"colour": CANARY}}
    assert alice.patch(f"memories/{made['id']}/", change, if_match='"1"').status == 200
    return str(made["id"])
