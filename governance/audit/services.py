"""The audit log. An entry is written in the transaction of its change; a denial in a transaction of its own."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import DatabaseError
from psycopg.types.json import Jsonb

from governance.actor import Actor
from governance.database import acting
from governance.errors import AuditUnavailable, Forbidden
from governance.ids import uuid7
from governance.prepared import prepared_cursor, sql_array
from governance.replica import put_off
from governance.vocabulary import Outcome, Verb

# Hand-written, as every request writes an entry, and the ORM takes longer to build it than PostgreSQL to run it.
INSERT = """
INSERT INTO governance_auditentry (id, tenant_id, principal_kind, principal_id, member_id, verb, outcome, object_type,
  object_ids, version, before_hash, after_hash, detail, context, request_id)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s::uuid[], %s, %s, %s, %s, %s, %s)
"""
Detail = Mapping[str, str | int | bool | None]


def record(
    *,
    actor: Actor,
    verb: Verb,
    object_type: str,
    object_ids: Sequence[UUID],
    version: int | None = None,
    before_hash: bytes | None = None,
    after_hash: bytes | None = None,
    detail: Detail | None = None,
    outcome: Outcome = Outcome.DONE,
    beside: tuple[str, Sequence[Any]] | None = None,
) -> None:
    """Write one entry inside the caller's transaction, or after it if that reads a replica.

    detail: numbers and names of things, never content.
    beside: a statement with its values, sent to the database in one batch with the entry's. Raises AuditUnavailable:
    the caller's transaction must then fail too, since every change must be recorded.
    """
    if put_off(
        lambda: record(
            actor=actor,
            verb=verb,
            object_type=object_type,
            object_ids=object_ids,
            version=version,
            before_hash=before_hash,
            after_hash=after_hash,
            detail=detail,
            outcome=outcome,
            beside=beside,
        )
    ):
        return
    row: list[Any] = [
        uuid7(),
        actor.tenant_id,
        actor.principal_kind,
        actor.principal_id,
        actor.member_id,
        verb,
        outcome,
        object_type,
        sql_array(object_ids),
        version,
        before_hash,
        after_hash,
        Jsonb(dict(detail or {})),
        Jsonb({name: value for name, value in vars(actor.context).items() if value}),
        actor.request_id,
    ]
    statement, values = beside if beside is not None else ("", ())
    try:
        with prepared_cursor() as cursor:
            cursor.execute(f"WITH entry AS ({INSERT}) {statement}" if statement else INSERT, [*row, *values])
    except DatabaseError as error:
        raise AuditUnavailable from error


def record_denial(*, actor: Actor, denial: Forbidden, path: str) -> None:
    """Record a denial in a transaction of its own, after the refused transaction was rolled back."""
    with acting(actor):
        record(
            actor=actor,
            verb=Verb.ACCESS_DENIED,
            object_type=denial.object_type,
            object_ids=[denial.object_id] if denial.object_id else [],
            detail={"permission": denial.permission, "rule": denial.rule, "path": path},
            outcome=Outcome.DENIED,
        )
