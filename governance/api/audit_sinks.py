"""REST views of audit/sinks/: the servers to which the audit log is forwarded."""

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.audit_schema import SinkInput, SinkListSchema, SinkSchema, sink_json
from governance.api.descriptions import ONCE, PAGE, describe, read
from governance.api.pages import CursorPages
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.audit.reading.sinks import SinkDraft, sink_create, sink_get, sink_remove, sink_retry, sinks_list
from governance.idempotency.services import Reply
from governance.vocabulary import Permission, SinkKind

TAG = "audit"


class SinksView(ApiView):
    @describe("audit_sinks_list", SinkListSchema, tag=TAG, parameters=PAGE)
    def get(self, request: Request) -> Response:
        """List the audit sinks, with the progress of each."""
        pages = CursorPages(request)
        views = sinks_list(actor=self.actor(), pages=pages)
        return pages.envelope([sink_json(view) for view in views])

    @describe("audit_sinks_add", SinkSchema, tag=TAG, status=201, request=SinkInput, parameters=[ONCE])
    def post(self, request: Request) -> Response:
        """Forward the audit log to a webhook or to syslog, from its first seal on."""
        actor = self.actor()
        authorize(actor, Permission.OPERATIONS_MANAGE)
        refuse_unknown_parameters(request)
        body = read(SinkInput, request)
        draft = SinkDraft(
            name=body["name"], kind=SinkKind(body["kind"]), address=body["address"], secret=body.get("secret", "")
        )

        def call() -> Reply:
            return Reply(201, sink_json(sink_create(actor=actor, draft=draft)))

        return self.post_once(call)


class SinkView(ApiView):
    @describe("audit_sinks_get", SinkSchema, tag=TAG, may=[404])
    def get(self, request: Request, sink_id: UUID) -> Response:
        """Read one audit sink and its progress."""
        view = sink_get(actor=self.actor(), sink_id=sink_id)
        refuse_unknown_parameters(request)
        return Response(sink_json(view))

    @describe("audit_sinks_remove", None, tag=TAG, status=204, may=[404])
    def delete(self, request: Request, sink_id: UUID) -> Response:
        """Remove an audit sink. Nothing more is sent to it."""
        actor = self.actor()
        sink_get(actor=actor, sink_id=sink_id)
        refuse_unknown_parameters(request)
        sink_remove(actor=actor, sink_id=sink_id)
        return Response(status=204)


class SinkRetryView(ApiView):
    @describe("audit_sinks_retry", SinkSchema, tag=TAG, parameters=[ONCE], may=[404])
    def post(self, request: Request, sink_id: UUID) -> Response:
        """Retry a failed delivery now."""
        actor = self.actor()
        sink_get(actor=actor, sink_id=sink_id)
        refuse_unknown_parameters(request)

        def call() -> Reply:
            return Reply(200, sink_json(sink_retry(actor=actor, sink_id=sink_id)))

        return self.post_once(call)
