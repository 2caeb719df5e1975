"""Selectors of conversations and their turns, for the member who owns them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize, refuse_missing
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Concealed, NotFound
from governance.keys.services import open_sealed
from governance.models import Persona
from governance.pages import Pages
from governance.personas.selectors import personas_of
from governance.vocabulary import Permission, Verb
from vault.chat.rules import Agent, count_past_turns, make_title
from vault.content.drafts import SourceRef
from vault.cubes.selectors import CubeView, cubes_view, record_quotes
from vault.cubes.visibility import visible_ids
from vault.layers.persona_scope import scope_to_conversation
from vault.models import Conversation, Cube, CubeSource, Namespace, Turn
from vault.models.cube import CubeQuerySet
from vault.reader.rules import Intent
from vault.reconciliation.services import Change
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search
from vault.vocabulary import EXTRACTIVE, SearchMode, Source, SourceKind, State, TurnEnd

COUNT_FROM = 64  # turns of a conversation, counted together
COUNTED = 2 * COUNT_FROM
MOST_SAID = 50  # messages that a search of conversations looks through
LEAST_SAID = 0.01  # score of such a message


@dataclass(frozen=True)
class Citation:
    """A memory that the answer uses. `marker`: its number in the text, as in [1]; score: 0..1.

    available: the reader may read the used part. pack: the full name of the pack that the memory came with.
    """

    memory_id: UUID
    marker: int
    score: float
    available: bool = True
    pack: str = ""


@dataclass(frozen=True)
class ConversationView:
    id: UUID
    title: str = field(repr=False)
    persona_id: UUID | None
    agent_persona_id: UUID | None
    model: str
    created_at: datetime
    updated_at: datetime
    raises_goals: bool = True
    excluded: frozenset[UUID] = frozenset()
    persona_names: Mapping[UUID, str] = field(default_factory=dict)  # of its two personas, by their ids


class Unused(StrEnum):
    """Reasons why an answer did not use a memory that was found."""

    EXCLUDED = "excluded"
    SUPERSEDED = "superseded"
    UNRELATED = "unrelated"
    OTHER_TIME = "other_time"


@dataclass(frozen=True)
class Retrieved:
    """A memory that was found for a question. score, and each of `parts`: 0..1; tokens: of its text.

    marker: its number among the memories offered to the answer; 0 with a `reason` if it was dropped. tier: of the
    working set, empty for a result of the search; why: the reason why the working set had it. form: in which a model
    got it (vault.forms.rules), with its reason and the estimated seconds to the first token in both forms. form_id: of
    the block or adapter; composition: of a block behind another one.
    """

    memory_id: UUID
    score: float
    parts: Mapping[str, float]
    layer: str
    tokens: int
    marker: int
    reason: str
    tier: str = ""
    why: str = ""
    form: str = "text"
    form_reason: str = ""
    text_seconds: float = 0.0
    cache_seconds: float = 0.0
    form_id: str = ""
    composition: str = ""


@dataclass(frozen=True)
class RetrievedView:
    """A retrieved memory, with its content as the reader may read it now."""

    retrieved: Retrieved
    memory: CubeView = field(repr=False)

    @property
    def text(self) -> str:
        return self.memory.words.content


@dataclass(frozen=True)
class StatedMemory:
    """A memory that a question states, as its reader may read it now."""

    id: UUID
    text: str = field(repr=False)


@dataclass(frozen=True)
class TurnView:
    """A turn. question and answer are empty once their memories were deleted or have expired.

    withheld: the answer is None, because it uses a memory that the reader may no longer read.
    """

    id: UUID
    conversation_id: UUID
    position: int
    question: str = field(repr=False)
    answer: str | None = field(repr=False)
    withheld: bool
    citations: tuple[Citation, ...]
    model: str
    end: TurnEnd
    prompt_tokens: int
    completion_tokens: int
    created_at: datetime
    intent: str = ""
    retrieved: tuple[Retrieved, ...] = ()
    goal_id: UUID | None = None
    stated: tuple[StatedMemory, ...] = ()  # as long as they are there
    cost: Decimal = Decimal(0)  # of its tokens, in `currency`
    currency: str = ""
    cached_tokens: int = 0  # among prompt_tokens
    failed_models: tuple[str, ...] = ()  # those that were asked before and gave no answer
    message_ids: tuple[UUID, ...] = ()  # of the memories of question and answer, as far as they are there
    changes: tuple[Change, ...] = ()  # of earlier statements, right after the turn was stored
    offered_messages: int = 0  # messages that state the memories of its offer, and go with them

    @property
    def extractive(self) -> bool:
        return self.model == EXTRACTIVE


@dataclass(frozen=True)
class TurnTexts:
    """The texts of some turns for a reader: the memories of questions, answers and statements by id, the ids of
    withheld answers, and the ids of readable cited memories.
    """

    views: Mapping[UUID, CubeView]
    withheld: frozenset[UUID]
    readable: frozenset[UUID]

    def content(self, cube_id: UUID | None) -> str:
        view = self.views.get(cube_id) if cube_id else None
        return view.words.content if view else ""

    def open_statements(self, cube_ids: Iterable[UUID]) -> Iterator[StatedMemory]:
        return (StatedMemory(cube_id, self.content(cube_id)) for cube_id in cube_ids if cube_id in self.views)


def conversations_list(*, actor: Actor, pages: Pages) -> list[ConversationView]:
    """Return the actor's own conversations, newest first. Raises Forbidden. Writes: AuditEntry, AuditEntry?."""
    authorize(actor, Permission.CONVERSATION_USE)
    with acting(actor):
        mine = _select_reachable(actor).filter(Q(member_id=actor.member_id), deleted_at=None)
        page = pages.take(mine.order_by("-id"))
        ids = [row.id for row in page]
        record(actor=actor, verb=Verb.CONVERSATION_READ, object_type="conversation", object_ids=ids)
        return conversation_views(actor, page)


