"""The jobs that a test left in the outbox, run here and now by the very tasks that a worker would run."""

from collections.abc import Sequence
from uuid import UUID

from governance import tasks as _of_the_law  # noqa: F401  registers them
from governance.outbox.dispatcher import dispatch_once
from governance.vocabulary import Topic
from memos_web.celery import OUTBOX_ROUTES, app
from vault import tasks  # noqa: F401  registers them


def run_jobs() -> int:
    """Run what is due until nothing is; returns how many events ended."""
    ended = 0

    def send(topic: Topic, tenant_id: UUID, event_ids: Sequence[UUID]) -> None:
        nonlocal ended
        task = app.tasks[OUTBOX_ROUTES[topic]]
        ended += task(str(tenant_id), [str(one) for one in event_ids])

    while dispatch_once(send):
        pass
    return ended
