"""A chat: a question, the memories that answer it, an answer that cites them. Both become memories in their turn."""

from collections.abc import Callable, Generator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import FieldError, Forbidden, Invalid, TooLarge
from governance.idempotency.services import replies_forget
from governance.ids import uuid7
from governance.keys.services import member_scope, seal_for
from governance.models import Persona
from governance.pages import Last
from governance.personas.selectors import persona_get
from governance.policies.quotas import tokens_add, tokens_check
from governance.vocabulary import Permission, PersonaKind, PrincipalKind, Verb
from vault.chat.answering import Answering, answer_pieces
from vault.chat.commands import STATED, goal_of, hits_meant
from vault.chat.corrections import corrected_statement, is_current, statement_end
from vault.chat.evidence import evidence_of
from vault.chat.memory_changes import turn_forget
from vault.chat.rules import (
    LONGEST_MARKER,
    Agent,
    Evidence,
    Extract,
    PastTurn,
    attributed,
    extractive_answer,
    forget_extract,
    goal_extract,
    markers_in,
    phrase_extract,
    prompt,
    quotes,
    summary_extract,
    tokens_used,
)
from vault.chat.selectors import (
    Citation,
    ConversationView,
    Retrieved,
    TurnView,
    Unused,
    conversation_locate,
    conversation_views,
    retrieved_of,
    speaker_of,
    title_place,
    turns_list,
    turns_sources,
)
from vault.chat.watching import Watch
from vault.cubes.drafts import UNSET, CubeDraft, SourceRef, Unset
from vault.cubes.screening.screen import drafts_screened, title_screened
from vault.cubes.services import Added, cubes_add, cubes_hide
from vault.cubes.sources import sources_of
from vault.cubes.usage import usage_count
from vault.cubes.writer.building import TextIndexes, texts_index
from vault.endpoints.rules import PricedModel
from vault.endpoints.services import model_names, models_of
from vault.layers.services import turn_append
from vault.lexicon.concepts import base_forms
from vault.lexicon.temporal_expressions import asks_for_time, time_ranges_of
from vault.lexicon.tokens import content_terms, terms
from vault.models import Conversation, Cube, CubeSource, Turn
from vault.namespaces.services import chat_namespace
from vault.providers.ports import Completion
from vault.reader.modelled import MessageReading, message_read
from vault.reader.rules import (
    Intent,
    MemoryCall,
    Statement,
    asks_for_topics,
    confirms,
    is_question,
    memory_call,
    needs_past,
    read_statements,
)
from vault.reader.services import MODEL, PATTERNS, statement_draft
from vault.retrieval.queries import SearchQuery
from vault.retrieval.relevance import is_relevant
from vault.retrieval.selectors import Hit, memories_search
from vault.vocabulary import EXTRACTIVE, Layer, MessageRole, SemanticType, Source, SourceKind, TurnEnd

CONSIDERED = 10  # memories an answer may rest on
REMEMBERED = 4  # earlier turns that a model sees
FOLLOWED = 2  # earlier turns that a follow-up may rest on
SHORT_RANGE = timedelta(days=8)  # of time that a question names: what lies outside is no answer
SHOWN_PARTS = ("lexical", "context", "dense", "entity", "time", "graph")  # of a score
LONGEST_TITLE = 200


@dataclass(frozen=True)
class ConversationDraft:
    """A new conversation. Without a title it gets its first question as the title."""

    title: str = field(default="", repr=False)
    persona: str | None = None
    agent_persona: str | None = None
    model: str = ""
    id: UUID = field(default_factory=uuid7)


@dataclass(frozen=True)
class ConversationChanges:
    """The fields that a change names; the others stay. agent_persona: None for no agent; model: "" for the first."""

    title: str | Unset = field(default=UNSET, repr=False)
    agent_persona: str | Unset | None = UNSET
    model: str | Unset = UNSET

    def given(self) -> frozenset[str]:
        """Names of the fields that this change mentions."""
        return frozenset(part.name for part in fields(self) if getattr(self, part.name) is not UNSET)


