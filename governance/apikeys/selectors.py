"""Selectors of a tenant's API keys: their rights and last use, never their text."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import NotFound
from governance.models import ApiKey
from governance.pages import Pages
from governance.tenants.selectors import PersonaView, persona_view
from governance.vocabulary import Permission, Scope, Verb


@dataclass(frozen=True)
class KeyView:
    """An API key as members see it.

    previous_until: the end of the time in which the secret before the last rotation works. persona, namespaces: the
    bindings of the key. purpose: the purpose of calls that name none.
    """

    id: UUID
    prefix: str
    name: str
    member_id: UUID
    member_email: str
    member_name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    rotated_at: datetime | None
    previous_until: datetime | None
    last_used_at: datetime | None
    persona: PersonaView | None
    namespaces: tuple[str, ...]
    purpose: str


def apikeys_list(*, actor: Actor, pages: Pages) -> list[KeyView]:
    """Return every key of the tenant, newest first. Raises Forbidden. Writes: AuditEntry."""
    authorize(actor, Permission.APIKEY_MANAGE)
    with acting(actor):
        views = [key_view(row) for row in pages.take(_keys().order_by("-id"))]
        record(actor=actor, verb=Verb.APIKEYS_LISTED, object_type="api_key", object_ids=[view.id for view in views])
    return views


def apikey_get(*, actor: Actor, key_id: UUID) -> ApiKey:
    """Return the row of a key, to be shown or changed. Raises NotFound; Forbidden."""
    with acting(actor):
        row = _keys().filter(id=key_id).first()
    if row is None:
        authorize(actor, Permission.APIKEY_MANAGE)
        raise NotFound
    authorize(actor, Permission.APIKEY_MANAGE, Target("api_key", row.id, row.tenant_id))
    return row


def key_view(row: ApiKey) -> KeyView:
    return KeyView(
        id=row.id,
        prefix=row.prefix,
        name=row.name,
        member_id=row.member_id,
        member_email=row.member.user.email,
        member_name=row.member.display_name,
        scopes=tuple(Scope(scope) for scope in row.scopes),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        rotated_at=row.rotated_at,
        previous_until=row.previous_until,
        last_used_at=row.last_used_at,
        persona=persona_view(row.persona) if row.persona else None,
        namespaces=tuple(row.namespaces),
        purpose=row.purpose,
    )


def _keys() -> QuerySet[ApiKey]:
    return ApiKey.objects.select_related("member__user", "member__role", "persona")
