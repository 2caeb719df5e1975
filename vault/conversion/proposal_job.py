"""The job that proposes conversions, and makes a cache by itself where a local engine says that it pays."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings as installation
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from pydantic import TypeAdapter

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.jobs.kinds import JobRun, Preview, Step
from governance.jobs.registry import handler
from governance.jobs.services import job_create, job_waits
from governance.models import Persona
from governance.vocabulary import Permission, PersonaKind, Topic, Verb, Weight
from vault.conversion.proposal_rules import Frequent, ProposalSettings, basis_of, find_frequent
from vault.conversion.proposals import OBJECT_TYPE, TITLE
from vault.forms.costs import engine_costs
from vault.forms.rules import Costs, Form, choose_form
from vault.forms.selectors import is_stale
from vault.models import Cube, CubeVersion, FormProposal, MemoryForm, Turn
from vault.providers.engines import Capability, EngineModel
from vault.providers.registry import engine
from vault.retrieval.queries import SHOWN
from vault.vocabulary import MemoryType, ProposalState

LOCAL = "local"
SETTINGS = TypeAdapter(ProposalSettings)


@dataclass(frozen=True)
class Measures:
    """The model of the installation's engine, its costs, and whether it trains adapters."""

    model: EngineModel
    costs: Costs
    trains: bool


def proposals_preview(actor: Actor, chosen: Mapping[str, Any]) -> Preview:
    """Return the personas whose turns a run would read. Raises Forbidden."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        ids = tuple(Persona.objects.filter(tenant_id=actor.tenant_id).order_by("id").values_list("id", flat=True))
    return Preview(len(ids), ids[:100])


@handler(
    Topic.FORM_PROPOSE,
    weight=Weight.BACKGROUND,
    settings=ProposalSettings,
    preview=proposals_preview,
    default_cron="30 5 * * *",
)
def form_propose(run: JobRun) -> Callable[[], Step] | Step:
    """Propose caches, adapters and text, as the product itself. Without an engine that takes caches, nothing.

    The engine is measured outside any transaction. Raises ProviderUnavailable. Writes: FormProposal …, AuditEntry …,
    Job?, OutboxEvent?. done: new proposals.
    """
    chosen = SETTINGS.validate_python(dict(run.settings))
    measures = _measure_engine()
    if measures is None:
        return Step(done=0, total=0, result={"proposed": 0})

    def write() -> Step:
        made = proposals_make(actor=run.system, chosen=chosen, measures=measures)
        return Step(done=len(made), total=len(made), result={"proposed": len(made)})

    return write


def _measure_engine() -> Measures | None:
    runs_in = engine()
    if runs_in is None or Capability.KV_INJECT not in runs_in.capabilities:
        return None
    model = runs_in.identify()
    return Measures(model, engine_costs(runs_in, model), Capability.ADAPTER_TRAIN in runs_in.capabilities)


def proposals_make(*, actor: Actor, chosen: ProposalSettings, measures: Measures) -> list[FormProposal]:
    """Store the new proposals of a tenant; make the best cache, within `chosen.automatic`, if the engine is local.

    Raises Forbidden. Writes: FormProposal …, AuditEntry …, Job?, OutboxEvent?.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        found = [*_propose_caches(actor, chosen, measures), *_propose_others(actor, chosen, measures)]
        known = FormProposal.objects.filter(tenant_id=actor.tenant_id, basis__in=[row.basis for row in found])
        former = {bytes(basis) for basis in known.values_list("basis", flat=True)}
        new = [row for row in found if row.basis not in former]
        FormProposal.objects.bulk_create(new)
        for row in new:
            _record(actor, Verb.FORM_PROPOSED, row)
        _make_best(actor, chosen)
    return new


def _record(actor: Actor, verb: Verb, row: FormProposal) -> None:
    record(actor=actor, verb=verb, object_type=OBJECT_TYPE, object_ids=[row.id], detail={"kind": row.kind})


def _propose_caches(actor: Actor, chosen: ProposalSettings, measures: Measures) -> list[FormProposal]:
    mounted = MemoryForm.objects.filter(tenant_id=actor.tenant_id, persona=OuterRef("id"))
    usable = mounted.filter(cube__type=MemoryType.ACTIVATION).exclude(is_stale())
    here = Persona.objects.filter(tenant_id=actor.tenant_id, removed_at=None).order_by("id")
    own = here.filter(kind=PersonaKind.USER).order_by("member", "id").distinct("member")
    default = set(own.values_list("id", flat=True))
    found = []
    for persona in here.filter(~Exists(usable)):
        turns = _load_turns(persona, chosen.turns, is_default=persona.id in default)
        stable = _load_stable(actor, {memory_id for turn in turns for memory_id in turn}, chosen.stable_days)
        places = {memory_id: cube.namespace_id for memory_id, cube in stable.items()}
        tokens = {memory_id: cube.token_count for memory_id, cube in stable.items()}
        frequent = find_frequent(turns, places, tokens, chosen.share)
        if frequent is not None and (
            row := _propose_cache(persona, frequent, stable, len(turns), chosen.stable_days, measures)
        ):
            found.append(row)
    return found


def _load_turns(persona: Persona, most: int, *, is_default: bool) -> list[frozenset[UUID]]:
    """Return the memories that entered the prompts of the last turns with a persona. is_default: it is the first of its
    member, so that conversations without a persona are its own."""
    here = Q(conversation__persona=persona) | Q(conversation__agent_persona=persona)
    if is_default:
        here |= Q(conversation__persona=None, conversation__member=persona.member_id)
    rows = Turn.objects.filter(here, tenant_id=persona.tenant_id).order_by("-id").values_list("retrieved", flat=True)
    return [frozenset(UUID(item["memory_id"]) for item in retrieved if item["marker"]) for retrieved in rows[:most]]


