"""Use of caches and adapters: mounted on personas, pinned, loaded into the engine when they are first used, dropped."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from uuid import UUID

from django.db.models import F

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import Conflict, FieldError, Forbidden, Invalid, NotFound
from governance.personas.lookup import persona_locate, persona_target
from governance.vocabulary import Permission, Verb
from vault.content.drafts import UNSET, Unset
from vault.cubes.holds import refuse_held
from vault.cubes.lookup import cube_target
from vault.cubes.services import cube_purge
from vault.forms.costs import measured_costs
from vault.forms.payloads import handle_of, payload_decode, payload_open, task_seal
from vault.forms.rules import Form, FormChoice, FormReason, choose_form, choose_moved
from vault.forms.selectors import Block, FormView, MountedAdapter, find_misses, form_get, select_usable
from vault.models import Cube, MemoryForm
from vault.models.cube import OBJECT_TYPE
from vault.namespaces.mounts import LONGEST_TASK, task_token
from vault.providers.engines import Capability, EngineBusy, EngineModel, InferenceEngine
from vault.providers.ports import ProviderUnavailable
from vault.providers.registry import engine
from vault.vocabulary import Composition, MemoryType

TEXT_WITHOUT_ENGINE = FormChoice(Form.TEXT, FormReason.NO_ENGINE)


@dataclass(frozen=True)
class FormChanges:
    """The changes of a cache or adapter; missing fields stay. persona_id, task: on which it is mounted, None and "" for
    nowhere; it may be on both. composition: of a cache behind another one."""

    persona_id: UUID | Unset | None = UNSET
    task: str | Unset = field(default=UNSET, repr=False)
    is_pinned: bool | Unset = UNSET
    composition: Composition | Unset = UNSET


def form_update(*, actor: Actor, form_id: UUID, changes: FormChanges) -> FormView:
    """Mount a cache or adapter on a persona or a task, unmount it, pin it, or choose its composition. An adapter must
    have been approved.

    Raises NotFound; Forbidden; Invalid; Conflict. Writes: MemoryForm, AuditEntry.
    """
    with acting(actor):
        row = form_locate(actor, form_id)
        if not isinstance(changes.persona_id, Unset):
            if changes.persona_id is not None:
                persona = persona_locate(actor, changes.persona_id)
                authorize(actor, Permission.PERSONA_UPDATE, persona_target(persona))
                _refuse_unapproved(row)
            row.persona_id = changes.persona_id
        if not isinstance(changes.is_pinned, Unset):
            row.is_pinned = changes.is_pinned
        if not isinstance(changes.task, Unset):
            _mount_on_task(actor, row, changes.task)
        if not isinstance(changes.composition, Unset):
            if row.cube.type != MemoryType.ACTIVATION:
                raise Conflict("Only caches are put together. An adapter has no place in the prompt.")
            row.composition = changes.composition
        row.save(update_fields=["persona", "is_pinned", "composition", "task_token", "sealed_task"])
        record(
            actor=actor,
            verb=Verb.FORM_CHANGED,
            object_type=OBJECT_TYPE,
            object_ids=[row.cube_id],
            detail={
                "mounted_on": str(row.persona_id or ""),
                "on_task": row.task_token is not None,
                "pinned": row.is_pinned,
                "composition": row.composition,
            },
        )
        return form_get(actor=actor, form_id=form_id)


def _mount_on_task(actor: Actor, row: MemoryForm, task: str) -> None:
    """Set the task of a form. As for namespaces, whoever may add memories may mount on a task."""
    if not task:
        row.task_token, row.sealed_task = None, b""
        return
    authorize(actor, Permission.MEMORY_CREATE)
    if len(task) > LONGEST_TASK or "\x00" in task:
        raise Invalid(errors=[FieldError("task", f"1 to {LONGEST_TASK} characters")])
    _refuse_unapproved(row)
    row.task_token, row.sealed_task = task_token(actor, task), task_seal(row.tenant_id, row.id, task)


def form_approve(*, actor: Actor, form_id: UUID) -> FormView:
    """Approve an examined adapter, so that it may be mounted. Only a person does so.

    Raises NotFound; Forbidden; Conflict if its examination misses a limit, or a memory of it has changed. Writes:
    MemoryForm, AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    if actor.member_id is None:
        raise Forbidden("Only a member can approve an adapter.", permission=Permission.OPERATIONS_MANAGE, rule="member")
    with acting(actor):
        row = form_locate(actor, form_id)
        if row.cube.type != MemoryType.PARAMETER:
            raise Conflict("Only adapters are approved. A cache says the same as its memories.")
        if not select_usable(actor).filter(id=row.id).exists():
            raise Conflict("A memory of this adapter was changed since. Train it anew.")
        _refuse_misses(row)
        row.approved_by, row.approved_at = actor.member_id, database_now()
        row.save(update_fields=["approved_by", "approved_at"])
        record(actor=actor, verb=Verb.FORM_APPROVED, object_type=OBJECT_TYPE, object_ids=[row.cube_id])
        return form_get(actor=actor, form_id=form_id)


