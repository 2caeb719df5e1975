"""Services of tenants, members, keys and sign-in links."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection
from django.db.models import Model

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor, CallContext, system_actor
from governance.audit.services import record
from governance.database import acting, database_now, no_tenant, tenant_transaction
from governance.errors import Conflict, FieldError, Forbidden, Invalid, NotFound
from governance.ids import uuid7
from governance.keys.services import credential_hash, key_store, rotating_key_store
from governance.models import ApiKey, Member, Persona, Role, SignInLink, Tenant, User
from governance.tenants.bonds import FREE, KeyBonds, bonds_detail, bonds_set
from governance.tenants.principals import links_usable
from governance.tenants.rules import credential_new, link_token_new
from governance.tenants.selectors import tenant_id_by_slug, user_id_by_email
from governance.vocabulary import Channel, Permission, PersonaKind, PrincipalKind, RoleName, Scope, Verb

LONGEST_NAME = 200  # of a member and a persona
OWN_SCOPES = frozenset({Scope.MEMORIES_READ, Scope.MEMORIES_WRITE})  # of keys that members make of their own


@dataclass(frozen=True)
class NewKey:
    """A new API key with its text, which is not stored."""

    id: UUID
    prefix: str
    text: str = field(repr=False)


@dataclass(frozen=True)
class NewLink:
    """A one-time sign-in address."""

    url: str = field(repr=False)
    expires_at: datetime


def command_line_actor(tenant_id: UUID) -> Actor:
    return system_actor(tenant_id=tenant_id, request_id=f"cli-{uuid7()}", channel=Channel.COMMAND_LINE)


def tenant_create(*, slug: str, name: str, owner_email: str) -> tuple[Tenant, Member]:
    """Create a tenant with its five roles and its owner. Only the command line calls this, before any actor exists.

    Raises Invalid; Conflict if the slug is taken; KeyUnavailable. Writes: Tenant, Role × 5, User?, Member, Persona,
    AuditEntry × 2.
    """
    _check(Tenant, slug=slug, name=name or slug)
    if slug != slug.lower():  # `acme` and `ACME` would be taken for one another
        raise Invalid(errors=[FieldError("slug", "use lower-case letters")])
    if tenant_id_by_slug(slug) is not None:
        raise Conflict(f"The tenant {slug} exists already.")
    key_store().check()  # before the first tenant the key store is made, and never after
    tenant = Tenant(id=uuid7(), slug=slug, name=name or slug)
    actor = command_line_actor(tenant.id)
    with acting(actor):
        tenant.save(force_insert=True)
        Role.objects.bulk_create([Role(tenant=tenant, name=role) for role in RoleName])
        record(actor=actor, verb=Verb.TENANT_CREATED, object_type="tenant", object_ids=[tenant.id])
        member = member_add(actor=actor, email=owner_email, role=RoleName.OWNER)
    return tenant, member


def tenant_keys_rotate(*, actor: Actor) -> int:
    """Rotate the keys of the tenant. Return the number of retired keys, which from now on only decrypt.

    Raises Forbidden; KeyUnavailable. Writes: AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        record(actor=actor, verb=Verb.KEYS_ROTATED, object_type="tenant", object_ids=[actor.tenant_id])
        return rotating_key_store().rotate_tenant(actor.tenant_id)


def member_add(*, actor: Actor, email: str, role: RoleName) -> Member:
    """Make a user a member, with a persona; create the user if missing. A removed member is restored.

    Raises Invalid; Forbidden; Conflict if already a member. Writes: User?, Member, Persona?, AuditEntry.
    """
    authorize(actor, Permission.MEMBER_MANAGE)
    refuse_above(actor, role)
    email_check(email)
    with acting(actor):
        user_id = _user_ensure(email)
        role_row = Role.objects.get(name=role)
        member = Member.objects.filter(user_id=user_id).first() or _member_new(actor, user_id, role_row, email)
        if member.removed_at is None and not member._state.adding:
            raise Conflict(f"{email} is a member already.")
        _member_store(member, role_row)
        record(actor=actor, verb=Verb.MEMBER_ADDED, object_type="member", object_ids=[member.id], detail={"role": role})
    return member


