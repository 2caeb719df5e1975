"""Selectors of principals. Before a tenant is known, they call the router's functions, which return only ids."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID, uuid4

from django.db import connection

from governance.access.decisions.services import authorize
from governance.actor import Actor, CallContext
from governance.database import (
    acting,
    database_now,
    no_tenant,
    remember_epoch,
    tenant_transaction,
    transaction_without_tenant,
)
from governance.errors import NotFound, Unauthenticated
from governance.keys.services import credential_hash
from governance.models import ApiKey, Member, Persona, Tenant
from governance.personas.selectors import personas_of
from governance.prepared import prepared_cursor
from governance.tenants.last_use import note_key_use
from governance.tenants.principals import binding_of, links_usable
from governance.tenants.rules import credential_parse
from governance.vocabulary import Permission, PersonaKind, PrincipalKind, RoleName, Scope


@dataclass(frozen=True)
class PersonaView:
    id: UUID
    name: str
    kind: PersonaKind

    @property
    def is_agent(self) -> bool:
        return self.kind is PersonaKind.AGENT


@dataclass(frozen=True)
class Me:
    """The caller as `GET me/` shows it."""

    tenant_id: UUID
    tenant_slug: str
    tenant_name: str
    email: str | None
    display_name: str
    key_prefix: str | None
    key_expires_at: datetime | None
    bound_persona: PersonaView | None
    bound_namespaces: tuple[str, ...]
    purpose: str
    personas: tuple[PersonaView, ...]


def tenant_id_by_slug(slug: str) -> UUID | None:
    return _router_id("SELECT governance_tenant_by_slug(%s)", slug)


def tenant_ids() -> list[UUID]:
    """Return the id of every tenant, for work of the installation itself."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT id FROM governance_tenant_ids()")
        return [row[0] for row in cursor.fetchall()]


def tenants_all() -> list[tuple[str, UUID]]:
    """Return slug and id of every tenant, for the command line."""
    found = []
    for tenant_id in tenant_ids():
        with tenant_transaction(tenant_id):
            found.append((Tenant.objects.get(id=tenant_id).slug, tenant_id))
    return sorted(found)


def user_id_by_email(email: str) -> UUID | None:
    return _router_id("SELECT governance_user_by_email(%s)", email)


def member_by_email(*, actor: Actor, email: str) -> Member:
    """Return the member with an e-mail address. Raises Forbidden; NotFound."""
    authorize(actor, Permission.MEMBER_MANAGE)
    with acting(actor):
        member = (
            Member.objects.filter(user__email__iexact=email, removed_at=None).select_related("user", "role").first()
        )
    if member is None:
        raise NotFound(f"{email} is no member of this tenant.")
    return member


def actor_by_key(*, presented: str, request_id: str, context: CallContext) -> Actor:
    """Return the actor of an API key. The purpose that a key is bound to replaces that of `context`.

    Raises Unauthenticated, with the same message for every fault of the key.
    """
    credential = credential_parse(presented)
    digest = credential_hash(presented)
    if credential is None:
        raise Unauthenticated
    row = _key_row(credential.prefix, digest)
    if row is None:
        raise Unauthenticated
    note_key_use(tenant_id=row.tenant_id, key_id=row.id)
    return Actor(
        tenant_id=row.tenant_id,
        principal_kind=PrincipalKind.API_KEY,
        principal_id=row.id,
        member_id=row.member_id,
        role=RoleName(row.role),
        scopes=frozenset(Scope(scope) for scope in row.scopes),
        request_id=request_id,
        context=replace(context, purpose=row.purpose) if row.purpose else context,
        persona_id=row.persona_id,
        binding=binding_of(row.persona_id, row.namespaces),
    )


class _KeyRow(NamedTuple):
    id: UUID
    tenant_id: UUID
    scopes: list[str]
    member_id: UUID
    role: str
    persona_id: UUID | None
    namespaces: list[str]
    purpose: str


