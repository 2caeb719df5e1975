"""REST views of role-templates/: the role templates of a tenant."""

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.access.role_templates.selectors import template_get, templates_list
from governance.access.role_templates.services import (
    draft_of,
    template_apply,
    template_ask,
    template_create,
    template_remove,
    template_update,
)
from governance.api.access_inputs import ApplyInput, TemplateChangesInput, TemplateInput, template_draft
from governance.api.access_schema import RemovalSchema, TemplateSchema
from governance.api.descriptions import DRY_RUN, ONCE, PAGE, describe, page_of
from governance.api.pages import show_page
from governance.api.views import ApiView, flag, refuse_unknown_parameters
from governance.database import acting
from governance.vocabulary import GranteeKind, Permission

TAG = "role-templates"


class TemplatesView(ApiView):
    @describe("role_templates_list", page_of(TemplateSchema), tag=TAG, parameters=PAGE)
    def get(self, request: Request) -> object:
        """List role templates, newest first."""
        authorize(self.actor(), Permission.TEMPLATE_MANAGE)
        return show_page(self, templates_list)

    @describe("role_templates_create", TemplateSchema, tag=TAG, status=201, request=TemplateInput, parameters=[ONCE])
    def post(self, request: Request) -> Response:
        """Create a role template."""
        actor = self.actor()
        authorize(actor, Permission.TEMPLATE_MANAGE)
        draft = template_draft(self.read_body())
        return self.post_once(lambda: template_create(actor=actor, draft=draft))


class TemplateView(ApiView):
    @describe("role_templates_get", TemplateSchema, tag=TAG, may=[404])
    def get(self, request: Request, template_id: UUID) -> object:
        """Read one role template."""
        return template_get(actor=self.actor(), template_id=template_id)

    @describe("role_templates_update", TemplateSchema, tag=TAG, request=TemplateChangesInput, may=[404, 409])
    def patch(self, request: Request, template_id: UUID) -> object:
        """Change a role template. Grants that it already gave stay."""
        actor = self.actor()
        with acting(actor):
            row = template_ask(actor=actor, template_id=template_id)
            draft = template_draft(self.read_body(), draft_of(row))
            return template_update(actor=actor, template_id=template_id, draft=draft)

    @describe(
        "role_templates_delete",
        None,
        tag=TAG,
        status=204,
        parameters=[DRY_RUN],
        also={200: RemovalSchema},
        may=[404, 409],
    )
    def delete(self, request: Request, template_id: UUID) -> Response:
        """Delete a role template. Grants that it already gave stay."""
        actor = self.actor()
        with acting(actor):
            template_ask(actor=actor, template_id=template_id)  # 404, 403; then 400
            refuse_unknown_parameters(request, "dry_run")
            if flag(request, "dry_run"):
                return Response({"dry_run": True, "count": 1, "ids": [str(template_id)]})
            template_remove(actor=actor, template_id=template_id)
        return Response(status=204)


class ApplyView(ApiView):
    @describe("role_templates_apply", TemplateSchema, tag=TAG, request=ApplyInput, parameters=[ONCE], may=[404])
    def post(self, request: Request, template_id: UUID) -> Response:
        """Apply a role template to a member, a persona or an API key, completely or not at all."""
        actor = self.actor()
        template_ask(actor=actor, template_id=template_id)
        body = self.read_body()

        kind = GranteeKind(body["kind"])
        return self.post_once(
            lambda: template_apply(actor=actor, template_id=template_id, kind=kind, holder_id=body["id"])
        )
