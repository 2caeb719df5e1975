"""Heavy calls of one tenant are bounded over all web processes, and two large writes of a tenant both succeed."""

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import connections

from governance.database import acting
from governance.policies import heavy
from tests.factories import ApiReply, World
from tests.harness.product import wait_until
from tests.vault.api.contract import Contract
from vault.content.bulk_insert import insert_batches
from vault.cubes import services
from vault.models import Cube

Superuser = Callable[[], psycopg.Connection]
HOLD = """
SELECT pg_advisory_lock(hashtextextended('heavy call/' || %s || '/' || number, 1)) FROM generate_series(0, 1) AS number
"""
LONG_WAITS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND now() - query_start > interval '0.5 s'
"""
ITEMS = [{"content": f"The heron caught fish number {number}."} for number in range(5)]


def _heavy(who: Contract) -> list[ApiReply]:
    conversation = {
        "messages": [{"role": "user", "content": f"Fish {number}."} for number in range(101)],
        "infer": False,
    }
    return [
        who.post("memories/bulk/", {"items": ITEMS}),
        who.post("memories/bulk/?dry_run=true", {"items": ITEMS}),
        who.post("memories/", conversation),
        who.post("audit/export/", {"format": "jsonl"}),
        who.get("audit/verify/"),
    ]


def test_heavy_calls_above_the_bound_are_refused_and_other_tenants_go_on(
    world: World, olivia: Contract, charlie: Contract, superuser: Superuser
) -> None:
    """The places are held by another process; when that dies, they are free."""
    other_process = superuser()
    other_process.execute(HOLD, [str(world.acme.id)])
    for refused in _heavy(olivia):
        assert (refused.status, refused.json["code"]) == (429, "too_many_at_once")
        assert refused.headers["Retry-After"] == "2"
    with acting(world.olivia.actor):
        assert not Cube.objects.exists()
    assert olivia.post("memories/", {"content": "A light call."}).status == 201
    assert [reply.status for reply in _heavy(charlie)] == [201, 200, 201, 202, 200]
    other_process.close()
    wait_until(lambda: olivia.get("audit/verify/").status == 200, seconds=10)
    assert [reply.status for reply in _heavy(olivia)] == [201, 200, 201, 202, 200]


@pytest.fixture
def short_lock_timeout(superuser: Superuser) -> None:
    """For new connections to this database."""
    watcher = superuser()
    name = watcher.info.dbname
    watcher.execute(f"ALTER ROLE memos_app IN DATABASE \"{name}\" SET lock_timeout = '200ms'".encode())


@pytest.mark.usefixtures("short_lock_timeout")
@pytest.mark.parametrize("turn_seconds", [30.0, 0.1])
def test_a_bulk_call_waits_for_another_of_its_tenant_longer_than_the_lock_timeout(
    alice: Contract, superuser: Superuser, monkeypatch: pytest.MonkeyPatch, turn_seconds: float
) -> None:
    """Or is told to try again, where its turn does not come in time."""
    monkeypatch.setattr(heavy, "TURN_SECONDS", turn_seconds)
    entered, release, replies = threading.Event(), threading.Event(), dict[str, int]()

    def slow(*arguments: Any) -> None:
        insert_batches(*arguments)
        entered.set()
        release.wait(timeout=30)

    monkeypatch.setattr(services, "insert_batches", slow)

    def send(name: str) -> None:
        replies[name] = alice.post("memories/bulk/", {"items": ITEMS}).status
        connections.close_all()

    threads = [threading.Thread(target=send, args=(name,)) for name in ("first", "second")]
    threads[0].start()
    assert entered.wait(timeout=30)
    threads[1].start()
    watcher = superuser()
    wait_until(lambda: "second" in replies or _number(watcher, LONG_WAITS) == 1, seconds=10)
    release.set()
    for thread in threads:
        thread.join(timeout=30)
    assert replies == {"first": 201, "second": 200 if turn_seconds > 1 else 429}  # 200: all was there already


def _number(watcher: psycopg.Connection, query: str) -> int:
    row = watcher.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])
