"""The short-term layer: a turn becomes the newest page of its stream, after the oldest page has left if it is full."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting, cached_in_transaction
from governance.ids import uuid7
from governance.keys.services import token_maker
from governance.outbox.services import emit
from governance.prepared import prepared_cursor, sql_array
from governance.vocabulary import Permission, PersonaKind, Topic
from vault.content.drafts import CubeDraft
from vault.cubes.services import AddedCube, cubes_add
from vault.cubes.writer.builder import NO_TEXTS, TextIndexes
from vault.layers.constants import constants_in_force
from vault.layers.session_ends import streams_end_others
from vault.models import Conversation, Page
from vault.vocabulary import MessageRole, PageLayer

# Created if missing, and locked until the transaction ends, so that pages of a stream are appended one by one.
ENTER_STREAM = """
INSERT INTO vault_stream (id, tenant_id, persona_id, agent_persona_id, session_token, last_position)
VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (tenant_id, persona_id, session_token)
DO UPDATE SET updated_at = statement_timestamp(), ended_at = NULL,
  last_position = vault_stream.last_position + excluded.last_position,
  agent_persona_id = coalesce(excluded.agent_persona_id, vault_stream.agent_persona_id)
RETURNING id, last_position, xmax = 0
"""
# An array is computed once; in a join, the planner of a young table would run the inner statement for every page.
MOVE_OLDEST = """
UPDATE vault_page SET layer = 'mid_term' WHERE tenant_id = %(tenant)s AND id = ANY (ARRAY(
  SELECT id FROM vault_page WHERE tenant_id = %(tenant)s AND stream_id = %(stream)s AND layer = 'short_term'
  ORDER BY position DESC OFFSET %(remaining)s))
"""
INSERT = """
INSERT INTO vault_page (id, tenant_id, stream_id, position, query_id, response_id, at, layer, model, keywords, gist,
  read_versions)
SELECT id, %(tenant)s, %(stream)s, position, query_id, response_id, at, layer, '', '{}', '[]', '{}'
FROM unnest(%(ids)s::uuid[], %(positions)s::int[], %(queries)s::uuid[], %(responses)s::uuid[],
  %(times)s::timestamptz[], %(layers)s::text[]) AS page (id, position, query_id, response_id, at, layer)
"""
FIRST_PERSONA = """
SELECT id FROM governance_persona WHERE tenant_id = %s AND member_id = %s AND kind = %s AND removed_at IS NULL
ORDER BY id LIMIT 1
"""
ADVANCE = "UPDATE vault_stream SET last_position = %s WHERE tenant_id = %s AND id = %s"


@dataclass(frozen=True)
class PageDraft:
    """The memories of a question and its answer, of which one may be missing. at: when the first of them was said."""

    query: UUID | None
    response: UUID | None
    at: datetime


@dataclass(frozen=True)
class StreamRef:
    """A conversation of a persona. session: the caller's name for it, or the conversation's id."""

    persona_id: UUID
    session: str
    agent_persona_id: UUID | None = None


def turn_append(*, actor: Actor, conversation: Conversation, asked: AddedCube, answered: AddedCube) -> None:
    """Append a turn of a chat to its stream, in the transaction that stores the turn.

    Raises Forbidden. Writes the rows of `pages_append`, but none if the reader has no persona.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    persona_id = conversation.persona_id or persona_of_member(actor)
    if persona_id is None:
        return
    stream = StreamRef(persona_id, str(conversation.id), conversation.agent_persona_id)
    draft = PageDraft(asked.cube.id, answered.cube.id, asked.cube.created_at)
    pages_append(actor=actor, stream=stream, drafts=[draft], permission=Permission.CONVERSATION_USE)


def memories_add(*, actor: Actor, drafts: Sequence[CubeDraft], texts: TextIndexes = NO_TEXTS) -> list[AddedCube]:
    """Add memories as `cubes_add` does, and append the messages among them to their streams, in one transaction.

    Raises the errors of `cubes_add`. Writes its rows, and those of `messages_append`.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    with acting(actor):
        added = cubes_add(actor=actor, drafts=drafts, texts=texts)
        messages_append(actor=actor, drafts=drafts, added=added)
    return added


def messages_append(*, actor: Actor, drafts: Sequence[CubeDraft], added: Sequence[AddedCube]) -> None:
    """Append the messages of a call to their streams, in the transaction that stores them.

    Only messages of users and assistants that `infer` read and that have a session are appended. Raises Forbidden.
    Writes the rows of `pages_append`.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    streams: dict[StreamRef, list[tuple[MessageRole, AddedCube]]] = {}
    with acting(actor):
        for draft, memory in zip(drafts, added, strict=True):
            if draft.page_role is None or memory.duplicate or memory.cube.is_quarantined or not draft.session_id:
                continue
            persona_id = memory.cube.persona_id or persona_of_member(actor)
            if persona_id is not None:
                streams.setdefault(StreamRef(persona_id, draft.session_id), []).append((draft.page_role, memory))
        for stream in sorted(streams, key=lambda reference: (str(reference.persona_id), reference.session)):
            pages = _pair_messages(streams[stream])
            pages_append(actor=actor, stream=stream, drafts=pages, permission=Permission.MEMORY_CREATE)


