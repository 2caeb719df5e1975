"""conversations/ of the REST contract."""

from uuid import UUID

from django.db import transaction
from django.http import StreamingHttpResponse
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.idempotency import Commit
from governance.api.pages import CursorPages
from governance.api.views import ApiView, asked_only, flag
from governance.authz.services import authorize
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.idempotency.services import Reply
from governance.vocabulary import Channel, Permission
from vault.api.inputs import ConversationInput, TitleInput, TurnInput, read
from vault.api.representations import conversation_json, dry_run_json, event_json, turn_json
from vault.api.schema import (
    DRY_RUN,
    ONCE,
    PAGE,
    ConversationListSchema,
    ConversationSchema,
    DryRunSchema,
    TurnListSchema,
    TurnSchema,
    described,
)
from vault.chat.selectors import ConversationView as View
from vault.chat.selectors import TurnView, conversation_get, conversations_list, turns_list
from vault.chat.services import (
    ConversationDraft,
    conversation_create,
    conversation_delete,
    conversation_update,
    turn_begin,
    turn_run,
    turn_stream,
)
from vault.models import Turn
from vault.streaming import event_response

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
        asked_only(request)
        draft = ConversationDraft(**read(ConversationInput, request))

        def call(commit: Commit) -> Reply:
            view = conversation_create(actor=actor, draft=draft, commit=lambda made: commit(_begun(made)))
            return _begun(view)

        return self.post_once(call)


class ConversationView(ApiView):
    @described("conversations_get", ConversationSchema, may=[404])
    def get(self, request: Request, conversation_id: UUID) -> Response:
        """One conversation."""
        actor = self.actor()
        with acting(actor):
            view = conversation_get(actor=actor, conversation_id=conversation_id)
            asked_only(request)
        return Response(conversation_json(view))

    @described("conversations_update", ConversationSchema, request=TitleInput, may=[404, 409])
    def patch(self, request: Request, conversation_id: UUID) -> Response:
        """Rename it."""
        actor = self.actor()
        with acting(actor):
            conversation_get(actor=actor, conversation_id=conversation_id)
            asked_only(request)
            title = read(TitleInput, request)["title"]
            view = conversation_update(actor=actor, conversation_id=conversation_id, title=title)
        return Response(conversation_json(view))

    @described("conversations_delete", None, status=204, parameters=[DRY_RUN], also={200: DryRunSchema}, may=[404, 409])
    def delete(self, request: Request, conversation_id: UUID) -> Response:
        """Delete it, and the memories of what was said in it."""
        actor = self.actor()
        with acting(actor):
            conversation_delete(actor=actor, conversation_id=conversation_id)
            asked_only(request, "dry_run")
            dry_run = flag(request, "dry_run")
            transaction.set_rollback(dry_run)
        return Response(dry_run_json([conversation_id])) if dry_run else Response(status=204)


class EventStreamRenderer(JSONRenderer):
    """Lets `Accept: text/event-stream` through. It renders only a problem before the stream began: that is JSON."""

    media_type = STREAM
    format = "event-stream"


class TurnsView(ApiView):
    def get_renderers(self) -> list[BaseRenderer]:
        """Only what is asked now can be streamed; what was said before is a list."""
        return [JSONRenderer(), *([EventStreamRenderer()] if self.request.method == "POST" else [])]

    @described("turns_list", TurnListSchema, parameters=PAGE, may=[404])
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
        also={(200, STREAM): str},
        may=[404],
    )
    def post(self, request: Request, conversation_id: UUID) -> Response | StreamingHttpResponse:
        """Ask; the answer cites the memories it rests on.

        With `Accept: text/event-stream` it is streamed as `token`, `citation` and `done` or `error`: see the top.
        """
        actor = self.actor().within(Channel.CHAT)
        conversation_get(actor=actor, conversation_id=conversation_id)
        asked_only(request)
        content = read(TurnInput, request)["content"]
        if STREAM in request.headers.get("Accept", ""):
            if "Idempotency-Key" in request.headers:
                raise Invalid(errors=[FieldError("Idempotency-Key", "a stream cannot be repeated; ask without it")])
            plan = turn_begin(actor=actor, conversation_id=conversation_id, content=content)
            return event_response(turn_stream(plan=plan), event_json, actor=actor, path=request.path)

        def call(commit: Commit) -> Reply:
            turn = turn_run(
                actor=actor,
                conversation_id=conversation_id,
                content=content,
                commit=lambda made: commit(_answered(made)),
            )
            return Reply(201, turn_json(turn))

        return self.post_once(call)


def _begun(view: View) -> Reply:
    return Reply(201, conversation_json(view), shows=(view.id,))


def _answered(turn: TurnView) -> Reply:
    """The reply to keep, in the transaction that stores the turn. It shows what the turn says, and what that quotes."""
    said = Turn.objects.values_list("conversation_id", "question_id", "answer_id").get(id=turn.id)
    quoted = (citation.memory_id for citation in turn.citations)
    return Reply(201, turn_json(turn), shows=(*(one for one in said if one is not None), *quoted))
