"""Prepared statements answer and fail as those that go through Django's cursors."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import DataError, InternalError, OperationalError, ProgrammingError, connection, transaction
from django.test.utils import CaptureQueriesContext

from governance.database import acting
from governance.ids import uuid7
from governance.prepared import prepared_cursor, send_together, sql_array
from tests.factories import World
from tests.harness.cases import each_case

VALUES: list[tuple[str, Any]] = [
    ("uuid", UUID(int=7)),
    ("int", -1),
    ("bigint", 2**62),
    ("float8", 0.1),
    ("bool", True),
    ("text", "茶 'heron' \\ %s {\"a\"}\n"),
    ("bytea", b"\x00\xff"),
    ("timestamptz", datetime(2026, 5, 1, 12, 30, 15, 1, tzinfo=UTC)),
    ("uuid[]", [UUID(int=1), UUID(int=2)]),
    ("bigint[]", [1, 2**40]),
    ("text[]", ["", "a,b", "茶"]),
    ("text", None),
]


@each_case(("kind", "value"), VALUES)
def test_a_value_comes_back_as_it_was_sent(world: World, kind: str, value: Any) -> None:
    with acting(world.alice.actor), prepared_cursor() as cursor:
        cursor.execute(f"SELECT %s::{kind}, %s::{kind} IS NULL", [value, value])
        assert cursor.fetchone() == (value, value is None)


def test_rows_are_the_same_whether_somebody_listens_or_not(world: World) -> None:
    def rows() -> list[Any]:
        with acting(world.alice.actor), prepared_cursor() as cursor:
            cursor.execute(
                "SELECT * FROM governance_member WHERE tenant_id = %(id)s", {"id": world.alice.actor.tenant_id}
            )
            return list(cursor.fetchall())

    with CaptureQueriesContext(connection) as heard:
        listened = rows()
    assert rows() == listened != []
    assert any("governance_member" in query["sql"] for query in heard)


def test_values_are_named_or_counted_and_a_percent_sign_is_one(world: World) -> None:
    with acting(world.alice.actor), prepared_cursor() as cursor:
        cursor.execute("SELECT %(b)s::int, %(a)s::int, %(b)s::int, 7 %% 4", {"a": 1, "b": 2})
        assert cursor.fetchall() == [(2, 1, 2, 3)]
        assert cursor.fetchall() == []
        cursor.execute("SELECT 7 % 4")
        assert (cursor.fetchone(), cursor.fetchone()) == ((3,), None)


def test_an_array_is_written_as_postgresql_reads_it(world: World) -> None:
    ids = [uuid7(), uuid7()]
    with acting(world.alice.actor), prepared_cursor() as cursor:
        cursor.execute(
            "SELECT %s::uuid[], %s::bigint[], %s::int[]", [sql_array(ids), sql_array([1, None]), sql_array([])]
        )
        assert cursor.fetchone() == (ids, [1, None], [])


def test_failing_statement_raises_djangos_error_and_ends_only_its_transaction(world: World) -> None:
    def fail() -> None:
        with prepared_cursor() as cursor:
            cursor.execute("SELECT %s::int / 0", [1])

    def go_on_after_it() -> None:
        with transaction.atomic():
            with pytest.raises(DataError):
                fail()
            with prepared_cursor() as cursor:
                cursor.execute("SELECT 1")

    with pytest.raises(DataError), acting(world.alice.actor):
        fail()
    with pytest.raises(InternalError, match="aborted"):
        go_on_after_it()
    with acting(world.alice.actor), prepared_cursor() as cursor:
        cursor.execute("SELECT 12 / %s::int", [4])
        assert cursor.fetchone() == (3,)


def test_a_statement_that_cannot_be_planned_is_asked_again_as_if_never_asked(world: World) -> None:
    for _ in range(2):
        with pytest.raises(Exception, match="no_such_table"), acting(world.alice.actor), prepared_cursor() as cursor:
            cursor.execute("SELECT * FROM no_such_table")


def test_the_first_statement_of_a_transaction_is_part_of_it(world: World) -> None:
    class Undone(Exception):
        pass

    def write(commit: bool) -> None:
        with acting(world.alice.actor):
            with prepared_cursor() as cursor:
                cursor.execute(
                    "UPDATE governance_tenant SET name = 'Heron' WHERE id = %s", [world.alice.actor.tenant_id]
                )
            if not commit:
                raise Undone

    def name() -> str:
        with acting(world.alice.actor), prepared_cursor() as cursor:
            cursor.execute("SELECT name FROM governance_tenant WHERE id = %s", [world.alice.actor.tenant_id])
            return str(cursor.fetchone()[0])

    before = name()
    with pytest.raises(Undone):
        write(commit=False)
    assert name() == before != "Heron"
    write(commit=True)
    assert name() == "Heron"


@pytest.mark.parametrize("is_known", [False, True])
def test_what_comes_first_in_one_go_is_part_of_its_transaction(world: World, is_known: bool) -> None:
    class Undone(Exception):
        pass

    statement = "SELECT set_config('tests.first', %s, false)"
    if is_known:  # it is prepared already
        with transaction.atomic(), prepared_cursor() as cursor:
            cursor.execute(statement, ["before"])

    def ask() -> None:
        with transaction.atomic(), prepared_cursor() as first, prepared_cursor() as second:
            with send_together():
                first.execute(statement, ["inside"])
                second.execute("SELECT 1")
            assert (first.fetchone(), second.fetchone()) == (("inside",), (1,))
            raise Undone

    with pytest.raises(Undone):
        ask()
    with prepared_cursor() as cursor:
        cursor.execute("SELECT current_setting('tests.first', true)")
        assert cursor.fetchone()[0] == ("before" if is_known else "")


def test_a_first_statement_that_cannot_be_planned_ends_its_transaction(world: World) -> None:
    def go_on_after_it() -> None:
        with transaction.atomic():
            with pytest.raises(ProgrammingError), prepared_cursor() as cursor:
                cursor.execute("SELECT * FROM no_such_table")
            with prepared_cursor() as cursor:
                cursor.execute("SELECT 1")

    with pytest.raises(InternalError, match="aborted"):
        go_on_after_it()


def test_what_somebody_listened_to_and_undid_leaves_statements_prepared(world: World) -> None:
    def ask() -> Any:
        with prepared_cursor() as cursor:
            cursor.execute("SELECT 40 + %s::int", [2])
            return cursor.fetchone()

    def ask_and_fail() -> None:
        with transaction.atomic():
            ask()
            raise ValueError("undone")

    assert ask() == (42,)
    with CaptureQueriesContext(connection), pytest.raises(ValueError, match="undone"):
        ask_and_fail()
    assert ask() == (42,)


def test_statements_in_one_go_each_have_their_rows(world: World) -> None:
    with acting(world.alice.actor), prepared_cursor() as first, prepared_cursor() as second:
        with send_together():
            first.execute("SELECT generate_series(1, %s::int)", [1_000])
            second.execute("SELECT repeat('x', %s::int)", [1_000_000])
        assert [row[0] for row in first.fetchall()] == list(range(1, 1_001))
        assert len(second.fetchone()[0]) == 1_000_000


def test_failure_in_one_go_raises_and_outside_a_transaction_changes_no_row(world: World) -> None:
    key = "tests.prepared"

    def setting() -> Any:
        with prepared_cursor() as cursor:
            cursor.execute("SELECT current_setting(%s, true)", [key])
            return cursor.fetchone()[0]

    def ask(*statements: str) -> None:
        cursors = [prepared_cursor() for _ in statements]
        with send_together():
            for opened, statement in zip(cursors, statements, strict=True):
                with opened as cursor:
                    cursor.execute(statement)

    ask(f"SELECT set_config('{key}', 'before', false)")
    with pytest.raises(DataError, match="division by zero"):
        ask(f"SELECT set_config('{key}', 'after', false)", "SELECT 1 / 0", "SELECT 2")
    assert setting() == "before"
    ask(f"SELECT set_config('{key}', 'after', false)", "SELECT 2")
    assert setting() == "after"


@pytest.mark.parametrize("together", [False, True])
def test_a_session_that_is_ended_is_an_operational_error_and_the_next_one_works(
    world: World, superuser: Callable[[], psycopg.Connection], together: bool
) -> None:
    def ask_too_late() -> None:
        with acting(world.alice.actor), prepared_cursor() as cursor:
            superuser().execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])
            if not together:
                cursor.execute("SELECT 1")
                return
            with send_together():
                cursor.execute("SELECT 1")

    with pytest.raises(OperationalError):
        ask_too_late()
    with acting(world.alice.actor), prepared_cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


def test_json_comes_parsed(world: World) -> None:
    with acting(world.alice.actor), prepared_cursor() as cursor:
        cursor.execute("SELECT %s::jsonb", [json.dumps({"tea": ["茶", None, 1.5]})])
        assert cursor.fetchone() == ({"tea": ["茶", None, 1.5]},)
