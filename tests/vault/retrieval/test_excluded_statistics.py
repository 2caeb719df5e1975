"""Tests of the statistics of a search: visible memories only, whatever was denied last, looked up once."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import World
from tests.governance.access.grants.test_grants import give_grant
from tests.governance.tables import become
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.policies.policy_factories import create_policy
from vault.retrieval import question, sql, statistics
from vault.retrieval.statistics import IndexStatistics

TEXTS = ("The otter swims at noon.", "The heron waits.", "Zelda feeds the otter by the weir.", "Ada paints.")
LOOKS = "cube.id IN (SELECT id FROM excluded)"  # in the statement that counts excluded cubes


@pytest.fixture
def statistics_read(monkeypatch: pytest.MonkeyPatch) -> list[IndexStatistics]:
    found: list[IndexStatistics] = []
    inner = statistics.read_index_statistics

    def record_statistics(*args: object) -> IndexStatistics:
        found.append(inner(*args))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(question, "read_index_statistics", record_statistics)
    return found


@pytest.fixture
def ids(alice: Contract) -> list[str]:
    added = [alice.add(text, namespace="/team")["id"] for text in TEXTS]
    run_jobs()
    return added


def test_statistics_count_visible_memories_after_each_denial(
    world: World, olivia: Contract, bob: Contract, ids: list[str], statistics_read: list[IndexStatistics]
) -> None:
    def read_counts() -> tuple[int, float]:
        bob.search("otter")
        return statistics_read[-1].cubes, statistics_read[-1].words

    everything = read_counts()
    first = give_grant(olivia, world, "bob", "memory", ids[0], effect="deny")
    without_first = read_counts()
    assert without_first == read_counts()
    give_grant(olivia, world, "bob", "memory", ids[2], effect="deny")
    assert read_counts()[0] == 2
    olivia.delete(f"grants/{first['id']}/")
    without_third = read_counts()
    assert (everything[0], without_first[0], without_third[0]) == (4, 3, 3)
    assert without_third[1] < without_first[1] < everything[1]  # the third says more than the first


def test_memory_denied_twice_is_subtracted_once(
    world: World, olivia: Contract, bob: Contract, ids: list[str], statistics_read: list[IndexStatistics]
) -> None:
    olivia.patch(f"memories/{ids[0]}/", {"sensitivity": "restricted"}, if_match='"1"')
    run_jobs()
    create_policy(olivia, "purpose", {"where": {"sensitivities": ["restricted"]}, "purposes": ["audit"]})
    bob.search("otter")
    assert statistics_read[-1].cubes == 3
    give_grant(olivia, world, "bob", "memory", ids[0], effect="deny")
    bob.search("otter")
    assert statistics_read[-1].cubes == 3


def test_excluded_memories_are_read_once_until_statistics_change(
    world: World, alice: Contract, olivia: Contract, bob: Contract, ids: list[str]
) -> None:
    def count_reads() -> int:
        with CaptureQueriesContext(connection) as asked:
            bob.search("otter")
        return sum(LOOKS in query["sql"] for query in asked)

    assert count_reads() == 0  # nothing is hidden
    give_grant(olivia, world, "bob", "memory", ids[0], effect="deny")
    assert [count_reads(), count_reads(), count_reads()] == [1, 0, 0]
    give_grant(olivia, world, "bob", "memory", ids[1], effect="deny")
    assert [count_reads(), count_reads()] == [1, 0]
    alice.add("A weasel.", namespace="/team")
    run_jobs()
    assert [count_reads(), count_reads()] == [1, 0]


def test_result_for_another_excluded_set_is_not_cached(
    world: World,
    bob: Contract,
    olivia: Contract,
    ids: list[str],
    statistics_read: list[IndexStatistics],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where a denial is taken back, and given again, between the two statements."""
    for memory_id in ids[:2]:
        give_grant(olivia, world, "bob", "memory", memory_id, effect="deny")
    with monkeypatch.context() as meanwhile:
        fewer = sql.EXCLUDED_SIZES.replace("WHERE false{denied}", "WHERE false{denied} LIMIT 1")
        assert fewer != sql.EXCLUDED_SIZES
        meanwhile.setattr(statistics, "EXCLUDED_SIZES", fewer)
        bob.search("otter")
        assert statistics_read[-1].cubes == 3
    bob.search("otter")
    assert statistics_read[-1].cubes == 2


