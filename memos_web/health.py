"""`/healthz`: the process lives. `/readyz`: it can serve; the state of each dependency, and nothing more.

503 without database, keys or room on the disk. Whatever else is wrong leaves 200 with `status: degraded`: writes and
searches go on, and jobs, seals, checkpoints or the removal of purged bytes wait.
"""

from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

import redis
from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase

from governance.audit.health import audit_health, can_write_checkpoints
from governance.errors import DomainError, KeyUnavailable
from governance.heartbeats import Part, silent_parts
from governance.keys.services import key_store
from governance.outbox.selectors import outbox_health
from governance.redis_address import count_sentinels, is_sentinel, redis_client
from governance.replica import ReplicaState, replica_health
from memos_web.disk import least_room
from memos_web.fellows import refuse_strangers
from vault.cubes.storage import ReclaimState, reclaim_state
from vault.providers.registry import vector_index

BROKER_SECONDS = 0.2
UP, DOWN = "up", "down"
Checks = dict[str, object]


def healthz(_: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "live"})


def readyz(_: HttpRequest) -> JsonResponse:
    checks: Checks = {}
    needed = [check(checks) for check in (_database, _keys, _disk, _fellows)]
    others = [check(checks) for check in (_broker, _replica, _background, _vector_index, _purged_bytes) if all(needed)]
    status = ("ready" if all(others) else "degraded") if all(needed) else "unavailable"
    return JsonResponse({"status": status, "checks": checks}, status=200 if all(needed) else 503)


class ProbeMiddleware:
    """Answers probes that ask by a machine's address, as load balancers do, without MEMOS_ALLOWED_HOSTS."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.probes = {"/healthz": healthz, "/readyz": readyz}

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        probe = self.probes.get(request.path_info) if request.method in {"GET", "HEAD"} else None
        if probe is None or not _is_address(request.META.get("HTTP_HOST", "")):
            return self.get_response(request)
        return probe(request)


def _is_address(host: str) -> bool:
    """Return whether a `Host` is an IP address, with its port or without."""
    try:
        ip_address(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
    return True


def _database(checks: Checks) -> bool:
    try:
        health = outbox_health()
    except (DatabaseError, DomainError):
        checks["database"] = DOWN
        return False
    checks["database"] = UP
    checks["outbox"] = {
        "due": health.due,
        "oldest_due_seconds": round(health.oldest_due_seconds, 1),
        "parked": health.parked,
    }
    return True


def _keys(checks: Checks) -> bool:
    return _note(checks, "keys", DOWN, key_store().check)


def _fellows(checks: Checks) -> bool:
    """Say whether other processes use the same keys and blobs; without database or keys nobody can say."""
    if DOWN in (checks["database"], checks["keys"]):
        return False
    try:
        refuse_strangers()
    except DomainError as error:
        checks["nodes"] = "other keys" if isinstance(error, KeyUnavailable) else "other blob store"
        return False
    checks["nodes"] = UP
    return True


def _disk(checks: Checks) -> bool:
    checks["disk"] = "full" if least_room().is_full else UP
    return checks["disk"] == UP


def _broker(checks: Checks) -> bool:
    """Say whether Redis answers, and whether most of the sentinels do, which must agree on another primary."""
    address = settings.REDIS_ADDRESS
    if is_sentinel(address):
        answering, all_of_them = count_sentinels(address, timeout=BROKER_SECONDS)
        checks["sentinels"] = UP if answering > all_of_them // 2 else "few"
    client = redis_client(address, timeout=BROKER_SECONDS)
    try:
        client.ping()
        checks["broker"] = UP
    except redis.RedisError:
        checks["broker"] = DOWN
    finally:
        client.close()
    return checks["broker"] == UP and checks.get("sentinels", UP) == UP


def _replica(checks: Checks) -> bool:
    """Say whether the replica has what the primary has, if there is one: readings do without it."""
    found = replica_health()
    if found is not None:
        checks["replica"], checks["replica_lag_seconds"] = found.state, round(found.lag_seconds, 1)
    return found is None or found.state is ReplicaState.UP


def _background(checks: Checks) -> bool:
    """Dispatcher, sealer, beat and checkpoints."""
    silent, audit = silent_parts(), audit_health()
    found = {part.value: "silent" if part in silent else UP for part in Part}
    if audit.is_sealing_late and Part.SEALER not in silent:
        found[Part.SEALER] = "late"
    found["checkpoints"] = "late" if audit.is_signing_late else UP
    if not can_write_checkpoints():
        found["checkpoints"] = "unwritable"
    checks |= found
    return set(found.values()) == {UP}


def _vector_index(checks: Checks) -> bool:
    """Say whether the index outside PostgreSQL answers, if there is one: searches do without it."""
    index = vector_index()
    return index is None or _note(checks, "vector_index", DOWN, index.check)


def _purged_bytes(checks: Checks) -> bool:
    checks["purged_bytes"] = reclaim_state()
    return checks["purged_bytes"] != ReclaimState.LATE


def _note(checks: Checks, name: str, failure: str, check: Callable[[], None]) -> bool:
    try:
        check()
    except DomainError:
        checks[name] = failure
        return False
    checks[name] = UP
    return True
