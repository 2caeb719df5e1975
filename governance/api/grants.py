"""REST views of grants/."""

from datetime import datetime
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.grants.selectors import GrantFilter, access_check, grant_get, grants_list, grants_list_at
from governance.access.grants.services import grant_create, grant_create_ask, grant_revoke
from governance.api.access_inputs import CheckInput, GrantInput, check_context, grant_draft, object_id, principal_id
from governance.api.access_schema import CheckedSchema, GrantSchema, RemovalSchema
from governance.api.descriptions import DRY_RUN, ONCE, PAGE, describe, page_of
from governance.api.fields import read_query_time
from governance.api.merged_pages import MergedPages
from governance.api.pages import whole_list
from governance.api.views import ApiView, flag, refuse_unknown_parameters
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.idempotency.services import Reply
from governance.text_values import read_uuid
from governance.vocabulary import Action, GranteeKind

FILTERS = ("object_type", "object_id", "principal_kind", "principal_id")
LIST_PARAMETERS = [
    OpenApiParameter("object_type", str, description="namespace, memory or persona"),
    OpenApiParameter("object_id", str),
    OpenApiParameter("principal_kind", str, enum=[*GranteeKind]),
    OpenApiParameter("principal_id", str),
    OpenApiParameter("as_of", str, description="The grants on one object that stood at this time, ended ones too."),
    *PAGE,
]


class GrantsView(ApiView):
    @describe("grants_list", page_of(GrantSchema), parameters=LIST_PARAMETERS, may=[404])
    def get(self, request: Request) -> object:
        """List grants, newest first: all if the caller manages grants; else those that the caller has given or
        received, and those on objects that the caller may share."""
        at = read_query_time(request, "as_of")
        if at is not None:
            return self._list_past(request, at)
        pages = MergedPages(request, also_known=FILTERS)
        views = grants_list(actor=self.actor(), wanted=_filter(request), pages=pages)
        return pages.envelope(views)

    def _list_past(self, request: Request, at: datetime) -> object:
        refuse_unknown_parameters(request, "as_of", "object_type", "object_id")
        wanted = _filter(request)
        if wanted.object_type is None or wanted.object_id is None:
            raise Invalid(errors=[FieldError("object_id", "name the object: `as_of` lists the grants on one")])
        views = grants_list_at(actor=self.actor(), object_type=wanted.object_type, object_id=wanted.object_id, at=at)
        return whole_list(views)

    @describe(
        "grants_create",
        GrantSchema,
        status=201,
        request=GrantInput,
        parameters=[ONCE],
        also={200: GrantSchema},
        may=[404],
    )
    def post(self, request: Request) -> Response:
        """Allow or deny somebody an action on an object. Repeating a grant changes its end: 200.

        A grant to an agent persona reaches everybody who may speak as it: every owner, admin, editor and viewer.
        """
        actor = self.actor()
        draft = grant_draft(actor, self.read_body())

        def call() -> Reply:
            view, new = grant_create(actor=actor, draft=draft)
            return Reply(201 if new else 200, GrantSchema.json(view))

        return self.post_once(
            call, ask=lambda: grant_create_ask(actor=actor, object_type=draft.object_type, object_id=draft.object_id)
        )


class GrantView(ApiView):
    @describe("grants_get", GrantSchema, may=[404])
    def get(self, request: Request, grant_id: UUID) -> object:
        """Read one grant."""
        actor = self.actor()
        with acting(actor):
            view = grant_get(actor=actor, grant_id=grant_id)
            refuse_unknown_parameters(request)
        return view

    @describe("grants_delete", None, status=204, parameters=[DRY_RUN], also={200: RemovalSchema}, may=[404, 409])
    def delete(self, request: Request, grant_id: UUID) -> Response:
        """Revoke a grant, from the next request on."""
        actor = self.actor()
        with acting(actor):
            grant_revoke(actor=actor, grant_id=grant_id, dry_run=True)  # 404, 403; then 400
            refuse_unknown_parameters(request, "dry_run")
            if flag(request, "dry_run"):
                return Response({"dry_run": True, "count": 1, "ids": [str(grant_id)]})
            grant_revoke(actor=actor, grant_id=grant_id)
        return Response(status=204)


class CheckView(ApiView):
    @describe("grants_check", CheckedSchema, request=CheckInput, may=[404])
    def post(self, request: Request) -> object:
        """Check whether a principal may do something, and by which rule. Any principal may check itself."""
        actor = self.actor()
        body = self.read_body()
        return access_check(
            actor=actor,
            kind=body["principal"]["kind"],
            principal=principal_id(body),
            action=Action(body["action"]),
            object_type=body["object"]["type"],
            object_id=object_id(actor, body),
            context=check_context(body, actor.context),
            at=body.get("context", {}).get("time"),
        )


def _filter(request: Request) -> GrantFilter:
    asked = {name: request.query_params.get(name) for name in FILTERS}
    kind = asked["principal_kind"]
    if kind is not None and kind not in set(GranteeKind):
        raise Invalid(errors=[FieldError("principal_kind", f"one of {', '.join(GranteeKind)}")])
    given = asked["object_id"]
    return GrantFilter(
        object_type=asked["object_type"],
        object_id=read_uuid(given, "object_id", "an id is needed") if given is not None else None,
        holder_kind=GranteeKind(kind) if kind else None,
        holder=asked["principal_id"],
    )
