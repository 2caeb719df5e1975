"""Installations of the first release, v0.1.0, can be brought up to date: its migrations stay as they were released."""

import hashlib
from collections.abc import Iterator
from importlib import import_module

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.operations import RunSQL
from django.db.migrations.operations.base import Operation
from django.db.migrations.writer import OperationWriter
from psycopg import sql

from governance.tables import CreateTables
from memos_web.embedded.postgres import SUPERUSER
from memos_web.settings.databases import APP_ROLE, OWNER_ROLE
from tests.harness.databases import Clone
from tests.harness.servers import ROOT, Servers

# What each migration of v0.1.0 does, as a hash. Never change one: write a new migration.
RELEASED = {
    "governance.0001_initial": "816c47ccfbb68bf74f39ae5dee043082",
    "governance.0002_tables": "b8f930edbe34d2862a607d4e7ec4b589",
    "governance.0003_row_security": "2aa5cacd0a984345749e3fba6e9f5d3b",
    "governance.0004_functions": "d98ad30e3f36327a9d5b40d0966f387d",
    "vault.0001_initial": "7dce5ab3fcc83c540bae4246c59c4dab",
    "vault.0002_row_security": "469cbc63e016cf3fc847c7f6d41ee404",
    "vault.0003_functions": "ae6887618d7d86a983738b10c672f170",
}
ROWS = """
INSERT INTO governance_tenant (id, slug, name) VALUES (uuidv7(), 'acme', 'Acme');
INSERT INTO governance_user (id, email, password, is_active) VALUES (uuidv7(), 'anna@acme.example', '', true);
INSERT INTO governance_role (id, tenant_id, name) SELECT uuidv7(), id, 'owner' FROM governance_tenant;
INSERT INTO governance_member (id, tenant_id, user_id, role_id, display_name)
  SELECT uuidv7(), role.tenant_id, person.id, role.id, 'Anna' FROM governance_role AS role, governance_user AS person;
INSERT INTO governance_auditentry
  (id, tenant_id, principal_kind, principal_id, verb, outcome, object_type, object_ids, detail, context, request_id)
  SELECT uuidv7(), id, 'system', uuidv7(), 'tenant.created', 'done', 'tenant', ARRAY[id], '{}', '{}', 'r'
  FROM governance_tenant;
INSERT INTO vault_namespace (id, tenant_id, path, kind, read_only, owner_id)
  SELECT uuidv7(), tenant_id, '/anna', 'private', false, id FROM governance_member;
INSERT INTO vault_cube (id, tenant_id, namespace_id, owner_id, access_level, semantic_type, sensitivity, tags,
    importance, priority, type, layer, modality, language, state, source, reader, trust, speaker_marks, entity_marks,
    mentions_time, asks, retention_class, purpose_tags, content_hash, token_count, term_count, version, has_sources)
  SELECT uuidv7(), tenant_id, id, owner_id, 'private', 'fact', 'internal', '{}',
    .5, 0, 'plaintext', 'long_term', 'text', 'en', 'activated', 'api', 'verbatim/1', .5, '{}', '{}',
    false, 0, '', '{}', sha256('x'), 1, 1, 1, false
  FROM vault_namespace;
INSERT INTO vault_cubeversion (id, tenant_id, cube_id, number, namespace_id, owner_id, access_level, semantic_type,
    sensitivity, tags, importance, priority, sealed, terms, principal_kind, principal_id, reason, hash)
  SELECT uuidv7(), tenant_id, id, 1, namespace_id, owner_id, access_level, semantic_type, sensitivity, tags, importance,
    priority, 'sealed', '{1}', 'member', owner_id, '', sha256('y')
  FROM vault_cube;
INSERT INTO vault_posting (tenant_id, term, cube_id, namespace_id, frequency, length, layer, type, happened_at)
  SELECT tenant_id, 1, id, namespace_id, 1, 1, 3, 1, created_at FROM vault_cube;
"""
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename ~ '^(governance|vault)_'"


def test_released_migrations_do_what_they_did() -> None:
    """If this fails, restore the migration and what it imports, and write a new one."""
    assert {name: _digest(_operations(name)) for name in RELEASED} == RELEASED


def test_rows_of_the_first_release_are_there_after_an_upgrade(empty_database: psycopg.Connection) -> None:
    MigrationExecutor(connection).migrate([_target("governance"), _target("vault")])
    empty_database.execute(ROWS)
    before = _counts(empty_database)
    call_command("migrate", verbosity=0)
    assert _counts(empty_database) == before
    assert before["governance_auditunsealed"] == before["vault_cube"] == 1


@pytest.fixture
def empty_database(servers: Servers, worker_id: str, database: Clone) -> Iterator[psycopg.Connection]:
    """Django is connected as the owner of a database without tables; yields a superuser's connection to it."""
    name = f"upgraded_{worker_id}"
    with database.connect(SUPERUSER) as maintenance:
        maintenance.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        maintenance.execute(
            sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(OWNER_ROLE))
        )
    with Clone(name, servers.postgres).connect(SUPERUSER) as superuser:
        superuser.execute((ROOT / "deploy" / "database.sql").read_text(encoding="utf-8"))
        connection.close()
        connection.settings_dict.update(NAME=name, USER=OWNER_ROLE)
        yield superuser
        connection.close()
        connection.settings_dict["USER"] = APP_ROLE


def _operations(name: str) -> list[Operation]:
    app, migration = name.split(".")
    operations: list[Operation] = import_module(f"{app}.migrations.{migration}").Migration.operations
    return operations


def _digest(operations: list[Operation]) -> str:
    text = "\n".join(line for operation in operations for line in _lines(operation))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _lines(operation: Operation) -> list[str]:
    """The statements of an operation, or its tables as Django writes them, whatever helpers of migrations made them."""
    if isinstance(operation, RunSQL):
        return [str(statement) for statement in operation.sql]
    tables = operation.tables if isinstance(operation, CreateTables) else [operation]
    return [OperationWriter(table, indentation=0).serialize()[0] for table in tables]


def _target(app: str) -> tuple[str, str]:
    return app, max(name for name in RELEASED if name.startswith(f"{app}.")).removeprefix(f"{app}.")


def _counts(superuser: psycopg.Connection) -> dict[str, int]:
    query = "SELECT count(*) FROM {}"
    tables = [name for (name,) in superuser.execute(TABLES)]
    counts = {name: superuser.execute(sql.SQL(query).format(sql.Identifier(name))).fetchone() for name in tables}
    return {name: row[0] for name, row in counts.items() if row and row[0]}
