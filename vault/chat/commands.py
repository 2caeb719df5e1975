"""Selection of the memories that a request in the chat is about. Reads only."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from governance.actor import Actor
from governance.vocabulary import Permission
from vault.chat.evidence import make_evidence
from vault.chat.rules import MOST_LISTED, make_candidate
from vault.layers.persona_scope import is_own_speaker
from vault.layers.statements import is_about_self
from vault.reader.rules import Intent, about, find_touched_goal, may_touch_goal, names_in, speaks_of_self
from vault.reader.rules.calls import ALL_WORDS, OWN, MemoryCall
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import Hit, memories_search
from vault.vocabulary import STATED, SemanticType, State

LOOKED_AT = 60  # memories, among which those that are meant are looked for


def hits_for_call(
    actor: Actor,
    call: MemoryCall,
    asked_in: UUID | None,
    excluded: frozenset[UUID],
    personas: tuple[str, ...] = (),
) -> list[Hit]:
    """Return the memories that an operation is about: by kind in the order of STATED, newest first. Those of a
    restoration are archived.

    asked_in: the conversation, whose mounts are included. personas: only their memories; empty means all.

    Raises the errors of `memories_search`. Writes its rows.
    """
    is_self = call.scope == OWN and not _read_topic(call)
    query = _read_topic(call) or call.rewritten
    is_archived = call.intent is Intent.RESTORE
    filters = {"semantic_type": {"in": list(STATED)}, **({"state": State.ARCHIVED} if is_archived else {})}
    search = SearchQuery(
        query=query,
        top_k=LOOKED_AT,
        filters=filters,
        conversation_id=asked_in,
        personas=personas,
        include_archived=is_archived,
    )
    hits = memories_search(actor=actor, search=search, permission=Permission.CONVERSATION_USE)
    hits = [hit for hit in hits if hit.view.cube.id not in excluded and not hit.view.words.quotes]
    if is_self:
        found = [hit for hit in hits if _is_own(actor, hit)]
    elif not _read_topic(call):
        found = hits
    else:
        found = _select_about(actor, call, hits)
    ranks = {kind: rank for rank, kind in enumerate(STATED)}
    ordered = sorted(found, key=lambda hit: hit.view.cube.created_at, reverse=True)
    return sorted(ordered, key=lambda hit: ranks[SemanticType(hit.view.cube.semantic_type)])[:MOST_LISTED]


def find_goal(actor: Actor, question: str, asked_in: UUID, raised: frozenset[UUID]) -> Hit | None:
    """Return the goal that a question touches, that is still valid and was not recalled yet, or None. Searches only for
    likely questions.

    Raises the errors of `memories_search`. Writes its rows.
    """
    if not may_touch_goal(question):
        return None
    filters = {"semantic_type": SemanticType.GOAL}
    search = SearchQuery(query=question, top_k=LOOKED_AT, filters=filters, conversation_id=asked_in)
    hits = memories_search(actor=actor, search=search, permission=Permission.CONVERSATION_USE)
    now = datetime.now(UTC)
    valid = [hit for hit in hits if hit.view.cube.valid_to is None or hit.view.cube.valid_to > now]
    own = [hit for hit in valid if _is_own(actor, hit) and not hit.view.words.quotes]
    index = find_touched_goal(question, [hit.view.words.content for hit in own])
    return None if index is None or own[index].view.cube.id in raised else own[index]


def _read_topic(call: MemoryCall) -> str:
    """Return the topic, unless it is the speaker or everything."""
    return "" if call.query.strip().casefold() in ALL_WORDS else call.query


def _select_about(actor: Actor, call: MemoryCall, hits: Sequence[Hit]) -> list[Hit]:
    candidates = [
        make_candidate(make_evidence(actor, number, hit.view, score=hit.score)) for number, hit in enumerate(hits)
    ]
    of_self = call.is_statement and is_about_self(call.query)
    keys = about(_read_topic(call), candidates, own=call.scope == OWN or of_self, is_statement=call.is_statement)
    found = [hits[int(key)] for key in keys]
    return [hit for hit in found if is_about_self(hit.view.words.content)] if of_self else found


def _is_own(actor: Actor, hit: Hit) -> bool:
    """Return whether the member speaks about themselves: with "I" or "my", or without another name as the subject."""
    words = hit.view.words
    if not is_own_speaker(actor, words.speaker):
        return False
    if speaks_of_self(words.content):
        return True
    return bool(words.speaker) and not any(words.content.startswith(name) for name in names_in(words.content))
