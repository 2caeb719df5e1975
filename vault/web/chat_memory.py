"""Pages of an answer's sources, where a member can also change them. All work without JavaScript."""

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

from governance.actor import Actor
from governance.errors import Invalid
from governance.pages import Last
from governance.vocabulary import Channel
from governance.web.pages import draw, post_page, safe_page, see_other, wants_part
from governance.web.pagination import NewestLast, uuid_or_none
from governance.web.undo import put_message
from vault.chat.evidence import rebuild_prompt
from vault.chat.memory_changes import (
    conversation_exclude,
    turn_operate,
    turn_statements_undo,
)
from vault.chat.savings import TurnSaving, conversation_savings
from vault.chat.selectors import (
    ConversationView,
    RetrievedView,
    TurnView,
    Unused,
    conversation_agent,
    conversation_get,
    count_repeated_turns,
    turn_get,
    turn_memories_list,
    turns_list,
)
from vault.chat.services import FOLLOWED, ConversationChanges, conversation_update
from vault.cubes.services import cube_delete, cube_restore
from vault.listing.bulk import BulkAction
from vault.providers.ports import ChatMessage
from vault.reader.rules import Intent
from vault.vocabulary import Layer
from vault.web.answers import make_shown_turn
from vault.web.labels import SHORT_LAYERS
from vault.web.memory_actions import done_words
from vault.web.memory_forms import chosen_text
from vault.web.memory_rows import ScorePart, layer_class, score_parts
from vault.web.readings import explain_message
from vault.web.working_set import explain_place

MOST_EXPORTED = 1_000  # turns of one file
MOST_SAVINGS = 30  # turns of the chart of savings
LONGEST_EXCERPT = 160  # characters of a memory that was found
# What an offer of the chat does to memories, and the action that undoes it.
ACTIONS: dict[Intent, tuple[BulkAction, BulkAction | None]] = {
    Intent.DELETE: (BulkAction.DELETE, BulkAction.RESTORE),
    Intent.ARCHIVE: (BulkAction.ARCHIVE, BulkAction.ACTIVATE),
    Intent.RESTORE: (BulkAction.ACTIVATE, None),
    Intent.TAG: (BulkAction.TAG, None),
}
PARTS: dict[str, Promise] = {
    "lexical": gettext_lazy("Words"),
    "dense": gettext_lazy("Meaning"),
    "context": gettext_lazy("Context"),
    "entity": gettext_lazy("People"),
    "time": gettext_lazy("Time"),
    "graph": gettext_lazy("Links"),
}
UNUSED: dict[str, Promise] = {
    Unused.EXCLUDED: gettext_lazy("left out of this conversation"),
    Unused.SUPERSEDED: gettext_lazy("replaced by a later statement"),
    Unused.UNRELATED: gettext_lazy("not about the question"),
    Unused.OTHER_TIME: gettext_lazy("of another time"),
    "": gettext_lazy("not cited"),
}


@dataclass(frozen=True)
class Hit:
    """A memory that the search for a question found. marker: its citation number in the answer, None if it was not
    cited."""

    view: RetrievedView
    marker: int | None
    excerpt: str
    layer: Promise
    layer_class: str
    parts: Sequence[ScorePart]
    is_excluded: bool

    @property
    def place(self) -> tuple[Promise, Promise | str]:
        """Return the form and place in which the memory entered the prompt, and the reason."""
        return explain_place(self.view.retrieved)

    @property
    def reason(self) -> Promise:
        """Return the reason why the memory was not cited."""
        return UNUSED[self.view.retrieved.reason]


@dataclass(frozen=True)
class LayerTokens:
    """The tokens of one layer's memories that an answer cites. x, width: of the bar, in percent."""

    name: Promise
    layer_class: str
    tokens: int
    x: float
    width: float


@dataclass(frozen=True)
class SavedBar:
    """A turn in the chart of savings. Widths in percent of the longest turn."""

    saving: TurnSaving
    saved_width: float
    read_width: float

    @property
    def number(self) -> int:
        return self.saving.position + 1


@safe_page
def why(request: HttpRequest, actor: Actor, conversation_id: UUID, turn_id: UUID) -> HttpResponseBase:
    """Show the memories that were found for a question with their scores, and those that the answer used."""
    conversation = conversation_get(actor=actor, conversation_id=conversation_id)
    turn = turn_get(actor=actor, conversation_id=conversation_id, turn_id=turn_id)
    views = turn_memories_list(actor=actor, conversation_id=conversation_id, turn=turn)
    markers = {citation.memory_id: citation.marker for citation in turn.citations}
    found = [_make_hit(view, markers.get(view.retrieved.memory_id), conversation.excluded) for view in views]
    savings = conversation_savings(actor=actor, conversation_id=conversation_id, most=MOST_SAVINGS)
    saved_tokens = sum(saving.saved_tokens for saving in savings)
    used = sorted((hit for hit in found if hit.marker is not None), key=lambda hit: hit.marker or 0)
    context = {
        "conversation": conversation,
        "turn": turn,
        "used": used,
        "unused": [hit for hit in found if hit.marker is None],
        "parts": _make_legend(found),
        "layers": _layer_tokens(used),
        "tokens": sum(hit.view.retrieved.tokens for hit in used),
        "prompt": _rebuild_prompt(actor, conversation, turn, views),
        "savings": _make_bars(savings) if saved_tokens else [],
        "saved_tokens": saved_tokens,
        "saved_seconds": sum(saving.seconds for saving in savings),
        "readings": explain_message(
            turn.question or "", speaker="user", stored=[statement.text for statement in turn.stated]
        ),
    }
    template = "vault/chat/_why.html" if wants_part(request) else "vault/chat/why.html"
    return draw(request, template, context)


