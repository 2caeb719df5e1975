"""conversations/ of the REST API."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import StreamingHttpResponse
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.api.descriptions import DRY_RUN, ONCE, PAGE, page_of, read
from governance.api.pages import CursorPages, show_page
from governance.api.views import ApiView, flag, refuse_unknown_parameters
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.idempotency.services import Reply
from governance.vocabulary import Channel, Permission
from vault.api.descriptions import of_memories
from vault.api.inputs import ConversationChangesInput, ConversationInput, TurnInput
from vault.api.representations import changes_json, dry_run_json
from vault.api.schema import (
    PROVENANCE,
    CitationSchema,
    ConversationSchema,
    DryRunSchema,
    TurnAnswerSchema,
    TurnListSchema,
    TurnSchema,
)
from vault.chat.plans import TurnPlan
from vault.chat.selectors import (
    TurnView,
    conversation_get,
    conversation_require,
    conversations_list,
    turn_shows,
    turns_list,
)
from vault.chat.services import (
    Cited,
    ConversationChanges,
    ConversationDraft,
    Done,
    Token,
    TurnEvent,
    conversation_create,
    conversation_delete,
    conversation_update,
    turn_answer,
    turn_begin,
    turn_complete,
    turn_speaker,
)
from vault.chat.turn_storage import TurnAnswer, turn_store
from vault.provenance.rules import manifest_json
from vault.provenance.services import manifest_of_turns
from vault.streams import event_response

STREAM = "text/event-stream"


class ConversationsView(ApiView):
    @of_memories("conversations_list", page_of(ConversationSchema), parameters=PAGE)
    def get(self, request: Request) -> object:
        """List the caller's own conversations, newest first."""
        return show_page(self, conversations_list)

    @of_memories(
        "conversations_create",
        ConversationSchema,
        status=201,
        request=ConversationInput,
        parameters=[ONCE],
    )
    def post(self, request: Request) -> Response:
        """Start a conversation."""
        actor = self.actor()
        authorize(actor, Permission.CONVERSATION_USE)
        draft = ConversationDraft(**self.read_body())

        def call() -> Reply:
            view = conversation_create(actor=actor, draft=draft)
            return Reply(201, ConversationSchema.json(view), shows=(view.id,))

        return self.post_once(call)


class ConversationView(ApiView):
    @of_memories("conversations_get", ConversationSchema, may=[404])
    def get(self, request: Request, conversation_id: UUID) -> object:
        """Read one conversation."""
        actor = self.actor()
        with acting(actor):
            view = conversation_get(actor=actor, conversation_id=conversation_id)
            refuse_unknown_parameters(request)
        return view

    @of_memories("conversations_update", ConversationSchema, request=ConversationChangesInput, may=[404, 409])
    def patch(self, request: Request, conversation_id: UUID) -> object:
        """Rename a conversation, change the persona or the model that answers, or whether answers recall goals."""
        actor = self.actor()
        with acting(actor):
            conversation_get(actor=actor, conversation_id=conversation_id)
            changes = ConversationChanges(**self.read_body())
            return conversation_update(actor=actor, conversation_id=conversation_id, changes=changes)

    @of_memories(
        "conversations_delete", None, status=204, parameters=[DRY_RUN], also={200: DryRunSchema}, may=[404, 409, 423]
    )
    def delete(self, request: Request, conversation_id: UUID) -> Response:
        """Delete a conversation with its messages."""
        actor = self.actor()
        with acting(actor):
            conversation_delete(actor=actor, conversation_id=conversation_id)
            refuse_unknown_parameters(request, "dry_run")
            dry_run = flag(request, "dry_run")
            transaction.set_rollback(dry_run)
        return Response(dry_run_json([conversation_id])) if dry_run else Response(status=204)


class EventStreamRenderer(JSONRenderer):
    """Accepts `Accept: text/event-stream`. It renders only errors from before the stream began, as JSON."""

    media_type = STREAM
    format = "event-stream"


