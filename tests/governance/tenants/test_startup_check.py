"""The product refuses to serve as a role that row-level security does not bind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection

from governance.tenants.role_check import UnsafeRole
from governance.tenants.startup_check import refuse_unsafe_role
from tests.harness.databases import Clone

Superuser = Callable[[], psycopg.Connection]


@contextmanager
def _serve_as(role: str) -> Iterator[None]:
    """Django connects as `role`, as with a DATABASE_URL that names it."""
    usual = connection.settings_dict["USER"]
    connection.close()
    connection.settings_dict["USER"] = role
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["USER"] = usual


def test_it_serves_as_the_app_role(database: Clone) -> None:
    refuse_unsafe_role()


@pytest.mark.parametrize("role", ["memos_owner", "postgres"])
def test_it_refuses_the_owner_and_a_superuser_in_one_line(database: Clone, role: str) -> None:
    with _serve_as(role), pytest.raises(UnsafeRole) as refusal:
        refuse_unsafe_role()
    assert role in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("what", ["TABLE vault_cube", "TABLE django_session"])
def test_it_refuses_a_role_that_owns_a_table(database: Clone, superuser: Superuser, what: str) -> None:
    superuser().execute(f"ALTER {what} OWNER TO memos_app".encode())
    with pytest.raises(UnsafeRole):
        refuse_unsafe_role()
