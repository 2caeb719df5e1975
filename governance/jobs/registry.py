"""Registration of job handlers: `@handler(Topic.X)` makes a function the handler of a kind of job, as in
docs/architecture.md.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from governance.actor import Actor
from governance.jobs.kinds import Choices, JobHandler, JobKind, Preview, add_kind
from governance.jobs.steps import route_for
from governance.models import Job
from governance.vocabulary import Permission, Weight

JOB_LIMIT = timedelta(minutes=15)


def handler(
    topic: str,
    *,
    permission: Permission = Permission.OPERATIONS_MANAGE,
    weight: Weight = Weight.HEAVY,
    batch: int = 1,
    limit: timedelta = JOB_LIMIT,
    settings: type | None = None,
    preview: Callable[[Actor, Mapping[str, Any]], Preview] | None = None,
    undo: str | None = None,
    undo_for: timedelta = timedelta(0),
    cancelled: Callable[[Actor, Job], None] | None = None,
    default_cron: str = "",
    most_open: int = 20,
    choices: Choices | None = None,
) -> Callable[[JobHandler], JobHandler]:
    """Register a function as the handler of a topic's jobs; see JobKind.

    batch: the most jobs that one task runs, one after another. limit: the time limit of one task.
    """

    def register(function: JobHandler) -> JobHandler:
        kind = JobKind(
            topic, function, permission, settings, preview, undo, undo_for, cancelled, default_cron, most_open, choices
        )
        route_for(kind, weight=weight, batch=batch, limit=limit)
        add_kind(kind)
        return function

    return register
