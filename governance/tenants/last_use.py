"""Last use of API keys: noted in Redis outside of the request, and written to the key's row by a periodic task.

At most one note for each key and process in KEY_LAST_USE_SECONDS. Without Redis nothing is noted, and nothing waits.
"""

from threading import Lock
from uuid import UUID

import redis
from cachetools import TTLCache
from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from governance.database import tenant_transaction
from governance.models import ApiKey
from governance.volatile import volatile

NOTES = "memos:keys-used"
MOST_REMEMBERED = 10_000

_noted: TTLCache[UUID, bool] = TTLCache(MOST_REMEMBERED, ttl=settings.KEY_LAST_USE_SECONDS)
_noting = Lock()


def note_key_use(*, tenant_id: UUID, key_id: UUID) -> None:
    """Note in Redis that the key was used now."""
    with _noting:
        if key_id in _noted:
            return
        _noted[key_id] = True
    volatile(lambda client: client.sadd(NOTES, f"{tenant_id}/{key_id}"))


def last_uses_write() -> int:
    """Store the uses noted since the last call, with the database's time; return the number of keys. Run by beat."""
    noted = volatile(_take_notes) or set()
    keys: dict[UUID, list[UUID]] = {}
    for use in noted:
        tenant, _, key = use.partition("/")
        keys.setdefault(UUID(tenant), []).append(UUID(key))
    return sum(_write(tenant_id, key_ids) for tenant_id, key_ids in keys.items())


def _take_notes(client: redis.Redis) -> set[str]:
    """Read and remove the noted uses in one step."""
    pipeline = client.pipeline(transaction=True)
    pipeline.smembers(NOTES)
    pipeline.delete(NOTES)
    found: set[str] = pipeline.execute()[0]
    return found


def _write(tenant_id: UUID, key_ids: list[UUID]) -> int:
    with tenant_transaction(tenant_id):
        rows = ApiKey.objects.filter(id__in=key_ids).filter(Q(last_used_at=None) | Q(last_used_at__lt=Now()))
        return rows.update(last_used_at=Now())
