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
    """Checks the rights of a stream's reader. actor: the reader. memory_ids: the memories that the answer uses."""

    actor: Actor
    memory_ids: Collection[UUID]
    _asked: float = field(default_factory=time.monotonic)

    def ask(self, *, now: bool = False) -> None:
        """Check the reader's key, membership and right to all memories. Raises Forbidden once one of them has ended.

        Checks at most every ASKED_EVERY seconds, or `now`. Four queries.
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
        """Return whether the reader still has all rights, for a reader who has left and gets no error."""
        try:
            self.ask(now=True)
        except Forbidden:
            return False
        return True
