"""The chat: conversations on the left, turns in the middle. Each page works without JavaScript."""

from collections.abc import Sequence
from http import HTTPStatus
from itertools import groupby
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.timezone import localdate
from django.utils.translation import get_language, gettext_lazy, override
from django.utils.translation import gettext as _

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import DomainError, FieldError, Invalid, PiiRefused, TooLarge, Unavailable
from governance.pages import Last
from governance.personas.selectors import personas_list
from governance.vocabulary import Channel, Permission, PersonaKind
from governance.web.explanations import explanation_of
from governance.web.page_forms import PageForm, values_of
from governance.web.pages import draw, form_page, safe_page, see_other, wants_events
from governance.web.pagination import Newest, NewestLast, number_or_none, uuid_or_none
from vault.chat.plans import TurnPlan
from vault.chat.selectors import (
    ConversationView,
    conversation_agent,
    conversation_get,
    conversations_find,
    conversations_list,
    turn_get,
    turns_list,
)
from vault.chat.services import (
    FOLLOWED,
    LONGEST_TITLE,
    Cited,
    ConversationChanges,
    ConversationDraft,
    Done,
    Token,
    TurnEvent,
    conversation_begin,
    conversation_create,
    conversation_delete,
    conversation_update,
    turn_begin,
    turn_finish,
    turn_speaker,
    turn_stream,
)
from vault.chat.topics import topics_newest
from vault.endpoints.services import model_names
from vault.forms.selectors import adapters_offered
from vault.forms.services import is_engine_serving_adapters
from vault.lifecycle.summaries import conversation_summary
from vault.providers.ports import ProviderUnavailable
from vault.reader.rules import needs_past
from vault.streams import event_response
from vault.vocabulary import EXTRACTIVE
from vault.web.answers import make_shown_turn, make_shown_turns

CONVERSATIONS, TURNS = 50, 30  # of one page
SEARCHED = 200  # of the newest conversations, by title
PERSONAS = 50  # of each kind, offered to a new conversation
LONGEST_WORDS = 100
WEEK = 7  # days


class AnswererForm(PageForm):
    """The persona and the model that answer in a conversation."""

    agent_persona = forms.CharField(label=gettext_lazy("You are answered by"), required=False, widget=forms.Select())
    model = forms.CharField(label=gettext_lazy("Model"), required=False, widget=forms.Select())

    def offer(self, agents: Sequence[Any], models: Sequence[str]) -> None:
        """Offer these agents and models; without any, drop the field. models: in the order in which they are asked."""
        named = [(str(agent.id), agent.name) for agent in agents]
        others = [*zip(models[1:], models[1:], strict=True), (EXTRACTIVE, _("None: quote the memories"))]
        offered = {"agent_persona": [("", _("No persona")), *named] if named else []}
        offered["model"] = [("", models[0]), *others] if models else []
        for name, choices in offered.items():
            self.fields[name].widget.choices = choices
            if not choices:
                del self.fields[name]


class ConversationForm(AnswererForm):
    """The title of a conversation, and who answers in it."""

    title = forms.CharField(
        label=gettext_lazy("Title"), max_length=LONGEST_TITLE, widget=forms.TextInput(attrs={"autofocus": True})
    )

    field_order = ("title",)

    def changed_values(self) -> dict[str, Any]:
        """Return the changed values. Others are not checked, because they may no longer exist."""
        return {name: value for name, value in self.cleaned_data.items() if value != self.initial[name]}

    def blame_field(self, fault: FieldError) -> None:
        if fault.field in {"agent_persona", "model"}:
            self.add_error(fault.field, _("This persona or model is no longer there. Choose another."))
        else:
            super().blame_field(fault)


class BeginForm(AnswererForm):
    """The persona that speaks in a new conversation, and what answers. The form of the question sends them."""

    persona = forms.CharField(label=gettext_lazy("You speak as"), required=False, widget=forms.Select())

    field_order = ("persona",)

    def offer_personas(self, personas: Sequence[Any]) -> None:
        named = [(str(persona.id), persona.name) for persona in personas]
        self.fields["persona"].widget.choices = [("", _("Yourself")), *named]
        if not named:
            del self.fields["persona"]
        for field in self.fields.values():
            field.widget.attrs["form"] = "composer"