# A caller cannot choose any byte of a keyed hash, so the time of the comparison reveals nothing.
USABLE_KEY = """
SELECT key.id, key.tenant_id, key.scopes, key.member_id, role.name, key.persona_id, key.namespaces, key.purpose
FROM governance_apikey AS key
  JOIN governance_member AS member ON member.id = key.member_id
  JOIN governance_role AS role ON role.id = member.role_id
  JOIN governance_user AS person ON person.id = member.user_id
  LEFT JOIN governance_persona AS persona ON persona.id = key.persona_id
WHERE key.prefix = %(prefix)s
  AND (key.secret_hash = %(digest)s
    OR (key.previous_until > transaction_timestamp() AND key.previous_hash = %(digest)s))
  AND key.revoked_at IS NULL AND (key.expires_at IS NULL OR key.expires_at > transaction_timestamp())
  AND member.removed_at IS NULL AND person.is_active AND persona.removed_at IS NULL
"""


# The hash finds the tenant, not the prefix: a wrong secret with a known prefix finds as little as an unknown prefix,
# and takes as long.
ENTER_BY_KEY = """
SELECT tenant.id, governance_enter(tenant.id)
FROM (VALUES (%(nobody)s::uuid)) AS nobody (id)
  LEFT JOIN governance_key_by_hash(%(digest)s) AS found ON true
  CROSS JOIN LATERAL (SELECT coalesce(found.tenant_id, nobody.id) AS id) AS tenant
"""


def _key_row(prefix: str, digest: bytes) -> _KeyRow | None:
    """Return the usable key with this prefix and hash, in one hand-written transaction, since every API request begins
    here.
    """
    with prepared_cursor() as entering, prepared_cursor() as reading:
        with transaction_without_tenant():
            entering.execute(ENTER_BY_KEY, {"digest": digest, "nobody": uuid4()})
            reading.execute(USABLE_KEY, {"prefix": prefix, "digest": digest})
        remember_epoch(*entering.fetchone())
        row = reading.fetchone()
    return _KeyRow(*row) if row else None


def sign_in_link_works(*, token: str) -> bool:
    """Return whether a link would sign somebody in now, without using it up."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT id, tenant_id FROM governance_link_by_hash(%s)", [credential_hash(token)])
        found = cursor.fetchone()
    if found is None:
        return False
    link_id, tenant_id = found
    with tenant_transaction(tenant_id):
        return links_usable(database_now()).filter(id=link_id).exists()


def me_get(*, actor: Actor) -> Me:
    """Return the actor's own data, which needs no permission."""
    with acting(actor):
        member = None
        if actor.member_id is not None:
            member = Member.objects.filter(id=actor.member_id).select_related("user", "tenant").first()
        tenant = member.tenant if member else Tenant.objects.get(id=actor.tenant_id)
        key = None
        if actor.principal_kind is PrincipalKind.API_KEY:
            key = ApiKey.objects.filter(id=actor.principal_id).select_related("persona").first()
        personas = personas_of(actor).order_by("id")
        return Me(
            tenant_id=tenant.id,
            tenant_slug=tenant.slug,
            tenant_name=tenant.name,
            email=member.user.email if member else None,
            display_name=member.display_name if member else "",
            key_prefix=key.prefix if key else None,
            key_expires_at=key.expires_at if key else None,
            bound_persona=persona_view(key.persona) if key and key.persona else None,
            bound_namespaces=tuple(key.namespaces) if key else (),
            purpose=actor.context.purpose,
            personas=tuple(persona_view(row) for row in personas),
        )


def persona_view(row: Persona) -> PersonaView:
    return PersonaView(id=row.id, name=row.name, kind=PersonaKind(row.kind))


def _router_id(sql: str, argument: str) -> UUID | None:
    """Return the id that `sql` finds; None for a text with a NUL byte, which PostgreSQL cannot store."""
    if "\x00" in argument:
        return None
    with connection.cursor() as cursor:
        cursor.execute(sql, [argument])
        found: UUID | None = cursor.fetchone()[0]
    return found