@dataclass(frozen=True)
class Token:
    """The next piece of the answer."""

    text: str = field(repr=False)


@dataclass(frozen=True)
class Cited:
    """A marker appeared in the answer."""

    citation: Citation


@dataclass(frozen=True)
class Done:
    """The answer is whole and stored."""

    turn: TurnView


TurnEvent = Token | Cited | Done


@dataclass(frozen=True)
class TurnPlan:
    """A question with what was found for it: retrieval and its audit row are committed."""

    actor: Actor
    conversation_id: UUID
    turn_id: UUID
    question: str = field(repr=False)
    evidence: tuple[Evidence, ...]
    citations: tuple[Citation, ...]
    models: tuple[PricedModel, ...] = ()  # in the order in which they are asked; none: the answer is extractive
    past: tuple[PastTurn, ...] = ()
    agent: Agent | None = None
    sources: tuple[SourceRef, ...] = ()  # what a model is shown, and what that rests on
    stated: tuple[Statement, ...] = ()
    reading: MessageReading | None = None  # of the question by a model, if one was asked
    corrected: tuple[UUID | None, ...] = ()  # the memory that each statement corrects
    asked: str = field(default="", repr=False)  # the question as it was searched for
    intent: Intent = Intent.CHAT
    reply: Extract | None = None  # of a command; no model is asked
    goal: Evidence | None = None
    retrieved: tuple[Retrieved, ...] = ()

    @cached_property
    def extract(self) -> Extract:
        """The answer without a model."""
        if self.reply is not None:
            return self.reply
        extract = extractive_answer(self.asked, self.evidence, self.stated, offers_nearest=self.goal is None)
        return extract.followed_by(goal_extract(self.question, self.goal)) if self.goal else extract

    def extract_after(self, failed: Sequence[str]) -> Extract:
        """`extract`, which says so where models failed before."""
        return phrase_extract(self.question, "no_model").followed_by(self.extract) if failed else self.extract


@dataclass(frozen=True)
class TurnTexts:
    """The texts of a turn, read before its transaction.

    answer: as its memory has it; extract: None for a model's words; stated: what the question states.
    """

    answer: str = field(repr=False)
    extract: Extract | None
    stated: tuple[Statement, ...]
    indexes: TextIndexes = field(repr=False)


@dataclass(frozen=True)
class TurnAnswer:
    """The whole answer, not stored yet."""

    text: str = field(repr=False)
    completion: Completion = field(repr=False)
    end: TurnEnd
    answering: Answering
    read: TurnTexts = field(repr=False)


def conversation_create(*, actor: Actor, draft: ConversationDraft) -> ConversationView:
    """Raises Forbidden; Invalid. Writes: Conversation, AuditEntry."""
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
            key_id=actor.principal_id if actor.principal_kind is PrincipalKind.API_KEY else None,
        )
        row.sealed_title = _sealed_title(row, title_screened(actor=actor, title=draft.title))
        row.save(force_insert=True)
        record(actor=actor, verb=Verb.CONVERSATION_CREATED, object_type="conversation", object_ids=[row.id])
        return conversation_views(actor, [row])[0]


def conversation_update(*, actor: Actor, conversation_id: UUID, changes: ConversationChanges) -> ConversationView:
    """Change the title of a conversation, and by whom its next questions are answered.

    Raises NotFound; Forbidden; Invalid. Writes: Conversation, AuditEntry.
    """
    with acting(actor):
        row = conversation_locate(actor, conversation_id, lock=True)
        if changes.title is not UNSET:
            _check_title(changes.title)
            row.sealed_title = _sealed_title(row, title_screened(actor=actor, title=changes.title))
            row.title_is_copy = False
        if changes.agent_persona is not UNSET:
            row.agent_persona = _agent_persona(actor, changes.agent_persona)
        if changes.model is not UNSET:
            _check_model(actor, changes.model)
            row.model = changes.model
        row.save(update_fields=["sealed_title", "title_is_copy", "agent_persona", "model"])
        Conversation.objects.filter(id=row.id).update(updated_at=Now())
        row.refresh_from_db(fields=["updated_at"])
        record(
            actor=actor,
            verb=Verb.CONVERSATION_UPDATED,
            object_type="conversation",
            object_ids=[row.id],
            detail={"changed": " ".join(sorted(changes.given()))},
        )
        return conversation_views(actor, [row])[0]


