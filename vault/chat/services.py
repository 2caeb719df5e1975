"""Chat services: store a question, find memories that answer it, and store an answer that cites them."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import FieldError, Forbidden, Invalid
from governance.idempotency.services import replies_forget
from governance.ids import uuid7
from governance.keys.services import member_scope, seal_for
from governance.models import Persona
from governance.pages import Last
from governance.personas.selectors import persona_get
from governance.vocabulary import Permission, PersonaKind, PrincipalKind, Verb
from vault.chat.answers import Answering, answer_pieces
from vault.chat.attribution import attribute_sentences
from vault.chat.memory_changes import CONFIRMED, turn_operate
from vault.chat.plans import TurnPlan, TurnSettings, fixed_plan, question_admit, turn_plan
from vault.chat.rules import LONGEST_MARKER, Agent, PastTurn, markers_in, phrase_extract
from vault.chat.selectors import (
    Citation,
    ConversationView,
    TurnView,
    conversation_locate,
    conversation_views,
    count_repeated_turns,
    title_place,
    turns_list,
    turns_sources,
)
from vault.chat.stream_checks import Watch
from vault.chat.turn_storage import TurnAnswer, answer_make, turn_store
from vault.content.drafts import UNSET, SourceRef, Unset
from vault.cubes.services import cubes_hide
from vault.cubes.sources import sources_of
from vault.endpoints.services import model_names, models_list
from vault.forms.services import adapter_request
from vault.layers.persona_scope import scope_to_conversation, scope_to_persona
from vault.models import Conversation, Cube, CubeSource, Turn
from vault.providers.ports import Completion, ReaderDisconnected
from vault.reader.rules import Intent, confirms, is_fragment, may_reply, needs_past
from vault.screening.screen import screen_title
from vault.vocabulary import EXTRACTIVE, SourceKind, TurnEnd

FOLLOWED = 2  # earlier turns that a follow-up may rest on
LONGEST_TITLE = 200
READ_WITHIN = 2_000  # characters of a question that is screened within the transaction that finds its conversation


@dataclass(frozen=True)
class ConversationDraft:
    """A new conversation. Without a title it gets its first question as the title."""

    title: str = field(default="", repr=False)
    persona: str | None = None
    agent_persona: str | None = None
    model: str = ""
    raises_goals: bool = True
    id: UUID = field(default_factory=uuid7)


@dataclass(frozen=True)
class ConversationChanges:
    """The changes of a conversation; missing fields stay. agent_persona: None for no agent; model: "" for the first;
    raises_goals: whether answers recall a goal that a question touches.
    """

    title: str | Unset = field(default=UNSET, repr=False)
    agent_persona: str | Unset | None = UNSET
    model: str | Unset = UNSET
    raises_goals: bool | Unset = UNSET

    def named_fields(self) -> frozenset[str]:
        """Return the names of the fields that this change sets."""
        return frozenset(part.name for part in fields(self) if getattr(self, part.name) is not UNSET)


@dataclass(frozen=True)
class Token:
    """The next piece of the answer."""

    text: str = field(repr=False)


@dataclass(frozen=True)
class Cited:
    """The answer has a marker here."""

    citation: Citation


@dataclass(frozen=True)
class Done:
    """The answer is complete and stored."""

    turn: TurnView


TurnEvent = Token | Cited | Done


def conversation_create(*, actor: Actor, draft: ConversationDraft) -> ConversationView:
    """Create a conversation. Raises Forbidden; Invalid. Writes: Conversation, AuditEntry."""
    authorize(actor, Permission.CONVERSATION_USE)
    if actor.member_id is None:
        raise Forbidden("Only a member can hold a conversation.", rule="member")
    _check_title(draft.title)
    _check_model(actor, draft.model)
    with acting(actor):
        named = draft.persona or (str(actor.persona_id) if actor.persona_id else None)
        persona = persona_get(actor=actor, reference=named) if named else None
        agent = _agent_persona(actor, draft.agent_persona)
        row = Conversation(
            id=draft.id,
            tenant_id=actor.tenant_id,
            member_id=actor.member_id,
            persona=persona,
            agent_persona=agent,
            model=draft.model,
            raises_goals=draft.raises_goals,
            key_id=actor.principal_id if actor.principal_kind is PrincipalKind.API_KEY else None,
        )
        row.sealed_title = _sealed_title(row, screen_title(actor=actor, title=draft.title))
        row.save(force_insert=True)
        record(actor=actor, verb=Verb.CONVERSATION_CREATED, object_type="conversation", object_ids=[row.id])
        return conversation_views(actor, [row])[0]


def conversation_update(*, actor: Actor, conversation_id: UUID, changes: ConversationChanges) -> ConversationView:
    """Change the title, agent or model of a conversation, or whether its answers recall goals.

    Raises NotFound; Forbidden; Invalid. Writes: Conversation, AuditEntry.
    """
    with acting(actor):
        row = conversation_locate(actor, conversation_id, lock=True)
        if changes.title is not UNSET:
            _check_title(changes.title)
            row.sealed_title = _sealed_title(row, screen_title(actor=actor, title=changes.title))
        if changes.agent_persona is not UNSET:
            row.agent_persona = _agent_persona(actor, changes.agent_persona)
        if changes.model is not UNSET:
            _check_model(actor, changes.model)
            row.model = changes.model
        if changes.raises_goals is not UNSET:
            row.raises_goals = changes.raises_goals
        row.save(update_fields=["sealed_title", "agent_persona", "model", "raises_goals"])
        Conversation.objects.filter(id=row.id).update(updated_at=Now())
        row.refresh_from_db(fields=["updated_at"])
        record(
            actor=actor,
            verb=Verb.CONVERSATION_UPDATED,
            object_type="conversation",
            object_ids=[row.id],
            detail={"changed": " ".join(sorted(changes.named_fields()))},
        )
        return conversation_views(actor, [row])[0]


def conversation_delete(*, actor: Actor, conversation_id: UUID) -> None:
    """Delete a conversation and the memories of its turns that still belong to its member.

    Raises NotFound; Forbidden; Held (a held memory prevents the deletion). Writes: Conversation, Cube …, AuditEntry ×
    2.
    """
    with acting(actor):
        row = conversation_locate(actor, conversation_id, lock=True)
        Conversation.objects.filter(id=row.id).update(deleted_at=Now())
        turns = Turn.objects.filter(conversation=row).values_list("question_id", "answer_id")
        said = [cube_id for pair in turns for cube_id in pair if cube_id is not None]
        stated = CubeSource.objects.filter(source_id__in=said, kind=SourceKind.EXTRACT).values("cube_id")
        left = Cube.objects.filter(Q(id__in=said) | Q(id__in=stated), deleted_at=None)
        cubes = list(left.filter(namespace__owner_id=row.member_id))
        cubes_hide(actor=actor, cubes=cubes, permission=Permission.CONVERSATION_USE)
        replies_forget(actor=actor, object_ids=[row.id])
        record(actor=actor, verb=Verb.CONVERSATION_DELETED, object_type="conversation", object_ids=[row.id])


def conversation_begin(*, actor: Actor, content: str, adapter_id: UUID | None = None) -> TurnPlan:
    """Begin a turn in a new conversation, which is created only if the question is accepted.

    adapter_id: as in `turn_begin`. Raises NotFound; Conflict; Forbidden; Invalid; TooLarge;
    QuotaExceeded; Unavailable. Writes: AuditEntry …, OutboxEvent, Conversation.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    draft = ConversationDraft()
    with acting(actor):
        speaker = turn_speaker(actor=actor, conversation_id=None)
        adapter = adapter_request(actor=speaker, form_id=adapter_id) if adapter_id else None
        asked = TurnSettings(draft.id, tuple(models_list(actor)), adapter=adapter)
    content = question_admit(actor=speaker, asked=asked, content=content)
    plan = turn_plan(speaker, asked, content)
    conversation_create(actor=actor, draft=draft)
    return plan


