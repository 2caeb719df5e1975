"""Prepares an installation before it serves: tables, key store, first tenant. Runs in a short-lived process."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO

from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from governance.errors import KeyUnavailable
from governance.keys.services import key_store
from memos_web.config import Config
from memos_web.embedded.bootstrap import has_tenants
from memos_web.embedded.first_run import TENANT_CREATE
from memos_web.embedded.messages import Order, receive, send
from memos_web.settings.databases import databases


class Refused(Exception):
    """The start must end. The message is one line for a person."""


def prepare(config: Config, supervisor: socket.socket) -> int:
    """Carry out the supervisor's order, and return the exit code. Unexpected errors end the process and are in its
    log."""
    order = Order(**(receive(supervisor) or sys.exit(1)))
    connection.settings_dict["OPTIONS"].pop("pool", None)  # its threads would outlast the work
    try:
        _migrate(config, order, supervisor)
        _check_keys(config)
    except Refused as refusal:
        send(supervisor, refusal=str(refusal))
        return 1
    if order.makes_tenant and not (order.superuser and has_tenants(order.superuser)):
        _make_tenant(supervisor)
    return 0


def _migrate(config: Config, order: Order, supervisor: socket.socket) -> None:
    with _connection(config, order):
        executor = MigrationExecutor(connection)
        if not executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return
        if not order.may_migrate:
            raise Refused("migrations are missing: run `manage.py migrate` with DATABASE_OWNER_URL set")
        send(supervisor, say="migrating")
        call_command("migrate", interactive=False)


@contextmanager
def _connection(config: Config, order: Order) -> Iterator[None]:
    """Connect as the owner if migrations are allowed, otherwise as the app role, in this block."""
    given = connection.settings_dict
    if order.may_migrate:
        owner = replace(config, database_role="owner", database_owner_url=order.owner_url)
        connection.settings_dict = {**given, **databases(owner)["default"]}
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict = given


def _check_keys(config: Config) -> None:
    try:
        key_store().check()
    except KeyUnavailable as error:
        raise Refused(f"{error} Folder: {config.data_dir / 'keys'}") from error


def _make_tenant(supervisor: socket.socket) -> None:
    send(supervisor, say="making the first tenant")
    answer = StringIO()
    try:
        call_command(*TENANT_CREATE, stdout=answer)
    except CommandError as error:
        send(supervisor, say=f"no first tenant was made: {error}")
    else:
        send(supervisor, made=answer.getvalue())