def conversation_delete(*, actor: Actor, conversation_id: UUID) -> None:
    """Delete a conversation and the memories that it left, where they are still its member's own.

    Raises NotFound; Forbidden; Held: one held memory keeps all of it. Writes: Conversation, Cube …, AuditEntry × 2.
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


def conversation_begin(*, actor: Actor, content: str) -> TurnPlan:
    """`turn_begin` with a conversation of its own, which is there only once the question was not refused.

    Raises Forbidden; Invalid; TooLarge; QuotaExceeded; Unavailable. Writes: AuditEntry …, OutboxEvent, Conversation.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    draft = ConversationDraft()
    plan = _planned(actor, _Asked(draft.id, tuple(models_of(actor))), content)
    conversation_create(actor=actor, draft=draft)
    return plan


def turn_begin(*, actor: Actor, conversation_id: UUID, content: str) -> TurnPlan:
    """Find what answers a question; committed before the first word of the answer.

    content: 1..MAX_CONTENT_CHARACTERS characters. What a policy redacts of it is neither searched for nor sent to a
    model. A yes to a deletion deletes. Raises NotFound; Forbidden; Held; Invalid; TooLarge; QuotaExceeded (the month's
    model tokens are used up); Unavailable. Writes: AuditEntry naming the memories, OutboxEvent, Cube ….
    """
    with acting(actor):
        conversation = conversation_locate(actor, conversation_id)
        actor = speaker_of(actor, conversation)
        raised = Turn.objects.filter(conversation=conversation).exclude(goal_id=None).values_list("goal_id", flat=True)
        asked = _Asked(
            conversation_id,
            tuple(models_of(actor, conversation.model)),
            excluded=frozenset(UUID(one) for one in conversation.excluded),
            raised=frozenset(one for one in raised if one is not None),
            raises_goals=conversation.raises_goals,
        )
    before = _before(actor, conversation, content)
    if before and before[-1].intent == Intent.DELETE and confirms(content):
        count = turn_forget(actor=actor, conversation_id=conversation_id, turn_id=before[-1].id)
        reply = phrase_extract(before[-1].question, "forgotten" if count else "forget_none")
        return _fixed_plan(actor, asked, _screened(actor, content), reply)
    past_questions = tuple(turn.question for turn in before if turn.question)
    plan = _planned(actor, replace(asked, past=past_questions), content)
    persona = conversation.agent_persona
    agent = Agent(persona.name, persona.attributes) if persona else None
    if plan.reply is not None:
        return replace(plan, agent=agent)
    past, rested_on = _past(actor, conversation) if plan.models else ((), [])
    return replace(plan, past=past, agent=agent, sources=(*plan.sources, *rested_on))


@dataclass(frozen=True)
class _Asked:
    """The settings of a conversation that decide how a question is answered. past: its former questions."""

    conversation_id: UUID
    models: tuple[PricedModel, ...]
    past: tuple[str, ...] = ()
    excluded: frozenset[UUID] = frozenset()
    raised: frozenset[UUID] = frozenset()
    raises_goals: bool = True


def _before(actor: Actor, conversation: Conversation, content: str) -> list[TurnView]:
    """The last turns, where the question may only be whole with them."""
    if not needs_past(content):
        return []
    return turns_list(actor=actor, conversation_id=conversation.id, pages=Last(FOLLOWED))