def turn_begin(*, actor: Actor, conversation_id: UUID, content: str, adapter_id: UUID | None = None) -> TurnPlan:
    """Find memories for a question, and commit the search before the first word of the answer.

    content: 1..MAX_CONTENT_CHARACTERS characters. Parts that a policy redacts are neither searched nor sent to a model.
    A "yes" to an offered operation does it. adapter_id: an adapter for this question alone, in place of a mounted one.
    Raises NotFound, also without the right to every memory of the adapter; Conflict if it may not be used; Forbidden;
    Held; Invalid; TooLarge; QuotaExceeded (no model tokens are left this month); Unavailable. Writes: AuditEntry naming
    the memories, OutboxEvent, Cube ….
    """
    with acting(actor):
        conversation = conversation_locate(actor, conversation_id)
        actor = scope_to_conversation(actor, conversation)
        raised = Turn.objects.filter(conversation=conversation).exclude(goal_id=None).values_list("goal_id", flat=True)
        asked = TurnSettings(
            conversation_id,
            tuple(models_list(actor, conversation.model)),
            excluded=frozenset(UUID(excluded_id) for excluded_id in conversation.excluded),
            raised=frozenset(goal_id for goal_id in raised if goal_id is not None),
            raises_goals=conversation.raises_goals,
            adapter=adapter_request(actor=actor, form_id=adapter_id) if adapter_id else None,
        )
        if is_short := len(content) <= READ_WITHIN:
            content = question_admit(actor=actor, asked=asked, content=content)
    if not is_short:
        content = question_admit(actor=actor, asked=asked, content=content)
    before = _find_past_turns(actor, conversation, content, is_asked=bool(asked.models))
    if before and before[-1].intent in CONFIRMED and confirms(content):
        done = turn_operate(actor=actor, conversation_id=conversation_id, turn_id=before[-1].id)
        reply = phrase_extract(before[-1].question, done.reply)
        return fixed_plan(actor, asked, content, reply)
    past_questions = tuple(turn.question for turn in before if turn.question)
    told = tuple(turn.stated for turn in reversed(before))
    answer = (before[-1].answer or "") if before else ""
    plan = turn_plan(actor, replace(asked, past=past_questions, told=told, answer=answer), content)
    persona = conversation.agent_persona
    agent = Agent(persona.name, persona.attributes) if persona else None
    if plan.reply is not None:
        return replace(plan, agent=agent)
    past, rested_on = _load_past(actor, conversation) if plan.models else ((), [])
    return replace(plan, past=past, agent=agent, sources=(*plan.sources, *rested_on))


