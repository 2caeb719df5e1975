"""Applications that members connect by OAuth 2.1: each gets a key of its member's own, by a code that works once.

Neither the application, nor its request, nor the code is a row: they are signed. The key is made when the member
consents, with a secret that nobody knows, and gets its secret when the application presents the code (RFC 6749 §4.1).
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.core.signing import BadSignature, dumps, loads

from governance.accounts.selectors import member_actor
from governance.actor import Actor, CallContext
from governance.apikeys.selectors import KeyView, key_view
from governance.audit.services import record
from governance.database import acting, database_now, tenant_transaction
from governance.errors import FieldError, Invalid, NotFound
from governance.keys.services import credential_hash
from governance.models import ApiKey
from governance.tenants.rules import credential_new_secret
from governance.tenants.services import OWN_SCOPES, apikey_create_own
from governance.vocabulary import Channel, Scope, Verb

REQUEST_SALT, REQUEST_SECONDS = "memos app request", 3600  # a person may have to sign in first
CODE_SALT, CODE_SECONDS = "memos app code", 300
DAYS = (30, 90, 365)
LONGEST_NAME = 100
MOST_KEYS = 200

Signed = TypeVar("Signed", bound="AppRequest | AppCode")


@dataclass(frozen=True)
class AppRequest:
    """An authorization request whose client and redirect URI were checked.

    is_uri_given: the request named its redirect URI, so that the code's exchange must name it, too.
    """

    client_id: str
    name: str
    redirect_uri: str
    is_uri_given: bool
    challenge: str
    scopes: list[str]
    resource: str | None
    state: str | None


@dataclass(frozen=True)
class AppCode:
    """The contents of an authorization code."""

    client_id: str
    redirect_uri: str
    is_uri_given: bool
    challenge: str
    resource: str | None
    scopes: list[str]
    tenant_id: str
    key_id: str


@dataclass(frozen=True)
class ClaimedKey:
    """The text of a key, which is not stored, and the seconds for which it works."""

    text: str = field(repr=False)
    seconds: int


def sign_app_request(asked: AppRequest) -> str:
    return dumps(asdict(asked), salt=REQUEST_SALT, compress=True)


def read_app_request(text: str) -> AppRequest:
    """Raises NotFound for a request that is older than an hour, or was not signed here."""
    found = _read_signed(AppRequest, text, REQUEST_SALT, REQUEST_SECONDS)
    if found is None:
        raise NotFound("This request has expired. Connect the application again.")
    return found


def read_app_code(text: str) -> AppCode | None:
    return _read_signed(AppCode, text, CODE_SALT, CODE_SECONDS)


def app_connect(*, actor: Actor, asked: AppRequest, scopes: Collection[Scope], days: int) -> str:
    """Make a key of the acting member's own for the application; return the code by which it gets the key's secret.

    scopes: those of the request that the member consents to. Raises Forbidden; Invalid. Writes: ApiKey, AuditEntry.
    """
    granted = sorted(scope for scope in OWN_SCOPES if scope in scopes and scope in asked.scopes)
    if not granted:
        raise Invalid(errors=[FieldError("scopes", "choose at least one")])
    if days not in DAYS:
        raise Invalid(errors=[FieldError("days", f"one of {', '.join(map(str, DAYS))}")])
    with acting(actor):
        end = database_now() + timedelta(days=days)
        made = apikey_create_own(actor=actor, scopes=granted, name=asked.name, expires_at=end)
    code = AppCode(
        client_id=asked.client_id,
        redirect_uri=asked.redirect_uri,
        is_uri_given=asked.is_uri_given,
        challenge=asked.challenge,
        resource=asked.resource,
        scopes=[str(scope) for scope in granted],
        tenant_id=str(actor.tenant_id),
        key_id=str(made.id),
    )
    return dumps(asdict(code), salt=CODE_SALT, compress=True)


def app_key_claim(*, code: AppCode, request_id: str, address: str) -> ClaimedKey | None:
    """Give the key of a code its secret; None if the key has ended, or has a secret already.

    The second use of a code revokes its key: one of its two users is not the application (RFC 6749 §4.1.2).
    Writes: ApiKey, AuditEntry.
    """
    with tenant_transaction(UUID(code.tenant_id)):
        rows = ApiKey.objects.select_for_update(of=("self",)).select_related("member__user", "member__role")
        key = rows.filter(id=code.key_id, revoked_at=None, member__removed_at=None).first()
        if key is None:
            return None
        context = CallContext(channel=Channel.MCP, address=address)
        actor, now = member_actor(key.member, request_id=request_id, context=context), database_now()
        if key.rotated_at is not None:
            _revoke(actor, key, now)
            return None
        credential = credential_new_secret(key.prefix)
        key.secret_hash, key.rotated_at = credential_hash(credential.text), now
        key.save(update_fields=["secret_hash", "rotated_at"])
        record(
            actor=actor,
            verb=Verb.APIKEY_ROTATED,
            object_type="api_key",
            object_ids=[key.id],
            detail={"prefix": key.prefix, "overlap_seconds": 0},
        )
        assert key.expires_at is not None, "keys of applications end"
        return ClaimedKey(text=credential.text, seconds=int((key.expires_at - now).total_seconds()))


def own_keys_list(*, actor: Actor) -> list[KeyView]:
    """Return the working keys of the acting member, newest first, whoever made them."""
    with acting(actor):
        rows = ApiKey.objects.filter(member_id=actor.principal_id, revoked_at=None).order_by("-id")
        return [key_view(row) for row in rows.select_related("member__user", "persona")[:MOST_KEYS]]


def own_key_revoke(*, actor: Actor, key_id: UUID) -> None:
    """Revoke a key of the acting member's own. Raises NotFound. Writes: ApiKey, AuditEntry."""
    with acting(actor):
        key = ApiKey.objects.select_for_update().filter(id=key_id, member_id=actor.principal_id).first()
        if key is None:
            raise NotFound
        if key.revoked_at is None:
            _revoke(actor, key, database_now())


def _revoke(actor: Actor, key: ApiKey, now: datetime) -> None:
    key.revoked_at = now
    key.save(update_fields=["revoked_at"])
    detail: dict[str, str | int | bool | None] = {"prefix": key.prefix}
    record(actor=actor, verb=Verb.APIKEY_REVOKED, object_type="api_key", object_ids=[key.id], detail=detail)


def _read_signed(kind: type[Signed], text: str, salt: str, seconds: int) -> Signed | None:
    try:
        found: dict[str, Any] = loads(text, salt=salt, max_age=seconds)
    except BadSignature:
        return None
    return kind(**found)
