"""Conversions of memories into caches: a dry run that tells their cost, and a job that makes them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid, NotFound
from governance.jobs.selectors import JobView
from governance.jobs.services import job_create
from governance.personas.lookup import persona_locate, persona_target
from governance.vocabulary import Permission, Topic, Verb
from vault.chat.evidence import make_evidence
from vault.chat.rules import Evidence, block_prompt
from vault.cubes.rules import approximate_tokens
from vault.cubes.selectors import CubeView, cubes_read
from vault.forms.costs import engine_costs
from vault.forms.rules import Costs, Form, FormChoice, FormReason, choose_form
from vault.layers.working_set import readable_ids
from vault.models import Cube
from vault.providers.engines import Capability, InferenceEngine
from vault.providers.registry import engine
from vault.retrieval.queries import SHOWN
from vault.vocabulary import MemoryType

MOST_PARENTS = 200
LONGEST_TITLE = 200
# Of a training in the local engine (engine/memos_engine/adapters.py): steps, tokens of one, its time as a multiple of
# that of reading them. A question that an adapter answers is its whole prompt.
TRAINING_STEPS, STEP_TOKENS, BACKWARD, QUESTION_TOKENS = 60, 400, 3.0, 30
MORE_ROUNDS: Mapping[str, float] = {"steps": 2 * TRAINING_STEPS}  # for what was not learned
GENTLER: Mapping[str, float] = {"steps": 2 * TRAINING_STEPS, "rate": 1e-3}  # half the engine's: for harm to the base
NEEDED = {
    MemoryType.ACTIVATION: frozenset({Capability.KV_INJECT}),
    MemoryType.PARAMETER: frozenset({Capability.ADAPTER_TRAIN, Capability.ADAPTER_SERVE}),
}


@dataclass(frozen=True)
class ConversionDraft:
    """Memories that become a cache, in their order. persona_id: on which it is then mounted; former_id: the cache in
    whose place it is made, for the same task and with the same composition."""

    memory_ids: tuple[UUID, ...]
    title: str = field(repr=False)
    kind: MemoryType = MemoryType.ACTIVATION
    persona_id: UUID | None = None
    former_id: UUID | None = None
    recipe: Mapping[str, float] = field(default_factory=dict)  # of a training, beside the engine's own settings


@dataclass(frozen=True)
class Estimate:
    """The cost of a conversion: tokens of the text, bytes of a cache (0 for an adapter), seconds of work; and the form
    that would be chosen with it, with the seconds to the first token as text and in that form."""

    memories: int
    tokens: int
    bytes: int
    seconds: float
    choice: FormChoice


@dataclass(frozen=True)
class OpenedBlock:
    """The memories of a conversion, as the actor may read them now."""

    views: tuple[CubeView, ...] = field(repr=False)
    evidence: tuple[Evidence, ...] = field(repr=False)


def conversion_estimate(*, actor: Actor, draft: ConversionDraft) -> Estimate:
    """Return the cost of a conversion, without making it. Calls the engine, outside any transaction.

    Raises NotFound; Forbidden; Invalid; Conflict without an engine; Unavailable. Writes: AuditEntry naming the
    memories.
    """
    block = conversion_ask(actor=actor, draft=draft)
    runs_in = require_engine(draft.kind)
    model = runs_in.identify()
    costs = engine_costs(runs_in, model)
    tokens = sum(approximate_tokens(message.content) for message in block_prompt(block.evidence))
    if draft.kind is MemoryType.PARAMETER:
        return _estimate_adapter(block, tokens, costs)
    size = tokens * model.bytes_per_token
    choice = choose_form(costs, tokens, size, is_loaded=True)
    return Estimate(len(block.views), tokens, size, round(costs.text_seconds(tokens), 2), choice)


def _estimate_adapter(block: OpenedBlock, tokens: int, costs: Costs) -> Estimate:
    """Return the cost of an adapter: an examination asks about as long as the training lasts."""
    training = TRAINING_STEPS * BACKWARD * costs.text_seconds(STEP_TOKENS)
    text, asked = costs.text_seconds(tokens), costs.text_seconds(QUESTION_TOKENS)
    choice = FormChoice(Form.ADAPTER, FormReason.FASTER, round(text, 4), round(asked, 4))
    return Estimate(len(block.views), tokens, 0, round(2 * training, 2), choice)


def conversion_request(*, actor: Actor, draft: ConversionDraft) -> JobView:
    """Ask for the job that makes a cache. Raises NotFound; Forbidden; Invalid; Conflict without an engine.

    Writes: Job, AuditEntry …, OutboxEvent.
    """
    conversion_ask(actor=actor, draft=draft)
    require_engine(draft.kind)
    settings = {
        "memories": [str(memory_id) for memory_id in draft.memory_ids],
        "kind": draft.kind,
        "persona": str(draft.persona_id) if draft.persona_id else "",
        "former": str(draft.former_id) if draft.former_id else "",
        "recipe": dict(draft.recipe),
    }
    request = json.dumps({"title": draft.title}).encode()
    return job_create(actor=actor, kind=Topic.FORM_BUILD, settings=settings, request=request)


def conversion_ask(*, actor: Actor, draft: ConversionDraft) -> OpenedBlock:
    """Check a conversion and open its memories. Raises NotFound; Forbidden; Invalid. Writes: AuditEntry."""
    authorize(actor, Permission.MEMORY_CREATE)
    if not draft.title.strip() or len(draft.title) > LONGEST_TITLE or "\x00" in draft.title:
        raise Invalid(errors=[FieldError("title", f"1 to {LONGEST_TITLE} characters")])
    if draft.kind not in NEEDED:
        raise Invalid(errors=[FieldError("kind", f"one of {', '.join(NEEDED)}")])
    with acting(actor):
        if draft.persona_id is not None:
            authorize(actor, Permission.PERSONA_UPDATE, persona_target(persona_locate(actor, draft.persona_id)))
        return block_open(actor=actor, memory_ids=draft.memory_ids)


def block_open(*, actor: Actor, memory_ids: Sequence[UUID]) -> OpenedBlock:
    """Open the memories of a block in their order, each numbered by its place.

    Raises Forbidden; Invalid; NotFound for a memory that the actor may not read, or that a search would not return.
    Writes: AuditEntry.
    """
    authorize(actor, Permission.MEMORY_READ)
    chosen = list(dict.fromkeys(memory_ids))
    if not 1 <= len(chosen) <= MOST_PARENTS:
        raise Invalid(errors=[FieldError("memory_ids", f"1 to {MOST_PARENTS} memories")])
    with acting(actor):
        if set(chosen) - readable_ids(actor, chosen):
            raise NotFound
        opened = cubes_read(actor=actor, cube_ids=chosen, verb=Verb.MEMORY_READ, is_use=False)
        known = {view.cube.id: view for view in opened}
        if len(known) < len(chosen):
            raise NotFound
        views = tuple(known[cube_id] for cube_id in chosen)
        evidence = tuple(make_evidence(actor, number, view, score=1.0) for number, view in enumerate(views, start=1))
        return OpenedBlock(views, evidence)


def namespace_memories(*, actor: Actor, path: str) -> tuple[UUID, ...]:
    """Return the ids of the memories in a namespace that a block may have, oldest first, MOST_PARENTS at most.

    Raises Forbidden; Invalid for a namespace without any that the actor may read.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        rows = Cube.objects.visible_to(actor).filter(namespace__path=path, type=MemoryType.PLAINTEXT)
        rows = rows.filter(is_dialogue_only=False, is_indexed=True, state__in=SHOWN)
        found = tuple(rows.order_by("id").values_list("id", flat=True)[:MOST_PARENTS])
    if not found:
        raise Invalid(errors=[FieldError("namespace", "no memories that you may read are there")])
    return found


def require_engine(kind: MemoryType) -> InferenceEngine:
    """Return the engine, if it can make such a payload. Raises Conflict; ProviderUnavailable."""
    runs_in = engine()
    if runs_in is None or not NEEDED[kind] <= runs_in.capabilities:
        raise Conflict("No engine of this installation can do that. An operator can start one: make engine.")
    return runs_in