def adapter_request(*, actor: Actor, form_id: UUID) -> MountedAdapter:
    """Return an adapter that a question names, for this question alone, wherever it is mounted.

    Raises NotFound without the right to every memory of it; Forbidden; Conflict if nobody approved it, it misses a
    limit, or a memory of it has changed.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    with acting(actor):
        mine = Cube.objects.visible_to(actor).filter(type=MemoryType.PARAMETER).values("id")
        rows = MemoryForm.objects.filter(tenant_id=actor.tenant_id, id=form_id, cube_id__in=mine)
        row = rows.select_related("cube__namespace").first()
        if row is None:
            raise NotFound
        _refuse_unapproved(row)
        if not select_usable(actor).filter(id=row.id).exists():
            raise Conflict("A memory of this adapter was changed since. Train it anew.")
        return MountedAdapter(row, handle_of(row.tenant_id, row.id))


def adapter_export(*, actor: Actor, form_id: UUID) -> tuple[MemoryForm, str]:
    """Return an approved adapter that may leave the tenant, and its title: it was trained on memories about nobody.

    Raises as `adapter_request`; Conflict if one of its memories is about a data subject, or it came with a pack.
    """
    authorize(actor, Permission.STORE_MANAGE)
    with acting(actor):
        form = adapter_request(actor=actor, form_id=form_id).form
        if form.subjects:
            raise Conflict("The adapter was trained on memories about people, whom no statement of a pack covers.")
        if form.pack:
            raise Conflict("The adapter came with another pack.")
        return form, form_get(actor=actor, form_id=form_id).title


def _refuse_unapproved(row: MemoryForm) -> None:
    """Raise Conflict for an adapter that nobody approved, or that misses a limit that is in force by now."""
    if row.cube.type != MemoryType.PARAMETER:
        return
    if row.approved_at is None:
        raise Conflict("Nobody has approved this adapter. Read its examination and approve it first.")
    _refuse_misses(row)


def _refuse_misses(row: MemoryForm) -> None:
    if misses := find_misses(row):
        raise Conflict(f"The examination misses the limits of: {', '.join(misses)}.")


def form_text(*, actor: Actor, form_id: UUID) -> str:
    """Return the text that travels with a cache, as a prompt has it, or the training pairs of an adapter, as JSON.

    Outside any transaction. Raises NotFound, also where a key of it was destroyed; Forbidden; Unavailable. Writes:
    AuditEntry naming it and its memories.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        mine = Cube.objects.visible_to(actor).values("id")
        row = MemoryForm.objects.filter(tenant_id=actor.tenant_id, id=form_id, cube_id__in=mine).first()
        if row is None:
            raise NotFound
        named = [row.cube_id, *row.parents]
        record(actor=actor, verb=Verb.MEMORY_READ, object_type=OBJECT_TYPE, object_ids=named)
    payload = payload_open(row)
    if payload is None:
        raise NotFound
    return payload_decode(payload)[0]


def form_remove(*, actor: Actor, form_id: UUID) -> None:
    """Erase a cache or adapter with its payload; its parents stay. Raises NotFound; Forbidden; Held.

    Writes: deletes Cube, MemoryForm; AuditEntry, OutboxEvent ….
    """
    authorize(actor, Permission.MEMORY_DELETE)
    with acting(actor):
        cube_purge(actor=actor, cube_id=form_locate(actor, form_id).cube_id)


def form_locate(actor: Actor, form_id: UUID) -> MemoryForm:
    """Return a locked cache or adapter that the actor may change. That of a pack is in a read-only namespace, and may
    be mounted and approved all the same.

    Raises NotFound; Forbidden; Held.
    """
    authorize(actor, Permission.MEMORY_UPDATE)
    mine = Cube.objects.visible_to(actor).values("id")
    rows = MemoryForm.objects.filter(tenant_id=actor.tenant_id, id=form_id, cube_id__in=mine)
    row = rows.select_related("cube__namespace").select_for_update(of=("self",)).first()
    if row is None:
        raise NotFound
    if not row.pack:
        authorize(actor, Permission.MEMORY_UPDATE, cube_target(row.cube))
    refuse_held(actor, [row.cube_id])
    return row