def _find_past_turns(actor: Actor, conversation: Conversation, content: str, *, is_asked: bool) -> list[TurnView]:
    """Return the last turns, if the question may be a follow-up or a reply that needs them. is_asked: answers may be
    questions, as those of a model.
    """
    is_reply = may_reply(content) and (is_asked or is_fragment(content))
    if not is_reply and not needs_past(content):
        return []
    return turns_list(actor=actor, conversation_id=conversation.id, pages=Last(FOLLOWED))


def turn_answer(*, plan: TurnPlan) -> Generator[Token | Cited | TurnAnswer, None, None]:
    """Yield the answer piece by piece, and at last the whole answer for `turn_store`. If the generator is closed early,
    the text so far is stored as interrupted.

    The model is called outside any transaction. Raises ProviderUnavailable, and Forbidden once the reader has lost a
    right; nothing is stored then.
    """
    said, end = "", TurnEnd.COMPLETE
    cited: list[int] = []
    answering = Answering()
    completion = answering.completion
    watch = Watch(plan.actor, {source.id for source in plan.sources})
    try:
        for piece in answer_pieces(plan):
            watch.ask()
            if isinstance(piece, Answering):
                answering, completion = piece, piece.completion
                continue
            if isinstance(piece, Completion):
                completion = piece
                continue
            said += piece.text
            tail = said[-len(piece.text) - LONGEST_MARKER :]  # all of it again for each piece would take its square
            yield Token(piece.text)
            if len(said) >= settings.MAX_CONTENT_CHARACTERS:
                said, end = said[: settings.MAX_CONTENT_CHARACTERS], TurnEnd.INTERRUPTED
                break
            for marker in markers_in(tail, len(plan.citations)):
                if marker not in cited:
                    cited.append(marker)
                    yield Cited(plan.citations[marker - 1])
    except (GeneratorExit, ReaderDisconnected):
        if said and watch.allows():
            turn_store(plan=plan, answer=answer_make(plan, said, completion, answering, TurnEnd.INTERRUPTED))
        raise
    watch.ask(now=answering.model is not None)
    if not cited and answering.model is not None and (plan.evidence or plan.intent is Intent.SEARCH):
        said = attribute_sentences(said, plan.given, plan.asked)[: settings.MAX_CONTENT_CHARACTERS]
        yield from (Cited(plan.citations[marker - 1]) for marker in markers_in(said, len(plan.citations)))
    yield answer_make(plan, said, completion, answering, end)


