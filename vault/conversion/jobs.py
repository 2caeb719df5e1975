"""The job that makes a cache or an adapter of memories: by the engine, then sealed, stored, named with its parents."""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid
from governance.ids import uuid7
from governance.jobs.kinds import JobCancelled, JobRun, Step
from governance.jobs.registry import handler
from governance.models import Persona
from governance.personas.lookup import persona_locate, persona_target
from governance.vocabulary import Permission, Topic
from vault.chat.rules import block_prompt
from vault.content.drafts import CubeDraft, SourceRef
from vault.conversion.distillation import list_statements, make_pairs, make_strangers
from vault.conversion.quality import model_quality
from vault.conversion.questions import ask_questions
from vault.conversion.services import OpenedBlock, block_open, require_engine
from vault.cubes.services import cubes_add
from vault.forms.costs import engine_costs
from vault.forms.payloads import handle_of, payload_encode, payload_seal, payload_store, task_open
from vault.forms.services import FormChanges, form_update
from vault.models import Cube, CubeSource, MemoryForm
from vault.providers.engines import AdapterState, EngineBusy, EngineModel, InferenceEngine
from vault.providers.ports import ProviderUnavailable
from vault.vocabulary import Composition, MemoryType, SemanticType, Sensitivity, Source, SourceKind

READER = "conversion"
TRAINED, EXAMINED, FAILED = "trained", "examined", ("failed", "cancelled")
PAUSE = 1.0  # seconds between two questions about a training
LONGEST = timedelta(hours=2)  # of a training with its examination, which take minutes for a page on a processor
SENSITIVITIES = list(Sensitivity)  # from public to restricted


@dataclass(frozen=True)
class MadePayload:
    """A stored payload without its rows."""

    form_id: UUID
    model: EngineModel
    tokens: int
    seconds: float
    sealed: bytes = field(repr=False)
    subjects: tuple[UUID, ...] = ()
    costs: dict[str, Any] = field(default_factory=dict)
    report: dict[str, Any] | None = None
    quality: dict[str, Any] = field(default_factory=dict)
    pack: str = ""
    pack_digest: str = ""


@handler(Topic.FORM_BUILD, permission=Permission.MEMORY_CREATE, limit=LONGEST)
def form_build(run: JobRun) -> Callable[[], Step]:
    """Build a cache, or train and examine an adapter. The engine is called, and the payload stored, outside any
    transaction.

    Raises NotFound for a memory that the requester may no longer read; Conflict if one changed meanwhile; Unavailable.
    Writes: as `cubes_add` for the memory; MemoryForm.
    """
    if run.request is None:
        raise Conflict("The request of this job was erased.")
    title = str(json.loads(run.request)["title"])
    memory_ids = [UUID(text) for text in run.settings["memories"]]
    with acting(run.actor):
        block = block_open(actor=run.actor, memory_ids=memory_ids)
        subjects = find_subjects([view.cube for view in block.views])
    is_cache = run.settings["kind"] == MemoryType.ACTIVATION
    made = _build_cache(run.actor, block, subjects) if is_cache else adapter_train(run, block, subjects)

    def write() -> Step:
        form = form_store(run.actor, run.settings, title, block, made)
        if is_cache and run.settings.get("former"):
            _repeat_choices(run.actor, form, UUID(run.settings["former"]))
        return Step(done=1, total=1, result={"form_id": str(form.id), "memory_id": str(form.cube_id)})

    return write


def _build_cache(actor: Actor, block: OpenedBlock, subjects: Sequence[UUID]) -> MadePayload:
    runs_in = require_engine(MemoryType.ACTIVATION)
    messages = block_prompt(block.evidence)
    form_id = uuid7()
    try:
        model = runs_in.identify()
        costs = engine_costs(runs_in, model)
        quality = model_quality(runs_in, model)
        built = runs_in.build_cache(handle_of(actor.tenant_id, form_id), messages)
    except EngineBusy:
        raise ProviderUnavailable("The engine is busy") from None
    payload = payload_encode(messages[-1].content, built.content)
    sealed = payload_seal(actor.tenant_id, form_id, subjects, payload)
    payload_store(actor.tenant_id, form_id, sealed)
    return MadePayload(
        form_id, model, built.tokens, built.seconds, sealed, tuple(subjects), asdict(costs), quality=quality
    )


def adapter_train(run: JobRun, block: OpenedBlock, subjects: Sequence[UUID]) -> MadePayload:
    """Train an adapter on pairs made of the memories, examine it, and store its payload; it stays loaded.

    Raises Invalid if the memories state nothing to train; JobCancelled; ProviderUnavailable.
    """
    runs_in, form_id = require_engine(MemoryType.PARAMETER), uuid7()
    texts = [view.words.content for view in block.views]
    pairs = make_pairs(texts, ask_questions(run.actor, list_statements(texts)))
    if not pairs:
        raise Invalid(errors=[FieldError("memory_ids", "they have no statements that could be trained")])
    handle = handle_of(run.actor.tenant_id, form_id)
    try:
        model = runs_in.identify()
        engine_costs(runs_in, model)  # by which the seconds are estimated that the adapter saves
        begun = time.monotonic()
        runs_in.train_adapter(handle, pairs, run.settings.get("recipe") or {})
        _wait_for(run, runs_in, handle, TRAINED)
        seconds = time.monotonic() - begun
        content = runs_in.read_adapter(handle)
        runs_in.load_adapter(handle, content)
        runs_in.examine_adapter(handle, pairs, make_strangers(texts))
        report = _wait_for(run, runs_in, handle, EXAMINED).report
    except EngineBusy:
        raise ProviderUnavailable("The engine trains another adapter") from None
    except JobCancelled:
        runs_in.drop_adapter(handle)
        raise
    text = json.dumps([asdict(pair) for pair in pairs], ensure_ascii=False)
    sealed = payload_seal(run.actor.tenant_id, form_id, subjects, payload_encode(text, content))
    payload_store(run.actor.tenant_id, form_id, sealed)
    tokens = sum(view.cube.token_count for view in block.views)
    return MadePayload(form_id, model, tokens, seconds, sealed, tuple(subjects), report=dict(report or {}))


