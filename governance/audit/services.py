"""The trail. A row is written in the transaction of what it tells of; denials have one of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from uuid import UUID

from django.db import DatabaseError

from governance.actor import Actor
from governance.database import acting
from governance.errors import AuditUnavailable, Forbidden
from governance.models import AuditEntry
from governance.vocabulary import Outcome, Verb

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
) -> None:
    """Write one row inside the caller's transaction. `detail` holds numbers and names of things, never content.

    Raises AuditUnavailable: what cannot be recorded does not happen, so the caller's transaction must fail with it.
    """
    entry = AuditEntry(
        tenant_id=actor.tenant_id,
        principal_kind=actor.principal_kind,
        principal_id=actor.principal_id,
        member_id=actor.member_id,
        verb=verb,
        outcome=outcome,
        object_type=object_type,
        object_ids=list(object_ids),
        version=version,
        before_hash=before_hash,
        after_hash=after_hash,
        detail=dict(detail or {}),
        context={name: value for name, value in asdict(actor.context).items() if value},
        request_id=actor.request_id,
    )
    try:
        AuditEntry.objects.bulk_create([entry])  # one INSERT without RETURNING: nothing is read back
    except DatabaseError as error:
        raise AuditUnavailable from error


def record_denial(*, actor: Actor, denial: Forbidden, path: str) -> None:
    """Tell that `actor` was refused, in a transaction of its own, after the refused one was rolled back."""
    with acting(actor):
        record(
            actor=actor,
            verb=Verb.ACCESS_DENIED,
            object_type=denial.object_type,
            object_ids=[denial.object_id] if denial.object_id else [],
            detail={"permission": denial.permission, "rule": denial.rule, "path": path},
            outcome=Outcome.DENIED,
        )
