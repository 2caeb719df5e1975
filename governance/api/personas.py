"""REST views of personas/."""

from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.access_inputs import PersonaChangesInput, PersonaInput, persona_changes, persona_draft
from governance.api.access_schema import PersonaDetailSchema, PersonaListSchema, RemovalSchema
from governance.api.descriptions import DRY_RUN, ONCE, PAGE, describe, read
from governance.api.pages import show_page
from governance.api.views import ApiView, flag, refuse_unknown_parameters
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.idempotency.services import Reply
from governance.personas.selectors import persona_show, personas_list
from governance.personas.services import (
    PersonaDraft,
    persona_create,
    persona_ensure,
    persona_remove,
    persona_update,
    persona_update_ask,
)
from governance.vocabulary import Permission, PersonaKind

KIND = OpenApiParameter("kind", str, enum=[*PersonaKind])
ENSURE = OpenApiParameter("ensure", bool, description="Answer 200 with the caller's own persona of this name, if any.")


class PersonasView(ApiView):
    @describe("personas_list", PersonaListSchema, parameters=[KIND, *PAGE])
    def get(self, request: Request) -> object:
        """List the personas that the caller may speak as, newest first."""
        actor = self.actor()
        authorize(actor, Permission.PERSONA_USE)
        kind = request.query_params.get("kind")
        if kind is not None and kind not in set(PersonaKind):
            raise Invalid(errors=[FieldError("kind", f"one of {', '.join(PersonaKind)}")])
        return show_page(self, personas_list, kind=PersonaKind(kind) if kind else None)

    @describe(
        "personas_create",
        PersonaDetailSchema,
        status=201,
        request=PersonaInput,
        parameters=[ENSURE, ONCE],
        also={200: PersonaDetailSchema},
    )
    def post(self, request: Request) -> Response:
        """Create a persona: another role of the caller, or an agent."""
        actor = self.actor()
        authorize(actor, Permission.PERSONA_CREATE)
        refuse_unknown_parameters(request, "ensure")
        draft = persona_draft(read(PersonaInput, request))
        is_ensured = flag(request, "ensure")
        if is_ensured and draft != PersonaDraft(draft.name):
            raise Invalid(errors=[FieldError("ensure", "takes a name alone")])

        def call() -> object:
            if is_ensured:
                persona, is_new = persona_ensure(actor=actor, name=draft.name)
                return Reply(201 if is_new else 200, PersonaDetailSchema.json(persona))
            return persona_create(actor=actor, draft=draft)

        return self.post_once(call)


class PersonaView(ApiView):
    @describe("personas_get", PersonaDetailSchema, may=[404])
    def get(self, request: Request, persona_id: UUID) -> object:
        """Read one persona."""
        return persona_show(actor=self.actor(), persona_id=persona_id)

    @describe("personas_update", PersonaDetailSchema, request=PersonaChangesInput, may=[404, 409])
    def patch(self, request: Request, persona_id: UUID) -> object:
        """Change a persona's name or attributes."""
        actor = self.actor()
        changes = self.read_body(lambda: persona_update_ask(actor=actor, persona_id=persona_id), persona_changes)
        return persona_update(actor=actor, persona_id=persona_id, changes=changes)

    @describe("personas_delete", None, status=204, parameters=[DRY_RUN], also={200: RemovalSchema}, may=[404, 409])
    def delete(self, request: Request, persona_id: UUID) -> Response:
        """Delete a persona: nobody can speak as it any more, and its memories stay."""
        actor = self.actor()
        with acting(actor):
            persona_remove(actor=actor, persona_id=persona_id, dry_run=True)  # 404, 403; then 400
            refuse_unknown_parameters(request, "dry_run")
            if flag(request, "dry_run"):
                return Response({"dry_run": True, "count": 1, "ids": [str(persona_id)]})
            persona_remove(actor=actor, persona_id=persona_id)
        return Response(status=204)
