"""Use of caches and adapters: mounted on personas, pinned, loaded into the engine when they are first used, dropped."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import F

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, NotFound
from governance.outbox.routes import Payload, Write
from governance.personas.lookup import persona_locate, persona_target
from governance.vocabulary import Permission, Verb
from vault.content.drafts import UNSET, Unset
from vault.cubes.holds import refuse_held
from vault.cubes.lookup import cube_target
from vault.cubes.services import cube_purge
from vault.forms.payloads import handle_of, payload_decode, payload_open, salt_of
from vault.forms.rules import Form, FormChoice, FormReason, choose_form
from vault.forms.selectors import Block, FormView, form_get
from vault.models import Cube, MemoryForm
from vault.models.cube import OBJECT_TYPE
from vault.providers.engines import Capability, EngineBusy, InferenceEngine
from vault.providers.ports import ProviderUnavailable
from vault.providers.registry import engine
from vault.vocabulary import MemoryType

TEXT_WITHOUT_ENGINE = FormChoice(Form.TEXT, FormReason.NO_ENGINE)


@dataclass(frozen=True)
class FormChanges:
    """The changes of a cache or adapter; missing fields stay. persona_id: on which it is mounted, None for nowhere."""

    persona_id: UUID | Unset | None = UNSET
    is_pinned: bool | Unset = UNSET


def form_update(*, actor: Actor, form_id: UUID, changes: FormChanges) -> FormView:
    """Mount a cache or adapter on a persona, unmount it, or pin it. An adapter must have been approved.

    Raises NotFound; Forbidden; Conflict. Writes: MemoryForm, AuditEntry.
    """
    with acting(actor):
        row = form_locate(actor, form_id)
        if not isinstance(changes.persona_id, Unset):
            if changes.persona_id is not None:
                persona = persona_locate(actor, changes.persona_id)
                authorize(actor, Permission.PERSONA_UPDATE, persona_target(persona))
                if row.cube.type == MemoryType.PARAMETER and row.approved_at is None:
                    raise Conflict("Nobody has approved this adapter. Read its examination and approve it first.")
            row.persona_id = changes.persona_id
        if not isinstance(changes.is_pinned, Unset):
            row.is_pinned = changes.is_pinned
        row.save(update_fields=["persona", "is_pinned"])
        record(
            actor=actor,
            verb=Verb.FORM_CHANGED,
            object_type=OBJECT_TYPE,
            object_ids=[row.cube_id],
            detail={"mounted_on": str(row.persona_id or ""), "pinned": row.is_pinned},
        )
        return form_get(actor=actor, form_id=form_id)


def form_remove(*, actor: Actor, form_id: UUID) -> None:
    """Erase a cache or adapter with its payload; its parents stay. Raises NotFound; Forbidden; Held.

    Writes: deletes Cube, MemoryForm; AuditEntry, OutboxEvent ….
    """
    authorize(actor, Permission.MEMORY_DELETE)
    with acting(actor):
        cube_purge(actor=actor, cube_id=form_locate(actor, form_id).cube_id)


def form_locate(actor: Actor, form_id: UUID) -> MemoryForm:
    """Return a locked cache or adapter that the actor may change. Raises NotFound; Forbidden; Held."""
    authorize(actor, Permission.MEMORY_UPDATE)
    mine = Cube.objects.visible_to(actor).values("id")
    rows = MemoryForm.objects.filter(tenant_id=actor.tenant_id, id=form_id, cube_id__in=mine)
    row = rows.select_related("cube__namespace").select_for_update(of=("self",)).first()
    if row is None:
        raise NotFound
    authorize(actor, Permission.MEMORY_UPDATE, cube_target(row.cube))
    refuse_held(actor, [row.cube_id])
    return row


def block_choose(block: Block, *, is_engine: bool) -> FormChoice:
    """Choose the form of a block for one request, and load its cache if that is chosen. Outside any transaction.

    is_engine: the model that is asked runs in the installation's engine. A cache that cannot be loaded gives way to the
    text: the answer is the same.
    """
    runs_in = engine() if is_engine else None
    if runs_in is None or Capability.KV_INJECT not in runs_in.capabilities:
        return TEXT_WITHOUT_ENGINE
    try:
        return _choose_and_load(runs_in, block)
    except (ProviderUnavailable, EngineBusy):
        return FormChoice(Form.TEXT, FormReason.NOT_LOADED)


def _choose_and_load(runs_in: InferenceEngine, block: Block) -> FormChoice:
    form = block.form
    if runs_in.identify().fingerprint != form.fingerprint:
        return FormChoice(Form.TEXT, FormReason.OTHER_MODEL)
    is_loaded = block.handle in runs_in.loaded_caches()
    choice = choose_form(block.costs, form.tokens, form.length, is_loaded=is_loaded)
    if choice.form is not Form.CACHE or is_loaded:
        return choice
    payload = payload_open(form)
    if payload is None:
        return replace(choice, form=Form.TEXT, reason=FormReason.NOT_LOADED)
    runs_in.load_cache(block.handle, payload_decode(payload)[1], is_pinned=form.is_pinned)
    return choice


def form_count_use(form_id: UUID, *, tokens: int, seconds: float) -> None:
    """Count a use and what it saved, in the transaction of the turn. Writes: MemoryForm."""
    MemoryForm.objects.filter(id=form_id).update(
        uses=F("uses") + 1, saved_tokens=F("saved_tokens") + tokens, saved_seconds=F("saved_seconds") + seconds
    )


def forms_drop(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Remove erased caches and adapters from the engine. Raises ProviderUnavailable. Writes no row."""
    runs_in = engine()
    if runs_in is not None:
        for payload in payloads:
            handle = handle_of(actor.tenant_id, UUID(str(payload["form"])))
            runs_in.drop_cache(handle)
            runs_in.drop_adapter(handle)
        runs_in.forget_prefixes(salt_of(actor.tenant_id))  # of prompts with the erased text
    return lambda: None
