"""`/healthz`: the process lives. `/readyz`: it can serve; says of each dependency how it fares, and nothing more."""

import redis
from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse

from governance.errors import DomainError
from governance.keys.services import key_store
from governance.outbox.selectors import outbox_health

BROKER_SECONDS = 0.2


def healthz(_: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "live"})


def readyz(_: HttpRequest) -> JsonResponse:
    """503 without database or keys. Without the broker writes go on and jobs wait: 200, and it is said."""
    checks: dict[str, object] = {}
    ready = _database(checks) & _keys(checks)
    _broker(checks)
    status = "ready" if ready else "unavailable"
    return JsonResponse({"status": status, "checks": checks}, status=200 if ready else 503)


def _database(checks: dict[str, object]) -> bool:
    try:
        health = outbox_health()
    except (DatabaseError, DomainError):
        checks["database"] = "down"
        return False
    checks["database"] = "up"
    checks["outbox"] = {
        "due": health.due,
        "oldest_due_seconds": round(health.oldest_due_seconds, 1),
        "parked": health.parked,
    }
    return True


def _keys(checks: dict[str, object]) -> bool:
    try:
        key_store().check()
    except DomainError:
        checks["keys"] = "down"
        return False
    checks["keys"] = "up"
    return True


def _broker(checks: dict[str, object]) -> None:
    client = redis.Redis.from_url(
        settings.REDIS_ADDRESS, socket_timeout=BROKER_SECONDS, socket_connect_timeout=BROKER_SECONDS
    )
    try:
        client.ping()
        checks["broker"] = "up"
    except redis.RedisError:
        checks["broker"] = "down"
    finally:
        client.close()