def _member_new(actor: Actor, user_id: UUID, role: Role, email: str) -> Member:
    name = email.partition("@")[0][:LONGEST_NAME]
    return Member(id=uuid7(), tenant_id=actor.tenant_id, user_id=user_id, role=role, display_name=name)


def _member_store(member: Member, role: Role) -> None:
    if not member._state.adding:
        member.role, member.removed_at = role, None
        member.save(update_fields=["role", "removed_at"])
        return
    member.save(force_insert=True)
    Persona(tenant_id=member.tenant_id, kind=PersonaKind.USER, name=member.display_name, member=member).save(
        force_insert=True
    )


def apikey_create(
    *,
    actor: Actor,
    member: Member,
    scopes: Collection[Scope],
    name: str = "",
    expires_at: datetime | None = None,
    bonds: KeyBonds = FREE,
) -> NewKey:
    """Create a key with the rights of `member`, limited by `scopes` and `bonds`.

    Raises NotFound; Forbidden; Invalid. Writes: ApiKey, AuditEntry.
    """
    authorize(actor, Permission.APIKEY_MANAGE, _member_target(member))
    refuse_above(actor, RoleName(member.role.name))
    _refuse_more_than_own(actor, scopes)
    _check(ApiKey, name=name)
    return _store_key(actor, member, scopes, name, expires_at, bonds)


def apikey_create_own(*, actor: Actor, scopes: Collection[Scope], name: str, expires_at: datetime) -> NewKey:
    """Create a key of the acting member's own, for an application that they connect: it reads and writes memory only.

    Raises Forbidden, also for keys and the system; Invalid. Writes: ApiKey, AuditEntry.
    """
    authorize(actor, Permission.MEMORY_READ)
    if actor.principal_kind is not PrincipalKind.MEMBER or not OWN_SCOPES.issuperset(scopes):
        raise Forbidden("A key for an application is made by its member, and manages nothing.", rule="own_key")
    _check(ApiKey, name=name)
    with acting(actor):
        member = Member.objects.select_related("user", "role").get(id=actor.principal_id)
        return _store_key(actor, member, scopes, name, expires_at, FREE)


def _store_key(
    actor: Actor,
    member: Member,
    scopes: Collection[Scope],
    name: str,
    expires_at: datetime | None,
    bonds: KeyBonds,
) -> NewKey:
    credential = credential_new()
    with acting(actor):
        if expires_at is not None and expires_at <= database_now():
            raise Invalid(errors=[FieldError("expires_at", "must be in the future")])
        key = ApiKey(
            id=uuid7(),
            tenant_id=actor.tenant_id,
            member=member,
            name=name,
            prefix=credential.prefix,
            secret_hash=credential_hash(credential.text),
            scopes=sorted(scopes),
            expires_at=expires_at,
        )
        bonds_set(key, bonds)
        refuse_wider_key(actor, key)
        key.save(force_insert=True)
        record(
            actor=actor,
            verb=Verb.APIKEY_CREATED,
            object_type="api_key",
            object_ids=[key.id],
            detail={"prefix": key.prefix, "scopes": " ".join(key.scopes), **bonds_detail(actor, key)},
        )
        return NewKey(id=key.id, prefix=key.prefix, text=credential.text)


def refuse_above(actor: Actor, role: RoleName) -> None:
    """Refuse an actor who is no owner, if `role` is owner: only owners manage owners. Raises Forbidden."""
    if role is RoleName.OWNER and actor.role is not RoleName.OWNER and not actor.is_system:
        raise Forbidden("Only an owner may do this to an owner.", permission=Permission.MEMBER_MANAGE, rule="owners")


def refuse_wider_key(actor: Actor, key: ApiKey) -> None:
    """Refuse a key that would change a key, itself included, to have more rights than its own: another purpose or a
    later end.

    `key`: the row as it is or would be written; in the caller's transaction. Scopes are checked elsewhere, and a key
    bound to a persona or namespaces manages no keys. Raises Forbidden.
    """
    if actor.principal_kind is not PrincipalKind.API_KEY:
        return
    own = ApiKey.objects.get(id=actor.principal_id)
    longer = own.expires_at is not None and (key.expires_at is None or key.expires_at > own.expires_at)
    if longer or own.purpose not in {"", key.purpose}:
        raise Forbidden(
            "This key may do no more than yours: neither for another purpose, nor for longer.",
            permission=Permission.APIKEY_MANAGE,
            rule="own_key",
            object_type="api_key",
            object_id=key.id,
        )


