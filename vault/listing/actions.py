"""Jobs that apply one action to chosen or matching memories: counted first, done in parts, and undone."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Annotated, Any, Literal
from uuid import UUID

from django.conf import settings
from django.db import transaction
from pydantic import Field, TypeAdapter

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.denials import record_and_return_denial
from governance.errors import (
    Conflict,
    DomainError,
    FieldError,
    Forbidden,
    IllegalTransition,
    Invalid,
    NotFound,
    Unavailable,
)
from governance.ids import uuid7
from governance.jobs.kinds import JobRun, Preview, Step
from governance.jobs.registry import handler
from governance.jobs.sealed_payloads import open_result, seal_result
from governance.jobs.selectors import JobView, job_get
from governance.jobs.services import job_create
from governance.keys.services import token_maker
from governance.models import Job
from governance.tenants.principals import actor_now
from governance.vocabulary import JobStatus, Permission, Topic, Verb
from vault.content.blobs import with_blobs
from vault.cubes.bulk_changes import Failures
from vault.cubes.eligibility import SEARCHABLE
from vault.cubes.filters import filter_read, filter_refuse_empty
from vault.cubes.lookup import cube_target
from vault.cubes.pack_reads import find_export_refusals
from vault.cubes.selectors import CubeView, cubes_read
from vault.cubes.writer.prepared_texts import PreparedTexts, provide_texts, read_stored_texts
from vault.lifecycle.rules import is_legal
from vault.listing.bulk import (
    PERMISSIONS,
    READING,
    TOGETHER,
    TRANSITIONS,
    VERSIONED,
    BulkAction,
    BulkArguments,
    Change,
    bulk_check,
    change_together,
    make_change,
)
from vault.listing.selectors import select_inactive
from vault.listing.undo import undo_one, versions_undo
from vault.models import ActionItem, Cube
from vault.models.cube import IS_HELD, CubeQuerySet
from vault.screening.screen import EVERYWHERE
from vault.vocabulary import PiiField, State

PART = 100  # memories of one transaction
LOOKED_AT = 1_000  # memories of a dry run that are looked at one by one
MOST_COUNTED = 100_000
MOST_IDS = 1_000  # chosen memories of one call
MOST_NAMED = 100  # ids in a reply
EXPORT = "export"
EVERYTHING = {"importance": {"gte": 0}}
REPLACED = "replaced"  # marks the result of an export that later exports replaced
UNDONE_BY = {BulkAction.DELETE: BulkAction.RESTORE, BulkAction.RESTORE: BulkAction.DELETE}
Tried = tuple[dict[UUID, UUID], list[tuple[UUID, DomainError]]]
"""The memories that were changed, each with the one to be undone: itself, or its copy; and the others."""
ARGUMENTS: TypeAdapter[BulkArguments] = TypeAdapter(BulkArguments)


@dataclass(frozen=True)
class ActionDraft:
    """A bulk action and its memories: chosen ones (`ids`), or all that match (`filters`).

    action: a BulkAction or EXPORT. filters: as in a search; a restoration applies them to inactive memories. arguments
    None: not known yet, for a dry run.
    """

    action: str
    ids: tuple[UUID, ...] = ()
    filters: Mapping[str, Any] | None = field(default=None, repr=False)
    arguments: BulkArguments | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ExportSettings:
    """Settings of a scheduled export of a namespace, a persona, or everything. keep: number of exports that are kept.

    on: an event that also starts the export: a pack was published, or a namespace was moved or restored.
    """

    namespace: Annotated[str, Field(max_length=200)] = ""
    persona: Annotated[str, Field(max_length=200)] = ""
    keep: Annotated[int, Field(ge=1, le=100)] = 7
    on: Literal["", "pack", "namespace"] = ""


EXPORT_SETTINGS = TypeAdapter(ExportSettings)


@dataclass(frozen=True)
class ActionCount:
    """The effect of an action. ids, skipped: the first MOST_NAMED; codes: numbers of skipped memories by reason.

    is_capped: more memories match than were checked; skipped ones among the rest are reported while the job runs.
    """

    count: int
    ids: tuple[UUID, ...]
    skipped: tuple[tuple[UUID, str], ...]
    codes: Mapping[str, int]
    is_capped: bool


def action_count(*, actor: Actor, draft: ActionDraft) -> ActionCount:
    """Count the memories that the action would change, as a dry run. Raises Forbidden; Invalid. Writes nothing."""
    authorize(actor, _required_permission(draft.action))
    with acting(actor):
        _check_draft(actor, draft)
        rows = _select_rows(actor, draft)
        total = len(rows.values_list("id")[:MOST_COUNTED])
        looked_at = list(rows.select_related("namespace").annotate(is_held=IS_HELD).order_by("id")[:LOOKED_AT])
        staying = find_export_refusals(actor, [cube.id for cube in looked_at]) if draft.action == EXPORT else {}
        found = [
            (cube.id, staying[cube.id].code if cube.id in staying else _find_obstacle(actor, draft.action, cube))
            for cube in looked_at
        ]
        found += [(cube_id, "not_found") for cube_id in sorted({*draft.ids} - {cube.id for cube in looked_at})]
        skipped = [(cube_id, code) for cube_id, code in found if code]
        left_out = sum(code != "not_found" for _, code in skipped)
        return ActionCount(
            count=total - left_out,
            ids=tuple(islice((cube_id for cube_id, code in found if not code), MOST_NAMED)),
            skipped=tuple(skipped[:MOST_NAMED]),
            codes=Counter(code for _, code in skipped),
            is_capped=total > LOOKED_AT,
        )


def action_create(*, actor: Actor, draft: ActionDraft, expected_count: int | None = None) -> JobView:
    """Create the job of an action. expected_count: the count of the dry run.

    Raises Forbidden; Invalid; Conflict if the count has changed. Writes: Job, AuditEntry, OutboxEvent.
    """
    authorize(actor, _required_permission(draft.action))
    with acting(actor):
        _check_draft(actor, draft)
        if expected_count is not None:
            present = action_count(actor=actor, draft=draft).count
            if present != expected_count:
                raise Conflict(f"The action would change {present} memories, not {expected_count}. Count again.")
        kind = Topic.MEMORIES_EXPORT if draft.action == EXPORT else Topic.MEMORIES_ACT
        request = {
            "ids": [str(cube_id) for cube_id in draft.ids],
            "filters": draft.filters,
            "arguments": json.loads(ARGUMENTS.dump_json(draft.arguments or BulkArguments())),
        }
        total = len(_select_rows(actor, draft).values_list("id")[:MOST_COUNTED])
        options = {"action": str(draft.action), "before": str(uuid7())}
        return job_create(actor=actor, kind=kind, settings=options, request=json.dumps(request).encode(), total=total)


@handler(
    Topic.MEMORIES_ACT,
    permission=Permission.MEMORY_UPDATE,
    undo=Topic.MEMORIES_ACT_UNDO,
    undo_for=timedelta(days=settings.DELETED_GRACE_DAYS),
)
def memories_act(run: JobRun) -> Callable[[], Step]:
    """Apply the action to the next PART memories. done: memories processed. Writes what the action writes; ActionItem
    …."""
    texts = _read_texts(run, BulkAction(run.settings["action"]), _next_part(run))

    def write() -> Step:
        with provide_texts(texts):
            return _do_step(run)

    return write


def export_preview(actor: Actor, chosen: Mapping[str, Any]) -> Preview:
    """Return the memories that a scheduled export would contain now. Raises Forbidden; Invalid."""
    found = action_count(actor=actor, draft=_draft_from_schedule(chosen))
    return Preview(found.count, found.ids)


@handler(Topic.MEMORIES_EXPORT, permission=Permission.MEMORY_READ, settings=ExportSettings, preview=export_preview)
def memories_export(run: JobRun) -> Callable[[], Step]:
    """Record the ids of the next PART memories of an export. Their words are read at download."""

    def write() -> Step:
        step = _do_step(run)
        if step.state is None and "keep" in run.settings:
            _replace_exports(run)
        return step

    return write


@handler(Topic.MEMORIES_ACT_UNDO, permission=Permission.MEMORY_UPDATE)
def memories_act_undo(run: JobRun) -> Callable[[], Step]:
    """Undo the action on the next PART memories that it changed. done: memories processed.

    Memories that were changed again since are left unchanged. Writes what the undo writes.
    """
    with acting(run.actor):
        job_id = UUID(run.settings["job"])
        job = Job.objects.get(tenant_id=run.actor.tenant_id, id=job_id)
        action = BulkAction(job.settings["action"])
        items = _next_items(run.actor, job_id, _last_id(run))
    texts = _read_texts(run, UNDONE_BY.get(action, action), [item.cube_id for item in items])

    def write() -> Step:
        with provide_texts(texts):
            return _undo_step(run, job, action, items)

    return write


def export_lines(*, actor: Actor, job_id: UUID) -> Iterator[list[CubeView]]:
    """Yield the memories of a finished export in parts; each part has what the actor may read at that time.

    Raises NotFound; Forbidden, also at a later part if the key, membership or role has ended; Conflict while it runs.
    Writes: AuditEntry for each part.
    """
    authorize(actor, Permission.MEMORY_READ)
    view = job_get(actor=actor, job_id=job_id)
    if view.kind != Topic.MEMORIES_EXPORT:
        raise NotFound
    export_check(view)
    return _export_parts(actor, job_id)


def is_replaced(view: JobView) -> bool:
    """Return whether later exports of the same schedule replaced this export."""
    return isinstance(view.result, dict) and bool(view.result.get(REPLACED))


def export_check(view: JobView) -> None:
    """Check that an export has a file. Raises Conflict if it has none."""
    if view.status != JobStatus.SUCCEEDED:
        raise Conflict(f"The export is {view.status}.")
    if is_replaced(view):
        raise Conflict("Later exports of the schedule replaced this one.")


def _export_parts(actor: Actor, job_id: UUID) -> Iterator[list[CubeView]]:
    last: UUID | None = None
    while True:
        actor = actor_now(actor)  # the right may end during a long download
        authorize(actor, Permission.MEMORY_READ)
        named, views = _export_part(actor, job_id, last)
        if not named:
            return
        last = named[-1]
        yield views


@with_blobs
def _export_part(actor: Actor, job_id: UUID, last: UUID | None) -> tuple[list[UUID], list[CubeView]]:
    """Return the ids of the next recorded memories, and those memories that the actor may read. Writes: AuditEntry."""
    with acting(actor):
        named = [item.cube_id for item in _next_items(actor, job_id, last)]
        if not named:
            return [], []
        rows = Cube.objects.visible_to(actor).filter(id__in=named).order_by("id")
        visible = list(rows.values_list("id", flat=True))
        views = cubes_read(actor=actor, cube_ids=visible, verb=Verb.MEMORY_EXPORTED, is_use=False, leaves=True)
        return named, views


def _required_permission(action: str) -> Permission:
    if action == EXPORT:
        return Permission.MEMORY_READ
    if action not in set(BulkAction):
        raise Invalid(errors=[FieldError("action", f"one of {', '.join([*BulkAction, EXPORT])}")])
    return PERMISSIONS.get(BulkAction(action), Permission.MEMORY_UPDATE)


def _check_draft(actor: Actor, draft: ActionDraft) -> None:
    """Check the draft. Raises Invalid if it would fail for every memory."""
    if bool(draft.ids) == (draft.filters is not None):
        raise Invalid(errors=[FieldError("ids", "give ids or filters, and not both")])
    if draft.filters is not None:
        filter_refuse_empty(draft.filters)
    if len(draft.ids) > MOST_IDS:
        raise Invalid(errors=[FieldError("ids", f"at most {MOST_IDS}")])
    if draft.action != EXPORT and draft.arguments is not None:
        bulk_check(BulkAction(draft.action), draft.arguments)


def _select_rows(actor: Actor, draft: ActionDraft) -> CubeQuerySet:
    """Return the matching memories that the actor may see; for a restoration, the matching inactive ones."""
    rows = select_inactive(actor) if draft.action == BulkAction.RESTORE else Cube.objects.visible_to(actor)
    if draft.filters is None:
        return rows.filter(id__in=draft.ids)
    return rows.filter(filter_read(token_maker(actor.tenant_id), draft.filters))


def _find_obstacle(actor: Actor, action: str, cube: Any) -> str:
    """Return the code of the error that prevents the action on one memory; empty if it is possible."""
    if action != EXPORT and not is_allowed(actor, _required_permission(action), cube_target(cube)):
        return Forbidden.code
    if cube.is_held and action not in {EXPORT, BulkAction.FREEZE, BulkAction.UNFREEZE}:
        return "held"
    if action in {BulkAction.COOL, BulkAction.WARM, BulkAction.SPLIT} and cube.state not in SEARCHABLE:
        return IllegalTransition.code
    to = TRANSITIONS.get(BulkAction(action)) if action != EXPORT else None
    return IllegalTransition.code if to is not None and not is_legal(State(cube.state), to) else ""


def _load_draft(run: JobRun) -> ActionDraft:
    """Return the draft of a job. Raises Conflict if the request was erased."""
    if "keep" in run.settings:
        return _draft_from_schedule(run.settings)
    if run.request is None:
        raise Conflict("What this job was asked for was erased.")
    request = json.loads(run.request)
    return ActionDraft(
        action=run.settings["action"],
        ids=tuple(UUID(text) for text in request["ids"]),
        filters=request["filters"],
        arguments=ARGUMENTS.validate_python(_rename_tag(request["arguments"])),
    )


def _rename_tag(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored arguments of a job with `tags`. A job of 0.1.0 has one `tag`."""
    return {**arguments, **({"tags": [tag]} if (tag := arguments.get("tag")) else {})}


