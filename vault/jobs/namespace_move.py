"""Move a namespace with all below it, as a job."""

from collections.abc import Callable
from uuid import UUID

from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.outbox.services import emit
from governance.vocabulary import Permission, Topic, Weight
from vault.namespaces.management import namespace_move


@handler(Topic.NAMESPACE_MOVE, permission=Permission.NAMESPACE_CREATE, weight=Weight.INTERACTIVE)
def namespaces_move(run: JobRun) -> Callable[[], Step]:
    """Give each namespace of the subtree its new path, in one transaction. done: namespaces."""

    def write() -> Step:
        namespace_id = UUID(run.settings["namespace"])
        moved = namespace_move(actor=run.actor, namespace_id=namespace_id, path=run.settings["path"])
        emit(actor=run.actor, topic=Topic.EXPORTS_DUE, payload={"event": "namespace"})
        return Step(done=moved, total=moved, result={"moved": moved})

    return write
