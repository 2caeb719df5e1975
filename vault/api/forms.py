"""forms/ of the REST API: memories as KV caches and adapters."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import DRY_RUN, ONCE, read
from governance.api.fields import NoInput, StrictSerializer, TextField
from governance.api.jobs import JobSchema
from governance.api.schema import Schema
from governance.api.views import ApiView, flag, heavy, refuse_unknown_parameters
from governance.database import acting
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.descriptions import of_memories
from vault.conversion.services import (
    LONGEST_TITLE,
    MOST_PARENTS,
    ConversionDraft,
    Estimate,
    conversion_estimate,
    conversion_request,
)
from vault.forms.selectors import FormView, form_get, forms_list
from vault.forms.services import FormChanges, form_approve, form_remove, form_text, form_update
from vault.vocabulary import MemoryType

KINDS = [MemoryType.ACTIVATION, MemoryType.PARAMETER]


class ConversionInput(StrictSerializer):
    memory_ids = serializers.ListField(
        child=serializers.UUIDField(), min_length=1, max_length=MOST_PARENTS, help_text="In the order of the block."
    )
    title = TextField(max_length=LONGEST_TITLE)
    kind = serializers.ChoiceField(
        choices=KINDS, required=False, help_text="`activation`: a KV cache (default); `parameter`: an adapter."
    )
    persona_id = serializers.UUIDField(required=False, help_text="The persona on which a cache is then mounted.")


class FormChangesInput(StrictSerializer):
    persona_id = serializers.UUIDField(required=False, allow_null=True, help_text="Mounted there; null for nowhere.")
    pinned = serializers.BooleanField(required=False, help_text="It leaves the engine's memory last.")


class EstimateSchema(Schema):
    memories = serializers.IntegerField()
    tokens = serializers.IntegerField(help_text="Of the text, estimated.")
    bytes = serializers.IntegerField(help_text="Of a cache, estimated.")
    seconds = serializers.FloatField(help_text="Of the engine's work, estimated.")
    form = serializers.CharField(help_text="What would be chosen: `cache` or `text`.")
    reason = serializers.CharField()
    text_seconds = serializers.FloatField(help_text="To the first token with the memories as text.")
    cache_seconds = serializers.FloatField(help_text="The same with them as a cache.")


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
    bytes = serializers.IntegerField(help_text="Sealed, in the blob store.")
    seconds = serializers.FloatField(help_text="Of its making.")
    parents = serializers.ListField(child=serializers.UUIDField())
    persona_id = serializers.UUIDField(allow_null=True)
    pinned = serializers.BooleanField()
    stale = serializers.BooleanField(help_text="A parent was changed since: it is not used any more.")
    report = serializers.JSONField(allow_null=True, help_text="The examination of an adapter.")
    approved_by = serializers.UUIDField(allow_null=True)
    approved_at = serializers.DateTimeField(allow_null=True)
    uses = serializers.IntegerField()
    saved_tokens = serializers.IntegerField(help_text="That the model did not read again.")
    saved_seconds = serializers.FloatField(help_text="To first tokens, estimated from measures.")
    created_at = serializers.DateTimeField()


class FormTextSchema(Schema):
    text = serializers.CharField()


class FormListSchema(Schema):
    count = serializers.IntegerField()
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)
    results = FormSchema(many=True)


class FormsView(ApiView):
    @of_memories("forms_list", FormListSchema)
    def get(self, request: Request) -> Response:
        """List the caches and adapters whose memories the caller may all read, newest first."""
        actor = self.actor()
        authorize(actor, Permission.MEMORY_READ)
        refuse_unknown_parameters(request)
        found = [_form_json(form) for form in forms_list(actor=actor)]
        return Response({"count": len(found), "next": None, "previous": None, "results": found})

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
        refuse_unknown_parameters(request, "dry_run")
        body = read(ConversionInput, request)
        draft = ConversionDraft(
            memory_ids=tuple(body["memory_ids"]),
            title=body["title"],
            kind=MemoryType(body.get("kind", MemoryType.ACTIVATION)),
            persona_id=body.get("persona_id"),
        )
        if flag(request, "dry_run"):
            estimate = conversion_estimate(actor=actor, draft=draft)
            return Response({"job": None, "estimate": _estimate_json(estimate)}, status=202)

        def call() -> Reply:
            with acting(actor):
                job = conversion_request(actor=actor, draft=draft)
                return Reply(202, {"job": JobSchema.json(job), "estimate": None})

        return self.post_once(call, ask=lambda: authorize(actor, Permission.MEMORY_CREATE))


class MemoryFormView(ApiView):
    @of_memories("forms_read", FormSchema, may=[404])
    def get(self, request: Request, form_id: UUID) -> Response:
        """Return a cache or adapter."""
        found = form_get(actor=self.actor(), form_id=form_id)
        refuse_unknown_parameters(request)
        return Response(_form_json(found))

    @of_memories("forms_update", FormSchema, request=FormChangesInput, may=[404, 409, 423])
    def patch(self, request: Request, form_id: UUID) -> Response:
        """Mount a cache or an approved adapter on a persona, unmount it, or pin it."""
        actor = self.actor()
        with self.after(lambda: form_get(actor=actor, form_id=form_id)):
            refuse_unknown_parameters(request)
            body = read(FormChangesInput, request)
        named = {"is_pinned" if name == "pinned" else name: value for name, value in body.items()}
        return Response(_form_json(form_update(actor=actor, form_id=form_id, changes=FormChanges(**named))))

    @of_memories("forms_delete", None, status=204, may=[404, 423])
    def delete(self, request: Request, form_id: UUID) -> Response:
        """Erase a cache or adapter. The memories that it was made of stay."""
        refuse_unknown_parameters(request)
        form_remove(actor=self.actor(), form_id=form_id)
        return Response(status=204)


class FormTextView(ApiView):
    @of_memories("forms_text", FormTextSchema, may=[404, 503])
    def get(self, request: Request, form_id: UUID) -> Response:
        """Return the text that a cache was made of, or the training pairs of an adapter as JSON."""
        refuse_unknown_parameters(request)
        return Response({"text": form_text(actor=self.actor(), form_id=form_id)})


class FormApproveView(ApiView):
    @of_memories("forms_approve", FormSchema, request=NoInput, may=[404, 409, 423])
    def post(self, request: Request, form_id: UUID) -> Response:
        """Approve an examined adapter, so that it may be mounted. Its examination must keep the limits."""
        actor = self.actor()
        with self.after(lambda: form_get(actor=actor, form_id=form_id)):
            refuse_unknown_parameters(request)
            read(NoInput, request)
        return Response(_form_json(form_approve(actor=actor, form_id=form_id)))


def _form_json(form: FormView) -> dict[str, Any]:
    return {
        "id": str(form.id),
        "memory_id": str(form.memory_id),
        "kind": form.kind,
        "title": form.title,
        "model": form.model,
        "fingerprint": form.fingerprint,
        "tokens": form.tokens,
        "bytes": form.length,
        "seconds": round(form.seconds, 3),
        "parents": [str(parent) for parent in form.parents],
        "persona_id": str(form.persona_id) if form.persona_id else None,
        "pinned": form.is_pinned,
        "stale": form.is_stale,
        "report": form.report,
        "approved_by": str(form.approved_by) if form.approved_by else None,
        "approved_at": form.approved_at,
        "uses": form.uses,
        "saved_tokens": form.saved_tokens,
        "saved_seconds": round(form.saved_seconds, 3),
        "created_at": form.created_at,
    }


def _estimate_json(estimate: Estimate) -> dict[str, Any]:
    return {
        "memories": estimate.memories,
        "tokens": estimate.tokens,
        "bytes": estimate.bytes,
        "seconds": estimate.seconds,
        "form": estimate.choice.form,
        "reason": estimate.choice.reason,
        "text_seconds": estimate.choice.text_seconds,
        "cache_seconds": estimate.choice.cache_seconds,
    }