def _load_stable(actor: Actor, memory_ids: set[UUID], days: int) -> dict[UUID, Cube]:
    """Return those of the memories that a block may have, and that have not changed for some days."""
    changed = CubeVersion.objects.filter(
        cube=OuterRef("id"), number=OuterRef("version"), created_at__gt=database_now() - timedelta(days=days)
    )
    rows = Cube.objects.visible_to(actor).filter(
        ~Exists(changed), id__in=memory_ids, type=MemoryType.PLAINTEXT, state__in=SHOWN, is_indexed=True
    )
    return {cube.id: cube for cube in rows.filter(is_dialogue_only=False, superseded_by=None)}


def _propose_cache(
    persona: Persona, frequent: Frequent, stable: Mapping[UUID, Cube], turns: int, days: int, measures: Measures
) -> FormProposal | None:
    """Return the proposal of a cache; None where text is as fast."""
    tokens = sum(stable[memory_id].token_count for memory_id in frequent.memory_ids)
    size = tokens * measures.model.bytes_per_token
    choice = choose_form(measures.costs, tokens, size, is_loaded=True)
    if choice.form is not Form.CACHE:
        return None
    figures = {
        "turns": frequent.turns,
        "of_turns": turns,
        "tokens": tokens,
        "days": days,
        "text_seconds": choice.text_seconds,
        "form_seconds": choice.cache_seconds,
    }
    versions = {memory_id: stable[memory_id].version for memory_id in frequent.memory_ids}
    return _make(persona.tenant_id, MemoryType.ACTIVATION, persona.id, frequent.memory_ids, versions, figures)


def _propose_others(actor: Actor, chosen: ProposalSettings, measures: Measures) -> list[FormProposal]:
    """Return proposals of adapters for caches that are used often, and of text for what is not used any more."""
    rows = MemoryForm.objects.filter(tenant_id=actor.tenant_id, cube__deleted_at=None).select_related("cube")
    forms = list(rows.annotate(stale=is_stale()).order_by("id"))
    adapters = {tuple(form.parents) for form in forms if form.cube.type == MemoryType.PARAMETER}
    idle = database_now() - timedelta(days=chosen.idle_days)
    found = []
    for form in forms:
        is_idle = form.created_at < idle and (form.uses == 0 or form.stale)
        is_cache = form.cube.type == MemoryType.ACTIVATION and not form.stale
        if is_idle:
            figures: dict[str, Any] = {"uses": form.uses, "days": chosen.idle_days, "is_stale": form.stale}
            found.append(_make_of(form, MemoryType.PLAINTEXT, figures))
        elif measures.trains and is_cache and form.uses >= chosen.uses and tuple(form.parents) not in adapters:
            stable = _load_stable(actor, set(form.parents), chosen.stable_days)
            if stable.keys() >= set(form.parents):
                found.append(
                    _make_of(
                        form,
                        MemoryType.PARAMETER,
                        {"uses": form.uses, "tokens": form.tokens, "days": chosen.stable_days},
                    )
                )
    return found


def _make_of(form: MemoryForm, kind: MemoryType, figures: Mapping[str, Any]) -> FormProposal:
    versions = dict(Cube.objects.filter(id__in=form.parents).values_list("id", "version"))
    versions |= {memory_id: 0 for memory_id in form.parents if memory_id not in versions}
    form_id = form.id if kind is MemoryType.PLAINTEXT else None
    return _make(form.tenant_id, kind, form.persona_id, form.parents, versions, figures, form_id)


def _make(
    tenant_id: UUID,
    kind: MemoryType,
    persona_id: UUID | None,
    memory_ids: Sequence[UUID],
    versions: Mapping[UUID, int],
    figures: Mapping[str, Any],
    form_id: UUID | None = None,
) -> FormProposal:
    return FormProposal(
        tenant_id=tenant_id,
        kind=kind,
        persona_id=persona_id,
        memories=list(memory_ids),
        form_id=form_id,
        basis=basis_of(kind, persona_id, versions, form_id),
        figures=dict(figures),
        status=ProposalState.OPEN,
    )


def _make_best(actor: Actor, chosen: ProposalSettings) -> None:
    """Ask for the open cache that saves most time in all turns: one in each run, so that no tenant fills the engine."""
    rows = FormProposal.objects.filter(tenant_id=actor.tenant_id, kind=MemoryType.ACTIVATION)
    made = rows.filter(status=ProposalState.ACCEPTED, decided_by=None).count()
    is_busy = job_waits(actor=actor, kind=Topic.FORM_BUILD)
    if installation.MEMOS_LLM.engine != LOCAL or made >= chosen.automatic or is_busy:
        return
    mounted = MemoryForm.objects.filter(tenant_id=actor.tenant_id, persona=OuterRef("persona"))
    without = rows.filter(~Exists(mounted.filter(cube__type=MemoryType.ACTIVATION)), status=ProposalState.OPEN)
    waiting = list(without.select_for_update())
    best = max(waiting, key=_saved_seconds, default=None)
    if best is None:
        return
    settings = {"memories": [str(each) for each in best.memories], "kind": best.kind, "persona": str(best.persona_id)}
    request = json.dumps({"title": TITLE}).encode()
    best.job_id = job_create(actor=actor, kind=Topic.FORM_BUILD, settings=settings, request=request).id
    best.status, best.decided_at = ProposalState.ACCEPTED, Now()
    best.save(update_fields=["status", "decided_at", "job_id"])
    _record(actor, Verb.FORM_PROPOSAL_ACCEPTED, best)


def _saved_seconds(row: FormProposal) -> float:
    figures = row.figures
    return float(figures["turns"] * (figures["text_seconds"] - figures["form_seconds"]))
