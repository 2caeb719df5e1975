"""A tenant whose sinks are slow, or many, holds up neither other tenants' sinks nor the worker."""

import threading
from uuid import uuid4

import pytest
from django.db import connections
from django.test import override_settings

from governance.audit.reading import push
from governance.audit.reading.push import interleave_tenants, push_due
from governance.audit.reading.sinks import MOST_SINKS
from tests.factories import World
from tests.governance.audit.logs import seal_all
from tests.vault.api.contract import Contract, contract

SINK = {"name": "far", "kind": "syslog", "address": "syslog+tls://192.0.2.1:6514"}


@pytest.fixture
def slow(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A tenant with ten sinks that take their time, and one with one. The addresses as they are delivered to."""
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
        for number in range(MOST_SINKS):
            _create_sink(contract(world, "olivia"), f"loud{number}")
        _create_sink(contract(world, "charlie"), "calm")
    for tenant in (world.acme, world.other):
        seal_all(tenant.id)
    delivered: list[str] = []
    monkeypatch.setattr(push, "deliver", lambda kind, address, secret, rows: delivered.append(address))
    return delivered


def _create_sink(owner: Contract, name: str) -> None:
    assert owner.post("audit/sinks/", {**SINK, "address": f"syslog+tls://{name}.example:6514"}).status == 201


def test_sinks_are_served_of_each_tenant_in_turn() -> None:
    a, b = uuid4(), uuid4()
    sinks = [uuid4() for _ in range(4)]
    due = [(sinks[0], a), (sinks[1], a), (sinks[2], a), (sinks[3], b)]
    assert interleave_tenants(due) == [(sinks[0], a), (sinks[3], b), (sinks[1], a), (sinks[2], a)]


def test_tenant_whose_sinks_are_slow_waits_and_the_other_is_served(
    slow: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "SECONDS_OF_TENANT", 1e-9)
    push_due()
    assert len(slow) == 2
    assert "syslog+tls://calm.example:6514" in slow
    push_due()
    assert len(slow) == 3, "the next sink of the slow one"


def test_two_passes_run_at_once_and_no_more(slow: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would hold a thread of the worker."""
    wake, begun = threading.Event(), threading.Semaphore(0)

    def hang(*_: object) -> None:
        begun.release()
        wake.wait(30)

    def run() -> None:
        push_due()
        connections.close_all()

    monkeypatch.setattr(push, "deliver", hang)
    passes = [threading.Thread(target=run) for _ in range(push.PASSES)]
    try:
        for thread in passes:
            thread.start()
            assert begun.acquire(timeout=20)
        assert push_due() == 0
        assert not begun.acquire(blocking=False)
    finally:
        wake.set()
        for thread in passes:
            thread.join(30)


def test_tenant_has_ten_sinks_at_most(world: World, slow: list[str]) -> None:
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
        refused = contract(world, "olivia").post("audit/sinks/", SINK)
    assert (refused.status, refused.json["code"]) == (409, "conflict")
