"""conversations/ of the REST contract."""

from collections.abc import Callable
from uuid import UUID

from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.idempotency import Reply
from governance.api.pages import CursorPages
from governance.api.views import ApiView
from governance.authz.services import authorize
from governance.errors import FieldError, Invalid
from governance.vocabulary import Channel, Permission
from vault.api.inputs import ConversationInput, TitleInput, TurnInput, read
from vault.api.representations import conversation_json, event_json, turn_json
from vault.api.schema import (
    ConversationListSchema,
    ConversationSchema,
    TurnListSchema,
    TurnSchema,
    described,
)
from vault.chat.selectors import conversation_get, conversations_list, turns_list
from vault.chat.services import (
    ConversationDraft,
    conversation_create,
    conversation_delete,
    conversation_update,
    turn_begin,
    turn_run,
    turn_stream,
)
from vault.streaming import event_response

Commit = Callable[[Reply], None]
PAGE = [OpenApiParameter("page_size", int), OpenApiParameter("cursor", str)]
ONCE = OpenApiParameter("Idempotency-Key", str, OpenApiParameter.HEADER, description="Same key and body: same reply.")
STREAM = "text/event-stream"


class ConversationsView(ApiView):
    @described("conversations_list", ConversationListSchema, parameters=PAGE)
    def get(self, request: Request) -> Response:
        """The caller's own conversations, newest first."""
        pages = CursorPages()
        views = conversations_list(
            actor=self.actor(), paginate=lambda rows: pages.paginate_queryset(rows, request) or []
        )
        return pages.envelope([conversation_json(view) for view in views])

    @described("conversations_create", ConversationSchema, status=201, request=ConversationInput, parameters=[ONCE])
    def post(self, request: Request) -> Response:
        """Begin a conversation."""
        actor = self.actor()
        authorize(actor, Permission.CONVERSATION_USE)
        draft = ConversationDraft(**read(ConversationInput, request))

        def call(commit: Commit) -> Reply:
            view = conversation_create(
                actor=actor, draft=draft, commit=lambda made: commit(Reply(201, conversation_json(made)))
            )
            return Reply(201, conversation_json(view))

        return self.post_once(call)


class ConversationView(ApiView):
    @described("conversations_get", ConversationSchema)
    def get(self, request: Request, conversation_id: UUID) -> Response:
        """One conversation."""
        return Response(conversation_json(conversation_get(actor=self.actor(), conversation_id=conversation_id)))

    @described("conversations_update", ConversationSchema, request=TitleInput)
    def patch(self, request: Request, conversation_id: UUID) -> Response:
        """Rename it."""
        actor = self.actor()
        conversation_get(actor=actor, conversation_id=conversation_id)
        title = read(TitleInput, request)["title"]
        return Response(
            conversation_json(conversation_update(actor=actor, conversation_id=conversation_id, title=title))
        )

    @described("conversations_delete", None, status=204)
    def delete(self, request: Request, conversation_id: UUID) -> Response:
        """Delete it, and the memories of what was said in it."""
        conversation_delete(actor=self.actor(), conversation_id=conversation_id)
        return Response(status=204)


class EventStreamRenderer(JSONRenderer):
    """Lets `Accept: text/event-stream` through. It renders only a problem before the stream began: that is JSON."""

    media_type = STREAM
    format = "event-stream"


class TurnsView(ApiView):
    renderer_classes = [JSONRenderer, EventStreamRenderer]

    @described("turns_list", TurnListSchema, parameters=PAGE)
    def get(self, request: Request, conversation_id: UUID) -> Response:
        """The turns of a conversation, oldest first; `content` is the answer."""
        pages = CursorPages("id")
        views = turns_list(
            actor=self.actor(),
            conversation_id=conversation_id,
            paginate=lambda rows: pages.paginate_queryset(rows, request) or [],
        )
        return pages.envelope([turn_json(view) for view in views])

    @described(
        "turns_create",
        TurnSchema,
        status=201,
        request=TurnInput,
        parameters=[ONCE],
        also={(201, STREAM): str},
    )
    def post(self, request: Request, conversation_id: UUID) -> Response | StreamingHttpResponse:
        """Ask; the answer cites the memories it rests on. With `Accept: text/event-stream` it is streamed."""
        actor = self.actor().within(Channel.CHAT)
        conversation_get(actor=actor, conversation_id=conversation_id)
        content = read(TurnInput, request)["content"]
        if STREAM in request.headers.get("Accept", ""):
            if "Idempotency-Key" in request.headers:
                raise Invalid(errors=[FieldError("Idempotency-Key", "a stream cannot be repeated; ask without it")])
            plan = turn_begin(actor=actor, conversation_id=conversation_id, content=content)
            return event_response(turn_stream(plan=plan), event_json)

        def call(commit: Commit) -> Reply:
            turn = turn_run(
                actor=actor,
                conversation_id=conversation_id,
                content=content,
                commit=lambda made: commit(Reply(201, turn_json(made))),
            )
            return Reply(201, turn_json(turn))

        return self.post_once(call)
