"""The product refuses to serve as a role that row-level security does not bind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from psycopg import sql

from governance.errors import Unavailable
from governance.tenants import startup_check
from governance.tenants.role_check import UnsafeRole
from governance.tenants.startup_check import refuse_unsafe_role
from memos_web.management.checks import Failed, database_log
from tests.harness.databases import Clone
from tests.harness.servers import ROOT

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


def test_it_refuses_an_older_server_in_one_line_and_so_does_migrate(
    database: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup_check, "OLDEST_SERVER", 99)
    with pytest.raises(Unavailable, match=r"^PostgreSQL \d+ is too old: 99 or newer is needed$"):
        refuse_unsafe_role()
    with pytest.raises(CommandError, match=r"is too old: 99 or newer is needed$"):
        call_command("migrate", verbosity=0)


def test_doctor_names_settings_that_bring_content_into_the_servers_log(database: Clone, superuser: Superuser) -> None:
    assert database_log() == "has neither statements nor values"
    name = sql.Identifier(str(connection.settings_dict["NAME"]))
    for setting in ("log_statement = 'all'", "log_min_duration_statement = 250"):
        superuser().execute(sql.SQL(f"ALTER DATABASE {{}} SET {setting}").format(name))
    connection.close()
    with pytest.raises(Failed, match=r"log_min_duration_statement, log_statement: run deploy/database.sql"):
        database_log()
    superuser().execute((ROOT / "deploy" / "database.sql").read_text(encoding="utf-8"))
    connection.close()
    assert database_log() == "has neither statements nor values"


def test_it_refuses_a_database_that_another_release_has_migrated(database: Clone, superuser: Superuser) -> None:
    row = "django_migrations WHERE app = 'vault' AND name = '0001_initial'"
    assert superuser().execute(f"DELETE FROM {row}".encode()).rowcount == 1
    with pytest.raises(Unavailable, match=r"lacks a migration of this release \(vault.0001_initial\): run `manage.py"):
        refuse_unsafe_role()
    superuser().execute("INSERT INTO django_migrations (app, name, applied) VALUES ('vault', '9999_later', now())")
    with pytest.raises(Unavailable, match=r"^A newer release has migrated the database \(vault.9999_later\)"):
        refuse_unsafe_role()
