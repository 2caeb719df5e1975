"""A second server for readings: what it reads, what is written on the primary, and what happens without it."""

from collections.abc import Iterator

import pytest
from django.db import DatabaseError, connection, connections

from governance import replica
from governance.audit.reading.queries import AuditQuery
from governance.audit.reading.selectors import entries_list
from governance.database import acting
from governance.models import AuditEntry
from governance.pages import First
from governance.replica import READS, ReplicaState, reading, replica_health
from governance.vocabulary import Verb
from memos_web.config import read_config
from memos_web.health import Checks, _replica
from memos_web.management.checks import Failed
from memos_web.management.checks import replica as doctor_check
from memos_web.settings.databases import databases
from tests.factories import World
from tests.harness.databases import Clone
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.models import Cube
from vault.overview.counts import counts_ask


def use(url: str) -> None:
    entry = databases(read_config({"DATABASE_URL": "postgresql://memos_app@x/x", "DATABASE_READ_URL": url}))["replica"]
    del entry["OPTIONS"]["pool"]
    if "replica" in connections.settings:
        connections["replica"].close()
        del connections["replica"]
    connections.settings["replica"] = connections.configure_settings({"default": {}, "replica": entry})["replica"]


@pytest.fixture
def read_url(world: World, database: Clone) -> Iterator[str]:
    """The address of sessions that cannot write, by which Django reads."""
    server = database.server
    only_reads = "options=-c%20default_transaction_read_only%3Don"
    url = f"postgresql://memos_app@/{database.name}?host={server.socket_dir}&port={server.port}&{only_reads}"
    replica._rest_until[0] = 0.0
    use(url)
    yield url
    connections["replica"].close()
    del connections["replica"], connections.settings["replica"]
    replica._rest_until[0] = 0.0


def reads(server: str) -> float:
    return float(READS.labels(server)._value.get())


def test_audit_exports_and_counts_are_read_there_and_recorded_on_the_primary(
    read_url: str, world: World, alice: Contract, olivia: Contract
) -> None:
    memory = alice.add("The boat leaves at nine.", namespace="/team")
    run_jobs()
    before = reads("replica")
    listed = olivia.get("audit/?page_size=5").json["results"]
    assert listed
    assert olivia.get("audit/verify/").json["intact"] is True
    made = olivia.post("audit/export/", {}).json["id"]
    exported = alice.post("exports/", {"ids": [memory["id"]]}).json
    run_jobs()
    counts_ask()
    run_jobs()
    file = alice.get(f"exports/{exported['job']['id']}/jsonl/")
    assert b"The boat leaves at nine." in file.body
    assert olivia.get(f"audit/export/{made}/file/").status == 200
    assert reads("replica") >= before + 5
    assert reads("primary") == 0
    with acting(world.alice.actor):
        verbs = set(AuditEntry.objects.values_list("verb", flat=True))
    assert {Verb.AUDIT_LISTED, Verb.MEMORY_EXPORTED, Verb.AUDIT_VERIFIED} <= verbs


def test_row_level_security_holds_there(read_url: str, world: World, alice: Contract) -> None:
    alice.add("A note.", namespace="/team")
    with reading(world.charlie.actor):
        assert not Cube.objects.exists()
    with reading(world.alice.actor):
        assert Cube.objects.exists()
    with pytest.raises(DatabaseError), reading(world.alice.actor):
        Cube.objects.update(importance=0.1)
    assert connection is not connections["replica"]
    with acting(world.alice.actor):
        assert Cube.objects.exists(), "the primary is back"


def test_a_lost_or_foreign_server_is_replaced_by_the_primary_and_shows(
    read_url: str, world: World, alice: Contract, database: Clone
) -> None:
    assert doctor_check() == "0.0 seconds behind"
    lost = read_url.replace(str(database.server.socket_dir), "/nonexistent")
    foreign = read_url.replace(f"/{database.name}?", "/postgres?").replace("memos_app@", "postgres@")
    for url, state in ((lost, ReplicaState.DOWN), (foreign, ReplicaState.OTHER)):
        use(url)
        replica._rest_until[0] = 0.0
        before = reads("primary")
        found = entries_list(actor=world.olivia.actor, query=AuditQuery(), pages=First(3))
        assert found
        assert reads("primary") == before + 1
        checks: Checks = {}
        assert not _replica(checks)
        assert checks["replica"] == state
        with pytest.raises(Failed):
            doctor_check()
    assert replica_health() is not None