def _wait_for(run: JobRun, runs_in: InferenceEngine, handle: str, wanted: str) -> AdapterState:
    """Return the state of an adapter once it is as wanted. Raises JobCancelled; ProviderUnavailable if it fails."""
    while True:
        state = runs_in.adapter_state(handle)
        if state is None or state.status in FAILED:
            raise ProviderUnavailable("The engine could not train or examine the adapter")
        trained = state.step if wanted == TRAINED else state.steps  # a training may end early
        run.report(trained, 2 * state.steps)  # the examination takes about as long
        if state.status == wanted:
            return state
        time.sleep(PAUSE)


def find_subjects(cubes: Sequence[Cube]) -> list[UUID]:
    """Return the data subjects of memories and of what they were made of. Use inside `acting`."""
    ids = [cube.id for cube in cubes]
    behind = CubeSource.objects.filter(cube_id__in=ids).values_list("source_id", flat=True)
    rows = Cube.objects.filter(id__in=[*ids, *behind]).exclude(subject=None)
    return sorted(set(rows.values_list("subject_id", flat=True)))


def form_store(actor: Actor, settings: Any, title: str, block: OpenedBlock, made: MadePayload) -> MemoryForm:
    """Store the memory that a payload is, unless one of its parents has changed.

    Raises NotFound; Forbidden; Conflict. Writes: as `cubes_add`; MemoryForm.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    with acting(actor):
        parents = [view.cube for view in block.views]
        present = block_open(actor=actor, memory_ids=[cube.id for cube in parents])
        if [view.cube.version for view in present.views] != [cube.version for cube in parents]:
            raise Conflict("A memory was changed while its cache was made. Ask again.")
        persona = persona_locate(actor, UUID(settings["persona"])) if settings["persona"] else None
        if persona is not None:
            authorize(actor, Permission.PERSONA_UPDATE, persona_target(persona))
        kind = MemoryType(settings["kind"])
        return form_insert(actor, kind, title, parents, made, persona if kind == MemoryType.ACTIVATION else None)


def _repeat_choices(actor: Actor, form: MemoryForm, former_id: UUID) -> None:
    """Mount a cache on the task of the one in whose place it was made, with its composition.

    Writes: as `form_update`, if the actor may still read the former one.
    """
    with acting(actor):
        mine = Cube.objects.visible_to(actor).values("id")
        former = MemoryForm.objects.filter(tenant_id=actor.tenant_id, id=former_id, cube_id__in=mine).first()
        if former is not None:
            changes = FormChanges(task=task_open(former), composition=Composition(former.composition))
            form_update(actor=actor, form_id=form.id, changes=changes)


def form_insert(
    actor: Actor, kind: MemoryType, title: str, parents: Sequence[Cube], made: MadePayload, persona: Persona | None
) -> MemoryForm:
    """Store the memory that a payload is, and its row. The caller has checked the parents. Use inside `acting`.

    Raises Forbidden. Writes: as `cubes_add`; MemoryForm.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    (added,) = cubes_add(actor=actor, drafts=[_make_draft(title, kind, parents)])
    form = MemoryForm(
        id=made.form_id,
        tenant_id=actor.tenant_id,
        cube=added.cube,
        model=made.model.name,
        fingerprint=made.model.fingerprint,
        digest=hashlib.sha256(made.sealed).digest(),
        length=len(made.sealed),
        tokens=made.tokens,
        seconds=made.seconds,
        parents=[cube.id for cube in parents],
        subjects=list(made.subjects),
        persona=persona,
        costs=made.costs,
        report=made.report,
        quality=made.quality,
        pack=made.pack,
        pack_digest=made.pack_digest,
    )
    form.save(force_insert=True)
    return form


def _make_draft(title: str, kind: MemoryType, parents: Sequence[Cube]) -> CubeDraft:
    """Return the draft of a cache or adapter: where its parents are, as sensitive as the most sensitive, and no longer
    than the first of them to expire."""
    places = {cube.namespace.path for cube in parents}
    expiries = [cube.expires_at for cube in parents if cube.expires_at is not None]
    return CubeDraft(
        content=title,
        title=title,
        namespace=places.pop() if len(places) == 1 else None,
        sensitivity=max((Sensitivity(cube.sensitivity) for cube in parents), key=SENSITIVITIES.index),
        expires_at=min(expiries, default=None),
        semantic_type=SemanticType.DOCUMENT,
        type=kind,
        source=Source.SYSTEM,
        reader=READER,
        allow_duplicates=True,
        sources=tuple(SourceRef(cube.id, cube.version, SourceKind.EXTRACT) for cube in parents),
    )
