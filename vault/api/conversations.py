"""conversations/ of the REST contract."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import StreamingHttpResponse
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.api.described import DRY_RUN, ONCE, PAGE, described
from governance.api.idempotency import Commit
from governance.api.pages import CursorPages
from governance.api.views import ApiView, asked_only, flag
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.idempotency.services import Reply
from governance.vocabulary import Channel, Permission
from vault.api.inputs import ConversationInput, TitleInput, TurnInput, read
from vault.api.representations import conversation_json, dry_run_json, event_json, turn_json
from vault.api.schema import (
    PROVENANCE,
    ConversationListSchema,
    ConversationSchema,
    DryRunSchema,
    TurnAnswerSchema,
    TurnListSchema,
)
from vault.chat.selectors import ConversationView as View
from vault.chat.selectors import TurnView, conversation_get, conversations_list, turn_shows, turns_list
from vault.chat.services import (
    ConversationDraft,
    TurnEvent,
    conversation_create,
    conversation_delete,
    conversation_update,
    turn_begin,
    turn_run,
    turn_speaker,
    turn_stream,
)
from vault.provenance.rules import manifest_json
from vault.provenance.services import manifest_of_turns
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

    @described(
        "conversations_create",
        ConversationSchema,
        status=201,
        request=ConversationInput,
        parameters=[ONCE],
    )
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

    @described(
        "conversations_delete", None, status=204, parameters=[DRY_RUN], also={200: DryRunSchema}, may=[404, 409, 423]
    )
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

    @described("turns_list", TurnListSchema, parameters=[*PAGE, PROVENANCE], may=[404])
    def get(self, request: Request, conversation_id: UUID) -> Response:
        """The turns of a conversation, oldest first; `content` is the answer."""
        actor = self.actor()
        pages = CursorPages("id", also_known=["provenance"])
        with acting(actor):
            views = turns_list(
                actor=actor,
                conversation_id=conversation_id,
                paginate=lambda rows: pages.paginate_queryset(rows, request) or [],
            )
            manifest = _manifest(actor, views) if flag(request, "provenance") else {}
        response = pages.envelope([turn_json(view) for view in views])
        response.data |= manifest
        return response

    @described(
        "turns_create",
        TurnAnswerSchema,
        status=201,
        request=TurnInput,
        parameters=[ONCE, PROVENANCE],
        also={(200, STREAM): str},
        may=[404],
    )
    def post(self, request: Request, conversation_id: UUID) -> Response | StreamingHttpResponse:
        """Ask; the answer cites the memories it rests on.

        With `Accept: text/event-stream` it is streamed as `token`, `citation` and `done` or `error`: see the top.
        """
        actor = self.actor().within(Channel.CHAT)
        conversation_get(actor=actor, conversation_id=conversation_id)
        asked_only(request, "provenance")
        proven = flag(request, "provenance")
        body = read(TurnInput, request)
        answer = _Answer(actor, proven=proven or body.get("provenance", False))
        if STREAM in request.headers.get("Accept", ""):
            if "Idempotency-Key" in request.headers:
                raise Invalid(errors=[FieldError("Idempotency-Key", "a stream cannot be repeated; ask without it")])
            plan = turn_begin(actor=actor, conversation_id=conversation_id, content=body["content"])
            events = turn_stream(plan=plan, commit=answer.stored)
            return event_response(events, answer.event, actor=actor, path=request.path)

        def call(commit: Commit) -> Reply:
            def stored(made: TurnView) -> None:
                answer.stored(made)
                commit(_answered(made, answer.manifest))

            turn = turn_run(actor=actor, conversation_id=conversation_id, content=body["content"], commit=stored)
            return Reply(201, turn_json(turn) | answer.manifest)

        return self.post_once(call, reader=lambda: turn_speaker(actor=actor, conversation_id=conversation_id))


class _Answer:
    """A turn on its way out, with its manifest if one was asked for."""

    def __init__(self, actor: Actor, *, proven: bool) -> None:
        self.actor = actor
        self.proven = proven
        self.manifest: dict[str, Any] = {}

    def stored(self, turn: TurnView) -> None:
        """In the transaction that stores it."""
        if self.proven:
            self.manifest = _manifest(self.actor, [turn])

    def event(self, event: TurnEvent) -> tuple[str, dict[str, Any]]:
        name, data = event_json(event)
        return name, data | self.manifest if name == "done" else data


def _manifest(actor: Actor, turns: Sequence[TurnView]) -> dict[str, Any]:
    return {"manifest": manifest_json(manifest_of_turns(actor=actor, turns=turns))}


def _begun(view: View) -> Reply:
    return Reply(201, conversation_json(view), shows=(view.id,))


def _answered(turn: TurnView, manifest: dict[str, Any]) -> Reply:
    """The reply for the idempotency record, made in the transaction that stores the turn."""
    return Reply(201, turn_json(turn) | manifest, shows=turn_shows(turn))