def _planned(actor: Actor, asked: _Asked, content: str) -> TurnPlan:
    """The plan without what was said before."""
    _check_content(content)
    if asked.models:
        tokens_check(actor, usage_count)
    content = _screened(actor, content)
    reading = message_read(
        actor, content, memory_call(content, said_at=datetime.now(UTC), past=asked.past), asked.models
    )
    call = reading.call
    if call.intent in {Intent.SUMMARISE, Intent.DELETE}:
        return replace(_command_plan(actor, asked, content, call), reading=reading)
    hits = about = _topics(actor, asked, call)
    if not about:
        search = SearchQuery(
            query=call.rewritten, top_k=CONSIDERED, conversation_id=asked.conversation_id, with_messages=True
        )
        hits = memories_search(actor=actor, search=search, permission=Permission.CONVERSATION_USE)
        about = _about(call.rewritten, hits)
    now = datetime.now(UTC)
    fitting = [hit for hit in about if hit.view.cube.id not in asked.excluded and is_current(hit, now)]
    usable = _within(call, fitting)
    goal = _goal(actor, asked, call)
    quoted, others = (usable, []) if asked.models else _quoted_first(call.rewritten, usable, goal)
    if goal and not asked.models and goal.view.cube.id in _ids(quoted):
        goal = None  # the answer says it
    plan = _plan(actor, asked, content, [*quoted, *([goal] if goal else []), *others])
    evidence = list(plan.evidence)
    raised = evidence.pop(len(quoted)) if goal else None
    stated = reading.statements
    if stated is None:
        stated = read_statements(content, speaker=MessageRole.USER, said_at=now)
    is_correction = call.intent is Intent.UPDATE
    return replace(
        plan,
        evidence=tuple(evidence),
        goal=raised,
        asked=call.rewritten,
        intent=call.intent,
        stated=stated,
        reading=reading,
        corrected=tuple(
            corrected_statement(one.text, said_at=now, hits=hits, is_correction=is_correction) for one in stated
        ),
        retrieved=_retrieved(plan, _with(hits, goal), partial(_reason, asked, now, _ids(about), _ids(fitting))),
    )


def _goal(actor: Actor, asked: _Asked, call: MemoryCall) -> Hit | None:
    if not asked.raises_goals:
        return None
    return goal_of(actor, call.rewritten, asked.conversation_id, asked.raised | asked.excluded)


def _with(hits: Sequence[Hit], goal: Hit | None) -> list[Hit]:
    """Add the goal to the results of a question, and drop results that merely fill the search."""
    found = [hit for hit in hits if hit.score > 0]
    ids = {hit.view.cube.id for hit in found}
    return [*found, *([goal] if goal and goal.view.cube.id not in ids else [])]


def _command_plan(actor: Actor, asked: _Asked, content: str, call: MemoryCall) -> TurnPlan:
    """A summary, or the list of what a deletion would take: nothing is deleted yet."""
    hits = hits_meant(actor, call, asked.conversation_id, asked.excluded)
    plan = _plan(actor, replace(asked, models=()), content, hits)
    made = summary_extract if call.intent is Intent.SUMMARISE else forget_extract
    retrieved = _retrieved(plan, hits, lambda _: "")
    reply = made(content, plan.evidence)
    return replace(plan, asked=call.rewritten, intent=call.intent, reply=reply, retrieved=retrieved)


def _fixed_plan(actor: Actor, asked: _Asked, content: str, reply: Extract) -> TurnPlan:
    return replace(_plan(actor, replace(asked, models=()), content, []), asked=content, reply=reply)


def _plan(actor: Actor, asked: _Asked, content: str, found: Sequence[Hit]) -> TurnPlan:
    """With the memories in the order in which they are numbered."""
    return TurnPlan(
        actor=actor,
        conversation_id=asked.conversation_id,
        turn_id=uuid7(),
        question=content,
        evidence=tuple(_evidence(marker, hit) for marker, hit in enumerate(found, start=1)),
        citations=tuple(
            Citation(memory_id=hit.view.cube.id, marker=marker, score=round(hit.score, 4), pack=hit.view.pack)
            for marker, hit in enumerate(found, start=1)
        ),
        models=asked.models,
        sources=tuple(SourceRef(hit.view.cube.id, hit.view.cube.version, SourceKind.TEXT) for hit in found),
    )


