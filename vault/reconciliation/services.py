"""Reconciling of new statements with earlier ones of the same person, on every path that stores statements.

A language model decides, if one reads what is stored: one structured call for all statements of a request. Else rules
decide for statements that name the attribute that they change, or announce a correction (docs/decisions/0069).
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting, release_connection
from governance.errors import QuotaExceeded
from governance.ids import uuid7
from governance.policies.quotas import tokens_check
from governance.vocabulary import Permission
from vault.content.drafts import CubeDraft
from vault.cubes.selectors import CubeView, cubes_view
from vault.cubes.services import AddedCube, cubes_add
from vault.cubes.usage import usage_count
from vault.endpoints.rules import FallbackLlm, PricedModel
from vault.layers.persona_scope import is_own_speaker, is_person
from vault.layers.statements import FILLING, find_slot
from vault.lexicon.tokens import terms
from vault.lifecycle.pairs import pairs_propose
from vault.lifecycle.services import draft_copy
from vault.models import Cube
from vault.providers.ports import ProviderUnavailable
from vault.reader.model_reader import count_tokens_used, list_reading_models, sum_tokens
from vault.reader.rules import (
    Intent,
    Statement,
    apply_correction,
    classify_semantic_type,
    is_fragment,
    may_reply,
    memory_call,
    read_correction,
    read_reply,
    rephrased_statements,
    tells_of_parting,
)
from vault.reader.services import PATTERNS, statement_draft
from vault.reconciliation.corrections import (
    Ended,
    announces_change,
    find_ended,
    is_current,
    is_own_statement,
    statement_end,
)
from vault.reconciliation.relations import (
    ENDING,
    MOST_EARLIER,
    Comparison,
    DatedStatement,
    Relation,
    RelationKind,
    ask_relations,
    compose_messages,
)
from vault.reconciliation.selectors import session_last_message, session_last_statements
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import Hit, memories_search
from vault.screening.screen import screen_drafts
from vault.vocabulary import STATED, Layer, MessageRole, Modality, ReviewKind, SearchMode, SemanticType

logger = logging.getLogger(__name__)
MOST_COMPARED = 20  # statements of one request
PARTNER = "girlfriend boyfriend partner wife husband dating engaged 女朋友 男朋友 对象 恋爱 老公 老婆"
LONGEST_COMPARED = 1_000  # characters of a statement
LAST_TOLD = 3  # messages before a short correction, of which it may correct one
LOOKED_AT = 10  # results of a search, among which earlier statements of the person are


@dataclass(frozen=True)
class Change:
    """The effect of a stored statement on an earlier one. kind: what ended it, or CONTRADICTS: a review is open."""

    earlier: UUID
    later: UUID
    kind: RelationKind


@dataclass(frozen=True)
class Reconciled:
    """Drafts to be stored, and the relations of those that are statements, by their index."""

    drafts: Sequence[CubeDraft]
    relations: Sequence[Relation] = ()


def statements_relate(*, actor: Actor, drafts: Sequence[CubeDraft]) -> Reconciled:
    """Return the drafts with the statements that replies and short corrections among them mean, and the relations of
    new statements to those that were said before, stored or among the drafts.

    Never inside a database transaction: a model may be asked. Only statements of the same persona, or without one in
    the writer's own namespace, and of the same subject and speaker are compared; none for who may not read.
    Raises Forbidden; the errors of a search and of `screen_drafts`. Writes: AuditEntry …, Usage?.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    if not is_allowed(actor, Permission.MEMORY_READ):
        return Reconciled(drafts)
    drafts = _read_replies(actor, drafts)
    corrected, corrections = _read_corrections(actor, drafts)
    wanted = [number for number, draft in enumerate(drafts) if _is_comparable(draft)]
    models = list_reading_models(actor) if wanted else []
    if not models:
        wanted = [number for number in wanted if _announces_change(drafts[number])]
    now = datetime.now(UTC)
    found = {number: _find_earlier(actor, drafts, number, now) for number in wanted[:MOST_COMPARED]}
    found = {number: earlier for number, earlier in found.items() if earlier}
    relations = None
    if models and found:
        screened = screen_drafts(actor=actor, drafts=[drafts[number] for number in found])
        pairs = zip(screened, found.values(), strict=True)
        asked = _ask_models(
            actor, models, [_compare(draft.content, draft.said_at or now, earlier) for draft, earlier in pairs]
        )
        if asked is not None:
            relations = [replace(relation, number=list(found)[relation.number]) for relation in asked]
    relations = _apply_rules(drafts, found, now) if relations is None else relations
    return Reconciled([*drafts, *corrected], [*corrections, *relations])


