"""The job that counts reads, beside the erasure of a memory that was read."""

import threading
from collections.abc import Callable

import psycopg
from django.db import connection

from governance.actor import system_actor
from governance.database import acting
from tests.factories import World
from tests.harness.databases import waiting_for_locks
from tests.harness.product import wait_until
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.models import CubeUse


def run_jobs_elsewhere() -> None:
    """Run the jobs on a connection of their own."""
    run_jobs()
    connection.close()


def test_job_waits_for_an_erasure_without_keeping_rows_that_the_erasure_deletes(
    world: World, alice: Contract, superuser: Callable[[], psycopg.Connection]
) -> None:
    erased, kept = (alice.add(f"The {bird} nests.")["id"] for bird in ("heron", "stork"))
    run_jobs()
    alice.search("Who nests?")
    run_jobs()  # so that each memory has its row of uses
    alice.search("Who nests?")
    erasure, watcher = superuser(), superuser()
    with erasure.transaction():
        erasure.execute("SELECT FROM vault_cube WHERE id = %s FOR UPDATE", [erased])
        job = threading.Thread(target=run_jobs_elsewhere)
        job.start()
        wait_until(lambda: waiting_for_locks(watcher) == 1, seconds=20)
        erasure.execute("SET LOCAL lock_timeout = '1s'")
        erasure.execute("DELETE FROM vault_cube WHERE id = %s", [erased])
    job.join()
    with acting(system_actor(tenant_id=world.acme.id, request_id="test")):
        assert {str(row.cube_id): row.access_count for row in CubeUse.objects.all()} == {kept: 2}