def turn_stream(*, plan: TurnPlan) -> Generator[TurnEvent, None, None]:
    """Yield the answer; store it before Done. Raises the errors of `turn_answer`. Writes the rows of `turn_store`."""
    with closing(turn_answer(plan=plan)) as pieces:
        for piece in pieces:
            yield Done(turn_store(plan=plan, answer=piece)) if isinstance(piece, TurnAnswer) else piece


def turn_run(*, actor: Actor, conversation_id: UUID, content: str) -> TurnView:
    """Begin and answer a turn, and return it. Raises the errors of `turn_begin` and `turn_stream`."""
    return turn_finish(plan=turn_begin(actor=actor, conversation_id=conversation_id, content=content))


def turn_finish(*, plan: TurnPlan) -> TurnView:
    """Answer and store a planned turn, and return it. Raises the errors of `turn_stream`."""
    return turn_store(plan=plan, answer=turn_complete(plan=plan))


def turn_complete(*, plan: TurnPlan) -> TurnAnswer:
    """Return the whole answer of a planned turn, which is not stored. Raises the errors of `turn_answer`."""
    *_, answer = turn_answer(plan=plan)
    assert isinstance(answer, TurnAnswer)
    return answer


def turn_speaker(*, actor: Actor, conversation_id: UUID | None) -> Actor:
    """Return the actor in the scope of this conversation's persona, or of a new one's without a persona.

    Raises NotFound; Forbidden.
    """
    with acting(actor):
        if conversation_id is None:
            return scope_to_persona(actor, actor.persona_id)
        return scope_to_conversation(actor, conversation_locate(actor, conversation_id))


def _load_past(actor: Actor, conversation: Conversation) -> tuple[tuple[PastTurn, ...], list[SourceRef]]:
    """Return the earlier turns for a model's prompt, and the memories that they cite."""
    count = count_repeated_turns(actor=actor, conversation_id=conversation.id)
    turns = turns_list(actor=actor, conversation_id=conversation.id, pages=Last(count))
    told = [turn for turn in turns if turn.question and turn.answer]
    with acting(actor):
        direct = turns_sources(told)
        behind = [
            replace(reference, kind=SourceKind.TEXT) for reference in sources_of([source.id for source in direct])
        ]
    return tuple(PastTurn(turn.question, turn.answer or "") for turn in told), [*direct, *behind]


def _agent_persona(actor: Actor, reference: str | None) -> Persona | None:
    if not reference:
        return None
    return persona_get(actor=actor, reference=reference, field="agent_persona", kind=PersonaKind.AGENT)


def _sealed_title(row: Conversation, title: str) -> bytes:
    return seal_for(
        tenant_id=row.tenant_id,
        scope=member_scope(row.member_id),
        place=title_place(row.id),
        plaintext=title.encode(),
    )


def _check_title(title: str) -> None:
    if len(title) > LONGEST_TITLE or "\x00" in title:
        raise Invalid(errors=[FieldError("title", f"at most {LONGEST_TITLE} characters")])


def _check_model(actor: Actor, name: str) -> None:
    known = ["", EXTRACTIVE, *(model_names(actor) if name not in {"", EXTRACTIVE} else [])]
    if name not in known:
        raise Invalid(errors=[FieldError("model", f"unknown; leave it out, or one of {', '.join(known[1:])}")])
