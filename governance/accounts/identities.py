"""A tenant's sign-in rules: its own OpenID Connect server, and the requirement of a second factor.

The server vouches for its own tenant only: its sign-ins open no other tenant, and sign in owners only if an owner
registered it.
"""

from dataclasses import dataclass, field
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.accounts.rules import FirstFactor, Way
from governance.actor import Actor, system_actor
from governance.audit.services import record
from governance.database import acting, tenant_transaction
from governance.errors import FieldError, Forbidden, Invalid, NotFound, Unauthenticated
from governance.ids import uuid7
from governance.keys.services import GENERAL, open_sealed, seal_for
from governance.models import Member, OidcIdentity, OidcProvider, Tenant
from governance.requests_adapter import url_usable
from governance.tenants.selectors import tenant_id_by_slug, user_id_by_email
from governance.tenants.services import member_add
from governance.vocabulary import Channel, Permission, RoleName, Verb

DEFAULT_ROLES = (RoleName.EDITOR, RoleName.VIEWER, RoleName.AUDITOR)
LONGEST_SECRET = 500


@dataclass(frozen=True)
class Claims:
    """The claims of a sign-in server about a person."""

    subject: str
    email: str
    email_verified: bool


@dataclass(frozen=True)
class ProviderDraft:
    """The settings of a sign-in server. secret: empty keeps the old. default_role None: members only."""

    issuer: str
    client_id: str
    domains: tuple[str, ...]
    default_role: RoleName | None
    secret: str = field(repr=False, default="")


@dataclass(frozen=True)
class ProviderSecret:
    """A sign-in server with its secret."""

    id: UUID
    tenant_id: UUID
    tenant_slug: str
    issuer: str
    client_id: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class SignInRules:
    """The sign-in rules of a tenant, as its admins see them."""

    slug: str
    second_factor_required: bool
    provider: ProviderDraft | None


def rules_get(*, actor: Actor) -> SignInRules:
    """Return the sign-in rules, without the secret. Raises Forbidden. Writes: AuditEntry."""
    authorize(actor, Permission.MEMBER_MANAGE)
    with acting(actor):
        tenant = Tenant.objects.get(id=actor.tenant_id)
        row = OidcProvider.objects.first()
        record(actor=actor, verb=Verb.SIGN_IN_RULES_READ, object_type="tenant", object_ids=[tenant.id])
    provider = (
        ProviderDraft(
            issuer=row.issuer,
            client_id=row.client_id,
            domains=tuple(row.domains),
            default_role=RoleName(row.default_role) if row.default_role else None,
        )
        if row
        else None
    )
    return SignInRules(slug=tenant.slug, second_factor_required=tenant.second_factor_required, provider=provider)


def second_factor_require(*, actor: Actor, required: bool) -> None:
    """Require a second factor: members without one must set it up at their next request. Raises Forbidden.

    Writes: Tenant, AuditEntry.
    """
    authorize(actor, Permission.MEMBER_MANAGE)
    with acting(actor):
        Tenant.objects.filter(id=actor.tenant_id).update(second_factor_required=required)
        _record_change(actor, {"second_factor_required": required})


def provider_save(*, actor: Actor, draft: ProviderDraft) -> None:
    """Register or change the tenant's sign-in server; another issuer starts without linked members.

    Raises Forbidden; Invalid. Writes: OidcProvider, OidcIdentity …, AuditEntry.
    """
    authorize(actor, Permission.MEMBER_MANAGE)
    _refuse_key(actor)
    _check(draft)
    with acting(actor):
        row = OidcProvider.objects.select_for_update().first()
        if row is None or row.issuer != draft.issuer:
            _delete_provider(row)
            row = OidcProvider(id=uuid7(), tenant_id=actor.tenant_id, issuer=draft.issuer)
        if draft.secret:
            row.sealed_secret = seal_for(
                tenant_id=actor.tenant_id,
                scope=GENERAL,
                place=_sealing_context(row.id),
                plaintext=draft.secret.encode(),
            )
        elif not row.sealed_secret:
            raise Invalid(errors=[FieldError("secret", "is needed")])
        row.client_id, row.domains = draft.client_id, list(draft.domains)
        row.default_role = draft.default_role or ""
        row.opens_owners = actor.role is RoleName.OWNER or actor.is_system
        row.save()
        _record_change(actor, {"issuer": draft.issuer, "default_role": draft.default_role})