def _draft_from_schedule(chosen: Mapping[str, Any]) -> ActionDraft:
    """Return the export that a schedule's settings describe. Raises ValidationError."""
    settings = EXPORT_SETTINGS.validate_python(dict(chosen))
    places = {"namespace": settings.namespace, "persona": settings.persona}
    return ActionDraft(EXPORT, filters={name: value for name, value in places.items() if value} or EVERYTHING)


def _replace_exports(run: JobRun) -> None:
    """Mark older exports with the same settings as replaced, beyond the number to keep. Writes: Job …."""
    same = Job.objects.filter(tenant_id=run.actor.tenant_id, kind=Topic.MEMORIES_EXPORT, settings=dict(run.settings))
    ended = same.filter(status=JobStatus.SUCCEEDED, principal_id=run.actor.principal_id).exclude(id=run.job_id)
    for job in ended.order_by("-id")[run.settings["keep"] - 1 :]:
        result = open_result(job) or {}
        if result.get(REPLACED):
            return  # all earlier ones are replaced too
        job.sealed_result = seal_result(job, {**result, REPLACED: True})
        job.save(update_fields=["sealed_result"])


def _next_part(run: JobRun) -> list[UUID]:
    """Return the ids of the next matching memories."""
    draft = _load_draft(run)
    with acting(run.actor):
        rows = (
            _select_rows(run.actor, draft)
            .filter(id__lt=UUID(run.settings.get("before", str(run.job_id))))
            .order_by("id")
        )
        after = _last_id(run)
        rows = rows if after is None else rows.filter(id__gt=after)
        return list(rows.values_list("id", flat=True)[:PART])


