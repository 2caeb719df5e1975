"""The jobs that a test left in the outbox, run here and now by the very handlers that a worker would run."""

from governance.outbox.dispatcher import dispatch_once
from governance.outbox.routes import Task
from governance.outbox.runner import task_run


def run_jobs() -> int:
    """Run what is due until nothing is; returns how many events ended."""
    ended = 0

    def send(task: Task) -> None:
        nonlocal ended
        ended += task_run(task)

    while dispatch_once(send):
        pass
    return ended