def provider_remove(*, actor: Actor) -> None:
    """Remove the sign-in server: members can no longer sign in through it. Raises Forbidden; NotFound.

    Writes: OidcProvider, OidcIdentity …, AuditEntry.
    """
    authorize(actor, Permission.MEMBER_MANAGE)
    with acting(actor):
        row = OidcProvider.objects.select_for_update().first()
        if row is None:
            raise NotFound
        _delete_provider(row)
        _record_change(actor, {"removed": row.issuer})


def provider_of(slug: str) -> ProviderSecret | None:
    """Return the sign-in server of the tenant with this slug, before anybody has signed in."""
    tenant_id = tenant_id_by_slug(slug)
    if tenant_id is None:
        return None
    with tenant_transaction(tenant_id):
        row = OidcProvider.objects.first()
    if row is None:
        return None
    secret = open_sealed(tenant_id=tenant_id, place=_sealing_context(row.id), blob=row.sealed_secret)
    return ProviderSecret(
        id=row.id,
        tenant_id=tenant_id,
        tenant_slug=slug,
        issuer=row.issuer,
        client_id=row.client_id,
        secret=(secret or b"").decode(),
    )


def oidc_sign_in(*, provider: ProviderSecret, claims: Claims, request_id: str, address: str) -> FirstFactor:
    """Sign in the person whom the tenant's server vouches for. An unknown subject is matched only by a verified
    address.

    Raises Unauthenticated. Writes, at the first sign-in: OidcIdentity, AuditEntry; User?, Member? if newcomers are
    allowed.
    """
    system = system_actor(tenant_id=provider.tenant_id, request_id=request_id, channel=Channel.WEB)
    with acting(system):
        row = OidcProvider.objects.select_for_update().filter(id=provider.id).first()
        if row is None:
            raise Unauthenticated
        known = OidcIdentity.objects.filter(provider=row, subject=claims.subject).first()
        member = _active(known.member_id) if known else _link(system, row, claims, address)
        if member is None or (member.role.name == RoleName.OWNER and not row.opens_owners):
            raise Unauthenticated("You are no member here, or may not sign in this way.")
    return FirstFactor(user_id=member.user_id, bound_to=provider.tenant_id, way=Way.OIDC)


def _link(system: Actor, row: OidcProvider, claims: Claims, address: str) -> Member | None:
    domain = claims.email.rpartition("@")[2].lower()
    if not claims.email_verified or domain not in row.domains:
        return None
    user_id = user_id_by_email(claims.email)
    member = Member.objects.filter(user_id=user_id).select_related("role", "user").first() if user_id else None
    if member is None and row.default_role:
        made = member_add(actor=system, email=claims.email, role=RoleName(row.default_role))
        member = _active(made.id)
    if member is None or member.removed_at is not None or not member.user.is_active:
        return None
    OidcIdentity(tenant_id=row.tenant_id, provider=row, member=member, subject=claims.subject).save(force_insert=True)
    record(
        actor=system,
        verb=Verb.IDENTITY_LINKED,
        object_type="member",
        object_ids=[member.id],
        detail={"address": address},
    )
    return member


def _active(member_id: UUID) -> Member | None:
    found = Member.objects.filter(id=member_id, removed_at=None, user__is_active=True)
    return found.select_related("role", "user").first()


def _delete_provider(row: OidcProvider | None) -> None:
    if row is not None:
        OidcIdentity.objects.filter(provider_id=row.id).delete()
        OidcProvider.objects.filter(id=row.id).delete()


def _check(draft: ProviderDraft) -> None:
    faults = [
        ("issuer", not url_usable(draft.issuer), "an https:// address is needed"),
        ("client_id", not draft.client_id, "is needed"),
        ("domains", not draft.domains or not all("." in domain for domain in draft.domains), "name the mail domains"),
        ("secret", len(draft.secret) > LONGEST_SECRET, f"at most {LONGEST_SECRET} characters"),
        ("default_role", draft.default_role not in {None, *DEFAULT_ROLES}, f"one of {', '.join(DEFAULT_ROLES)}"),
    ]
    found = [FieldError(name, message) for name, wrong, message in faults if wrong]
    if found:
        raise Invalid(errors=found)


def _refuse_key(actor: Actor) -> None:
    """Refuse an API key: a sign-in server signs people in with all their rights."""
    if actor.scopes is not None:
        raise Forbidden("A key may not do this.", permission=Permission.MEMBER_MANAGE, rule="stand_in")


def _record_change(actor: Actor, detail: dict[str, str | int | bool | None]) -> None:
    record(
        actor=actor,
        verb=Verb.SIGN_IN_RULES_CHANGED,
        object_type="tenant",
        object_ids=[actor.tenant_id],
        detail=detail,
    )


def _sealing_context(provider_id: UUID) -> bytes:
    return b"oidc" + provider_id.bytes
