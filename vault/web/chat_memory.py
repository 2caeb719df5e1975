"""Pages of an answer's sources, and the changes that a member makes there. All work without JavaScript."""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.text import slugify
from django.utils.timezone import localtime
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from governance.actor import Actor
from governance.errors import Invalid
from governance.pages import Last
from governance.vocabulary import Channel
from governance.web.pages import draw, page, see_other, wants_part
from governance.web.paging import uuid_or_none
from vault.chat.memory_changes import (
    conversation_exclude,
    conversation_goals_set,
    turn_forget,
    turn_statements_undo,
)
from vault.chat.rules import INSTRUCTIONS
from vault.chat.selectors import RetrievedView, conversation_get, turn_get, turn_retrieved, turns_list
from vault.chat.services import REMEMBERED
from vault.cubes.services import cube_delete, cube_restore
from vault.vocabulary import Layer
from vault.web.labels import SHORT_LAYERS

MOST_EXPORTED = 1_000  # turns of one file
LONGEST_EXCERPT = 160  # characters of a memory that was found
PARTS: dict[str, Promise] = {
    "lexical": gettext_lazy("Words"),
    "context": gettext_lazy("Context"),
    "dense": gettext_lazy("Meaning"),
    "entity": gettext_lazy("People"),
    "time": gettext_lazy("Time"),
    "graph": gettext_lazy("Links"),
}


@dataclass(frozen=True)
class Part:
    """A part of a score, in percent."""

    name: Promise
    percent: int


@dataclass(frozen=True)
class Hit:
    """A memory that was found for a question. marker: its number in the answer, None where it was not used."""

    view: RetrievedView
    marker: int | None
    excerpt: str
    layer: Promise
    parts: Sequence[Part]
    is_excluded: bool


@require_http_methods(["GET", "HEAD"])
@page
def why(request: HttpRequest, actor: Actor, conversation_id: UUID, turn_id: UUID) -> HttpResponseBase:
    """Show the memories that were found for a question, with their scores, and those that the answer used."""
    conversation = conversation_get(actor=actor, conversation_id=conversation_id)
    turn = turn_get(actor=actor, conversation_id=conversation_id, turn_id=turn_id)
    views = turn_retrieved(actor=actor, conversation_id=conversation_id, turn=turn)
    markers = {one.memory_id: one.marker for one in turn.citations}
    found = [_shown(one, markers.get(one.retrieved.memory_id), conversation.excluded) for one in views]
    context = {
        "conversation": conversation,
        "turn": turn,
        "used": sorted((one for one in found if one.marker is not None), key=lambda one: one.marker or 0),
        "unused": [one for one in found if one.marker is None],
        "instructions": "" if turn.extractive else INSTRUCTIONS,
        "remembered": REMEMBERED,
        "tokens": sum(one.view.retrieved.tokens for one in found if one.marker is not None),
    }
    template = "vault/chat/_why.html" if wants_part(request) else "vault/chat/why.html"
    return draw(request, template, context)


@require_POST
@page
def statements_undo(request: HttpRequest, actor: Actor, conversation_id: UUID, turn_id: UUID) -> HttpResponseBase:
    """Delete what was stored of a question."""
    turn_statements_undo(actor=actor.within(Channel.CHAT), conversation_id=conversation_id, turn_id=turn_id)
    return see_other(f"{_address(conversation_id)}#turn-{turn_id}")


@require_POST
@page
def forget(request: HttpRequest, actor: Actor, conversation_id: UUID, turn_id: UUID) -> HttpResponseBase:
    """Delete what the answer listed to be forgotten."""
    turn_forget(actor=actor.within(Channel.CHAT), conversation_id=conversation_id, turn_id=turn_id)
    return see_other(f"{_address(conversation_id)}#turn-{turn_id}")


@require_POST
@page
def memory_use(request: HttpRequest, actor: Actor, conversation_id: UUID, turn_id: UUID) -> HttpResponseBase:
    """Leave a memory out of this conversation, use it again, forget it, or take that back."""
    memory_id = uuid_or_none(request.POST.get("memory", ""))
    if memory_id is None:
        raise Invalid
    conversation_get(actor=actor, conversation_id=conversation_id)
    action = request.POST.get("action", "")
    if action in {"exclude", "include"}:
        conversation_exclude(
            actor=actor.within(Channel.CHAT),
            conversation_id=conversation_id,
            memory_id=memory_id,
            is_excluded=action == "exclude",
        )
    elif action == "forget":
        cube_delete(actor=actor.within(Channel.CHAT), cube_id=memory_id)
    elif action == "restore":
        cube_restore(actor=actor.within(Channel.CHAT), cube_id=memory_id)
    else:
        raise Invalid
    if action == "forget":
        context = {"conversation_id": conversation_id, "turn_id": turn_id, "memory_id": memory_id}
        return draw(request, "vault/chat/forgotten.html", context)
    return see_other(reverse("turn_why", args=[conversation_id, turn_id]))


@require_POST
@page
def goals(request: HttpRequest, actor: Actor, conversation_id: UUID) -> HttpResponseBase:
    """Set whether answers recall goals."""
    raises = request.POST.get("raises_goals") == "yes"
    conversation_goals_set(actor=actor.within(Channel.CHAT), conversation_id=conversation_id, raises_goals=raises)
    return see_other(_address(conversation_id))


@require_http_methods(["GET", "HEAD"])
@page
def export(request: HttpRequest, actor: Actor, conversation_id: UUID) -> HttpResponseBase:
    """The last MOST_EXPORTED questions and answers as a text in Markdown."""
    conversation = conversation_get(actor=actor, conversation_id=conversation_id)
    turns = turns_list(actor=actor, conversation_id=conversation_id, pages=Last(MOST_EXPORTED))
    lines = [f"# {conversation.title}"]
    for turn in turns:
        lines += [
            f"## {localtime(turn.created_at):%Y-%m-%d %H:%M %Z}",
            f"> {turn.question}".replace("\n", "\n> "),
            turn.answer or "–",
        ]
    response = HttpResponse(
        "\n\n".join(lines) + "\n", content_type="text/markdown; charset=utf-8", status=HTTPStatus.OK
    )
    name = slugify(conversation.title) or "conversation"
    response["Content-Disposition"] = f'attachment; filename="{name[:60]}.md"'
    return response


def _shown(view: RetrievedView, marker: int | None, excluded: frozenset[UUID]) -> Hit:
    text = view.text if len(view.text) <= LONGEST_EXCERPT else f"{view.text[: LONGEST_EXCERPT - 1]}…"
    parts = [
        Part(PARTS[name], round(100 * min(1.0, value)))
        for name, value in view.retrieved.parts.items()
        if name in PARTS and value > 0
    ]
    layer = SHORT_LAYERS[Layer(view.retrieved.layer)]
    return Hit(view, marker, text, layer, parts, view.retrieved.memory_id in excluded)


def _address(conversation_id: UUID) -> str:
    return reverse("conversation", args=[conversation_id])