def test_memory_deleted_between_both_statements_is_counted_by_neither(
    world: World,
    bob: Contract,
    olivia: Contract,
    ids: list[str],
    statistics_read: list[IndexStatistics],
    app_connection: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    look, to_delete = statistics._count_excluded, [ids[0]]

    def delete_first(*asked: Any) -> Any:
        with app_connection.transaction():
            become(app_connection, world.acme.id)
            for memory_id in to_delete:
                app_connection.execute("UPDATE vault_cube SET deleted_at = now() WHERE id = %s", [memory_id])
        to_delete.clear()
        return look(*asked)

    for memory_id in ids[:2]:
        give_grant(olivia, world, "bob", "memory", memory_id, effect="deny")
    monkeypatch.setattr(statistics, "_count_excluded", delete_first)
    bob.search("otter")
    assert (statistics_read[-1].cubes, to_delete) == (2, [])


@pytest.mark.parametrize("with_jobs", [True, False])
@pytest.mark.parametrize("how", ["deleted", "deleted and restored", "purged", "deleted and purged", "edited", "moved"])
def test_changed_denied_memory_leaves_the_statistics_of_its_reader_unchanged(
    world: World,
    alice: Contract,
    olivia: Contract,
    bob: Contract,
    ids: list[str],
    statistics_read: list[IndexStatistics],
    with_jobs: bool,
    how: str,
) -> None:
    def results_of_bob() -> object:
        found = bob.search("otter heron", mode="lexical", explain=True)
        return statistics_read[-1].cubes, statistics_read[-1].words, [(hit["id"], hit["score"]) for hit in found]

    def check_equal_results() -> None:
        if with_jobs:
            run_jobs()
        assert results_of_bob() == before

    for memory_id in ids[2:]:
        give_grant(olivia, world, "bob", "memory", memory_id, effect="deny")
    before = results_of_bob()
    assert statistics_read[-1].cubes == 2
    address = f"memories/{ids[2]}/"
    for step in how.split(" and "):
        replies = {
            "deleted": lambda: alice.delete(address),
            "restored": lambda: alice.post(f"{address}restore/"),
            "purged": lambda: alice.delete(f"{address}?purge=true"),
            "edited": lambda: alice.patch(address, {"content": "Weasels. " * 9}, if_match='"1"'),
            "moved": lambda: alice.patch(address, {"namespace": "/users/alice"}, if_match='"1"'),
        }
        assert replies[step]().status in (200, 204)
        check_equal_results()
    alice.add("A weasel.", namespace="/team")
    run_jobs()
    bob.search("otter")
    assert statistics_read[-1].cubes == 3


@pytest.mark.parametrize("way", ["deleted", "purged", "expired", "denied", "granted twice", "seen anyway"])
def test_visible_granted_memories_are_counted_once(
    world: World,
    alice: Contract,
    olivia: Contract,
    bob: Contract,
    ids: list[str],
    statistics_read: list[IndexStatistics],
    superuser: Callable[[], psycopg.Connection],
    way: str,
) -> None:
    private = [alice.add(text)["id"] for text in ("A kestrel.", "A weasel.")]
    run_jobs()
    for memory_id in private:
        give_grant(alice, world, "bob", "memory", memory_id)
    bob.search("otter")
    assert statistics_read[-1].granted == 2
    if way == "deleted":
        alice.delete(f"memories/{private[0]}/")
    elif way == "purged":
        alice.delete(f"memories/{private[0]}/?purge=true")
    elif way == "expired":
        superuser().execute("UPDATE vault_cube SET expires_at = now() WHERE id = %s", [private[0]])
    elif way == "denied":
        give_grant(olivia, world, "bob", "memory", private[0], effect="deny")
    elif way == "granted twice":
        give_grant(alice, world, "bob", "memory", private[0], action="write")
    else:
        give_grant(olivia, world, "bob", "memory", ids[0])
    bob.search("otter")
    assert statistics_read[-1].granted == (2 if way in {"granted twice", "seen anyway"} else 1)
    assert statistics_read[-1].cubes == len(ids) + statistics_read[-1].granted
