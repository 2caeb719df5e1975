"""Tests of row 13 of the promises: no expired memory is readable by the database's clock, without a worker."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Any

import psycopg

from tests.factories import World
from tests.governance.access.decisions.test_mutants import replace_function
from tests.governance.web.visitors import signed_in
from tests.harness.evidence import Evidence
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.models.cube import CubeQuerySet

Superuser = Callable[[], psycopg.Connection]
Way = Callable[[], bool]
READS, READS_IN_FULL = 65, 3_000
EDGE = 0.03  # seconds before and after now
TEXT = "The curlew calls at the ford."


def list_ways(world: World, alice: Contract, memory_id: str) -> dict[str, Way]:
    """Return the ways to read a memory by name; each returns True if the memory was in the reply."""
    address, browser = f"memories/{memory_id}/", signed_in(world.alice)
    turns = f"conversations/{alice.post('conversations/', {}).json['id']}/turns/"
    assert "curlew" in alice.post(turns, {"content": "What calls at the ford?"}).json["content"]

    def search_by(mode: str) -> Way:
        return lambda: any(hit["id"] == memory_id for hit in alice.search("curlew ford", mode=mode))

    def answer_of(method: str, where: str) -> Way:
        return lambda: "curlew" in alice.send(method, where, None).body.decode()

    return {
        "get": answer_of("GET", address),
        "list": answer_of("GET", "memories/"),
        "versions": answer_of("GET", address + "versions/"),
        "provenance": answer_of("GET", address + "?provenance=true"),
        "manifest": lambda: alice.get(address + "provenance/").status == 200,
        "page": lambda: shows_page(browser.get(f"/{address}")),
        "transcript": answer_of("GET", turns),
        "chat": lambda: "curlew" in browser.get(f"/chat/{turns.split('/')[1]}/").content.decode(),
        **{f"search {mode}": search_by(mode) for mode in ("hybrid", "lexical", "dense", "tag", "graph")},
    }


def shows_page(response: Any) -> bool:
    """Return whether it is the page of a memory, not the page that offers to bring it back."""
    return response.status_code == 200 and "Restorable until" not in response.content.decode()


class Clock:
    """The database's clock, and the end of the one memory."""

    def __init__(self, root: psycopg.Connection, memory_id: str) -> None:
        self.root, self.memory_id = root, memory_id

    def now(self) -> datetime:
        return self._moment("SELECT clock_timestamp()", [])

    def end_in(self, seconds: float) -> datetime:
        statement = (
            "UPDATE vault_cube SET expires_at = clock_timestamp() + make_interval(secs => %s) WHERE id = %s "
            "RETURNING expires_at"
        )
        return self._moment(statement, [seconds, self.memory_id])

    def _moment(self, statement: str, parameters: list[object]) -> datetime:
        row = self.root.execute(statement.encode(), parameters).fetchone()
        assert row is not None
        search_by: datetime = row[0]
        return search_by


def read_near_expiry(clock: Clock, ways: dict[str, Way], times: int) -> tuple[Counter[str], list[str]]:
    """Read by every way in turn, with an expiry shortly before or after now.

    A fault is a memory read after its expiry, or not read before it.
    """
    chance, counted, faults = Random(13), Counter[str](), list[str]()
    for name, way in list(ways.items()) * (times // len(ways)):
        end = clock.end_in(chance.uniform(-EDGE, EDGE * 2))
        began, seen, over = clock.now(), way(), clock.now()
        counted["after the end" if began >= end else "before the end" if over < end else "across the end"] += 1
        if (seen and began >= end) or (not seen and over < end):
            faults.append(f"{name}: {'read' if seen else 'not read'} from {began} to {over}, expires {end}")
    return counted, faults


def test_memory_is_readable_until_its_expiry_and_not_afterwards(
    world: World, alice: Contract, superuser: Superuser, full_size: bool, evidence: Evidence
) -> None:
    memory_id = alice.add(TEXT, tags=["curlew", "ford"])["id"]
    run_jobs()  # the vector; from here on nothing runs
    clock, ways = Clock(superuser(), memory_id), list_ways(world, alice, memory_id)
    clock.end_in(3600)
    unseen = [name for name, way in ways.items() if not way()]
    assert unseen in ([], ["search graph"]), unseen  # no entity is named in it
    counted, faults = read_near_expiry(
        clock, {name: ways[name] for name in ways if name not in unseen}, READS_IN_FULL if full_size else READS
    )
    assert faults == []
    assert counted["after the end"] > 0
    assert counted["before the end"] + counted["across the end"] > 0
    figures = {"reads": counted.total(), "ways": len(ways) - len(unseen), "read at the end or after": len(faults)}
    evidence(row=13, name="expired", figures=figures | dict(counted))


def test_reader_without_the_expiry_check_is_detected(world: World, alice: Contract, superuser: Superuser) -> None:
    memory_id = alice.add(TEXT, tags=["curlew", "ford"])["id"]
    run_jobs()
    clock, ways = Clock(superuser(), memory_id), list_ways(world, alice, memory_id)
    with replace_function(CubeQuerySet, "stored", ".filter(Q(expires_at=None) | Q(expires_at__gt=Now()))", ""):
        _, faults = read_near_expiry(clock, {"get": ways["get"], "list": ways["list"]}, 20)
    assert any("get: read" in fault for fault in faults)
    assert any("list: read" in fault for fault in faults)