def _read_texts(run: JobRun, action: BulkAction, ids: Collection[UUID]) -> PreparedTexts:
    """Read the texts before the transaction, so that the memories are not locked meanwhile."""
    moved = EVERYWHERE if action is BulkAction.MOVE else frozenset[PiiField]()
    return read_stored_texts(actor=run.actor, cube_ids=ids if action in READING else [], screened=moved)


def _last_id(run: JobRun) -> UUID | None:
    return UUID(run.state["after"]) if "after" in run.state else None


def _do_step(run: JobRun) -> Step:
    actor, draft = run.actor, _load_draft(run)
    authorize(actor, _required_permission(draft.action))
    ids = _next_part(run)
    before = {cube.id: cube for cube in Cube.objects.filter(id__in=ids).only("id", "version", "layer")}
    if draft.action == EXPORT:
        staying = find_export_refusals(actor, ids)
        done, skipped = {cube_id: cube_id for cube_id in ids if cube_id not in staying}, [*staying.items()]
    else:
        done, skipped = _change_part(run, BulkAction(draft.action), draft.arguments or BulkArguments(), ids)
    after = _load_versions(done.values())
    is_versioned = draft.action in VERSIONED
    changed = {
        cube_id: made
        for cube_id, made in done.items()
        if made in after and not (is_versioned and before[cube_id].version == after[made])
    }
    ActionItem.objects.bulk_create(
        ActionItem(
            tenant_id=actor.tenant_id,
            job_id=run.job_id,
            cube_id=made,
            version=after[made],
            layer=before[cube_id].layer if draft.action == BulkAction.PROMOTE else "",
        )
        for cube_id, made in changed.items()
    )
    return _compose_step(run, ids, len(changed), skipped)


