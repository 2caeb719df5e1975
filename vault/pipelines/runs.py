"""Runs of pipelines: reading steps first, then all changes in one transaction, with one audit entry for the run."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import (
    Conflict,
    DomainError,
    FieldError,
    Held,
    Invalid,
    PiiUnavailable,
    Reread,
    TooLarge,
    Unavailable,
)
from governance.keys.services import token_maker
from governance.pages import First
from governance.privacy.detection import detector
from governance.privacy.pii.detector import DetectorFailed
from governance.vocabulary import Permission, Verb
from vault.content.blobs import with_blobs
from vault.content.drafts import CubeDraft
from vault.cubes.filters import asks_for_state, filter_read, message_condition
from vault.cubes.lookup import locate_readable
from vault.cubes.selectors import CubeView, cubes_list, cubes_read
from vault.cubes.services import cubes_add
from vault.cubes.writer.builder import ENTRY_KEY
from vault.cubes.writer.prepared_texts import PreparedTexts, provide_texts, read_stored_texts, texts_of_words
from vault.lifecycle.fusion import cubes_fuse
from vault.lifecycle.services import cube_copy, cube_copy_ask, draft_copy
from vault.lifecycle.summary_text import central_sentences, sentence_ranges
from vault.listing.bulk import MOST_CHOSEN, BulkAction, BulkArguments, bulk_apply
from vault.listing.selectors import LEAST_SCORE
from vault.pipelines.rules import (
    BULK,
    READS,
    AddStep,
    BuildStep,
    CopyStep,
    ExpireStep,
    FuseStep,
    ListStep,
    MoveStep,
    ScreenStep,
    SearchStep,
    Step,
    SummariseStep,
    fill_texts,
    ids_of,
    reference_number,
    text_numbers,
)
from vault.retrieval.fusion import is_relevant
from vault.retrieval.queries import SHOWN, SearchQuery
from vault.retrieval.selectors import memories_search
from vault.screening.screen import EVERYWHERE, SECONDS
from vault.screening.texts import find_places
from vault.store.selectors import versions_list
from vault.store.services import VersionDraft, version_build
from vault.vocabulary import PiiField, Sensitivity, State

MOST_VERSIONS = 1000  # of a pack, which are read for the next number


@dataclass(frozen=True)
class StepResult:
    """The result of a step. ids: found, changed or new memories; is_new: the run made them.

    originals: the memories that a copy or a fusion takes; text: of a summary; job_id: of a requested job; has_more:
    more memories match than the step takes; left_out: memories whose text a summary may not take.
    """

    op: str
    ids: tuple[UUID, ...] = ()
    originals: tuple[UUID, ...] = ()
    is_new: bool = False
    text: str = field(default="", repr=False)
    has_more: bool = False
    left_out: tuple[UUID, ...] = ()
    job_id: UUID | None = None
    drafts: tuple[CubeDraft, ...] = field(default=(), repr=False)  # copies of the memories of the text


@dataclass(frozen=True)
class PreparedRun:
    """A run whose reading steps are done, with the prepared texts of the memories that the others may change."""

    actor: Actor
    steps: tuple[Step, ...]
    results: tuple[StepResult, ...]
    texts: PreparedTexts


def pipeline_run(
    *, actor: Actor, steps: Sequence[Step], pipeline_id: UUID | None = None, is_dry: bool = False
) -> tuple[StepResult, ...]:
    """Run the steps, all or none. is_dry: roll back all changes. Raises and writes as `run_prepare` and `run_apply`."""
    authorize(actor, Permission.MEMORY_READ)
    prepared = run_prepare(actor=actor, steps=steps)
    with acting(actor):
        results = run_apply(prepared, pipeline_id)
        transaction.set_rollback(is_dry)
    return results


def run_prepare(*, actor: Actor, steps: Sequence[Step]) -> PreparedRun:
    """Run the reading steps, each in transactions of its own, so that no embedder is called in that of the changes.

    Raises and writes as the selectors of these steps.
    """
    authorize(actor, Permission.MEMORY_READ)
    steps_check(actor=actor, steps=steps)
    results: list[StepResult] = []
    for step in steps:
        if not isinstance(step, READS):
            break
        with _name_step(len(results), step):
            results.append(_read(actor, step, results))
    given = [item for step in steps for item in ids_of(step) if isinstance(item, UUID)]
    ids = {*given, *(cube_id for result in results for cube_id in (*result.originals, *result.ids))}
    moved = EVERYWHERE if any(isinstance(step, MoveStep) for step in steps) else frozenset[PiiField]()
    texts = read_stored_texts(actor=actor, cube_ids=ids, screened=moved)
    return PreparedRun(actor, tuple(steps), tuple(results), texts)


def run_apply(prepared: PreparedRun, pipeline_id: UUID | None = None) -> tuple[StepResult, ...]:
    """Apply the changes of a prepared run in one transaction.

    Raises the error of the first step that fails, which names the step. Writes: AuditEntry, and what the services of
    the steps write.
    """
    actor = prepared.actor
    authorize(actor, Permission.MEMORY_READ)
    results = list(prepared.results)
    with provide_texts(prepared.texts), acting(actor):
        for step in prepared.steps[len(results) :]:
            with _name_step(len(results), step):
                results.append(_apply(actor, step, results))
        touched = dict.fromkeys(cube_id for result in results for cube_id in (*result.originals, *result.ids))
        detail: dict[str, Any] = {"steps": ", ".join(step.op for step in prepared.steps)}
        if pipeline_id is not None:
            detail["pipeline"] = str(pipeline_id)
        record(actor=actor, verb=Verb.PIPELINE_RUN, object_type="memory", object_ids=list(touched), detail=detail)
    return tuple(results)


def steps_check(*, actor: Actor, steps: Sequence[Step]) -> None:
    """Check the filters of the steps, which need the keys of the tenant. Raises Forbidden; Invalid; KeyUnavailable."""
    authorize(actor, Permission.MEMORY_READ)
    for number, step in enumerate(steps):
        if isinstance(step, (ListStep, SearchStep)) and step.filters:
            filter_read(token_maker(actor.tenant_id), step.filters, path=f"steps.{number}.filters")


@contextmanager
def _name_step(number: int, step: Step) -> Iterator[None]:
    """Name the step in the errors of this block. number: from 0."""
    try:
        yield
    except Reread:
        raise
    except DomainError as failure:
        failure.detail = f"Step {number + 1} ({step.op}): {failure.detail}"
        failure.errors = tuple(replace(fault, field=f"steps.{number}.{fault.field}") for fault in failure.errors)
        raise


@with_blobs
def _read(actor: Actor, step: Step, results: Sequence[StepResult]) -> StepResult:
    match step:
        case ListStep():
            return _list(actor, step)
        case SearchStep():
            return _search(actor, step)
        case ScreenStep():
            return _screen(actor, _resolve_ids(step, results))
        case SummariseStep():
            return _summarise(actor, _resolve_ids(step, results), step.sentences)
    raise ValueError(f"{step.op} is no reading step")


def _apply(actor: Actor, step: Step, results: Sequence[StepResult]) -> StepResult:
    """Apply a changing step. A step without memories or text does nothing."""
    if isinstance(step, AddStep):
        return _add(actor, step, results)
    ids = _resolve_ids(step, results)
    if len(ids) < (2 if isinstance(step, FuseStep) else 1):
        return StepResult(step.op, tuple(ids))
    match step:
        case FuseStep():
            made = (cubes_fuse(actor=actor, cube_ids=ids, reason=step.reason).id,)
            return StepResult(step.op, made, tuple(ids), is_new=True)
        case CopyStep(op="copy"):
            copies = (cube_copy(actor=actor, cube_id=cube_id, namespace=step.namespace).id for cube_id in ids)
            return StepResult(step.op, tuple(copies), tuple(ids), is_new=True)
        case BuildStep():
            return _build(actor, step, ids)
    assert isinstance(step, BULK)
    arguments = {name: value for name, value in step.model_dump().items() if name not in {"op", "ids", "in_days"}}
    if isinstance(step, ExpireStep) and step.in_days is not None:
        arguments["expires_at"] = database_now() + timedelta(days=step.in_days)
    chosen = dict.fromkeys(ids)
    outcome = bulk_apply(actor=actor, action=BulkAction(step.op), chosen=chosen, arguments=BulkArguments(**arguments))
    for cube_id, failure in outcome.skipped:
        failure.detail = f"memory {cube_id}: {failure.detail}"
        raise failure
    return StepResult(step.op, tuple(ids))


def _resolve_ids(step: Step, results: Sequence[StepResult]) -> list[UUID]:
    """Return the memories of a step, each once. Raises Invalid for more than MOST_CHOSEN."""
    ids: dict[UUID, None] = {}
    for item in ids_of(step):
        ids |= dict.fromkeys([item] if isinstance(item, UUID) else results[reference_number(item) - 1].ids)
    if len(ids) > MOST_CHOSEN:
        raise Invalid(errors=[FieldError("ids", f"at most {MOST_CHOSEN}")])
    return list(ids)


def _compose_filters(step: ListStep | SearchStep) -> Mapping[str, Any]:
    """Return the filters of a step in the filter language, with its `since_days`."""
    if step.since_days is None:
        return step.filters or {}
    since = {"created_at": {"gte": (database_now() - timedelta(days=step.since_days)).isoformat()}}
    return {"AND": [step.filters, since]} if step.filters else since


def _list(actor: Actor, step: ListStep) -> StepResult:
    with acting(actor):
        filters = _compose_filters(step)
        matching = filter_read(token_maker(actor.tenant_id), filters) if filters else Q()
        if not step.inactive:
            matching &= message_condition(filters)
            if not any(asks_for_state(filters, state) for state in State):
                matching &= Q(state__in=SHOWN)
        pages = First(step.limit + 1)
        views = cubes_list(actor=actor, matching=matching, pages=pages, inactive=step.inactive)
    ids = tuple(view.cube.id for view in views)
    return StepResult(step.op, ids[: step.limit], has_more=len(ids) > step.limit)


def _search(actor: Actor, step: SearchStep) -> StepResult:
    with acting(actor):
        filters = _compose_filters(step)
    search = SearchQuery(query=step.query, top_k=step.limit, filters=filters or None, min_score=LEAST_SCORE)
    hits = memories_search(actor=actor, search=search)
    matching = [hit for hit in hits if is_relevant(hit.parts) or hit.parts.entity > 0 or hit.parts.time > 0]
    return StepResult(step.op, tuple(hit.view.cube.id for hit in matching))


def _open(actor: Actor, ids: Sequence[UUID]) -> list[CubeView]:
    """Return the memories, each of which the actor must be able to read. Raises NotFound; Forbidden."""
    with acting(actor):
        for cube_id in ids:
            locate_readable(actor, cube_id)
        return cubes_read(actor=actor, cube_ids=ids, verb=Verb.MEMORY_READ)


def _screen(actor: Actor, ids: Sequence[UUID]) -> StepResult:
    deadline = time.thread_time() + SECONDS
    found = []
    for view in _open(actor, ids):
        if time.thread_time() > deadline:
            raise Unavailable("The texts take too long to check. Take fewer memories.")
        try:
            if find_places(detector(), texts_of_words(view.words, tuple(view.cube.tags)), EVERYWHERE):
                found.append(view.cube.id)
        except DetectorFailed as error:
            raise PiiUnavailable from error
    return StepResult("screen", tuple(found))


def _summarise(actor: Actor, ids: Sequence[UUID], most: int) -> StepResult:
    """Choose the most typical sentences of the memories. Those that may not be copied are left out."""
    left_out = []
    with acting(actor):
        for cube_id in ids:
            try:
                with transaction.atomic():
                    cube_copy_ask(actor=actor, cube_id=cube_id)
            except (Conflict, Held):
                left_out.append(cube_id)
        views = _open(actor, [cube_id for cube_id in ids if cube_id not in left_out])
    contents = [(view, view.words.content) for view in views]
    sentences = [(view, text[start:end]) for view, text in contents for start, end in sentence_ranges(text)]
    chosen = [sentences[number] for number in central_sentences([text for _, text in sentences], most)]
    used = {view.cube.id: draft_copy(view) for view, _ in chosen}
    text = "\n".join(text for _, text in chosen)
    drafts = tuple(used.values())
    return StepResult("summarise", tuple(used), text=text, left_out=tuple(left_out), drafts=drafts)


def _add(actor: Actor, step: AddStep, results: Sequence[StepResult]) -> StepResult:
    """Add a memory. The memories of the texts in it are its sources, and it is as sensitive and short-lived as they."""
    named = [results[number - 1] for number in dict.fromkeys(text_numbers(step))]
    if named and not any(result.text for result in named):
        return StepResult(step.op)
    content = fill_texts(step.content, [result.text for result in results])
    if len(content) > settings.MAX_CONTENT_CHARACTERS:
        raise TooLarge(f"A memory may have {settings.MAX_CONTENT_CHARACTERS} characters.")
    draft = CubeDraft(
        content=content,
        title=step.title,
        namespace=step.namespace,
        tags=step.tags,
        metadata={ENTRY_KEY: step.key} if step.key else {},
        **_inherit_fields([draft for result in named for draft in result.drafts]),
    )
    (added,) = cubes_add(actor=actor, drafts=[draft])
    return StepResult(step.op, (added.cube.id,), is_new=not added.duplicate)


def _inherit_fields(drafts: Sequence[CubeDraft]) -> dict[str, Any]:
    """Return the fields that a text has from copies of its memories; nothing without any."""
    if not drafts:
        return {}
    levels = list(Sensitivity)
    people = {name: {getattr(draft, name) for draft in drafts} for name in ("persona", "subject")}
    return {
        "sensitivity": max((draft.sensitivity for draft in drafts), key=levels.index),
        "expires_at": min((draft.expires_at for draft in drafts if draft.expires_at), default=None),
        "sources": tuple(dict.fromkeys(source for draft in drafts for source in draft.sources)),
        **{name: values.pop() for name, values in people.items() if len(values) == 1},
    }


def _build(actor: Actor, step: BuildStep, ids: Sequence[UUID]) -> StepResult:
    """Request the job that builds the next minor version of a pack."""
    versions = versions_list(actor=actor, pack_id=step.pack, pages=First(MOST_VERSIONS))
    major, minor, _ = max((tuple(version.parts) for version in versions), default=(0, 0, 0))
    draft = VersionDraft(number=f"{major}.{minor + 1}.0", ids=tuple(ids), changelog=step.changelog)
    job = version_build(actor=actor, pack_id=step.pack, draft=draft)
    return StepResult(step.op, tuple(ids), job_id=job.id)