@form_page
def chat(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """GET shows the empty chat; POST begins a conversation, with its first question if there is one."""
    if request.method != "POST":
        return _draw_chat(request, actor, question=request.GET.get("q", "")[:500])
    question = _read_question(request)
    if question is None:
        begun = conversation_create(actor=actor.within(Channel.CHAT), draft=_read_draft(request))
        return see_other(_conversation_address(begun.id))
    return _ask_question(request, actor, None, question)


@safe_page
def conversation(request: HttpRequest, actor: Actor, conversation_id: UUID) -> HttpResponseBase:
    return _draw_chat(request, actor, conversation_id, question=request.GET.get("q", "")[:500])


@form_page
def turns(request: HttpRequest, actor: Actor, conversation_id: UUID) -> HttpResponseBase:
    """POST asks a question; GET redirects to the conversation, for a reload after a refused question."""
    question = _read_question(request)
    if request.method != "POST" or question is None:
        return see_other(_conversation_address(conversation_id))
    return _ask_question(request, actor, conversation_id, question)


@safe_page
def turn(request: HttpRequest, actor: Actor, conversation_id: UUID, turn_id: UUID) -> HttpResponseBase:
    """Show one turn as a part of the page; the script replaces the streamed answer with it. A reader who opens its
    address gets the whole page.
    """
    if request.headers.get("Sec-Fetch-Mode") == "navigate":
        return see_other(f"{_conversation_address(conversation_id)}#turn-{turn_id}")
    found = turn_get(actor=actor, conversation_id=conversation_id, turn_id=turn_id)
    last = (
        turns_list(actor=actor, conversation_id=conversation_id, pages=Last(FOLLOWED + 1))
        if needs_past(found.question)
        else []
    )
    shown = next((turn for turn in make_shown_turns(last) if turn.turn.id == turn_id), make_shown_turn(found))
    return draw(request, "vault/chat/_turn.html", {"shown": shown})


@form_page
def rename(request: HttpRequest, actor: Actor, conversation_id: UUID) -> HttpResponseBase:
    """Change the title of a conversation, its agent or its model."""
    known = conversation_get(actor=actor, conversation_id=conversation_id)
    present = {"title": known.title, "agent_persona": str(known.agent_persona_id or ""), "model": known.model}
    sent = present | request.POST.dict() if request.method == "POST" else None
    form = ConversationForm(sent, auto_id="%s", initial=present)

    def save() -> None:
        changes = ConversationChanges(**form.changed_values())
        if changes.named_fields():
            conversation_update(actor=actor.within(Channel.CHAT), conversation_id=known.id, changes=changes)

    if form.is_done_by(save):
        return see_other(_conversation_address(known.id))
    form.offer(*_list_answerers(actor))
    return draw(request, "vault/chat/rename.html", {"conversation": known, "form": form}, status=form.status)


@form_page
def delete(request: HttpRequest, actor: Actor, conversation_id: UUID) -> HttpResponseBase:
    """GET counts the turns that the deletion removes; POST deletes the conversation."""
    if request.method == "POST":
        conversation_delete(actor=actor.within(Channel.CHAT), conversation_id=conversation_id)
        return see_other(reverse("chat"))
    known = conversation_get(actor=actor, conversation_id=conversation_id)
    last = turns_list(actor=actor, conversation_id=conversation_id, pages=Newest(size=1, key="position"))
    count = last[0].position + 1 if last else 0
    return draw(request, "vault/chat/delete.html", {"conversation": known, "count": count})


def encode(event: TurnEvent) -> tuple[str, dict[str, Any]]:
    """Encode an event for the page's script."""
    if isinstance(event, Token):
        return "token", {"text": event.text}
    if isinstance(event, Cited):
        return "citation", {"marker": event.citation.marker, "url": _memory_address(event.citation.memory_id)}
    assert isinstance(event, Done)
    return "done", {"id": str(event.turn.id)}


def _ask_question(request: HttpRequest, actor: Actor, conversation_id: UUID | None, question: str) -> HttpResponseBase:
    """Ask a question. conversation_id None: also begin a conversation, unless the question is refused."""
    speaking = actor.within(Channel.CHAT)
    adapter_id = uuid_or_none(request.POST.get("adapter", ""))
    try:
        if conversation_id is None:
            plan = _begin_conversation(speaking, _read_draft(request), question, adapter_id)
        else:
            plan = turn_begin(actor=speaking, conversation_id=conversation_id, content=question, adapter_id=adapter_id)
    except (Invalid, TooLarge, Unavailable) as failure:
        return _redraw_question(request, actor, conversation_id, question, failure)
    if wants_events(request):
        language = get_language()

        def explain(failure: DomainError) -> str:
            with override(language):  # the stream is read when the request's own language is no longer set
                return _describe_fault(failure)

        response = event_response(turn_stream(plan=plan), encode, actor=speaking, path=request.path, explain=explain)
        response["Content-Location"] = reverse("turn", args=[plan.conversation_id, plan.turn_id])
        return response
    try:
        answered = turn_finish(plan=plan)
    except (Invalid, TooLarge, Unavailable) as failure:
        return _redraw_question(request, actor, plan.conversation_id, question, failure)
    return see_other(f"{_conversation_address(plan.conversation_id)}#turn-{answered.id}")


def _begin_conversation(actor: Actor, draft: ConversationDraft, question: str, adapter_id: UUID | None) -> TurnPlan:
    """Begin a conversation with its first question, as the persona and with the model of the form, if one was chosen.

    A refused question leaves no conversation.
    """
    if not (draft.persona or draft.agent_persona or draft.model):
        return conversation_begin(actor=actor, content=question, adapter_id=adapter_id)
    begun = conversation_create(actor=actor, draft=draft)
    try:
        return turn_begin(actor=actor, conversation_id=begun.id, content=question, adapter_id=adapter_id)
    except DomainError:
        conversation_delete(actor=actor, conversation_id=begun.id)
        raise


def _redraw_question(
    request: HttpRequest, actor: Actor, conversation_id: UUID | None, question: str, failure: DomainError
) -> HttpResponseBase:
    """Draw the page again with the refused question in its field and the error next to it."""
    if wants_events(request):
        raise failure
    status = failure.status if isinstance(failure, Unavailable) else HTTPStatus.UNPROCESSABLE_ENTITY
    return _draw_chat(request, actor, conversation_id, question=question, fault=_describe_fault(failure), status=status)


def _draw_chat(
    request: HttpRequest,
    actor: Actor,
    conversation_id: UUID | None = None,
    *,
    question: str = "",
    fault: str = "",
    status: int = HTTPStatus.OK,
) -> HttpResponseBase:
    context: dict[str, Any] = {
        "question": question,
        "fault": fault,
        "longest": settings.MAX_CONTENT_CHARACTERS,
        "api_address": f"{settings.PUBLIC_URL}/api/v1/memories/",
    }
    with acting(actor):  # one transaction for the whole page
        reader = turn_speaker(actor=actor, conversation_id=conversation_id)
        actor = actor if conversation_id is None else reader
        context |= _list_conversations(request, actor)
        context |= _open_conversation(request, actor, conversation_id, context["conversations"])
        models = model_names(actor)
        context["quoting"] = is_extractive(models, context["conversation"])
        if is_engine_serving_adapters() and not context["quoting"]:
            context["adapters"] = adapters_offered(actor=reader)
            context["adapter"] = request.POST.get("adapter", "")
        if not context["turns"]:
            context["suggestions"] = [_suggest_question(topic) for topic in topics_newest(actor=reader)]
        if conversation_id is None and is_allowed(actor, Permission.PERSONA_USE):
            context["begin_form"] = _offer_beginning(request, actor, models)
        return draw(request, "vault/chat/chat.html", context, status=status)


def is_extractive(models: Sequence[str], conversation: ConversationView | None) -> bool:
    """Return whether the conversation is answered without a model. models: the available ones."""
    return not models or (conversation is not None and conversation.model == EXTRACTIVE)


def _list_conversations(request: HttpRequest, actor: Actor) -> dict[str, Any]:
    """Return the conversations of the list, or with `find` those that have these words in titles or messages."""
    words = " ".join(request.GET.get("find", "").split())[:LONGEST_WORDS]
    if words:
        newest = Newest(size=SEARCHED, key="id")
        found = conversations_find(actor=actor, words=words, pages=newest)
        return {"conversations": found, "conversation_days": [("", found)] if found else [], "words": words}
    take = Newest(size=CONVERSATIONS, key="id", cursor=uuid_or_none(request.GET.get("list_before", "")))
    listed = conversations_list(actor=actor, pages=take)
    return {"conversations": listed, "conversation_days": group_by_day(listed), "conversations_older": take.older}


def group_by_day(conversations: Sequence[ConversationView]) -> list[tuple[str, list[ConversationView]]]:
    """Group conversations by the day of their start: today, yesterday, last week, earlier. Their order stays the
    same."""
    today = localdate()
    names = {0: _("Today"), 1: _("Yesterday")}

    def name(conversation: ConversationView) -> str:
        ago = (today - localdate(conversation.created_at)).days
        return names.get(ago) or (_("Last 7 days") if ago < WEEK else _("Earlier"))

    return [(day, list(of_day)) for day, of_day in groupby(conversations, name)]


def _open_conversation(
    request: HttpRequest, actor: Actor, conversation_id: UUID | None, listed: Sequence[ConversationView]
) -> dict[str, Any]:
    """Return the context of the open conversation, if there is one. listed: conversations whose titles are loaded
    already."""
    if conversation_id is None:
        return {"conversation": None, "turns": [], "turns_older": None}
    known = next((conversation for conversation in listed if conversation.id == conversation_id), None)
    known = known or conversation_get(actor=actor, conversation_id=conversation_id)
    take = NewestLast(size=TURNS, key="position", cursor=number_or_none(request.GET.get("before", "")))
    found = turns_list(actor=actor, conversation_id=conversation_id, pages=take)
    return {
        "conversation": known,
        "agent": conversation_agent(actor=actor, conversation=known),
        "turns": make_shown_turns(found),
        "turns_older": take.older,
        "summary": conversation_summary(actor=actor, conversation_id=conversation_id),
    }


def _suggest_question(topic: str) -> str:
    return _("What do you know about %(name)s?") % {"name": topic} if topic else _("What do you know about me?")


def _describe_fault(failure: DomainError) -> str:
    if isinstance(failure, Invalid) and not isinstance(failure, PiiRefused):
        return _("Write something to ask.")
    if isinstance(failure, TooLarge):
        return _("Too long: write at most %(limit)s characters.") % {"limit": settings.MAX_CONTENT_CHARACTERS}
    told = explanation_of(failure).text
    if not isinstance(failure, ProviderUnavailable):
        return told
    return _("%(told)s (%(detail)s)") % {"told": told, "detail": failure.detail}


def _read_draft(request: HttpRequest) -> ConversationDraft:
    """Read the conversation that the form describes; an empty choice means the default. Raises Invalid."""
    form = BeginForm(request.POST)
    if not form.is_valid():
        raise Invalid
    values = form.cleaned_data
    return ConversationDraft(
        persona=values["persona"] or None, agent_persona=values["agent_persona"] or None, model=values["model"]
    )


def _offer_beginning(request: HttpRequest, actor: Actor, models: Sequence[str]) -> BeginForm:
    """Return the form with the personas and models that a new conversation can have."""
    own, agents = (
        personas_list(actor=actor, pages=Newest(size=PERSONAS, key="id"), kind=kind)
        for kind in (PersonaKind.USER, PersonaKind.AGENT)
    )
    form = BeginForm(values_of(request), auto_id="%s")
    form.offer(agents, models)
    form.offer_personas(own)
    return form


def _list_answerers(actor: Actor) -> tuple[Sequence[Any], Sequence[str]]:
    """Return the agents and models that can answer a conversation."""
    may = is_allowed(actor, Permission.PERSONA_USE)
    newest = Newest(size=PERSONAS, key="id")
    agents = personas_list(actor=actor, pages=newest, kind=PersonaKind.AGENT) if may else []
    with acting(actor):
        return agents, model_names(actor)


def _read_question(request: HttpRequest) -> str | None:
    """Return the question with LF line breaks; None if the form has none."""
    content = request.POST.get("content")
    return None if content is None else content.replace("\r\n", "\n")


def _conversation_address(conversation_id: UUID) -> str:
    return reverse("conversation", args=[conversation_id])


def _memory_address(memory_id: UUID) -> str:
    return reverse("memory", args=[memory_id])