def _make_bars(savings: Sequence[TurnSaving]) -> list[SavedBar]:
    longest = max(1, *(saving.whole_tokens for saving in savings))
    return [
        SavedBar(
            saving,
            round(100 * saving.saved_tokens / longest, 2),
            round(100 * (saving.whole_tokens - saving.saved_tokens) / longest, 2),
        )
        for saving in savings
    ]


@post_page
def statements_undo(request: HttpRequest, actor: Actor, conversation_id: UUID, turn_id: UUID) -> HttpResponseBase:
    """Delete the statements that were stored from a question."""
    turn_statements_undo(actor=actor.within(Channel.CHAT), conversation_id=conversation_id, turn_id=turn_id)
    return see_other(f"{_conversation_address(conversation_id)}#turn-{turn_id}")


@post_page
def operate(request: HttpRequest, actor: Actor, conversation_id: UUID, turn_id: UUID) -> HttpResponseBase:
    """Do what the answer offered with the memories that it listed."""
    done = turn_operate(actor=actor.within(Channel.CHAT), conversation_id=conversation_id, turn_id=turn_id)
    action, undo = ACTIONS[done.intent]
    ids = [chosen_text(cube_id, None) for cube_id in (*done.done, *done.messages)] if undo else []
    address = _conversation_address(conversation_id)
    words = done_words(action, len(done.done) + len(done.messages), done.left)
    put_message(
        request,
        words,
        address=reverse("memories_bulk") if ids else "",
        action=str(undo),
        ids=ids,
        after=address,
    )
    return see_other(f"{address}#turn-{turn_id}")


@post_page
def memory_use(request: HttpRequest, actor: Actor, conversation_id: UUID, turn_id: UUID) -> HttpResponseBase:
    """Exclude a memory from this conversation, include it again, delete it, or restore it."""
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


@post_page
def goals(request: HttpRequest, actor: Actor, conversation_id: UUID) -> HttpResponseBase:
    """Set whether answers recall goals."""
    raises = request.POST.get("raises_goals") == "yes"
    changes = ConversationChanges(raises_goals=raises)
    conversation_update(actor=actor.within(Channel.CHAT), conversation_id=conversation_id, changes=changes)
    return see_other(_conversation_address(conversation_id))


@safe_page
def export(request: HttpRequest, actor: Actor, conversation_id: UUID) -> HttpResponseBase:
    """Return the last MOST_EXPORTED questions and answers as a Markdown file."""
    conversation = conversation_get(actor=actor, conversation_id=conversation_id)
    turns = turns_list(actor=actor, conversation_id=conversation_id, pages=Last(MOST_EXPORTED), leaves=True)
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


def _rebuild_prompt(
    actor: Actor, conversation: ConversationView, turn: TurnView, found: Sequence[RetrievedView]
) -> list[ChatMessage]:
    """Return the messages that were sent to the model; empty if no model was called or the answer is withheld."""
    if turn.extractive or turn.withheld:
        return []
    count = count_repeated_turns(actor=actor, conversation_id=conversation.id, position=turn.position)
    before = NewestLast(size=count, key="position", cursor=turn.position)
    past = turns_list(actor=actor, conversation_id=conversation.id, pages=before)
    asked = make_shown_turn(turn, [earlier.question for earlier in past[-FOLLOWED:]]).searched or turn.question
    return rebuild_prompt(actor, asked, found, past, conversation_agent(actor=actor, conversation=conversation))


def _make_hit(view: RetrievedView, marker: int | None, excluded: frozenset[UUID]) -> Hit:
    text = view.text if len(view.text) <= LONGEST_EXCERPT else f"{view.text[: LONGEST_EXCERPT - 1]}…"
    values = view.retrieved.parts
    parts = score_parts(view.retrieved.score, [(str(name), values.get(key, 0.0)) for key, name in PARTS.items()])
    layer = Layer(view.retrieved.layer)
    is_excluded = view.retrieved.memory_id in excluded
    return Hit(view, marker, text, SHORT_LAYERS[layer], layer_class(layer), parts, is_excluded)


def _make_legend(found: Sequence[Hit]) -> list[tuple[int, Promise]]:
    """Return the number and the name of each part that occurs in a score."""
    there = {part.index for hit in found for part in hit.parts}
    return [(index, name) for index, name in enumerate(PARTS.values(), start=1) if index in there]


def _layer_tokens(used: Sequence[Hit]) -> list[LayerTokens]:
    whole = sum(hit.view.retrieved.tokens for hit in used) or 1
    rows: list[LayerTokens] = []
    x = 0.0
    for layer in dict.fromkeys(hit.layer_class for hit in used):
        of_layer = [hit for hit in used if hit.layer_class == layer]
        tokens = sum(hit.view.retrieved.tokens for hit in of_layer)
        width = 100 * tokens / whole
        rows.append(LayerTokens(of_layer[0].layer, layer, tokens, round(x, 1), round(max(width - 0.8, 0.4), 1)))
        x += width
    return rows


def _conversation_address(conversation_id: UUID) -> str:
    return reverse("conversation", args=[conversation_id])
