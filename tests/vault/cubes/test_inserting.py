"""Statements that pass the ORM by still fail in the words that the rest of the product understands."""

from collections.abc import Callable, Sequence

import psycopg
import pytest
from django.db import IntegrityError, OperationalError, connection
from django.db.models import Model

from governance.database import acting
from governance.prepared import prepared_cursor
from tests.factories import World
from tests.vault.api.contract import Contract
from vault.cubes import services
from vault.cubes.inserting import insert_rows
from vault.models import Cube


def test_a_row_that_is_there_already_is_an_integrity_error(world: World, alice: Contract) -> None:
    alice.add("The heron nests by the mill.")
    with pytest.raises(IntegrityError), acting(world.alice.actor):
        insert_rows([Cube.objects.get()])


def test_a_session_that_is_ended_is_an_operational_error(
    world: World, superuser: Callable[[], psycopg.Connection]
) -> None:
    def ask_too_late() -> None:
        with acting(world.alice.actor):
            _end_session(superuser())
            with prepared_cursor() as cursor:
                cursor.execute("SELECT %s", [1])

    with pytest.raises(OperationalError):
        ask_too_late()


def test_a_write_whose_session_is_ended_in_its_midst_is_a_503(
    alice: Contract, superuser: Callable[[], psycopg.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    def insert_too_late(rows: Sequence[Model]) -> None:
        _end_session(superuser())
        insert_rows(rows)

    monkeypatch.setattr(services, "insert_rows", insert_too_late)
    refused = alice.post("memories/", {"content": "The heron nests by the mill."})
    assert (refused.status, refused.json["code"]) == (503, "unavailable")


def _end_session(superuser: psycopg.Connection) -> None:
    superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])
    superuser.commit()
