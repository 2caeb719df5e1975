"""The plan of a turn: the memories that a search found for a question, and those that the answer may cite."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from uuid import UUID

from django.conf import settings
from django.utils.timezone import localdate

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import FieldError, Invalid, TooLarge
from governance.ids import uuid7
from governance.policies.quotas import usage_check
from governance.vocabulary import Measure, Permission
from vault.chat.commands import find_goal, hits_for_call
from vault.chat.evidence import make_evidence
from vault.chat.messages import is_statement, put_messages
from vault.chat.rules import (
    Agent,
    Evidence,
    Extract,
    PastTurn,
    extractive_answer,
    goal_extract,
    operation_extract,
    phrase_extract,
    prompt,
    quotes,
    summary_extract,
)
from vault.chat.selectors import Citation, Retrieved, StatedMemory, Unused
from vault.content.drafts import CubeDraft, SourceRef
from vault.cubes.usage import usage_count
from vault.endpoints.rules import PricedModel
from vault.forms.selectors import Block, MountedAdapter, adapter_for_turn, blocks_for_turn
from vault.layers.own_facts import asked_group, belongs_to
from vault.layers.persona import profile_read
from vault.layers.persona_scope import is_own_memory
from vault.layers.statements import FILLING, asked_fields, fills_field
from vault.layers.working_set import BLOCK, STABLE, WORKING, WorkingItem, turn_working_set
from vault.lexicon.concepts import base_forms
from vault.lexicon.recurrences import recurring_words
from vault.lexicon.temporal_expressions import TimeRange, asks_for_time, time_ranges_of
from vault.lexicon.tokens import content_terms, terms
from vault.providers.ports import ChatMessage
from vault.reader.model_reader import MessageReading, message_read
from vault.reader.rules import (
    LONGEST_CORRECTION,
    Intent,
    MemoryCall,
    Statement,
    apply_correction,
    asks_for_list,
    asks_for_topics,
    find_links,
    is_fragment,
    is_question,
    may_reply,
    memory_call,
    read_correction,
    read_reply,
    read_statements,
    rephrased_statements,
    split_days,
    split_question,
)
from vault.reconciliation.corrections import is_current
from vault.reconciliation.relations import Relation, RelationKind
from vault.reconciliation.services import turn_relate
from vault.retrieval.fusion import NO_PARTS, is_relevant
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import Hit, memories_search
from vault.screening.screen import screen_drafts
from vault.vocabulary import STATED, MessageRole, Source, SourceKind

MESSAGES_OF_TURN = 2  # that become memories: the question and the answer
CONSIDERED = 10  # memories an answer may rest on
CONSIDERED_OF_LIST = 20  # where it asks for all of several
DAYS_OF_WEEK = 7
STABLE_TOKENS, PRELOADED_TOKENS = 1_000, 300  # of the working set in a prompt
FEWEST = 4  # memories of a prompt, results of the search or preloaded
LONGEST_EVENT = timedelta(days=62)  # that is looked for on a day within it
SHORT_RANGE = timedelta(days=8)  # of time that a question names: what lies outside is no answer
SHOWN_PARTS = ("lexical", "context", "dense", "entity", "time", "graph")  # of a score


@dataclass(frozen=True)
class TurnPlan:
    """A question and the memories found for it; the search and its audit entry are committed."""

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
    relations: tuple[Relation, ...] = ()  # of what is stated to what was stated before
    asked: str = field(default="", repr=False)  # the question as it was searched for
    intent: Intent = Intent.CHAT
    reply: Extract | None = None  # of a command; no model is asked
    goal: Evidence | None = None
    asked_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    retrieved: tuple[Retrieved, ...] = ()
    stable: tuple[Evidence, ...] = ()  # of the working set, for a model: profile and pinned memories
    preloaded: tuple[Evidence, ...] = ()
    blocks: tuple[Block, ...] = ()  # mounted on the persona, the agent or the task, at the head of the prompt
    in_block: tuple[Evidence, ...] = ()
    adapter: MountedAdapter | None = None  # named for the question, or mounted
    is_trained: bool = False  # the adapter knows what answers the question

    @cached_property
    def given(self) -> list[Evidence]:
        """Return all memories that a model gets, each once, in their order."""
        return list(dict.fromkeys((*self.in_block, *self.stable, *self.preloaded, *self.evidence)))

    @cached_property
    def messages(self) -> list[ChatMessage]:
        """Return the prompt for a model."""
        return prompt(self.asked, self.given, self.past, agent=self.agent, stable=self.stable, block=self.in_block)

    @cached_property
    def extract(self) -> Extract:
        """Return the answer without a model."""
        if self.reply is not None:
            return self.reply
        extract = extractive_answer(
            self.asked, self.evidence, self.stated, offers_nearest=self.goal is None, day=localdate(self.asked_at)
        )
        return extract.followed_by(goal_extract(self.question, self.goal)) if self.goal else extract

    def extract_after(self, failed: Sequence[str]) -> Extract:
        """Return the answer without a model, with a notice if models have failed."""
        return phrase_extract(self.question, "no_model").followed_by(self.extract) if failed else self.extract


@dataclass(frozen=True)
class TurnSettings:
    """The settings of a conversation that affect how a question is answered. past: its former questions."""

    conversation_id: UUID
    models: tuple[PricedModel, ...]
    past: tuple[str, ...] = ()
    excluded: frozenset[UUID] = frozenset()
    raised: frozenset[UUID] = frozenset()
    raises_goals: bool = True
    told: tuple[tuple[StatedMemory, ...], ...] = ()  # what its last turns stated, the latest first
    answer: str = ""  # of its last turn
    adapter: MountedAdapter | None = None  # that the question names, in place of a mounted one


def turn_plan(actor: Actor, asked: TurnSettings, content: str) -> TurnPlan:
    """Search for memories that answer a question. Writes: AuditEntry naming the memories.

    content: as `question_admit` returned it. The plan does not yet have the earlier turns for the model. Raises
    Forbidden; Unavailable.
    """
    reading = message_read(
        actor, content, memory_call(content, said_at=datetime.now(UTC), past=asked.past), asked.models
    )
    call = reading.call
    if call.is_operation:
        return replace(_command_plan(actor, asked, content, call), reading=reading)
    hits = about = _find_topics(actor, asked, call)
    if not about:
        count = CONSIDERED_OF_LIST if asks_for_list(call.rewritten) else CONSIDERED
        search = SearchQuery(
            query=call.rewritten,
            top_k=count,
            conversation_id=asked.conversation_id,
            with_messages=True,
            is_filled=False,
        )
        hits = memories_search(actor=actor, search=search, permission=Permission.CONVERSATION_USE)
        parts = [replace(search, query=query) for query in _list_part_queries(search.query, hits)]
        if (group := asked_group(call.rewritten)) and group.semantic_type:
            parts = [replace(part, filters={"semantic_type": group.semantic_type}) for part in parts]
        hits = _add_hits_of(actor, hits, parts)
        about = _put_profile_first(actor, call.rewritten, hits, _select_about(call.rewritten, hits))
    now = datetime.now(UTC)
    excluded = asked.excluded | _collect_ids([hit for hit in hits if asked.excluded.intersection(hit.view.parents)])
    closed = _find_closed([*hits, *about], now) | excluded
    fitting = [hit for hit in about if hit.view.cube.id not in closed]
    within = _select_within_range(call, fitting, now)
    usable = put_messages(actor, within, hits, closed)
    blocks = _load_blocks(actor, asked, closed)
    mounted = [WorkingItem(view, "mounted", 1.0, BLOCK) for block in blocks for view in block.views]
    held = _load_working_set(actor, asked, _collect_ids(usable), closed, now)
    held = [*mounted, *(item for item in held if item.view.cube.id not in {each.view.cube.id for each in mounted})]
    goal = _find_goal(actor, asked, call)
    quoted, others = (usable, []) if asked.models else _quoted_first(actor, call.rewritten, usable, goal)
    if goal and not asked.models and goal.view.cube.id in _collect_ids(quoted):
        goal = None  # the answer says it
    listed = [*map(_hold, held), *quoted, *([goal] if goal else []), *others]
    plan = _make_plan(actor, asked, content, list({hit.view.cube.id: hit for hit in listed}.values()))
    evidence = {memory.source: memory for memory in plan.evidence}
    stated, relations = _read_stated(actor, asked, reading, content, hits)
    adapter = (asked.adapter or adapter_for_turn(actor=actor)) if asked.models and usable else None
    return replace(
        plan,
        evidence=tuple(evidence[str(hit.view.cube.id)] for hit in (*quoted, *others)),
        goal=evidence[str(goal.view.cube.id)] if goal else None,
        stable=tuple(evidence[str(item.view.cube.id)] for item in held if item.tier == STABLE),
        preloaded=tuple(evidence[str(item.view.cube.id)] for item in held if item.tier == WORKING),
        blocks=blocks,
        adapter=adapter,
        is_trained=adapter is not None and adapter.covers(_collect_answering(actor, call.rewritten, usable)),
        in_block=tuple(evidence[str(item.view.cube.id)] for item in mounted),
        asked=call.rewritten,
        intent=call.intent,
        stated=stated,
        reading=reading,
        relations=relations,
        retrieved=_explain_hits(
            plan,
            _add_goal(_put_first(usable, within, hits), goal),
            partial(_find_reason, excluded, closed, _collect_ids(about), _collect_ids(fitting)),
            held,
        ),
    )


def _read_stated(
    actor: Actor, asked: TurnSettings, reading: MessageReading, content: str, hits: Sequence[Hit]
) -> tuple[tuple[Statement, ...], tuple[Relation, ...]]:
    """Return the statements of a turn, and their relations to earlier ones."""
    now = datetime.now(UTC)
    corrected = _correct_value(asked, content)
    stated = reading.statements
    if corrected and len(content) <= LONGEST_CORRECTION:
        stated = ()
    elif stated is None:
        stated = read_statements(content, speaker=MessageRole.USER, said_at=now)
    if corrected is None and not reading.statements and (text := _complete_reply(asked, content)):
        stated = rephrased_statements(text, said_at=now)
    relations = turn_relate(
        actor=actor,
        statements=stated,
        hits=hits,
        models=asked.models if reading.statements is not None else (),
        asked_in=asked.conversation_id,
        is_correction=reading.call.intent is Intent.UPDATE,
    )
    if corrected is None:
        return stated, relations
    older, text = corrected
    relations = (*relations, Relation(len(stated), older, RelationKind.CORRECTS))
    return (*stated, *rephrased_statements(text, said_at=now)), relations


def _complete_reply(asked: TurnSettings, content: str) -> str | None:
    """Return what a reply states, with the last statement that "it's a boy" completes or the question before it."""
    if not may_reply(content):
        return None
    if is_fragment(content) and asked.told and asked.told[0]:
        return f"{asked.told[0][-1].text} {content}"
    return read_reply(asked.answer, content)


def _correct_value(asked: TurnSettings, content: str) -> tuple[UUID, str] | None:
    """Return the statement whose value a short correction names, of the last turns, and its text with that value."""
    correction = read_correction(content)
    if correction is None:
        return None
    for told in asked.told:
        if found := apply_correction(correction, [memory.text for memory in told]):
            return told[found[0]].id, found[1]
    return None


def _list_part_queries(question: str, hits: Sequence[Hit]) -> list[str]:
    """Return what is searched for beside a question: each of those that it names side by side, the names of those whom
    it describes, or what fills the field of the profile or the group of facts that it asks for."""
    if parts := split_question(question) or split_days(question):
        return parts
    if group := asked_group(question):
        return [group.filling]
    if fields := asked_fields(question):
        is_filled = any(fills_field(hit.view.words.content, fields) for hit in hits)
        return [] if is_filled else [" ".join(FILLING[field] for field in sorted(fields & FILLING.keys()))]
    links = find_links(question, [(str(hit.view.cube.id), hit.view.words.content) for hit in hits])
    return [f"{links[0].rest} {' '.join(dict.fromkeys(link.name for link in links[1:]))}"] if links else []


def _add_hits_of(actor: Actor, hits: Sequence[Hit], searches: Sequence[SearchQuery]) -> list[Hit]:
    """Add what other searches find, below what was found before."""
    found = {hit.view.cube.id: hit for hit in hits}
    for search in searches:
        for hit in memories_search(actor=actor, search=search, permission=Permission.CONVERSATION_USE):
            found.setdefault(hit.view.cube.id, hit)
    return list(found.values())


def _find_goal(actor: Actor, asked: TurnSettings, call: MemoryCall) -> Hit | None:
    if not asked.raises_goals:
        return None
    return find_goal(actor, call.rewritten, asked.conversation_id, asked.raised | asked.excluded)


def _add_goal(hits: Sequence[Hit], goal: Hit | None) -> list[Hit]:
    """Add the goal to the results of a question, and drop results with a score of 0."""
    found = [hit for hit in hits if hit.score > 0]
    ids = {hit.view.cube.id for hit in found}
    return [*found, *([goal] if goal and goal.view.cube.id not in ids else [])]


def _command_plan(actor: Actor, asked: TurnSettings, content: str, call: MemoryCall) -> TurnPlan:
    """Return the plan of a summary, or of the list of what an operation is about: nothing is changed yet."""
    is_unnamed = not call.query and call.intent is not Intent.SUMMARISE
    hits = [] if is_unnamed else hits_for_call(actor, call, asked.conversation_id, asked.excluded)
    plan = _make_plan(actor, replace(asked, models=()), content, hits)
    retrieved = _explain_hits(plan, hits, lambda _: "")
    is_summary = call.intent in {Intent.SUMMARISE, Intent.SEARCH}
    reply = summary_extract(content, plan.evidence) if is_summary else operation_extract(content, call, plan.evidence)
    return replace(plan, asked=call.rewritten, intent=call.intent, reply=reply, retrieved=retrieved)


def fixed_plan(actor: Actor, asked: TurnSettings, content: str, reply: Extract) -> TurnPlan:
    """Return the plan of a fixed reply without memories."""
    return replace(_make_plan(actor, replace(asked, models=()), content, []), asked=content, reply=reply)


def _make_plan(actor: Actor, asked: TurnSettings, content: str, found: Sequence[Hit]) -> TurnPlan:
    """Return the plan of a turn. found: the memories in the order of their markers."""
    return TurnPlan(
        actor=actor,
        conversation_id=asked.conversation_id,
        turn_id=uuid7(),
        question=content,
        evidence=tuple(_make_evidence(actor, marker, hit) for marker, hit in enumerate(found, start=1)),
        citations=tuple(
            Citation(memory_id=hit.view.cube.id, marker=marker, score=round(hit.score, 4), pack=hit.view.pack)
            for marker, hit in enumerate(found, start=1)
        ),
        models=asked.models,
        sources=tuple(SourceRef(hit.view.cube.id, hit.view.cube.version, SourceKind.TEXT) for hit in found),
    )


def _load_working_set(
    actor: Actor, asked: TurnSettings, usable: AbstractSet[UUID], closed: AbstractSet[UUID], now: datetime
) -> list[WorkingItem]:
    """Return the part of the working set that a model gets; without a model, nothing.

    Preloaded memories fill a prompt up to FEWEST where the search found fewer: beside more results they bring little,
    and are new tokens in each turn (docs/benchmarks.md).
    """
    if not asked.models:
        return []
    items = turn_working_set(
        actor=actor,
        session=str(asked.conversation_id),
        stable=STABLE_TOKENS,
        working=PRELOADED_TOKENS,
        most=FEWEST - len(usable),
        known=usable,
    )
    return [item for item in items if item.view.cube.id not in closed and is_current(_hold(item), now)]


def _load_blocks(actor: Actor, asked: TurnSettings, closed: AbstractSet[UUID]) -> tuple[Block, ...]:
    """Return the mounted blocks without a memory that is not to be used: what is left of others, the search finds."""
    blocks = blocks_for_turn(actor=actor) if asked.models else ()
    return tuple(block for block in blocks if not closed & set(block.form.parents))


def _collect_answering(actor: Actor, question: str, usable: Sequence[Hit]) -> frozenset[UUID]:
    """Return the memories that an answer without a model would quote; if there are none, all that were found."""
    evidence = [_make_evidence(actor, marker, hit) for marker, hit in enumerate(usable)]
    quoted = [usable[quote.marker] for quote in quotes(question, evidence, offers_nearest=False)]
    return frozenset(_collect_ids(quoted or usable))


def _hold(item: WorkingItem) -> Hit:
    return Hit(item.view, item.score, NO_PARTS)


def _explain_hits(
    plan: TurnPlan, hits: Sequence[Hit], reason: Callable[[Hit], str], held: Sequence[WorkingItem] = ()
) -> tuple[Retrieved, ...]:
    """Return the results of a question and the working set, each with its marker in the plan, or the reason why it has
    none.
    """
    markers = {citation.memory_id: citation.marker for citation in plan.citations}
    known = {item.view.cube.id: item for item in held}
    found = _collect_ids(hits)
    return tuple(
        Retrieved(
            memory_id=hit.view.cube.id,
            score=round(hit.score, 4),
            parts={name: round(getattr(hit.parts, name), 3) for name in SHOWN_PARTS},
            layer=hit.view.cube.layer,
            tokens=hit.view.cube.token_count,
            marker=markers.get(hit.view.cube.id, 0),
            reason="" if hit.view.cube.id in markers else reason(hit),
            tier=known[hit.view.cube.id].tier if hit.view.cube.id in known else "",
            why=known[hit.view.cube.id].reason if hit.view.cube.id in known else "",
        )
        for hit in (*hits, *(_hold(item) for item in held if item.view.cube.id not in found))
    )


def _find_reason(
    excluded: AbstractSet[UUID],
    closed: AbstractSet[UUID],
    about: AbstractSet[UUID],
    fitting: AbstractSet[UUID],
    hit: Hit,
) -> str:
    """Return the reason why a result has no marker: the first step of the plan that drops it."""
    cube_id = hit.view.cube.id
    if cube_id in excluded:
        return Unused.EXCLUDED
    if cube_id in closed:
        return Unused.SUPERSEDED
    if cube_id not in about:
        return Unused.UNRELATED
    return Unused.OTHER_TIME if cube_id in fitting else ""


def _find_closed(hits: Sequence[Hit], now: datetime) -> frozenset[UUID]:
    """Return the memories that a later statement has replaced, and the messages that state the same."""
    ended = [hit for hit in hits if not is_current(hit, now)]
    return _collect_ids(ended).union(*(hit.view.parents for hit in ended if is_statement(hit)))


def _put_first(usable: Sequence[Hit], replaced: Sequence[Hit], hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits of an answer and the other hits, best first, without those in whose place the former stand."""
    others = _collect_ids(hits) - _collect_ids(replaced)
    return sorted([*usable, *(hit for hit in hits if hit.view.cube.id in others)], key=lambda hit: -hit.score)