class TurnsView(ApiView):
    def get_renderers(self) -> list[BaseRenderer]:
        """Return the renderers: only a new turn can be streamed."""
        return [JSONRenderer(), *([EventStreamRenderer()] if self.request.method == "POST" else [])]

    @of_memories("turns_list", TurnListSchema, parameters=[*PAGE, PROVENANCE], may=[404])
    def get(self, request: Request, conversation_id: UUID) -> object:
        """List the turns of a conversation, oldest first. `content` is the answer."""
        actor = self.actor()
        pages = CursorPages(request, "id", also_known=["provenance"])
        with acting(actor):
            views = turns_list(
                actor=actor,
                conversation_id=conversation_id,
                pages=pages,
            )
            manifest = _make_manifest(actor, views) if flag(request, "provenance") else {}
        return pages.envelope(views) | manifest

    @of_memories(
        "turns_create",
        TurnAnswerSchema,
        status=201,
        request=TurnInput,
        parameters=[ONCE, PROVENANCE],
        also={(200, STREAM): str},
        may=[404, 409, 423],
    )
    def post(self, request: Request, conversation_id: UUID) -> Response | StreamingHttpResponse:
        """Ask a question. The answer cites the memories that support it.

        With `Accept: text/event-stream` it is streamed as events `token`, `citation`, and `done` or `error`.
        """
        actor = self.actor().within(Channel.CHAT)
        conversation_require(actor=actor, conversation_id=conversation_id)
        refuse_unknown_parameters(request, "provenance")
        proven = flag(request, "provenance")
        body = read(TurnInput, request)
        proven = proven or body.get("provenance", False)
        asked = {
            "actor": actor,
            "conversation_id": conversation_id,
            "content": body["content"],
            "adapter_id": body.get("adapter"),
        }
        if STREAM in request.headers.get("Accept", ""):
            if "Idempotency-Key" in request.headers:
                raise Invalid(errors=[FieldError("Idempotency-Key", "a stream cannot be repeated; ask without it")])
            plan = turn_begin(**asked)
            return event_response(_iterate_events(plan, proven=proven), _encode_event, actor=actor, path=request.path)
        with self.once(reader=lambda: turn_speaker(actor=actor, conversation_id=conversation_id)) as once:
            if once.reply is None:
                plan = turn_begin(**asked)
                answer = turn_complete(plan=plan)
                with acting(actor):
                    turn = turn_store(plan=plan, answer=answer)
                    manifest = _make_manifest(actor, [turn]) if proven else {}
                    once.store(Reply(201, _turn_json(turn) | manifest, shows=turn_shows(turn)))
        return once.response()


@dataclass(frozen=True)
class Proven(Done):
    """The answer is complete and stored; `manifest` was read in the same transaction."""

    manifest: dict[str, Any]


def _iterate_events(plan: TurnPlan, *, proven: bool) -> Iterator[TurnEvent]:
    with closing(turn_answer(plan=plan)) as pieces:
        for piece in pieces:
            if not isinstance(piece, TurnAnswer):
                yield piece
                continue
            with acting(plan.actor):
                turn = turn_store(plan=plan, answer=piece)
                manifest = _make_manifest(plan.actor, [turn]) if proven else {}
            yield Proven(turn, manifest)


def _encode_event(event: TurnEvent) -> tuple[str, dict[str, Any]]:
    name, data = event_json(event)
    return name, data | event.manifest if isinstance(event, Proven) else data


def _make_manifest(actor: Actor, turns: Sequence[TurnView]) -> dict[str, Any]:
    return {"manifest": manifest_json(manifest_of_turns(actor=actor, turns=turns))}


def event_json(event: TurnEvent) -> tuple[str, dict[str, Any]]:
    """Return the name and the data of an event of a streamed answer."""
    if isinstance(event, Token):
        return "token", {"text": event.text}
    if isinstance(event, Cited):
        return "citation", CitationSchema.json(event.citation)
    return "done", _turn_json(event.turn)


def _turn_json(turn: TurnView) -> dict[str, Any]:
    """Return a turn that was just stored, with what it changed."""
    return TurnSchema.json(turn) | changes_json(turn.changes)