def turn_relate(
    *,
    actor: Actor,
    statements: Sequence[Statement],
    hits: Sequence[Hit],
    models: Sequence[PricedModel],
    asked_in: UUID,
    is_correction: bool,
) -> tuple[Relation, ...]:
    """Return the relations of the statements of a chat's turn to the statements among its search results.

    asked_in: the conversation. models: those that have read the turn; none: rules decide, and search for what a
    statement says that it changes. Never inside a transaction. Raises Forbidden; the errors of a search. Writes:
    AuditEntry …, Usage?.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    now = datetime.now(UTC)
    if not statements:
        return ()
    if models:
        own = [hit for hit in hits if is_own_statement(actor, hit) and is_current(hit, now)]
        earlier = _date_statements(actor, own[:MOST_EARLIER])
        compared = [Comparison(statement.text, now, tuple(earlier)) for statement in statements]
        relations = _ask_models(actor, models, compared) if own else ()
        if relations is not None:
            return relations
    own = [hit for hit in hits if is_own_statement(actor, hit) and is_current(hit, now)]
    older = [_find_ended_in_chat(actor, statement.text, own, asked_in, is_correction) for statement in statements]
    return tuple(
        Relation(number, found.id, found.kind, found.rest) for number, found in enumerate(older) if found is not None
    )


def _find_ended_in_chat(
    actor: Actor, text: str, own: Sequence[Hit], asked_in: UUID, is_correction: bool
) -> Ended | None:
    """Return the statement that one of a chat ends: among the results of the turn's search, with those of another one
    for what the statement says that it changes."""
    now = datetime.now(UTC)
    if is_correction or _changes_something(text):
        search = SearchQuery(
            query=_query_earlier(text),
            top_k=LOOKED_AT,
            filters={"semantic_type": {"in": list(STATED)}},
            conversation_id=asked_in,
            is_use=False,
        )
        known = {hit.view.cube.id for hit in own}
        more = memories_search(actor=actor, search=search, permission=Permission.CONVERSATION_USE)
        found = [hit for hit in more if hit.view.cube.id not in known]
        own = [*own, *(hit for hit in found if is_own_statement(actor, hit) and is_current(hit, now))]
    return find_ended(text, said_at=now, earlier=_list_texts(own), is_correction=is_correction)


def relations_store(
    *,
    actor: Actor,
    added: Sequence[AddedCube],
    relations: Sequence[Relation],
    permission: Permission = Permission.MEMORY_CREATE,
) -> list[Change]:
    """Apply relations in the transaction that stored the statements; return those that had an effect.

    permission: the right to chat for turns of a chat. Raises Forbidden. Writes what `statement_end` and
    `pairs_propose` write.
    """
    authorize(actor, permission)
    with acting(actor):
        made = ((_locate_earlier(relation, added), added[relation.number]) for relation in relations)
        return [
            Change(relation.earlier, later.cube.id, relation.kind)
            for relation, later in made
            if not later.duplicate
            and not later.cube.is_quarantined
            and _has_effect(actor, relation, later.cube, permission)
        ]


def _locate_earlier(relation: Relation, added: Sequence[AddedCube]) -> Relation:
    return relation if relation.within is None else replace(relation, earlier=added[relation.within].cube.id)


def _has_effect(actor: Actor, relation: Relation, later: Cube, permission: Permission) -> bool:
    if relation.kind in ENDING:
        earlier = cubes_view(actor=actor, cube_ids=[relation.earlier]) if relation.rest else []
        if not statement_end(actor=actor, cube_id=relation.earlier, successor_id=later.id, said_at=later.said_at):
            return False
        drafts = [_draft_rest(view, relation.rest) for view in earlier]
        cubes_add(actor=actor, drafts=drafts, permission=permission) if drafts else None
        return True
    pair = (relation.earlier, later.id)
    return relation.kind is RelationKind.CONTRADICTS and bool(pairs_propose(actor, ReviewKind.CONFLICT, [pair]))


def _draft_rest(view: CubeView, rest: str) -> CubeDraft:
    """Return the draft of what an ended statement says besides what a newer one replaced."""
    kind = classify_semantic_type(rest)
    return replace(
        draft_copy(view, content=rest, reader=PATTERNS),
        semantic_type=SemanticType.FACT if kind == SemanticType.DIALOGUE else SemanticType(kind),
        layer=Layer.LONG_TERM,
        said_at=view.cube.said_at,
        title="",
        allow_duplicates=False,
    )


def _is_comparable(draft: CubeDraft) -> bool:
    is_statement = draft.semantic_type in STATED and draft.modality is Modality.TEXT
    is_placed = draft.persona is not None or draft.namespace is None
    return is_statement and is_placed and not draft.sources and len(draft.content) <= LONGEST_COMPARED


def _announces_change(draft: CubeDraft) -> bool:
    return _changes_something(draft.content) or _is_correction(draft)


def _changes_something(text: str) -> bool:
    return find_slot(text) is not None or announces_change(text)


def _is_correction(draft: CubeDraft) -> bool:
    said_at = draft.said_at or datetime.now(UTC)
    return memory_call(draft.content, said_at=said_at).intent is Intent.UPDATE


def _find_earlier(actor: Actor, drafts: Sequence[CubeDraft], number: int, now: datetime) -> list[DatedStatement]:
    """Return the valid statements of the same person that were said before: those among the drafts, the latest first,
    then stored ones, nearest first. Writes: AuditEntry.

    A write does not fail where the embedder does: then words alone find them.
    """
    draft = drafts[number]
    search = SearchQuery(
        query=_query_earlier(draft.content),
        top_k=LOOKED_AT,
        filters={"semantic_type": {"in": list(STATED)}},
        personas=(draft.persona,) if draft.persona else (),
        namespaces=(draft.namespace,) if draft.namespace else (),
        is_use=False,
    )
    try:
        hits = memories_search(actor=actor, search=search)
    except ProviderUnavailable as failure:
        logger.warning("earlier statements are found by their words alone: %s", failure.detail)
        hits = memories_search(actor=actor, search=replace(search, mode=SearchMode.LEXICAL))
    hits = [hit for hit in hits if is_current(hit, now) and _is_of_same_person(actor, draft, hit.view)]
    earlier = [*_list_before(actor, drafts, number, now), *_date_statements(actor, hits)]
    said_at = draft.said_at or draft.event_time or now
    return [told for told in earlier if told.said_at <= said_at and told.text != draft.content]


def _list_before(actor: Actor, drafts: Sequence[CubeDraft], number: int, now: datetime) -> Iterator[DatedStatement]:
    """Yield the statements of the same person among the drafts before one, the latest first."""
    draft = drafts[number]
    for place in range(number - 1, -1, -1):
        other = drafts[place]
        if _is_comparable(other) and _is_by_same_person(actor, other, draft):
            yield DatedStatement(uuid7(), other.content, other.said_at or other.event_time or now, within=place)


def _is_by_same_person(actor: Actor, one: CubeDraft, other: CubeDraft) -> bool:
    def place(draft: CubeDraft) -> tuple[str | None, ...]:
        return draft.persona, draft.namespace, draft.subject

    both_own = is_own_speaker(actor, one.speaker) and is_own_speaker(actor, other.speaker)
    return place(one) == place(other) and (both_own or one.speaker == other.speaker)


def _query_earlier(text: str) -> str:
    """Return a statement with words of what it may change, which its own words need not name: "I moved to Porto."."""
    slot = find_slot(text)
    named = FILLING.get(slot.name, slot.name) if slot else PARTNER if tells_of_parting(text) else ""
    return f"{text} {named}".strip()


def _is_of_same_person(actor: Actor, draft: CubeDraft, view: CubeView) -> bool:
    cube, words = view.cube, view.words
    if view.pack or words.quotes or cube.semantic_type not in STATED:
        return False
    is_placed = cube.persona_id is not None if draft.persona else cube.persona_id is None
    is_owned = cube.owner_id == actor.member_id or (
        bool(draft.persona) and cube.persona_id is not None and is_person(actor, cube.persona_id)
    )
    is_of_subject = (view.subject.reference if view.subject else None) == draft.subject
    both_own = is_own_speaker(actor, words.speaker) and is_own_speaker(actor, draft.speaker)
    return is_placed and is_owned and is_of_subject and (both_own or words.speaker == draft.speaker)


def _date_statements(actor: Actor, hits: Sequence[Hit]) -> list[DatedStatement]:
    """Return found statements with when each was said, or else stored. One query."""
    with acting(actor):
        rows = Cube.objects.filter(id__in=[hit.view.cube.id for hit in hits])
        times = {cube_id: said or stored for cube_id, said, stored in rows.values_list("id", "said_at", "created_at")}
    return [DatedStatement(key, text, times[key]) for key, text in _list_texts(hits)]


def _list_texts(hits: Sequence[Hit]) -> list[tuple[UUID, str]]:
    return [(hit.view.cube.id, hit.view.words.content) for hit in hits]


def _apply_rules(
    drafts: Sequence[CubeDraft], found: Mapping[int, Sequence[DatedStatement]], now: datetime
) -> list[Relation]:
    relations = []
    for number, earlier in found.items():
        draft = drafts[number]
        ended = find_ended(
            draft.content,
            said_at=draft.said_at or now,
            earlier=[(told.id, told.text) for told in earlier],
            is_correction=_is_correction(draft),
        )
        if ended:
            within = next(told.within for told in earlier if told.id == ended.id)
            relations.append(Relation(number, ended.id, ended.kind, ended.rest, within))
    return relations


def _ask_models(
    actor: Actor, models: Sequence[PricedModel], compared: Sequence[Comparison]
) -> tuple[Relation, ...] | None:
    """Return the relations that the first model which answers chooses; None without a usable reply, or beyond the
    quota. Writes: Usage?."""
    try:
        tokens_check(actor, usage_count)
    except QuotaExceeded as failure:
        logger.warning("statements are reconciled without a model: %s", failure.detail)
        return None
    release_connection()  # a model may take minutes; others need the connection
    reply = ask_relations(FallbackLlm(models), compared)
    count_tokens_used(actor, sum(sum_tokens(compose_messages(compared), reply.completions)))
    return reply.value


def _compare(text: str, said_at: datetime, earlier: Sequence[DatedStatement]) -> Comparison:
    """Return a new statement with the nearest of the stored ones, and of those written with it."""
    words = set(terms(text))
    together = [told for told in earlier if told.within is not None and words & set(terms(told.text))]
    together.sort(key=lambda told: -len(words & set(terms(told.text))))
    stored = [told for told in earlier if told.within is None]
    return Comparison(text, said_at, (*stored[:MOST_EARLIER], *together[:MOST_EARLIER]))


def _read_replies(actor: Actor, drafts: Sequence[CubeDraft]) -> list[CubeDraft]:
    """Return the drafts with what replies among the messages of a session state: each with the question before it, or
    with the statement that "it's a boy" completes. The reply itself is dialogue. Writes: AuditEntry …"""
    read, stated = list(drafts), list[CubeDraft]()
    stating = {draft.parent for draft in drafts}
    for number, draft in enumerate(drafts):
        is_said = draft.page_role is MessageRole.USER and draft.session_id and number not in stating
        if len(stated) == MOST_COMPARED or not is_said or not may_reply(draft.content):
            continue
        if text := _complete_reply(actor, drafts, number):
            read[number] = replace(draft, is_dialogue_only=True, semantic_type=SemanticType.DIALOGUE)
            (statement,) = rephrased_statements(text, said_at=draft.said_at or datetime.now(UTC))
            stated.append(statement_draft(draft, statement, number))
    return [*read, *stated]


def _complete_reply(actor: Actor, drafts: Sequence[CubeDraft], number: int) -> str | None:
    said = drafts[number].content
    if is_fragment(said) and (told := _find_last_statement(actor, drafts, number)):
        return f"{told} {said}"
    before = _read_before(actor, drafts, number)
    return read_reply(before, said) if before else None


def _find_last_statement(actor: Actor, drafts: Sequence[CubeDraft], number: int) -> str:
    """Return the last statement of the message before one, of the same person and session. Writes: AuditEntry?"""
    draft = drafts[number]
    own = (place for place in range(number - 1, -1, -1) if drafts[place].page_role and _is_beside(drafts[place], draft))
    if (page := next(own, None)) is not None:
        stated = [drafts[page], *(other for other in drafts[page + 1 : number] if other.parent == page)]
        return next((other.content for other in reversed(stated) if _is_comparable(other)), "")
    stored = session_last_statements(actor=actor, session_id=draft.session_id, most=1)
    return next((view.words.content for view in stored if _is_of_same_person(actor, draft, view)), "")


def _is_beside(other: CubeDraft, draft: CubeDraft) -> bool:
    return other.session_id == draft.session_id and other.speaker == draft.speaker


def _read_before(actor: Actor, drafts: Sequence[CubeDraft], number: int) -> str:
    """Return the message before one in its session, if somebody else said it. Writes: AuditEntry?"""
    draft = drafts[number]
    pages = (other for other in reversed(drafts[:number]) if other.page_role and other.session_id == draft.session_id)
    if page := next(pages, None):
        return page.content if page.speaker != draft.speaker else ""
    view = session_last_message(actor=actor, session_id=draft.session_id)
    return view.words.content if view and view.words.speaker != draft.speaker else ""


def _read_corrections(actor: Actor, drafts: Sequence[CubeDraft]) -> tuple[list[CubeDraft], list[Relation]]:
    """Return what short corrections among the messages of a session mean, each as the draft of a statement, with the
    relation to what it corrects: one of the last statements of its session. Writes: AuditEntry …"""
    corrected: list[CubeDraft] = []
    relations: list[Relation] = []
    for number, draft in enumerate(drafts):
        if len(corrected) == MOST_COMPARED:
            break
        is_said = draft.page_role is MessageRole.USER and draft.session_id
        correction = read_correction(draft.content) if is_said else None
        if correction is None:
            continue
        for told in _list_last_statements(actor, drafts, number):
            applied = apply_correction(correction, [statement.text for statement in told])
            if applied:
                place, text = applied
                (statement,) = rephrased_statements(text, said_at=draft.said_at or datetime.now(UTC))
                after = len(drafts) + len(corrected)
                earlier = told[place]
                relations.append(Relation(after, earlier.id, RelationKind.CORRECTS, within=earlier.within))
                corrected.append(statement_draft(draft, statement, number))
                break
    return corrected, relations


def _list_last_statements(actor: Actor, drafts: Sequence[CubeDraft], number: int) -> list[list[DatedStatement]]:
    """Return the statements of the last messages before one in its session that state something, the latest first."""
    draft = drafts[number]
    told: dict[int | UUID, list[DatedStatement]] = {}
    for statement in _list_before(actor, drafts, number, datetime.now(UTC)):
        place = statement.within or 0
        if drafts[place].session_id == draft.session_id:
            parent = drafts[place].parent
            told.setdefault(place if parent is None else parent, []).append(statement)
    if len(told) < LAST_TOLD:
        for view in session_last_statements(actor=actor, session_id=draft.session_id, most=LOOKED_AT):
            if _is_of_same_person(actor, draft, view):
                message = view.parents[0] if view.parents else view.cube.id
                statement = DatedStatement(view.cube.id, view.words.content, view.cube.created_at)
                told.setdefault(message, []).append(statement)
    return list(told.values())[:LAST_TOLD]
