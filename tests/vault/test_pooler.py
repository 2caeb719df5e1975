"""A pooler of transactions before PostgreSQL: nothing depends on a session, and what does goes directly."""

from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection, connections

from governance.database import await_lock, hold_free_lock, session_connection
from governance.prepared import prepared_cursor
from memos_web.config import ConfigError, read_config
from memos_web.management.checks import Failed, pooler
from memos_web.settings.databases import databases
from tests.factories import World
from tests.governance.audit.logs import Superuser
from tests.harness.databases import Clone
from tests.harness.pooler import MixingPooler, mixing_pooler
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs


@pytest.fixture
def mixed(world: World, database: Clone) -> Iterator[MixingPooler]:
    """Django's connection leads through a pooler, and `direct` to the server."""
    server = database.server
    direct = f"postgresql://memos_app@/{database.name}?host={server.socket_dir}&port={server.port}"
    with mixing_pooler(server.socket_dir / f".s.PGSQL.{server.port}", database.name) as (found, port):
        address = f"postgresql://memos_app@127.0.0.1:{port}/{database.name}"
        entries = databases(read_config({"DATABASE_URL": address, "DATABASE_DIRECT_URL": direct}))
        for entry in entries.values():
            del entry["OPTIONS"]["pool"]
        before = dict(connection.settings_dict)
        connection.close()
        connection.settings_dict.update(entries["default"])
        connections.settings["direct"] = connections.configure_settings({**entries})["direct"]
        yield found
        connections["direct"].close()
        del connections["direct"], connections.settings["direct"]
        connection.close()
        connection.settings_dict.update(before)


def test_calls_and_jobs_run_through_a_pooler_that_mixes_sessions(mixed: MixingPooler, alice: Contract) -> None:
    added = alice.add("The spare key lies in the blue cabinet.", namespace="/team")
    run_jobs()
    for _ in range(3):
        found = alice.post("memories/search/", {"query": "Where is the spare key?"})
        assert found.json["results"][0]["id"] == added["id"]
    conversation = alice.post("conversations/", {}).json["id"]
    turn = alice.post(f"conversations/{conversation}/turns/", {"content": "Where is the spare key?"})
    assert "blue cabinet" in turn.json["content"], turn.json
    twice = [alice.post("memories/", {"content": "Once."}, HTTP_IDEMPOTENCY_KEY="one") for _ in range(2)]
    assert twice[0].json["results"][0]["id"] == twice[1].json["results"][0]["id"]
    assert mixed.transactions > 20
    assert mixed.refused == []


def test_locks_are_held_by_a_session_of_their_own_and_end_with_their_block(mixed: MixingPooler) -> None:
    with hold_free_lock(["one", "two"]) as held:
        assert held == "one"
        with psycopg.connect(**session_connection().get_connection_params()) as other:
            row = other.execute("SELECT pg_try_advisory_lock(hashtextextended('one', 1))").fetchone()
            assert row == (False,)
    with await_lock("one", seconds=1):
        assert session_connection() is connections["direct"]


def test_a_pooler_as_in_this_test_would_show_what_depends_on_a_session(mixed: MixingPooler) -> None:
    parameters = connection.get_connection_params()
    with pytest.raises(psycopg.OperationalError, match="unsupported startup parameter"):
        psycopg.connect(**{**parameters, "options": "-c plan_cache_mode=force_generic_plan"})
    with psycopg.connect(**{**parameters, "prepare_threshold": 5}, autocommit=True) as session:
        cursor = psycopg.RawCursor(session)
        with pytest.raises(psycopg.errors.InvalidSqlStatementName):
            cursor.execute("SELECT 1", prepare=True)
    with prepared_cursor() as ours:
        for _ in range(3):
            ours.execute("SELECT %s::int", [1])


def test_doctor_names_a_role_without_the_settings_that_a_pooler_does_not_pass_on(
    mixed: MixingPooler, database: Clone, superuser: Superuser
) -> None:
    assert pooler().startswith("passes transactions")
    superuser().execute(f"ALTER ROLE memos_app IN DATABASE {database.name} SET plan_cache_mode = 'auto'")
    mixed.close()
    mixed.open()
    with pytest.raises(Failed, match=r"init-database\.sh"):
        pooler()


def test_a_second_address_without_the_first_is_refused() -> None:
    for name in ("DATABASE_DIRECT_URL", "DATABASE_READ_URL"):
        with pytest.raises(ConfigError, match=name):
            read_config({name: "postgresql://memos_app@db/memos"})
