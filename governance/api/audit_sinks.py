"""REST views of audit/sinks/: the servers to which the audit log is forwarded."""

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.audit_schema import SinkInput, SinkSchema
from governance.api.descriptions import ONCE, PAGE, describe, page_of
from governance.api.pages import show_page
from governance.api.views import ApiView
from governance.audit.reading.sinks import SinkDraft, sink_create, sink_get, sink_remove, sink_retry, sinks_list
from governance.vocabulary import Permission, SinkKind

TAG = "audit"


class SinksView(ApiView):
    @describe("audit_sinks_list", page_of(SinkSchema), tag=TAG, parameters=PAGE)
    def get(self, request: Request) -> object:
        """List the audit sinks, with the progress of each."""
        return show_page(self, sinks_list)

    @describe("audit_sinks_add", SinkSchema, tag=TAG, status=201, request=SinkInput, parameters=[ONCE])
    def post(self, request: Request) -> Response:
        """Forward the audit log to a webhook or to syslog, from its first seal on."""
        actor = self.actor()
        authorize(actor, Permission.OPERATIONS_MANAGE)
        body = self.read_body()
        draft = SinkDraft(
            name=body["name"], kind=SinkKind(body["kind"]), address=body["address"], secret=body.get("secret", "")
        )
        return self.post_once(lambda: sink_create(actor=actor, draft=draft))


class SinkView(ApiView):
    @describe("audit_sinks_get", SinkSchema, tag=TAG, may=[404])
    def get(self, request: Request, sink_id: UUID) -> object:
        """Read one audit sink and its progress."""
        return sink_get(actor=self.actor(), sink_id=sink_id)

    @describe("audit_sinks_remove", None, tag=TAG, status=204, may=[404])
    def delete(self, request: Request, sink_id: UUID) -> None:
        """Remove an audit sink. Nothing more is sent to it."""
        actor = self.actor()
        sink_get(actor=actor, sink_id=sink_id)
        self.read_body()
        sink_remove(actor=actor, sink_id=sink_id)


class SinkRetryView(ApiView):
    @describe("audit_sinks_retry", SinkSchema, tag=TAG, parameters=[ONCE], may=[404])
    def post(self, request: Request, sink_id: UUID) -> Response:
        """Retry a failed delivery now."""
        actor = self.actor()
        sink_get(actor=actor, sink_id=sink_id)
        self.read_body()
        return self.post_once(lambda: sink_retry(actor=actor, sink_id=sink_id))