def pages_append(*, actor: Actor, stream: StreamRef, drafts: Sequence[PageDraft], permission: Permission) -> None:
    """Append pages to a stream under its lock; pages over the capacity move to the mid-term layer first.

    An answer without a question completes the newest page if that has no answer. Topic, segment and promotion follow
    after `pages.written`. Raises Forbidden. Writes: Stream, Page …, OutboxEvent.
    """
    authorize(actor, permission)
    with acting(actor):
        capacity = constants_in_force(stream.persona_id).stm_pages
        new = list(drafts)
        may_complete = new[0].query is None
        stream_id, position = _enter_stream(actor, stream, 0 if may_complete else len(new))
        if may_complete:
            new = new[1:] if _complete_page(stream_id, position, new[0]) else new
            position += len(new)
            _advance_stream(actor, stream_id, position)
        if new:
            with prepared_cursor() as cursor:
                remaining = max(capacity - len(new), 0)
                cursor.execute(MOVE_OLDEST, {"tenant": actor.tenant_id, "stream": stream_id, "remaining": remaining})
                cursor.execute(INSERT, _page_rows(actor, stream_id, position - len(new), new, capacity))
        emit(actor=actor, topic=Topic.PAGES_WRITTEN, payload={"stream": str(stream_id)})


def persona_of_member(actor: Actor) -> UUID | None:
    """Return the persona that the actor speaks as: the one that it named, else its member's first."""
    member_id = actor.member_id
    if actor.persona_id is not None or member_id is None:
        return actor.persona_id

    def find() -> UUID | None:
        with prepared_cursor() as cursor:
            cursor.execute(FIRST_PERSONA, [actor.tenant_id, member_id, PersonaKind.USER])
            row = cursor.fetchone()
        return row[0] if row else None

    return cached_in_transaction(("persona of member", member_id), find)


def _pair_messages(messages: Sequence[tuple[MessageRole, AddedCube]]) -> list[PageDraft]:
    """Pair each user's message with the assistant's message after it; either may be alone."""
    pages: list[PageDraft] = []
    for role, memory in messages:
        at = memory.cube.stated_at
        if role is MessageRole.USER:
            pages.append(PageDraft(memory.cube.id, None, at))
        elif pages and pages[-1].response is None:
            pages[-1] = PageDraft(pages[-1].query, memory.cube.id, pages[-1].at)
        else:
            pages.append(PageDraft(None, memory.cube.id, at))
    return pages


def _enter_stream(actor: Actor, stream: StreamRef, count: int) -> tuple[UUID, int]:
    """Lock the stream and make room for `count` pages; return its id, and the position of its last page after these."""
    token = token_maker(actor.tenant_id).token("stream", stream.session)
    row = [uuid7(), actor.tenant_id, stream.persona_id, stream.agent_persona_id, token, count]
    with prepared_cursor() as cursor:
        cursor.execute(ENTER_STREAM, row)
        stream_id, position, is_new = cursor.fetchone()
    if is_new:
        streams_end_others(actor, persona_id=stream.persona_id, stream_id=stream_id)
    return stream_id, position


def _complete_page(stream_id: UUID, position: int, answer: PageDraft) -> bool:
    """Add the answer to the newest page if it has none; return whether it did."""
    waiting = Page.objects.filter(stream_id=stream_id, position=position, response=None, layer=PageLayer.SHORT_TERM)
    return bool(waiting.update(response_id=answer.response, vector=None))


def _advance_stream(actor: Actor, stream_id: UUID, position: int) -> None:
    with prepared_cursor() as cursor:
        cursor.execute(ADVANCE, [position, actor.tenant_id, stream_id])


def _page_rows(actor: Actor, stream_id: UUID, position: int, new: Sequence[PageDraft], capacity: int) -> dict[str, Any]:
    """Return the values of INSERT. The last `capacity` pages enter the queue; earlier ones go straight through it."""
    queued = len(new) - capacity
    numbers = range(1, len(new) + 1)
    return {
        "tenant": actor.tenant_id,
        "stream": stream_id,
        "ids": sql_array(uuid7() for _ in new),
        "positions": sql_array(position + number for number in numbers),
        "queries": sql_array(page.query for page in new),
        "responses": sql_array(page.response for page in new),
        "times": sql_array(page.at.isoformat() for page in new),
        "layers": sql_array(PageLayer.SHORT_TERM if number > queued else PageLayer.MID_TERM for number in numbers),
    }
