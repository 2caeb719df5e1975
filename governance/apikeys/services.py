"""Services that rename, bind, rotate and revoke API keys; tenants.services.apikey_create creates them."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from governance.actor import Actor
from governance.apikeys.selectors import KeyView, apikey_get, key_view
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import Conflict, FieldError, Forbidden, Invalid
from governance.keys.services import credential_hash
from governance.models import ApiKey
from governance.tenants.bonds import BONDS, FREE, KeyBonds, bonds_detail, bonds_set
from governance.tenants.rules import credential_new_secret
from governance.tenants.services import refuse_above, refuse_wider_key
from governance.vocabulary import Permission, RoleName, Verb


@dataclass(frozen=True)
class KeyChanges:
    """The fields of a PATCH; missing keys leave a field unchanged."""

    given: frozenset[str]
    name: str = ""
    expires_at: datetime | None = None
    bonds: KeyBonds = FREE


@dataclass(frozen=True)
class Rotated:
    """A rotated key with its new text, which is not stored."""

    view: KeyView
    text: str = field(repr=False)


def apikey_update(*, actor: Actor, key_id: UUID, changes: KeyChanges) -> KeyView:
    """Change the name, end or bindings of a key.

    Raises NotFound; Forbidden; Invalid; Conflict (revoked). Writes: ApiKey, AuditEntry (also for bindings).
    """
    row = apikey_changeable(actor=actor, key_id=key_id)
    with acting(actor):
        locked = _lock_key(row)
        refuse_wider_key(actor, locked)
        if changes.given - BONDS:
            _change(actor, locked, changes)
        if changes.given & BONDS:
            _bind(actor, locked, changes)
    return key_view(locked)


def _change(actor: Actor, key: ApiKey, changes: KeyChanges) -> None:
    if "expires_at" in changes.given:
        if changes.expires_at is not None and changes.expires_at <= database_now():
            raise Invalid(errors=[FieldError("expires_at", "must be in the future")])
        key.expires_at = changes.expires_at
    if "name" in changes.given:
        key.name = changes.name
    refuse_wider_key(actor, key)
    key.save(update_fields=["name", "expires_at"])
    _record_change(actor, Verb.APIKEY_UPDATED, key, {"changed": " ".join(sorted(changes.given - BONDS))})


def _bind(actor: Actor, key: ApiKey, changes: KeyChanges) -> None:
    bonds_set(key, changes.bonds, changes.given)
    refuse_wider_key(actor, key)
    key.save(update_fields=sorted(BONDS))
    _record_change(actor, Verb.APIKEY_BOUND, key, bonds_detail(actor, key))


def apikey_rotate(*, actor: Actor, key_id: UUID, overlap: timedelta) -> Rotated:
    """Create a new secret for the key. The former secret works for `overlap`; older ones stop working.

    Raises NotFound; Forbidden; Invalid; Conflict (revoked). Writes: ApiKey, AuditEntry.
    """
    row = apikey_changeable(actor=actor, key_id=key_id)
    if not timedelta(0) <= overlap <= timedelta(seconds=settings.KEY_LONGEST_OVERLAP_SECONDS):
        longest = settings.KEY_LONGEST_OVERLAP_SECONDS
        raise Invalid(errors=[FieldError("overlap_seconds", f"0 to {longest}")])
    credential = credential_new_secret(row.prefix)
    with acting(actor):
        locked, now = _lock_key(row), database_now()
        refuse_wider_key(actor, locked)
        locked.previous_hash, locked.previous_until = locked.secret_hash, now + overlap
        locked.secret_hash, locked.rotated_at = credential_hash(credential.text), now
        locked.save(update_fields=["previous_hash", "previous_until", "secret_hash", "rotated_at"])
        _record_change(actor, Verb.APIKEY_ROTATED, locked, {"overlap_seconds": int(overlap.total_seconds())})
        return Rotated(view=key_view(locked), text=credential.text)


def apikey_revoke(*, actor: Actor, key_id: UUID) -> None:
    """Revoke a key: every secret of it is refused from its next request on.

    Raises NotFound; Forbidden. Writes: ApiKey, AuditEntry.
    """
    row = _reachable(actor, key_id)
    with acting(actor):
        locked = ApiKey.objects.select_for_update().get(id=row.id)
        if locked.revoked_at is not None:
            return
        locked.revoked_at = database_now()
        locked.save(update_fields=["revoked_at"])
        _record_change(actor, Verb.APIKEY_REVOKED, locked, {})


def _reachable(actor: Actor, key_id: UUID) -> ApiKey:
    """Return the key. Raises NotFound; Forbidden if only an owner, or a key with more scopes, may change it."""
    row = apikey_get(actor=actor, key_id=key_id)
    refuse_above(actor, RoleName(row.member.role.name))
    if actor.scopes is not None and not actor.scopes.issuperset(row.scopes):
        raise Forbidden("This key has scopes that yours has not.", permission=Permission.APIKEY_MANAGE, rule="scopes")
    return row


def apikey_changeable(*, actor: Actor, key_id: UUID) -> ApiKey:
    """Return the row of a key that the actor may change. Raises NotFound; Forbidden; Conflict (revoked)."""
    row = _reachable(actor, key_id)
    if row.revoked_at is not None:
        raise Conflict("This key was revoked.")
    return row


def _lock_key(row: ApiKey) -> ApiKey:
    locked = ApiKey.objects.select_for_update(of=("self",)).select_related("member__user", "persona").get(id=row.id)
    if locked.revoked_at is not None:
        raise Conflict("This key was revoked.")
    return locked


def _record_change(actor: Actor, verb: Verb, row: ApiKey, detail: dict[str, str | int | bool | None]) -> None:
    record(actor=actor, verb=verb, object_type="api_key", object_ids=[row.id], detail={"prefix": row.prefix, **detail})