def _retrieved(plan: TurnPlan, hits: Sequence[Hit], reason: Callable[[Hit], str]) -> tuple[Retrieved, ...]:
    """The results of a question, each with its number in the plan, or the reason why it has none."""
    markers = {one.memory_id: one.marker for one in plan.citations}
    return tuple(
        Retrieved(
            memory_id=hit.view.cube.id,
            score=round(hit.score, 4),
            parts={name: round(getattr(hit.parts, name), 3) for name in SHOWN_PARTS},
            layer=hit.view.cube.layer,
            tokens=hit.view.cube.token_count,
            marker=markers.get(hit.view.cube.id, 0),
            reason="" if hit.view.cube.id in markers else reason(hit),
        )
        for hit in hits
    )


def _reason(asked: _Asked, now: datetime, about: AbstractSet[UUID], fitting: AbstractSet[UUID], hit: Hit) -> str:
    """Return the reason why a result has no number: the first step of the plan that drops it."""
    cube_id = hit.view.cube.id
    if cube_id in asked.excluded:
        return Unused.EXCLUDED
    if not is_current(hit, now):
        return Unused.SUPERSEDED
    if cube_id not in about:
        return Unused.UNRELATED
    return Unused.OTHER_TIME if cube_id in fitting else ""


def _ids(hits: Sequence[Hit]) -> frozenset[UUID]:
    return frozenset(hit.view.cube.id for hit in hits)