def _refuse_stand_in(actor: Actor, member: Member) -> None:
    """Refuse a key that would make a sign-in link, which has all of a member's rights."""
    refuse_above(actor, RoleName(member.role.name))
    if actor.scopes is not None:
        raise Forbidden(
            "This link would allow more than you may do.", permission=Permission.MEMBER_MANAGE, rule="stand_in"
        )


def _refuse_more_than_own(actor: Actor, scopes: Collection[Scope]) -> None:
    """Refuse scopes for a new key that the creating key lacks."""
    if actor.scopes is not None and not actor.scopes.issuperset(scopes):
        raise Forbidden("A key can only give scopes that it has.", permission=Permission.APIKEY_MANAGE, rule="scopes")


def sign_in_link_create(*, actor: Actor, member: Member) -> NewLink:
    """Create a link that signs `member` in once. Raises NotFound; Forbidden. Writes: SignInLink, AuditEntry."""
    authorize(actor, Permission.MEMBER_MANAGE, _member_target(member))
    _refuse_stand_in(actor, member)
    token = link_token_new()
    with acting(actor):
        expires_at = database_now() + timedelta(hours=settings.SIGN_IN_LINK_HOURS)
        link = SignInLink(
            id=uuid7(),
            tenant_id=actor.tenant_id,
            member=member,
            token_hash=credential_hash(token),
            expires_at=expires_at,
            by_operator=actor.is_system,
        )
        link.save(force_insert=True)
        record(actor=actor, verb=Verb.SIGN_IN_LINK_CREATED, object_type="member", object_ids=[member.id])
    return NewLink(url=f"{settings.PUBLIC_URL}/sign-in/{token}/", expires_at=expires_at)


def sign_in_link_use(*, token: str, request_id: str, address: str) -> Actor:
    """Use up a sign-in link and return its member. Of concurrent calls, one succeeds. Raises NotFound (unknown, used or
    expired).
    """
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT id, tenant_id FROM governance_link_by_hash(%s)", [credential_hash(token)])
        found = cursor.fetchone()
    if found is None:
        raise NotFound
    link_id, tenant_id = found
    with tenant_transaction(tenant_id):
        now = database_now()
        # Locked before it is marked: an UPDATE that joins the member would let two concurrent calls find it unused.
        link = (
            links_usable(now).select_for_update(of=("self",)).select_related("member__role").filter(id=link_id).first()
        )
        if link is None:
            raise NotFound
        SignInLink.objects.filter(id=link_id).update(used_at=now)
        member = link.member
        actor = Actor(
            tenant_id=tenant_id,
            principal_kind=PrincipalKind.MEMBER,
            principal_id=member.id,
            member_id=member.id,
            role=RoleName(member.role.name),
            scopes=None,
            request_id=request_id,
            context=CallContext(channel=Channel.WEB, address=address),
            is_proved=link.by_operator,
        )
        record(actor=actor, verb=Verb.SIGN_IN_LINK_USED, object_type="member", object_ids=[member.id])
    return actor


def _member_target(member: Member) -> Target:
    return Target("member", member.id, member.tenant_id)


def _user_ensure(email: str) -> UUID:
    """Return the id of the user with this address, in any tenant; create it if missing."""
    existing = user_id_by_email(email)
    if existing is not None:
        return existing
    user = User(id=uuid7(), email=email)
    user.set_unusable_password()
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('app.user', %s, true)", [str(user.id)])
    try:
        user.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(f"{email} is being added by someone else; try again.") from error
    return user.id


def email_check(email: str) -> None:
    """Raise Invalid for an invalid address."""
    _check(User, email=email)


def _check(model: type[Model], **values: str) -> None:
    """Check values for these fields of `model`. Raises Invalid."""
    for name, value in values.items():
        try:
            model._meta.get_field(name).clean(value, None)  # type: ignore[union-attr]
        except ValidationError as error:
            raise Invalid(errors=[FieldError(name, message) for message in error.messages]) from error
