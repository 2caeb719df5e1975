"""Tests of bulk inserts: errors of the database become errors of Django, and values are stored unchanged."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, OperationalError, connection

from governance.database import acting
from governance.ids import uuid7
from governance.prepared import prepared_cursor
from tests.factories import World
from tests.vault.api.contract import Contract
from vault.content.bulk_insert import defaults_of, insert_batches, insert_rows, make_row
from vault.cubes import services
from vault.models import Cube


def test_stored_row_inserted_again_is_an_integrity_error(world: World, alice: Contract) -> None:
    alice.add("The heron nests by the mill.")
    with pytest.raises(IntegrityError), acting(world.alice.actor):
        insert_rows([Cube.objects.get()])


def test_ended_session_is_an_operational_error(world: World, superuser: Callable[[], psycopg.Connection]) -> None:
    def ask_too_late() -> None:
        with acting(world.alice.actor):
            _end_session(superuser())
            with prepared_cursor() as cursor:
                cursor.execute("SELECT %s", [1])

    with pytest.raises(OperationalError):
        ask_too_late()


def test_write_in_a_session_that_ends_is_a_503(
    alice: Contract, superuser: Callable[[], psycopg.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    def insert_too_late(*rows: Any) -> None:
        _end_session(superuser())
        insert_batches(*rows)

    monkeypatch.setattr(services, "insert_batches", insert_too_late)
    refused = alice.post("memories/", {"content": "The heron nests by the mill."})
    assert (refused.status, refused.json["code"]) == (503, "unavailable")


def _end_session(superuser: psycopg.Connection) -> None:
    superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])
    superuser.commit()


AWKWARD = ["NULL", "", " ", '"', "\\", "\\x00", "{a,b}", "a,b", "'", "%s", "茶\n\t", '\\\\"']


@pytest.mark.parametrize("count", [1, 3])
def test_rows_arrive_as_they_were_sent(world: World, alice: Contract, count: int) -> None:
    alice.add("The heron nests by the mill.", namespace="/team")
    with acting(world.alice.actor):
        like = Cube.objects.get()
        rows = [_make_cube(like, number) for number in range(count)]
        insert_rows(rows)
        stored = {cube.id: cube for cube in Cube.objects.exclude(id=like.id)}
    for row in rows:
        for field in Cube._meta.concrete_fields:
            there = getattr(stored[row.id], field.attname)
            wanted = getattr(row, field.attname)
            assert (bytes(there) if isinstance(there, memoryview) else there) == wanted, field.attname


def _make_cube(like: Cube, number: int) -> Cube:
    """Make a row that shares some columns with the others and differs in the rest."""
    return make_row(
        Cube,
        {
            **{field.attname: getattr(like, field.attname) for field in Cube._meta.concrete_fields},
            "id": uuid7(),
            "tags": AWKWARD[number:],
            "purpose_tags": AWKWARD,
            "reader": AWKWARD[number],
            "retention_class": AWKWARD[-1],
            "speaker_marks": [number, -(2**63)],
            "session_token": None if number == 1 else 2**63 - 1,
            "position": number or None,
            "importance": 0.1 * number,
            "mentions_time": number == 2,
            "event_time": datetime(2026, 5, 4, 3, 2, 1, 987654, tzinfo=timezone(timedelta(hours=8))),
            "expires_at": None if number else datetime(2099, 1, 1, tzinfo=UTC),
            "content_hash": bytes(range(32)) if number else b"",
        },
        {"namespace": like.namespace},
    )


def test_made_row_equals_a_row_of_the_orm(world: World, alice: Contract) -> None:
    alice.add("The heron nests by the mill.", namespace="/team")
    with acting(world.alice.actor):
        stored = Cube.objects.select_related("namespace", "persona").get()
    values = {field.attname: getattr(stored, field.attname) for field in Cube._meta.concrete_fields}
    made = make_row(Cube, values, {"namespace": stored.namespace, "persona": None})
    constructed = Cube(**values)
    assert {name: value for name, value in vars(made).items() if name != "_state"} == {
        name: value for name, value in vars(constructed).items() if name != "_state"
    }
    assert (made._state.adding, made._state.db) == (constructed._state.adding, constructed._state.db)
    assert (made.namespace.path, made.persona) == ("/team", None)  # without a query: nobody acts


def test_every_column_has_its_default() -> None:
    assert set(defaults_of(Cube)) == {field.attname for field in Cube._meta.concrete_fields}
    assert defaults_of(Cube)["version"] == 1
    assert defaults_of(Cube)["trust"] == 0.5
