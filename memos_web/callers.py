"""Names the caller of a request before anybody is authenticated, so that each has a bound of their own.

A credential that was valid a moment ago stands for its tenant. Whatever else is sent stands for the network that it
comes from: made-up credentials make nobody more callers than one. Health checks are told apart by their address here.
"""

import secrets
from hashlib import blake2b
from typing import Any
from uuid import UUID

from cachetools import LRUCache, TTLCache
from django.conf import settings
from django.http.cookie import parse_cookie

from governance.accounts.attempts import address_group

MOST_CREDENTIALS = 20_000
QUICK_ALONE, QUICK_EACH = 4, 1  # quick requests of a caller at once: without other tenants, and beside them
PRESENT_SECONDS = 10.0  # a tenant is there for so long after each request
TENANT = "tenant "
NOBODY = ""  # whoever calls on a socket without an address
API = "/api/"  # nothing else asks for the Authorization header
HEALTH_CHECKS = frozenset({"/healthz", "/readyz", "/metrics"})


class Callers:
    """Remembers which tenant each valid credential belongs to. Used in one event loop."""

    def __init__(self) -> None:
        self._tenants: LRUCache[bytes, str] = LRUCache(MOST_CREDENTIALS)
        self._present: TTLCache[str, None] = TTLCache(MOST_CREDENTIALS, PRESENT_SECONDS)
        self._secret = secrets.token_bytes(32)

    def caller_of(self, scope: Any) -> str:
        """The tenant of a credential that was valid before, else the network of the address."""
        client = scope.get("client")
        network = f"network {address_group(client[0])}" if client else NOBODY
        path = _path(scope)
        if is_health_check(scope):
            return f"{path} {network}"
        return self._tenants.get(self._digest(scope), network)

    def quick_requests(self, caller: str) -> int:
        """Note a request of the caller; returns how many quick ones of theirs may be at work at once."""
        is_tenant = caller.startswith(TENANT)
        if is_tenant:
            self._present[caller] = None
        self._present.expire()
        return QUICK_EACH if len(self._present) > is_tenant else QUICK_ALONE

    def learn(self, scope: Any, tenant_id: UUID) -> None:
        """The credential of this request was valid."""
        self._tenants[self._digest(scope)] = f"{TENANT}{tenant_id}"

    def forget(self, scope: Any) -> None:
        """The credential of this request is valid no longer, or never was."""
        self._tenants.pop(self._digest(scope), None)

    def _digest(self, scope: Any) -> bytes:
        """A keyed hash of the Authorization header, in the API alone; else of the session's cookie."""
        headers = dict(scope["headers"])
        shown = headers.get(b"authorization", b"") if _path(scope).startswith(API) else b""
        if not shown:
            cookies = parse_cookie(headers.get(b"cookie", b"").decode("latin-1"))
            shown = cookies.get(settings.SESSION_COOKIE_NAME, "").encode("latin-1", "replace")
        return blake2b(shown, key=self._secret, digest_size=16).digest()


def is_health_check(scope: Any) -> bool:
    return _path(scope) in HEALTH_CHECKS


def _path(scope: Any) -> str:
    """The address below the prefix that the server is mounted at."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))