def blocks_choose(blocks: Sequence[Block], *, is_engine: bool) -> tuple[FormChoice, ...]:
    """Choose the form of each block of one request, and load the caches that are chosen. Outside any transaction.

    is_engine: the model that is asked runs in the installation's engine. A cache that cannot be loaded gives way to the
    text.
    """
    runs_in = engine() if is_engine and blocks else None
    if runs_in is None or Capability.KV_INJECT not in runs_in.capabilities:
        return tuple(TEXT_WITHOUT_ENGINE for _ in blocks)
    try:
        model, loaded = runs_in.identify(), runs_in.loaded_caches()
    except (ProviderUnavailable, EngineBusy):
        return tuple(FormChoice(Form.TEXT, FormReason.NOT_LOADED) for _ in blocks)
    return tuple(
        _choose_and_load(runs_in, block, model, loaded, is_head=not place) for place, block in enumerate(blocks)
    )


def _choose_and_load(
    runs_in: InferenceEngine, block: Block, model: EngineModel, loaded: Set[str], *, is_head: bool
) -> FormChoice:
    form, is_loaded = block.form, block.handle in loaded
    if model.fingerprint != form.fingerprint:
        return FormChoice(Form.TEXT, FormReason.OTHER_MODEL)
    if is_head:
        choice = choose_form(block.costs, form.tokens, form.length, is_loaded=is_loaded)
    elif not model.is_movable:
        return FormChoice(Form.TEXT, FormReason.NOT_LOADED)
    else:
        again = block.composition.recomputed
        choice = choose_moved(block.costs, form.tokens, form.length, recomputed=again, is_loaded=is_loaded)
    if choice.form is not Form.CACHE or is_loaded:
        return choice
    try:
        payload = payload_open(form)
        if payload is None:
            return replace(choice, form=Form.TEXT, reason=FormReason.NOT_LOADED)
        runs_in.load_cache(block.handle, payload_decode(payload)[1], is_pinned=form.is_pinned)
    except (ProviderUnavailable, EngineBusy):
        return FormChoice(Form.TEXT, FormReason.NOT_LOADED)
    return choice


def is_engine_serving_adapters() -> bool:
    """Return whether the installation's engine can answer with an adapter."""
    runs_in = engine()
    return runs_in is not None and Capability.ADAPTER_SERVE in runs_in.capabilities


def adapter_load(adapter: MountedAdapter, *, is_engine: bool, prompt_tokens: int, question_tokens: int) -> FormChoice:
    """Load an adapter into the engine, unless it is loaded. Outside any transaction. If that fails, text is chosen.

    prompt_tokens, question_tokens: what is read without it and with it, for the estimated seconds to the first word.
    """
    runs_in = engine() if is_engine and is_engine_serving_adapters() else None
    if runs_in is None:
        return TEXT_WITHOUT_ENGINE
    try:
        model, form = runs_in.identify(), adapter.form
        if model.name != form.model or model.fingerprint not in {"", form.fingerprint}:  # vLLM states no fingerprint
            return FormChoice(Form.TEXT, FormReason.OTHER_MODEL)
        state = runs_in.adapter_state(adapter.handle)
        if state is None or not state.is_loaded:
            payload = payload_open(adapter.form)
            if payload is None:
                return FormChoice(Form.TEXT, FormReason.NOT_LOADED)
            runs_in.load_adapter(adapter.handle, payload_decode(payload)[1])
    except (ProviderUnavailable, EngineBusy):
        return FormChoice(Form.TEXT, FormReason.NOT_LOADED)
    costs = measured_costs(model)
    text, asked = (costs.text_seconds(prompt_tokens), costs.text_seconds(question_tokens)) if costs else (0.0, 0.0)
    return FormChoice(Form.ADAPTER, FormReason.MOUNTED, round(text, 4), round(asked, 4))


def form_count_use(form_id: UUID, *, tokens: int, seconds: float) -> None:
    """Count a use and what it saved, in the transaction of the turn. Writes: MemoryForm."""
    MemoryForm.objects.filter(id=form_id).update(
        uses=F("uses") + 1, saved_tokens=F("saved_tokens") + tokens, saved_seconds=F("saved_seconds") + seconds
    )
