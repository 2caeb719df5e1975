"""Permission checks while an answer is streamed: revoking a right ends the stream within a second."""

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting, release_connection
from governance.errors import Forbidden
from governance.tenants.principals import actor_now
from governance.vocabulary import Permission
from vault.cubes.visibility import visible_ids

ASKED_EVERY = 0.5  # seconds; what comes later than that after a revocation is not sent


@dataclass
class Watch:
    """actor: who reads the stream. memory_ids: what the answer rests on."""

    actor: Actor
    memory_ids: Collection[UUID]
    _asked: float = field(default_factory=time.monotonic)

    def ask(self, *, now: bool = False) -> None:
        """Raises Forbidden once the reader's key, membership or right to any of the memories has ended.

        Looks at most every ASKED_EVERY seconds, or `now`. Four queries.
        """
        if not now and time.monotonic() - self._asked < ASKED_EVERY:
            return
        reader = actor_now(self.actor)
        authorize(reader, Permission.CONVERSATION_USE)
        with acting(reader):
            seen = len(visible_ids(reader, self.memory_ids))
        release_connection()
        if seen < len(self.memory_ids):
            detail = "What this answer rests on may no longer be read."
            raise Forbidden(detail, permission=Permission.CONVERSATION_USE, rule="revoked")
        self._asked = time.monotonic()

    def allows(self) -> bool:
        """`ask` for a reader who has gone away: there is nobody to tell a refusal."""
        try:
            self.ask(now=True)
        except Forbidden:
            return False
        return True