def conversations_find(*, actor: Actor, words: str, pages: Pages) -> list[ConversationView]:
    """Return the conversations whose titles have each of the words, then those in which one message has them all.

    Ignores case. Searches at most MOST_SAID messages. Raises Forbidden; KeyUnavailable. Writes: AuditEntry …,
    OutboxEvent.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    wanted = words.casefold().split()
    titles = conversations_list(actor=actor, pages=pages)
    titled = [conversation for conversation in titles if all(word in conversation.title.casefold() for word in wanted)]
    with acting(actor):
        named = {conversation.id for conversation in titled}
        said = [row for row in _conversations_saying(actor, words, wanted) if row.id not in named]
        return [*titled, *conversation_views(actor, said)]


def _conversations_saying(actor: Actor, words: str, wanted: Sequence[str]) -> list[Conversation]:
    """Return the actor's own conversations with a message that has each of the words, newest first."""
    chats = Namespace.objects.chats().filter(tenant_id=actor.tenant_id, owner_id=actor.member_id)
    search = SearchQuery(
        query=words,
        top_k=MOST_SAID,
        mode=SearchMode.LEXICAL,
        namespaces=tuple(chats.values_list("path", flat=True)),
        min_score=LEAST_SAID,
        is_use=False,
        with_messages=True,
    )
    if not search.namespaces:
        return []
    hits = memories_search(actor=actor, search=search, permission=Permission.CONVERSATION_USE)
    ids = [hit.view.cube.id for hit in hits if all(word in hit.view.words.content.casefold() for word in wanted)]
    turns = Turn.objects.filter(Q(question_id__in=ids) | Q(answer_id__in=ids)).values("conversation_id")
    mine = _select_reachable(actor).filter(Q(member_id=actor.member_id), deleted_at=None, id__in=turns)
    return list(mine.order_by("-id"))


def conversation_get(*, actor: Actor, conversation_id: UUID) -> ConversationView:
    """Return one conversation. Raises NotFound; Forbidden. Writes: AuditEntry, AuditEntry?."""
    with acting(actor):
        row = conversation_locate(actor, conversation_id)
        record(actor=actor, verb=Verb.CONVERSATION_READ, object_type="conversation", object_ids=[row.id])
        return conversation_views(actor, [row])[0]


def conversation_require(*, actor: Actor, conversation_id: UUID) -> None:
    """Check that the actor may ask in a conversation. Raises NotFound; Forbidden. One query."""
    with acting(actor):
        conversation_locate(actor, conversation_id)