def _change_part(run: JobRun, action: BulkAction, arguments: BulkArguments, ids: Sequence[UUID]) -> Tried:
    if action not in TOGETHER:
        return _try_each(run, make_change(run.actor, action, arguments, run.job_id), ids)
    done, failed = change_together(actor=run.actor, action=action, chosen=dict.fromkeys(ids), arguments=arguments)
    return _record_denials(run, {cube_id: cube_id for cube_id in done}, failed)


def _undo_step(run: JobRun, job: Job, action: BulkAction, items: Sequence[ActionItem]) -> Step:
    actor, since, by_id = run.actor, job.created_at, {item.cube_id: item for item in items}
    authorize(actor, Permission.MEMORY_UPDATE)

    def undo(cube_id: UUID) -> None:
        undo_one(actor, action, by_id[cube_id], since=since)

    if action in VERSIONED:
        undone, failed = versions_undo(actor, action, items)
        done, skipped = _record_denials(run, {cube_id: cube_id for cube_id in undone}, failed)
    else:
        done, skipped = _try_each(run, undo, by_id)
    total = ActionItem.objects.filter(tenant_id=actor.tenant_id, job_id=job.id).count() if run.total is None else None
    return _compose_step(run, list(by_id), len(done), skipped, total=total)


def _try_each(run: JobRun, change: Change, ids: Iterable[UUID]) -> Tried:
    """Apply the change to each memory in its own savepoint. Returns the changed memories and the failures."""
    done: dict[UUID, UUID] = {}
    failed: Failures = {}
    for cube_id in ids:
        try:
            with transaction.atomic():
                made = change(cube_id)
            done[cube_id] = made.id if isinstance(made, Cube) else cube_id
        except Unavailable:
            raise
        except DomainError as failure:
            failed[cube_id] = failure
    return _record_denials(run, done, failed)


