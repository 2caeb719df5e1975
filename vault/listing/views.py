"""Saved views: named searches and filters of a member. A member sees no other member's views."""

import json
from dataclasses import dataclass, field
from urllib.parse import parse_qs
from uuid import UUID

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Forbidden, Invalid, NotFound
from governance.ids import uuid7
from governance.keys.services import member_scope, open_sealed, seal_for, token_maker
from governance.vocabulary import Permission, Scope, Verb
from vault.listing.queries import query_read
from vault.models import SavedView

OBJECT_TYPE = "view"
LONGEST_NAME, LONGEST_QUERY = 60, 2000
MOST_VIEWS = 30  # of one member


@dataclass(frozen=True)
class ViewDraft:
    """A view to save. query: a query string, such as `q=school&layer=long_term`."""

    name: str = field(repr=False)
    query: str = field(repr=False)


@dataclass(frozen=True)
class View:
    id: UUID
    name: str = field(repr=False)
    query: str = field(repr=False)


def views_list(*, actor: Actor) -> list[View]:
    """Return the actor's own views, oldest first; none for an actor without a membership or with a bound key.

    Raises Forbidden; KeyUnavailable.
    """
    authorize(actor, Permission.MEMORY_READ)
    if actor.member_id is None or actor.binding is not None:
        return []
    with acting(actor):
        rows = SavedView.objects.filter(tenant_id=actor.tenant_id, member_id=actor.member_id).order_by("id")
        return [view for row in rows if (view := _open_view(row)) is not None]


def view_create(*, actor: Actor, draft: ViewDraft) -> View:
    """Create a view. Writes: SavedView, AuditEntry.

    Raises Forbidden; Invalid; Conflict if the actor has MOST_VIEWS already.
    """
    view_create_ask(actor=actor)
    member_id = _require_member(actor)
    _check_draft(actor, draft)
    with acting(actor):
        mine = SavedView.objects.filter(tenant_id=actor.tenant_id, member_id=member_id)
        if mine.count() >= MOST_VIEWS:
            raise Conflict(f"A member keeps at most {MOST_VIEWS} views. Delete one first.")
        row = SavedView(id=uuid7(), tenant_id=actor.tenant_id, member_id=member_id)
        row.sealed = _seal_view(row, draft)
        row.save(force_insert=True)
        record(actor=actor, verb=Verb.VIEW_CREATED, object_type=OBJECT_TYPE, object_ids=[row.id])
        return View(row.id, draft.name, draft.query)


def view_create_ask(*, actor: Actor) -> None:
    """Check that the actor may save views. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_READ)
    _refuse_reading_key(actor)
    if actor.binding is not None:
        raise Forbidden("A bound key has no views.", permission=Permission.MEMORY_READ, rule="binding")


def view_remove(*, actor: Actor, view_id: UUID) -> None:
    """Remove a view. Raises Forbidden; NotFound, also for a bound key or another member's view.

    Writes: AuditEntry; deletes SavedView.
    """
    if actor.binding is not None:
        raise NotFound
    with acting(actor):
        row = SavedView.objects.filter(tenant_id=actor.tenant_id, member_id=_require_member(actor), id=view_id).first()
        if row is None:
            raise NotFound
        authorize(actor, Permission.MEMORY_READ, _target(row))
        _refuse_reading_key(actor)
        row.delete()
        record(actor=actor, verb=Verb.VIEW_REMOVED, object_type=OBJECT_TYPE, object_ids=[view_id])


def _refuse_reading_key(actor: Actor) -> None:
    """Raise Forbidden for a key without a writing scope. Every member may save views, whatever the role."""
    if actor.scopes is not None and Scope.MEMORIES_WRITE not in actor.scopes:
        detail = f"The key lacks the scope {Scope.MEMORIES_WRITE}."
        raise Forbidden(detail, permission=Permission.MEMORY_READ, rule="scopes")


def _target(row: SavedView) -> Target:
    return Target(OBJECT_TYPE, row.id, row.tenant_id, private_to=frozenset({row.member_id}), owner_id=row.member_id)


def _require_member(actor: Actor) -> UUID:
    if actor.member_id is None:
        raise Forbidden("Only a member has views.", permission=Permission.MEMORY_READ, rule="member")
    return actor.member_id


def _check_draft(actor: Actor, draft: ViewDraft) -> None:
    if not 0 < len(draft.name.strip()) <= LONGEST_NAME or not draft.name.isprintable():
        raise Invalid(errors=[FieldError("name", f"1 to {LONGEST_NAME} printable characters")])
    if len(draft.query) > LONGEST_QUERY:
        raise Invalid(errors=[FieldError("query", f"at most {LONGEST_QUERY} characters")])
    query_read(parse_qs(draft.query)).condition(token_maker(actor.tenant_id))


def _seal_view(row: SavedView, draft: ViewDraft) -> bytes:
    plaintext = json.dumps({"name": draft.name.strip(), "query": draft.query}, ensure_ascii=False).encode()
    scope = member_scope(row.member_id)
    return seal_for(tenant_id=row.tenant_id, scope=scope, place=row.id.bytes, plaintext=plaintext)


def _open_view(row: SavedView) -> View | None:
    """Decrypt a view; None if its key was destroyed."""
    plaintext = open_sealed(tenant_id=row.tenant_id, place=row.id.bytes, blob=row.sealed)
    return View(row.id, **json.loads(plaintext)) if plaintext else None