def conversation_agent(*, actor: Actor, conversation: ConversationView) -> Agent | None:
    """Return the agent that answers in a conversation; None without one that the actor may use.

    Raises Forbidden. One query if the conversation has an agent.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    if conversation.agent_persona_id is None:
        return None
    with acting(actor):
        row = personas_of(actor).filter(id=conversation.agent_persona_id).first()
        return Agent(row.name, row.attributes) if row else None


def turns_list(*, actor: Actor, conversation_id: UUID, pages: Pages, leaves: bool = False) -> list[TurnView]:
    """The turns of a conversation, oldest first, with what their answers quote as its member may read it now.

    leaves: as `open_for_reader` has it.
    Raises NotFound; Forbidden. Writes: AuditEntry naming the memories of its turns, AuditEntry? naming what is quoted.
    """
    with acting(actor):
        conversation = conversation_locate(actor, conversation_id)
        page = pages.take(Turn.objects.filter(conversation=conversation).order_by("id"))
        return _open_turns(actor, conversation, page, leaves=leaves)


def count_repeated_turns(*, actor: Actor, conversation_id: UUID, position: int | None = None) -> int:
    """Return the number of turns before a position, else of the last turns, that a model's prompt repeats. One query.

    Raises NotFound; Forbidden.
    """
    with acting(actor):
        rows = Turn.objects.filter(conversation=conversation_locate(actor, conversation_id))
        if position is not None:
            rows = rows.filter(position__lt=position)
        tokens = Coalesce("question__token_count", 0) + Coalesce("answer__token_count", 0)
        sizes = dict(rows.order_by("-position").values_list("position", tokens)[:COUNTED])
    last = max(sizes, default=0)
    begin = max(last // COUNT_FROM - 1, 0) * COUNT_FROM  # the same for many turns, so that the window stays where it is
    return count_past_turns([sizes[at] for at in sorted(sizes) if at >= begin])


def turn_get(*, actor: Actor, conversation_id: UUID, turn_id: UUID) -> TurnView:
    """Return one turn of a conversation, as `turns_list` does. Raises NotFound; Forbidden. Writes: AuditEntry …."""
    with acting(actor):
        conversation = conversation_locate(actor, conversation_id)
        found = Turn.objects.filter(conversation=conversation, id=turn_id).first()
        if found is None:
            raise NotFound
        return _open_turns(actor, conversation, [found])[0]


def _open_turns(
    actor: Actor, conversation: Conversation, page: Sequence[Turn], *, leaves: bool = False
) -> list[TurnView]:
    stated = _stated_by_page(actor, page)
    named = {cube_id for ids in stated.values() for cube_id in ids}
    scoped = scope_to_conversation(actor, conversation)
    said = _turn_texts(scoped, page, named, leaves=leaves)
    record(actor=actor, verb=Verb.MEMORY_READ, object_type="memory", object_ids=list(said.views))
    record_quotes(actor, [view.passages for view in said.views.values()])
    views = [turn_view(row, said) for row in page]
    return [
        replace(
            view,
            stated=tuple(said.open_statements(stated.get(row.question_id, ()))),
            offered_messages=_count_offered_messages(scoped, view),
        )
        for view, row in zip(views, page, strict=True)
    ]


def _count_offered_messages(actor: Actor, view: TurnView) -> int:
    """Return the number of messages that go with the memories of an offer. One query for an offer, else none."""
    if view.intent not in {Intent.DELETE, Intent.ARCHIVE, Intent.RESTORE}:
        return 0
    rows = select_stating_messages(actor, [citation.memory_id for citation in view.citations if citation.available])
    if view.intent != Intent.DELETE:
        archived = Q(state=State.ARCHIVED)
        rows = rows.filter(archived if view.intent == Intent.RESTORE else ~archived)
    return rows.count()


def turn_memories_list(*, actor: Actor, conversation_id: UUID, turn: TurnView) -> list[RetrievedView]:
    """Return the memories that were found for a turn's question and may be read now, best first.

    Raises NotFound; Forbidden. Writes: AuditEntry naming the memories.
    """
    with acting(actor):
        reader = scope_to_conversation(actor, conversation_locate(actor, conversation_id))
        ids = [row.memory_id for row in turn.retrieved]
        readable = visible_ids(reader, ids)
        shown = [cube_id for cube_id in ids if cube_id in readable]
        views = {view.cube.id: view for view in cubes_view(actor=reader, cube_ids=shown)}
        record(actor=actor, verb=Verb.MEMORY_READ, object_type="memory", object_ids=list(views))
        found = [row for row in turn.retrieved if row.memory_id in views]
        return [RetrievedView(row, views[row.memory_id]) for row in found]


def _stated_by_page(actor: Actor, turns: Sequence[Turn]) -> dict[UUID | None, tuple[UUID, ...]]:
    """Return the memories that each question states, by the id of the question's own memory. One query."""
    pages = [turn.question_id for turn in turns if turn.question_id]
    readable = Cube.objects.visible_to(actor).filter(deleted_at=None).values("id")
    rows = CubeSource.objects.filter(source_id__in=pages, kind=SourceKind.EXTRACT, cube_id__in=readable)
    found: dict[UUID | None, tuple[UUID, ...]] = {}
    for page, cube in rows.order_by("cube_id").values_list("source_id", "cube_id"):
        found[page] = (*found.get(page, ()), cube)
    return found


