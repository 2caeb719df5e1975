"""Names the caller of a request before anybody is authenticated, so that callers can take turns.

A credential that was valid a moment ago stands for its tenant. Whatever else is sent stands for the network that it
comes from: made-up credentials make nobody more callers than one.
"""

import secrets
from hashlib import blake2b
from typing import Any
from uuid import UUID

from cachetools import LRUCache
from django.conf import settings
from django.http.cookie import parse_cookie

from governance.accounts.attempts import address_group

MOST_CREDENTIALS = 20_000
NOBODY = ""  # a health check on the process's own socket, which has no address


class Callers:
    """Remembers which tenant each valid credential belongs to. Used in one event loop."""

    def __init__(self) -> None:
        self._tenants: LRUCache[bytes, str] = LRUCache(MOST_CREDENTIALS)
        self._secret = secrets.token_bytes(32)

    def caller_of(self, scope: Any) -> str:
        """The tenant of a credential that was valid before, else the network of the address."""
        tenant = self._tenants.get(self._digest(scope))
        if tenant is not None:
            return tenant
        client = scope.get("client")
        return f"network {address_group(client[0])}" if client else NOBODY

    def learn(self, scope: Any, tenant_id: UUID) -> None:
        """The credential of this request was valid."""
        self._tenants[self._digest(scope)] = f"tenant {tenant_id}"

    def _digest(self, scope: Any) -> bytes:
        """A keyed hash of the Authorization header, else of the session's cookie."""
        headers = dict(scope["headers"])
        shown = headers.get(b"authorization", b"")
        if not shown:
            cookies = parse_cookie(headers.get(b"cookie", b"").decode("latin-1"))
            shown = cookies.get(settings.SESSION_COOKIE_NAME, "").encode("latin-1", "replace")
        return blake2b(shown, key=self._secret, digest_size=16).digest()
