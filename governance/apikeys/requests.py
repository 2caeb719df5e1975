"""Selectors of the request log of an API key, and of its requests by day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from uuid import UUID

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.apikeys.rules import percentile_of
from governance.database import acting, database_now
from governance.errors import NotFound
from governance.models import ApiKey, ApiKeyDay, ApiKeyRequest
from governance.pages import Pages
from governance.vocabulary import Permission, PrincipalKind


@dataclass(frozen=True)
class KeyDay:
    """The requests of a key on one day (UTC). p50, p95: their latencies in milliseconds, 0 without requests."""

    day: date
    requests: int
    errors: int
    p50: float
    p95: float


def key_log_authorize(*, actor: Actor, key_id: UUID) -> None:
    """Check that the actor may read the request log of this key. Raises NotFound; Forbidden."""
    if is_key_log_readable(actor=actor, key_id=key_id):
        return
    authorize(actor, Permission.APIKEY_MANAGE, Target("api_key", key_id, actor.tenant_id))


def is_key_log_readable(*, actor: Actor, key_id: UUID) -> bool:
    """Return whether the actor may read the request log of this key: those who manage keys, and the key's member.

    A key of that member reads its own log alone, since it may be narrower than the other keys. Raises NotFound.
    """
    with acting(actor):
        row = ApiKey.objects.filter(id=key_id).first()
    if row is None:
        raise NotFound
    is_own = row.member_id == actor.member_id and (
        actor.principal_kind is not PrincipalKind.API_KEY or actor.principal_id == row.id
    )
    return is_own or is_allowed(actor, Permission.APIKEY_MANAGE, Target("api_key", row.id, row.tenant_id))


def key_requests_list(*, actor: Actor, key_id: UUID, pages: Pages) -> Sequence[ApiKeyRequest]:
    """Return the logged requests of a key, newest first. Raises NotFound; Forbidden."""
    key_log_authorize(actor=actor, key_id=key_id)
    with acting(actor):
        return pages.take(ApiKeyRequest.objects.filter(tenant_id=actor.tenant_id, key_id=key_id).order_by("-id"))


def key_request_newest_id(*, actor: Actor, key_id: UUID) -> UUID | None:
    """Return the id of the newest logged request of a key. Raises NotFound; Forbidden."""
    key_log_authorize(actor=actor, key_id=key_id)
    with acting(actor):
        rows = ApiKeyRequest.objects.filter(tenant_id=actor.tenant_id, key_id=key_id).order_by("-id")
        return rows.values_list("id", flat=True).first()


def key_days_list(*, actor: Actor, key_id: UUID, days: int) -> list[KeyDay]:
    """Return the last `days` days of a key, today last, also those without requests. Raises NotFound; Forbidden."""
    key_log_authorize(actor=actor, key_id=key_id)
    with acting(actor):
        today = database_now().date()
        first = today - timedelta(days=days - 1)
        rows = ApiKeyDay.objects.filter(tenant_id=actor.tenant_id, key_id=key_id, day__gte=first, day__lte=today)
        found = {row.day: row for row in rows}
    return [_view_day(first + timedelta(days=at), found.get(first + timedelta(days=at))) for at in range(days)]


def _view_day(day: date, row: ApiKeyDay | None) -> KeyDay:
    if row is None:
        return KeyDay(day, 0, 0, 0.0, 0.0)
    p50, p95 = (percentile_of(row.buckets, share) for share in (0.5, 0.95))
    return KeyDay(day, sum(row.buckets), row.errors, p50, p95)
