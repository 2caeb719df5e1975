"""The embedded PostgreSQL, and the clone that every test of the product gets."""

from collections.abc import Callable

import psycopg
import pytest
from django.db import connection

from tests.harness.databases import Clone
from tests.harness.servers import RELEASE


def test_it_serves_its_release_with_vectors(superuser: Callable[[], psycopg.Connection]) -> None:
    found = superuser().execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    assert found is not None
    assert found[0].startswith("0.8.")
    assert superuser().info.server_version // 10_000 == RELEASE


def test_the_product_connects_as_the_app_role(database: Clone) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, current_database()")
        assert cursor.fetchone() == ("memos_app", database.name)


@pytest.mark.parametrize("turn", [1, 2])
def test_what_one_test_commits_the_next_does_not_see(
    turn: int, owner_connection: psycopg.Connection, superuser: Callable[[], psycopg.Connection]
) -> None:
    owner_connection.execute("CREATE TABLE left_behind (turn integer)")
    assert superuser().execute("SELECT count(*) FROM left_behind").fetchone() == (0,), turn


def test_the_app_role_can_make_no_table(app_connection: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app_connection.execute("CREATE TABLE mine (id integer)")