def turn_answer(*, plan: TurnPlan) -> Generator[Token | Cited | TurnAnswer, None, None]:
    """Answer, piece by piece; the last is the whole, for `turn_store`. Closed early, what was said is stored as
    interrupted.

    The model is asked outside any transaction.
    Raises ProviderUnavailable, and Forbidden once the reader may no longer: nothing is stored then.
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
    except GeneratorExit:
        if said and watch.allows():
            turn_store(plan=plan, answer=_answer_read(plan, said, completion, answering, TurnEnd.INTERRUPTED))
        raise
    watch.ask(now=True)
    if not cited and answering.model is not None and (plan.evidence or plan.intent is Intent.SEARCH):
        said = attributed(said, plan.evidence, plan.asked)[: settings.MAX_CONTENT_CHARACTERS]
        yield from (Cited(plan.citations[marker - 1]) for marker in markers_in(said, len(plan.citations)))
    yield _answer_read(plan, said, completion, answering, end)


def turn_stream(*, plan: TurnPlan) -> Generator[TurnEvent, None, None]:
    """`turn_answer`, stored before Done. Raises what it raises. Writes what `turn_store` writes."""
    with closing(turn_answer(plan=plan)) as pieces:
        for piece in pieces:
            yield Done(turn_store(plan=plan, answer=piece)) if isinstance(piece, TurnAnswer) else piece


def turn_run(*, actor: Actor, conversation_id: UUID, content: str) -> TurnView:
    """`turn_begin` and the whole of `turn_stream`. Raises what both raise."""
    return turn_finish(plan=turn_begin(actor=actor, conversation_id=conversation_id, content=content))


def turn_finish(*, plan: TurnPlan) -> TurnView:
    """The whole of `turn_stream` at once. Raises what it raises."""
    return turn_store(plan=plan, answer=turn_whole(plan=plan))


def turn_whole(*, plan: TurnPlan) -> TurnAnswer:
    """The last of `turn_answer`. Raises what it raises."""
    *_, answer = turn_answer(plan=plan)
    assert isinstance(answer, TurnAnswer)
    return answer


def _about(question: str, hits: Sequence[Hit]) -> list[Hit]:
    """The hits that are about the question, and not merely the best there are; none that only quotes others.

    What was said right after a question that is about it is about it, too: an answer often repeats none of its words.
    """
    own = [hit for hit in hits if not hit.view.words.quotes]
    asked = frozenset(content_terms(question))
    fitting = [hit for hit in own if is_relevant(hit.parts, question) or _says_irregularly(hit, asked)]
    ids = _ids(fitting)
    before = {_place(hit) for hit in fitting if is_question(hit.view.words.content)} - {None}
    return [hit for hit in own if hit.view.cube.id in ids or _place(hit, before=1) in before]


def _place(hit: Hit, before: int = 0) -> tuple[str, int] | None:
    """The session of a hit and its position there, or a position so many before it; None outside of a session."""
    position, session = hit.view.cube.position, hit.view.words.session_id
    return (session, position - before) if session and position is not None else None


def _says_irregularly(hit: Hit, asked: frozenset[str]) -> bool:
    """Return whether a memory has an irregular form of a word that is asked for: `ran` for `run`."""
    found = terms(hit.view.words.content)
    return bool((base_forms(found) - frozenset(found)) & asked)


def _topics(actor: Actor, asked: _Asked, call: MemoryCall) -> list[Hit]:
    """Find the statements of the time that a question about topics names; none for other questions.

    Of a day without a year: in the last year in which something was stated on it.
    """
    if call.time_range is None or not asks_for_topics(call.rewritten):
        return []
    filters = {"semantic_type": {"in": list(STATED)}}
    search = SearchQuery(query=call.rewritten, top_k=CONSIDERED, filters=filters, conversation_id=asked.conversation_id)
    hits = memories_search(actor=actor, search=search, permission=Permission.CONVERSATION_USE)
    ranges = time_ranges_of(call.rewritten, datetime.now(UTC))
    meant = [one for one in ranges if one.weight == max(other.weight for other in ranges)]
    latest = sorted(meant, key=lambda one: one.start, reverse=True)
    found = ([hit for hit in hits if one.start <= _moment(hit) < one.end] for one in latest)
    return next((inside for inside in found if inside), [])


def _moment(hit: Hit) -> datetime:
    """The time when it happened, else when it was stored."""
    return hit.view.cube.event_time or hit.view.cube.created_at


def _within(call: MemoryCall, hits: Sequence[Hit]) -> list[Hit]:
    """For a question about a day or a week, keep the results of that time, if there are any."""
    if (
        call.time_range is None
        or call.time_range[1] - call.time_range[0] > SHORT_RANGE
        or asks_for_time(call.rewritten)
    ):
        return list(hits)
    start, end = call.time_range
    inside = [hit for hit in hits if start <= _moment(hit) < end]
    return inside or list(hits)


def _quoted_first(question: str, hits: Sequence[Hit], goal: Hit | None) -> tuple[list[Hit], list[Hit]]:
    """The hits that an extractive answer will quote, in its order, and the others: so its markers count from 1."""
    evidence = [_evidence(marker, hit) for marker, hit in enumerate(hits)]
    quoted = [one.marker for one in quotes(question, evidence, offers_nearest=goal is None)]
    return [hits[at] for at in quoted], [hit for at, hit in enumerate(hits) if at not in quoted]


def turn_speaker(*, actor: Actor, conversation_id: UUID) -> Actor:
    """As whom the actor asks and reads in this conversation. Raises NotFound; Forbidden."""
    with acting(actor):
        return speaker_of(actor, conversation_locate(actor, conversation_id))


def _past(actor: Actor, conversation: Conversation) -> tuple[tuple[PastTurn, ...], list[SourceRef]]:
    """The turns that a model is reminded of, and what they rest on."""
    turns = turns_list(actor=actor, conversation_id=conversation.id, pages=Last(REMEMBERED))
    told = [turn for turn in turns if turn.question and turn.answer]
    with acting(actor):
        direct = turns_sources(told)
        behind = [replace(one, kind=SourceKind.TEXT) for one in sources_of([source.id for source in direct])]
    return tuple(PastTurn(turn.question, turn.answer or "") for turn in told), [*direct, *behind]


def turn_store(*, plan: TurnPlan, answer: TurnAnswer) -> TurnView:
    """Keep a question and its answer. Raises NotFound; Forbidden; Invalid; QuotaExceeded.

    Writes: Cube × 2 …, Turn, AuditEntry …, OutboxEvent.
    """
    actor, said, completion, read = plan.actor, answer.text, answer.completion, answer.read
    prompt_tokens, completion_tokens = _tokens(plan, answer)
    price = answer.answering.price
    with acting(actor):
        row = conversation_locate(actor, plan.conversation_id, lock=True)
        asked, answered, *stated = _cubes_of_turn(plan, row, read)
        for older, newer in zip(plan.corrected, stated, strict=False):
            if older is not None:
                statement_end(actor=actor, cube_id=older, successor_id=newer.cube.id)
        cited = [plan.citations[marker - 1] for marker in markers_in(said, len(plan.citations))]
        turn = Turn(
            id=plan.turn_id,
            tenant_id=actor.tenant_id,
            conversation=row,
            position=_next_position(row),
            question=asked.cube,
            answer=answered.cube,
            model=completion.model,
            citations=[_citation_stored(one) for one in cited],
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            cost=price.cost(prompt_tokens, completion_tokens),
            currency=price.currency,
            failed_models=list(answer.answering.failed),
            end=answer.end,
            intent=plan.intent,
            retrieved=[asdict(one) | {"memory_id": str(one.memory_id)} for one in plan.retrieved],
            goal_id=UUID(plan.goal.source) if plan.goal else None,
        )
        turn_append(actor=actor, conversation=row, asked=asked, answered=answered)
        tokens_add(actor, prompt_tokens + completion_tokens, usage_count)
        turn.save(force_insert=True)
        Conversation.objects.filter(id=row.id).update(updated_at=Now())
        record(
            actor=actor,
            verb=Verb.TURN_CREATED,
            object_type="turn",
            object_ids=[turn.id],
            detail={"model": turn.model, "citations": len(turn.citations), "end": answer.end},
        )
    shown = said if answered.words.quotes else answered.content
    return _stored_view(turn, asked.content, shown, tuple(cited))


def _citation_stored(one: Citation) -> dict[str, str | int | float]:
    stored: dict[str, str | int | float] = {"memory_id": str(one.memory_id), "marker": one.marker, "score": one.score}
    return stored | {"pack": one.pack} if one.pack else stored


def _next_position(conversation: Conversation) -> int:
    """The place of the next turn; the caller has locked the conversation. One look-up, however long it is."""
    turns = Turn.objects.filter(tenant_id=conversation.tenant_id, conversation=conversation).order_by("-position")
    last = turns.values_list("position", flat=True).first()
    return 0 if last is None else last + 1


def _stored_view(turn: Turn, question: str, answer: str, cited: tuple[Citation, ...]) -> TurnView:
    """A turn as its reader got it a moment ago."""
    return TurnView(
        id=turn.id,
        conversation_id=turn.conversation_id,
        position=turn.position,
        question=question,
        answer=answer,
        withheld=False,
        citations=cited,
        model=turn.model,
        end=TurnEnd(turn.end),
        prompt_tokens=turn.prompt_tokens,
        completion_tokens=turn.completion_tokens,
        created_at=turn.created_at,
        intent=turn.intent,
        retrieved=retrieved_of(turn),
        goal_id=turn.goal_id,
        cost=turn.cost,
        currency=turn.currency,
        failed_models=tuple(turn.failed_models),
    )


def _tokens(plan: TurnPlan, answer: TurnAnswer) -> tuple[int, int]:
    """Tokens of the prompts and of the replies, with those for reading the question."""
    read = (plan.reading.prompt_tokens, plan.reading.completion_tokens) if plan.reading else (0, 0)
    if answer.answering.model is None:
        return read
    asked = prompt(plan.asked, plan.evidence, plan.past, agent=plan.agent)
    prompt_tokens, completion_tokens = tokens_used(answer.completion, asked, answer.text)
    return prompt_tokens + read[0], completion_tokens + read[1]


def _answer_read(plan: TurnPlan, said: str, completion: Completion, answering: Answering, end: TurnEnd) -> TurnAnswer:
    return TurnAnswer(said, completion, end, answering, _read_turn(plan, said, answering))


def _read_turn(plan: TurnPlan, said: str, answering: Answering) -> TurnTexts:
    """Read both texts of a turn before its transaction. Raises KeyUnavailable."""
    extract, stated = _extract(plan, said, answering), plan.stated
    question = CubeDraft(content=plan.question, speaker=MessageRole.USER)
    content = said if extract is None else "\n".join(extract.frame)
    answer = CubeDraft(content=content, speaker=MessageRole.ASSISTANT)
    return TurnTexts(
        answer=content,
        extract=extract,
        stated=stated,
        indexes=texts_index(plan.actor.tenant_id, [question, answer, *(_worded(one) for one in stated)]),
    )


def _worded(statement: Statement) -> CubeDraft:
    return CubeDraft(content=statement.text, speaker=MessageRole.USER)


def _cubes_of_turn(plan: TurnPlan, row: Conversation, read: TurnTexts) -> tuple[Added, ...]:
    """Question, answer, and a memory of its own for each thing that was stated; the first two stay with the chats."""
    chats = chat_namespace(actor=plan.actor).path
    extract = read.extract
    answer = CubeDraft(
        content=read.answer,
        namespace=chats,
        persona=str(row.persona_id) if row.persona_id else None,
        session_id=str(row.id),
        message_id=f"{plan.turn_id}/answer",
        speaker=MessageRole.ASSISTANT,
        semantic_type=SemanticType.DIALOGUE,
        layer=Layer.SHORT_TERM,
        source=Source.CHAT,
        is_message=True,
        is_dialogue_only=True,
    )
    question = replace(
        answer,
        content=plan.question,
        message_id=f"{plan.turn_id}/question",
        speaker=MessageRole.USER,
        is_dialogue_only=not read.stated,
    )
    reader = MODEL if plan.reading and plan.reading.statements is not None else PATTERNS
    drafts = [statement_draft(question, one, parent=0, reader=reader) for one in read.stated]
    stated = [replace(one, namespace=None) for one in drafts]
    if extract is None:
        answer = replace(answer, sources=plan.sources, parent=0, parent_kind=SourceKind.TEXT)
    else:
        named = (SourceRef(UUID(one.source), one.version, SourceKind.QUOTE) for one in extract.quotes)
        answer = replace(answer, sources=tuple(named), quotes=extract.quotes)
    permission = Permission.CONVERSATION_USE
    added = cubes_add(actor=plan.actor, drafts=[question, answer, *stated], permission=permission, texts=read.indexes)
    return tuple(added)


def _extract(plan: TurnPlan, said: str, answering: Answering) -> Extract | None:
    """Return the extract of an answer; None if the words are a model's."""
    return plan.extract_after(answering.failed).until(said) if answering.model is None else None


def _screened(actor: Actor, question: str) -> str:
    """The question as it may be kept. Raises PiiRefused; PiiUnavailable."""
    draft = CubeDraft(content=question, speaker=MessageRole.USER, source=Source.CHAT)
    return drafts_screened(actor=actor, drafts=[draft])[0].content


def _evidence(marker: int, hit: Hit) -> Evidence:
    return evidence_of(marker, hit.view, score=hit.score, dense=hit.parts.dense)


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


def _check_content(content: str) -> None:
    if len(content) > settings.MAX_CONTENT_CHARACTERS:
        raise TooLarge(f"At most {settings.MAX_CONTENT_CHARACTERS} characters.")
    if not content.strip() or "\x00" in content or any("\ud800" <= character <= "\udfff" for character in content):
        raise Invalid(errors=[FieldError("content", "write something to ask")])
