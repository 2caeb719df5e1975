"""forms/ of the REST API: memories as KV caches and adapters."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.api.descriptions import DRY_RUN, ONCE, page_of
from governance.api.fields import NoInput, StrictSerializer, TextField
from governance.api.jobs import JobSchema
from governance.api.schema import RoundedField, Schema
from governance.api.views import ApiView, heavy, refuse_unknown_parameters
from governance.personas.selectors import persona_get
from governance.vocabulary import Permission
from vault.api.descriptions import of_memories
from vault.api.inputs import make_label_field
from vault.api.schema import NamedSchema
from vault.content.drafts import UNSET
from vault.conversion.services import (
    LONGEST_TITLE,
    MOST_PARENTS,
    ConversionDraft,
    conversion_estimate,
    conversion_request,
)
from vault.forms.selectors import FormView, form_get, forms_list
from vault.forms.services import FormChanges, form_approve, form_remove, form_text, form_update
from vault.namespaces.mounts import LONGEST_TASK
from vault.vocabulary import Composition, MemoryType

KINDS = [MemoryType.ACTIVATION, MemoryType.PARAMETER]


class ConversionInput(StrictSerializer):
    memory_ids = serializers.ListField(
        child=serializers.UUIDField(), min_length=1, max_length=MOST_PARENTS, help_text="In the order of the block."
    )
    title = TextField(max_length=LONGEST_TITLE)
    kind = serializers.ChoiceField(
        choices=KINDS, required=False, help_text="`activation`: a KV cache (default); `parameter`: an adapter."
    )
    persona = make_label_field(help_text="Id or name of the persona on which a cache is then mounted.")


class FormChangesInput(StrictSerializer):
    persona = make_label_field(allow_null=True, help_text="Id or name: mounted there; null for nowhere.")
    task = serializers.CharField(
        required=False, allow_blank=True, max_length=LONGEST_TASK, help_text="As in X-Memory-Task; empty for none."
    )
    pinned = serializers.BooleanField(required=False, help_text="It leaves the engine's memory last.")
    composition = serializers.ChoiceField(
        choices=list(Composition),
        required=False,
        help_text="Of a cache where another one stands at the head. `exact`: it is left out. `rotated`: its keys are "
        "turned to its place. `rotated+recompute(k)`: its first k tokens are read again, too.",
    )


class EstimateSchema(Schema):
    memories = serializers.IntegerField()
    tokens = serializers.IntegerField(help_text="Of the text, estimated.")
    bytes = serializers.IntegerField(help_text="Of a cache, estimated; 0 for an adapter.")
    seconds = serializers.FloatField(help_text="Of the engine's work, estimated.")
    form = serializers.CharField(source="choice.form", help_text="What would be chosen: `cache`, `text` or `adapter`.")
    reason = serializers.CharField(source="choice.reason")
    text_seconds = serializers.FloatField(
        source="choice.text_seconds", help_text="To the first token with the memories as text."
    )
    cache_seconds = serializers.FloatField(
        source="choice.cache_seconds", help_text="The same with the cache or the adapter."
    )


class ConversionSchema(Schema):
    job = JobSchema(allow_null=True)
    estimate = EstimateSchema(allow_null=True, help_text="Of a dry run, which makes nothing.")


class FormSchema(Schema):
    id = serializers.UUIDField()
    memory_id = serializers.UUIDField(help_text="The memory of this type, with its sources.")
    kind = serializers.ChoiceField(choices=KINDS)
    title = serializers.CharField()
    model = serializers.CharField()
    fingerprint = serializers.CharField(help_text="Of the model that it is for.")
    tokens = serializers.IntegerField()
    bytes = serializers.IntegerField(source="length", help_text="Sealed, in the blob store.")
    seconds = RoundedField(help_text="Of its making.")
    parents = serializers.ListField(child=serializers.UUIDField())
    persona = NamedSchema(allow_null=True, help_text="On which it is mounted.")
    task = serializers.CharField(help_text="On which it is mounted, too; empty for none.")
    pinned = serializers.BooleanField(source="is_pinned")
    composition = serializers.ChoiceField(choices=list(Composition))
    quality = serializers.JSONField(
        help_text="Of each composition with this model, as measured with invented facts: `kl`, the divergence of the "
        "first token from the full prompt's, and `same`, the share of equal replies. Empty if it was not measured."
    )
    stale = serializers.BooleanField(
        source="is_stale", help_text="A parent was changed since: it is not used any more."
    )
    report = serializers.JSONField(allow_null=True, help_text="The examination of an adapter.")
    misses = serializers.ListField(
        child=serializers.CharField(), help_text="The limits in force that the examination misses: it is not used."
    )
    pack = serializers.CharField(help_text="The pack that brought an adapter; empty for an own one.")
    approved_by = serializers.UUIDField(allow_null=True)
    approved_at = serializers.DateTimeField(allow_null=True)
    uses = serializers.IntegerField()
    saved_tokens = serializers.IntegerField(help_text="That the model did not read again.")
    saved_seconds = RoundedField(help_text="To first tokens, estimated from measures.")
    created_at = serializers.DateTimeField()

    def make_persona(self, view: FormView) -> Any:
        return {"id": str(view.persona_id), "name": view.persona_name} if view.persona_id else None


class FormTextSchema(Schema):
    text = serializers.CharField()


class FormsView(ApiView):
    @of_memories("forms_list", page_of(FormSchema))
    def get(self, request: Request) -> dict[str, object]:
        """List the caches and adapters whose memories the caller may all read, newest first."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        refuse_unknown_parameters(request)
        found = list(forms_list(actor=actor))
        return {"count": len(found), "next": None, "previous": None, "results": found}

    @of_memories(
        "forms_create",
        ConversionSchema,
        status=202,
        request=ConversionInput,
        parameters=[ONCE, DRY_RUN],
        may=[404, 409, 503],
    )
    @heavy
    def post(self, request: Request) -> Response:
        """Make a cache or an adapter of memories, as a job. A dry run tells its cost and what it would save."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_CREATE)
        body = self.read_body()
        draft = ConversionDraft(
            memory_ids=tuple(body["memory_ids"]),
            title=body["title"],
            kind=MemoryType(body.get("kind", MemoryType.ACTIVATION)),
            persona_id=_find_persona(actor, body.get("persona")),
        )
        if self.dry_run:
            estimate = conversion_estimate(actor=actor, draft=draft)
            return Response(ConversionSchema.of(job=None, estimate=estimate), status=202)
        return self.post_once(
            lambda: {"job": conversion_request(actor=actor, draft=draft), "estimate": None},
            ask=lambda: authorize(actor, Permission.MEMORY_CREATE),
        )


class MemoryFormView(ApiView):
    @of_memories("forms_read", FormSchema, may=[404])
    def get(self, request: Request, form_id: UUID) -> FormView:
        """Return a cache or adapter."""
        found = form_get(actor=self.actor(), form_id=form_id)
        refuse_unknown_parameters(request)
        return found

    @of_memories("forms_update", FormSchema, request=FormChangesInput, may=[404, 409, 423])
    def patch(self, request: Request, form_id: UUID) -> FormView:
        """Mount a cache or an approved adapter on a persona or a task, unmount or pin it, or choose its composition."""
        actor = self.actor()
        body = self.read_body(lambda: form_get(actor=actor, form_id=form_id))
        changes = FormChanges(
            persona_id=_find_persona(actor, body["persona"]) if "persona" in body else UNSET,
            task=body.get("task", UNSET),
            is_pinned=body.get("pinned", UNSET),
            composition=Composition(body["composition"]) if "composition" in body else UNSET,
        )
        return form_update(actor=actor, form_id=form_id, changes=changes)

    @of_memories("forms_delete", None, status=204, may=[404, 423])
    def delete(self, request: Request, form_id: UUID) -> None:
        """Erase a cache or adapter. The memories that it was made of stay."""
        self.read_body()
        form_remove(actor=self.actor(), form_id=form_id)


class FormTextView(ApiView):
    @of_memories("forms_text", FormTextSchema, may=[404, 503])
    def get(self, request: Request, form_id: UUID) -> dict[str, str]:
        """Return the text that a cache was made of, or the training pairs of an adapter as JSON."""
        refuse_unknown_parameters(request)
        return {"text": form_text(actor=self.actor(), form_id=form_id)}


class FormApproveView(ApiView):
    @of_memories("forms_approve", FormSchema, request=NoInput, may=[404, 409, 423])
    def post(self, request: Request, form_id: UUID) -> FormView:
        """Approve an examined adapter, so that it may be mounted. Its examination must keep the limits."""
        actor = self.actor()
        self.read_body(lambda: form_get(actor=actor, form_id=form_id))
        return form_approve(actor=actor, form_id=form_id)


def _find_persona(actor: Actor, reference: str | None) -> UUID | None:
    return persona_get(actor=actor, reference=reference).id if reference else None