def _record_denials(run: JobRun, done: dict[UUID, UUID], failed: Failures) -> Tried:
    """Record an audit entry for each denial among the failures. Writes: AuditEntry …."""
    for failure in failed.values():
        if isinstance(failure, Forbidden):
            record_and_return_denial(actor=run.actor, denial=failure, path=f"jobs/{run.job_id}/")
    return done, list(failed.items())


def _compose_step(
    run: JobRun,
    ids: Sequence[UUID],
    changed: int,
    skipped: Sequence[tuple[UUID, DomainError]],
    *,
    total: int | None = None,
) -> Step:
    """Return the progress of the job and its result so far: counts by reason, and the first skipped ids."""
    codes = Counter(run.result.get("codes", {})) + Counter(failure.code for _, failure in skipped)
    named = [{"id": str(cube_id), "code": failure.code} for cube_id, failure in skipped]
    result = {
        "changed": run.result.get("changed", 0) + changed,
        "codes": dict(codes),
        "skipped": [*run.result.get("skipped", ()), *named][:MOST_NAMED],
    }
    done = run.done + len(ids)
    if len(ids) < PART:
        return Step(done=done, total=done, result=result)
    return Step(state={"after": str(ids[-1])}, done=done, total=total, result=result)


def _next_items(actor: Actor, job_id: UUID, after: UUID | None) -> list[ActionItem]:
    rows = ActionItem.objects.filter(tenant_id=actor.tenant_id, job_id=job_id).order_by("cube_id")
    return list((rows if after is None else rows.filter(cube_id__gt=after))[:PART])


def _load_versions(ids: Collection[UUID]) -> dict[UUID, int]:
    return dict(Cube.objects.filter(id__in=ids).values_list("id", "version"))