def conversation_locate(actor: Actor, conversation_id: UUID, *, lock: bool = False) -> Conversation:
    """Return the row of the actor's own conversation. Raises NotFound, also for another member's; Forbidden."""
    rows = _select_reachable(actor).filter(id=conversation_id, deleted_at=None)
    row = (rows.select_for_update() if lock else rows.select_related("agent_persona")).first()
    if row is None:
        refuse_missing(actor, "conversation", conversation_id)
    private_to = frozenset({row.member_id})
    target = Target("conversation", row.id, row.tenant_id, private_to=private_to, persona_id=row.persona_id)
    authorize(actor, Permission.CONVERSATION_USE, target)
    if row.member_id != actor.member_id:
        raise Concealed(
            permission=Permission.CONVERSATION_USE,
            rule="own_conversation",
            object_type="conversation",
            object_id=row.id,
        )
    return row


def _select_reachable(actor: Actor) -> QuerySet[Conversation]:
    """Return the conversations of the actor's tenant; for a bound key only those that it created, and in a persona
    scope only those whose persona is in the scope."""
    rows = Conversation.objects.filter(tenant_id=actor.tenant_id)
    if actor.persona_scope is not None:
        rows = rows.filter(Q(persona_id=None) | Q(persona_id__in=actor.persona_scope.persona_ids))
    return rows if actor.binding is None else rows.filter(key_id=actor.principal_id)


def conversation_views(actor: Actor, rows: Sequence[Conversation]) -> list[ConversationView]:
    """Return views of conversations that the actor may read, titled by their first readable question if untitled.

    Writes: AuditEntry? naming the questions.
    """
    given = {row.id: _open_title(row) for row in rows}
    unnamed = [row.id for row in rows if not given[row.id]]
    asked = _first_questions(actor, unnamed) if unnamed else {}
    questions = {view.cube.id: view for view in (cubes_view(actor=actor, cube_ids=[*asked.values()]) if asked else ())}
    if questions:
        record(actor=actor, verb=Verb.MEMORY_READ, object_type="memory", object_ids=list(questions))
    titles = {
        conversation_id: make_title(questions[cube].words.content)
        for conversation_id, cube in asked.items()
        if cube in questions
    }
    names = _load_persona_names(rows)
    return [_make_view(row, given[row.id] or titles.get(row.id, ""), names) for row in rows]


def _load_persona_names(rows: Sequence[Conversation]) -> dict[UUID, str]:
    """Return the names of the conversations' personas, also of removed ones. At most one query."""
    ids = {row.persona_id for row in rows} | {row.agent_persona_id for row in rows}
    named = Persona.objects.filter(id__in=filter(None, ids)) if any(ids) else Persona.objects.none()
    return dict(named.values_list("id", "name"))


