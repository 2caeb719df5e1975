"""The life of imported memories beyond their words: personas and states, and the undo of an import."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import Forbidden, Held, NotFound, VersionConflict
from governance.ids import uuid7
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.personas.services import is_persona_name, persona_ensure
from governance.vocabulary import Permission, Topic
from vault.content.bulk_insert import defaults_of, insert_rows, make_row
from vault.cubes.lookup import cube_target
from vault.cubes.services import cubes_erase
from vault.exchange.items import Item
from vault.lifecycle.steps import PlannedStep, steps_write
from vault.models import ActionItem, Cube
from vault.models.cube import IS_HELD
from vault.vocabulary import State

PART = 100  # memories of one transaction
MOST_NAMED = 100  # memories that stay
REASON = "state in the imported file"
CARRIED = (State.ACTIVATED, State.MERGED, State.ARCHIVED)


def find_personas(actor: Actor, names: Iterable[str], chosen: str | None) -> dict[str, str | None]:
    """The id of the persona for each name in a file: the actor's own one, made when it is first needed.

    chosen: the persona of the whole import, if there is one. None where the actor may make none, or the name is none.
    Writes: Persona …, AuditEntry ….
    """
    is_bound = actor.binding is not None and actor.binding.persona_id is not None
    may_make = actor.member_id is not None and not is_bound and is_allowed(actor, Permission.PERSONA_CREATE)
    found: dict[str, str | None] = {}
    for name in names:
        if name not in found:
            is_made = not chosen and may_make and is_persona_name(name)
            found[name] = str(persona_ensure(actor=actor, name=name)[0].id) if is_made else chosen
    return found


def write_states(actor: Actor, stored: Mapping[UUID, Item], job_id: UUID | None = None) -> None:
    """Give new memories the states that they had. Use inside `acting`. Writes what `steps_write` writes."""
    wanted = {cube_id: item.state for cube_id, item in stored.items() if item.state in CARRIED}
    if not wanted:
        return
    rows = Cube.objects.select_for_update(of=("self",)).filter(tenant_id=actor.tenant_id, id__in=wanted)
    cubes = rows.filter(is_quarantined=False).select_related("namespace").order_by("id")
    steps = [PlannedStep(cube, wanted[cube.id], REASON) for cube in cubes if cube.state != wanted[cube.id]]
    steps_write(actor, steps, job_id)


def note_stored(run: JobRun, cube_ids: Sequence[UUID]) -> None:
    """Note the memories that an import stored, for its undo. Writes: ActionItem …."""
    rows = Cube.objects.filter(tenant_id=run.actor.tenant_id, id__any_of=cube_ids).values_list("id", "version")
    same = {**defaults_of(ActionItem), "tenant_id": run.actor.tenant_id, "job_id": run.job_id}
    insert_rows(
        [
            make_row(ActionItem, {**same, "id": uuid7(), "cube_id": cube_id, "version": number}, {})
            for cube_id, number in rows
        ]
    )


@handler(Topic.MEMORIES_IMPORT_UNDO, permission=Permission.MEMORY_DELETE)
def memories_import_undo(run: JobRun) -> Callable[[], Step]:
    """Erase the next PART memories that an import stored, so that the file can be imported again.

    What was changed since, or is held, stays. Writes what `cubes_erase` writes.
    """

    def write() -> Step:
        actor, last = run.actor, run.state.get("after")
        authorize(actor, Permission.MEMORY_DELETE)
        with acting(actor):
            noted = ActionItem.objects.filter(tenant_id=actor.tenant_id, job_id=UUID(run.settings["job"]))
            rows = noted.order_by("cube_id") if last is None else noted.filter(cube_id__gt=last).order_by("cube_id")
            items = list(rows[:PART])
            erased, left = _erase_unchanged(actor, {item.cube_id: item.version for item in items})
        named = [{"id": str(cube_id), "code": code} for cube_id, code in left.items()]
        result = {
            "changed": run.result.get("changed", 0) + erased,
            "codes": dict(Counter(run.result.get("codes", {})) + Counter(left.values())),
            "skipped": [*run.result.get("skipped", ()), *named][:MOST_NAMED],
        }
        state = {"after": str(items[-1].cube_id)} if len(items) == PART else None
        return Step(state=state, done=run.done + len(items), result=result)

    return write


def _erase_unchanged(actor: Actor, versions: Mapping[UUID, int]) -> tuple[int, dict[UUID, str]]:
    """Erase those that still have these versions, that the actor may delete, and that no hold keeps.

    Returns their number, and the code of the reason for each that stays.
    """
    rows = Cube.objects.in_reach_of(actor).filter(id__in=versions).annotate(is_held=IS_HELD)
    left = dict.fromkeys(versions, NotFound.code)
    cubes: list[Cube] = []
    found: list[Any] = list(
        rows.select_related("namespace", "persona", "subject").order_by("-id").select_for_update(of=("self",))
    )
    for cube in found:
        if not is_allowed(actor, Permission.MEMORY_DELETE, cube_target(cube)):
            left[cube.id] = Forbidden.code
        elif cube.is_held:
            left[cube.id] = Held.code
        elif cube.version != versions[cube.id]:
            left[cube.id] = VersionConflict.code
        else:
            del left[cube.id]
            cubes.append(cube)
    cubes_erase(actor=actor, cubes=cubes)
    return len(cubes), left