def _collect_ids(hits: Sequence[Hit]) -> frozenset[UUID]:
    return frozenset(hit.view.cube.id for hit in hits)


def _select_about(question: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that are about the question; hits that only quote others are dropped.

    A reply to a hit that asks about the same counts too: it often repeats none of the question's words.
    """
    own = [hit for hit in hits if not hit.view.words.quotes]
    asked = frozenset(content_terms(question))
    fitting = [hit for hit in own if is_relevant(hit.parts) or _says_irregularly(hit, asked)]
    ids = _collect_ids(fitting)
    before = {_session_position(hit) for hit in fitting if is_question(hit.view.words.content)} - {None}
    return [hit for hit in own if hit.view.cube.id in ids or _session_position(hit, before=1) in before]


def _put_profile_first(actor: Actor, question: str, hits: Sequence[Hit], about: Sequence[Hit]) -> list[Hit]:
    """Put first what fills the field of their profile that the reader asks for: a hit, or else an entry; or the facts
    of the group that the reader asks for."""
    fields, group = asked_fields(question), asked_group(question)
    if not fields and group is None:
        return list(about)
    filling = [
        hit
        for hit in hits
        if hit.score
        and is_own_memory(actor, hit.view.cube)
        and (fills_field(hit.view.words.content, fields) or (group and belongs_to(hit.view.words.content, group)))
    ]
    if fields and not filling:
        best = max((hit.score for hit in hits), default=1.0)
        filling = [Hit(view, best, NO_PARTS) for view in profile_read(actor=actor, fields=fields)]
    ids = _collect_ids(filling)
    return [*filling, *(hit for hit in about if hit.view.cube.id not in ids)]


def _session_position(hit: Hit, before: int = 0) -> tuple[str, int] | None:
    """Return the session of a hit and its position there minus `before`, or None outside of a session."""
    position, session = hit.view.cube.position, hit.view.words.session_id
    return (session, position - before) if session and position is not None else None


def _says_irregularly(hit: Hit, asked: frozenset[str]) -> bool:
    """Return whether a memory has an irregular form of a word in the question: `ran` for `run`."""
    found = terms(hit.view.words.content)
    return bool((base_forms(found) - frozenset(found)) & asked)


def _find_topics(actor: Actor, asked: TurnSettings, call: MemoryCall) -> list[Hit]:
    """Return the statements of the time in a question about topics; none for other questions.

    A day without a year means the last year with a statement on that day, or the next time that something comes again.
    """
    if call.time_range is None or not asks_for_topics(call.rewritten):
        return []
    ranges = time_ranges_of(call.rewritten, datetime.now(UTC))
    meant = [time_range for time_range in ranges if time_range.weight == max(other.weight for other in ranges)]
    latest = sorted(meant, key=lambda time_range: time_range.start, reverse=True)
    stated = {"semantic_type": {"in": list(STATED)}}
    search = SearchQuery(query=call.rewritten, top_k=CONSIDERED, filters=stated, conversation_id=asked.conversation_id)
    hits = memories_search(actor=actor, search=search, permission=Permission.CONVERSATION_USE)
    for time_range in latest[:1]:
        if time_range.end - time_range.start <= SHORT_RANGE:
            hits = _add_hits_of(actor, hits, _search_lasting(search, time_range))
    found = ([hit for hit in hits if _falls_within(hit, time_range)] for time_range in latest)
    return next((inside for inside in found if inside), [])


def _search_lasting(search: SearchQuery, span: TimeRange) -> list[SearchQuery]:
    """Return searches for what began before a day and may last into it, and for what may come again on it."""
    begins = {"gte": (span.start - LONGEST_EVENT).isoformat(), "lt": span.end.isoformat()}
    return [
        replace(search, filters={**(search.filters or {}), "event_time": begins}, top_k=CONSIDERED_OF_LIST),
        replace(search, query=recurring_words(span.start.date()), top_k=CONSIDERED_OF_LIST),
    ]


def _hit_time(hit: Hit) -> datetime:
    """Return the time of the event, else the time at which it was said or stored."""
    return hit.view.cube.event_time or hit.view.cube.stated_at


def _select_within_range(call: MemoryCall, hits: Sequence[Hit], now: datetime) -> list[Hit]:
    """For a question about a day or a week, keep the results of that time, if there are any. A day without a year is
    that day of any year.
    """
    parts = split_question(call.rewritten) or split_days(call.rewritten) or [call.rewritten]
    spans = [span for part in parts for span in time_ranges_of(part, now)]
    likeliest = [span for span in spans if span.weight == max(other.weight for other in spans)]
    if not likeliest or likeliest[0].end - likeliest[0].start > SHORT_RANGE or asks_for_time(call.rewritten):
        return list(hits)
    inside = [hit for hit in hits if any(_falls_within(hit, span) for span in likeliest)]
    return inside or list(hits)


def _falls_within(hit: Hit, span: TimeRange) -> bool:
    """Return whether a memory tells of a time, of an event that lasts into it, or of one that comes again in it."""
    if span.start <= _hit_time(hit) < span.end:
        return True
    until = hit.view.event_end
    if until is not None and _hit_time(hit) < span.end and until > span.start:
        return True
    recurrence = hit.view.recurrence
    if recurrence is None or len(recurrence.weekdays) == DAYS_OF_WEEK:
        return False
    following = recurrence.next_day(span.start.date())
    return following is not None and following < span.end.date()


def _quoted_first(actor: Actor, question: str, hits: Sequence[Hit], goal: Hit | None) -> tuple[list[Hit], list[Hit]]:
    """Return the hits that an extractive answer will quote, in its order, and the others: its markers count from 1."""
    evidence = [_make_evidence(actor, marker, hit) for marker, hit in enumerate(hits)]
    quoted = [quote.marker for quote in quotes(question, evidence, offers_nearest=goal is None)]
    return [hits[at] for at in quoted], [hit for at, hit in enumerate(hits) if at not in quoted]


def question_admit(*, actor: Actor, asked: TurnSettings, content: str) -> str:
    """Return a question after the PII policy was applied.

    content: 1..MAX_CONTENT_CHARACTERS characters. Raises Forbidden; Invalid; TooLarge; QuotaExceeded (a model would
    answer, and no tokens or no memories are left); PiiRefused; PiiUnavailable.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    _check_content(content)
    if asked.models:  # whose answer would be lost
        usage_check(actor, {Measure.MODEL_TOKENS: 1, Measure.MEMORIES: MESSAGES_OF_TURN}, usage_count)
    draft = CubeDraft(content=content, speaker=MessageRole.USER, source=Source.CHAT)
    return screen_drafts(actor=actor, drafts=[draft])[0].content


def _make_evidence(actor: Actor, marker: int, hit: Hit) -> Evidence:
    return make_evidence(actor, marker, hit.view, score=hit.score, parts=hit.parts)


def _check_content(content: str) -> None:
    if len(content) > settings.MAX_CONTENT_CHARACTERS:
        raise TooLarge(f"At most {settings.MAX_CONTENT_CHARACTERS} characters.")
    if not content.strip() or "\x00" in content or any("\ud800" <= character <= "\udfff" for character in content):
        raise Invalid(errors=[FieldError("content", "write something to ask")])