def _first_questions(actor: Actor, conversation_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Return the first question of each conversation, if the actor may read it. One query."""
    visible = Cube.objects.visible_to(actor).filter(pk=OuterRef("question_id"))
    rows = Turn.objects.filter(Exists(visible), conversation_id__in=conversation_ids, position=0)
    return {row.conversation_id: row.question_id for row in rows if row.question_id}


def _open_title(row: Conversation) -> str:
    title = open_sealed(tenant_id=row.tenant_id, place=title_place(row.id), blob=bytes(row.sealed_title))
    return title.decode() if title else ""


def _make_view(row: Conversation, title: str, names: Mapping[UUID, str]) -> ConversationView:
    return ConversationView(
        id=row.id,
        title=title,
        persona_id=row.persona_id,
        agent_persona_id=row.agent_persona_id,
        model=row.model,
        created_at=row.created_at,
        updated_at=row.updated_at,
        raises_goals=row.raises_goals,
        excluded=frozenset(UUID(excluded_id) for excluded_id in row.excluded),
        persona_names=names,
    )


def turn_view(row: Turn, said: TurnTexts) -> TurnView:
    withheld = row.answer_id in said.withheld
    return TurnView(
        id=row.id,
        conversation_id=row.conversation_id,
        position=row.position,
        question=said.content(row.question_id),
        answer=None if withheld else said.content(row.answer_id),
        withheld=withheld,
        citations=tuple(_load_citations(row, said)),
        model=row.model,
        end=TurnEnd(row.end),
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        created_at=row.created_at,
        intent=row.intent,
        retrieved=() if withheld else load_retrieved(row),
        goal_id=row.goal_id,
        cost=row.cost,
        currency=row.currency,
        failed_models=tuple(row.failed_models),
        cached_tokens=row.cached_tokens,
        message_ids=message_ids_of(row),
    )


def message_ids_of(row: Turn) -> tuple[UUID, ...]:
    return tuple(cube_id for cube_id in (row.question_id, row.answer_id) if cube_id is not None)


def load_retrieved(row: Turn) -> tuple[Retrieved, ...]:
    """Return the retrieved memories of a turn from its stored form."""
    return tuple(Retrieved(**{**fields, "memory_id": UUID(fields["memory_id"])}) for fields in row.retrieved)


def turn_shows(turn: TurnView) -> tuple[UUID, ...]:
    """Return all ids that a reply with this turn shows: the conversation, question, answer, cited and changed
    memories."""
    cited = (citation.memory_id for citation in turn.citations)
    changed = (cube_id for change in turn.changes for cube_id in (change.earlier, change.later))
    return (turn.conversation_id, *turn.message_ids, *cited, *changed)


def turns_sources(turns: Sequence[TurnView]) -> list[SourceRef]:
    """Return the current memories behind these turns, which are the sources of a model's answer. Two queries."""
    rows = Turn.objects.filter(id__in=[turn.id for turn in turns]).values_list("question_id", "answer_id")
    named = [cube_id for pair in rows for cube_id in pair if cube_id is not None]
    versions = Cube.objects.filter(id__in=named).values_list("id", "version")
    return [SourceRef(cube_id, version, SourceKind.TEXT) for cube_id, version in versions]


def select_statements(actor: Actor, turns: Sequence[Turn]) -> QuerySet[Cube]:
    """Return the memories that the questions of these turns state and the actor may read."""
    pages = [turn.question_id for turn in turns if turn.question_id]
    stated = CubeSource.objects.filter(source_id__in=pages, kind=SourceKind.EXTRACT).values("cube_id")
    return Cube.objects.visible_to(actor).filter(id__in=stated, deleted_at=None).order_by("id")


def select_stating_messages(actor: Actor, cube_ids: Collection[UUID]) -> CubeQuerySet:
    """Return the typed messages that state any of these memories, without these."""
    rows = CubeSource.objects.filter(cube_id__in=cube_ids, kind=SourceKind.EXTRACT).values("source_id")
    found = Cube.objects.visible_to(actor).filter(id__in=rows, source=Source.CHAT, owner_id=actor.member_id)
    return found.exclude(id__in=cube_ids)


def title_place(conversation_id: UUID) -> bytes:
    return b"conversation" + conversation_id.bytes


def _load_citations(row: Turn, said: TurnTexts) -> Iterator[Citation]:
    """Yield the citations. A citation with a quote is available if its quote is, any other if its memory is."""
    answer = said.views.get(row.answer_id) if row.answer_id else None
    quoted = {quote.marker for quote in answer.words.quotes} if answer else set()
    opened = {quote.marker for quote in answer.passages} if answer else set()
    for part in row.citations:
        memory_id, marker = UUID(part["memory_id"]), part["marker"]
        available = marker in opened if marker in quoted else memory_id in said.readable
        available = available and row.answer_id not in said.withheld
        yield Citation(memory_id, marker, part["score"], available, part.get("pack", ""))


def _turn_texts(reader: Actor, turns: Sequence[Turn], stated: AbstractSet[UUID], *, leaves: bool = False) -> TurnTexts:
    said = {cube_id for turn in turns for cube_id in (turn.question_id, turn.answer_id) if cube_id is not None}
    named = said | stated
    cited = {UUID(part["memory_id"]) for turn in turns for part in turn.citations}
    visible = Cube.objects.visible_to(reader).filter(id__in=named | cited)
    readable = frozenset(visible.values_list("id", flat=True))
    there = [cube_id for cube_id in sorted(named) if cube_id in readable]
    views = {view.cube.id: view for view in cubes_view(actor=reader, cube_ids=there, leaves=leaves)}
    closed = said - views.keys()
    withheld = Cube.objects.stored().filter(id__in=closed).values_list("id", flat=True) if closed else ()
    return TurnTexts(views, frozenset(withheld), readable)
