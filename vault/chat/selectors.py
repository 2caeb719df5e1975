"""Conversations and their turns, as the member who holds them reads them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from governance.actor import Actor
from governance.audit.services import record
from governance.authz.rules import Target
from governance.authz.services import authorize
from governance.database import acting
from governance.errors import Forbidden, NotFound
from governance.keys.services import open_sealed
from governance.vocabulary import Permission, Verb
from vault.cubes.selectors import cubes_view
from vault.models import Conversation, Cube, Turn
from vault.vocabulary import TurnEnd

EXTRACTIVE = "extractive"  # the `model` of a turn that no language model answered


@dataclass(frozen=True)
class Citation:
    """A memory that the answer rests on. `marker`: its number in the text, as in [1]; score: 0..1."""

    memory_id: UUID
    marker: int
    score: float


@dataclass(frozen=True)
class ConversationView:
    id: UUID
    title: str = field(repr=False)
    persona_id: UUID | None
    agent_persona_id: UUID | None
    model: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class TurnView:
    """question and answer are empty once their memories were deleted or have expired."""

    id: UUID
    conversation_id: UUID
    position: int
    question: str = field(repr=False)
    answer: str = field(repr=False)
    citations: tuple[Citation, ...]
    model: str
    end: TurnEnd
    prompt_tokens: int
    completion_tokens: int
    created_at: datetime

    @property
    def extractive(self) -> bool:
        return self.model == EXTRACTIVE


Paginate = Callable[[QuerySet[Any]], Sequence[Any]]


def conversations_list(*, actor: Actor, paginate: Paginate) -> list[ConversationView]:
    """The actor's own conversations, the newest first. Raises Forbidden. Writes: AuditEntry."""
    authorize(actor, Permission.CONVERSATION_USE)
    with acting(actor):
        mine = _in_reach(actor).filter(Q(member_id=actor.member_id), deleted_at=None)
        page = paginate(mine.order_by("-id"))
        ids = [row.id for row in page]
        record(actor=actor, verb=Verb.CONVERSATION_READ, object_type="conversation", object_ids=ids)
        return [conversation_view(row) for row in page]


def conversation_get(*, actor: Actor, conversation_id: UUID) -> ConversationView:
    """Raises NotFound; Forbidden. Writes: AuditEntry."""
    with acting(actor):
        row = conversation_locate(actor, conversation_id)
        record(actor=actor, verb=Verb.CONVERSATION_READ, object_type="conversation", object_ids=[row.id])
        return conversation_view(row)


def turns_list(*, actor: Actor, conversation_id: UUID, paginate: Paginate) -> list[TurnView]:
    """The turns of a conversation, oldest first. Raises NotFound; Forbidden. Writes: AuditEntry naming its memories."""
    with acting(actor):
        conversation = conversation_locate(actor, conversation_id)
        page = paginate(Turn.objects.filter(conversation=conversation).order_by("id"))
        texts = _texts(actor, page)
        record(actor=actor, verb=Verb.MEMORY_READ, object_type="memory", object_ids=list(texts))
        return [turn_view(row, texts) for row in page]


def conversation_locate(actor: Actor, conversation_id: UUID, *, lock: bool = False) -> Conversation:
    """The row of the actor's own conversation. Raises NotFound; Forbidden: a conversation is its member's alone."""
    rows = _in_reach(actor).filter(id=conversation_id, deleted_at=None)
    row = (rows.select_for_update() if lock else rows.select_related("agent_persona")).first()
    if row is None:
        raise NotFound
    target = Target("conversation", row.id, row.tenant_id, private_to=frozenset({row.member_id}))
    authorize(actor, Permission.CONVERSATION_USE, target)
    if row.member_id != actor.member_id:
        raise Forbidden(
            "A conversation belongs to its member alone.",
            permission=Permission.CONVERSATION_USE,
            rule="own_conversation",
            object_type="conversation",
            object_id=row.id,
        )
    return row


def _in_reach(actor: Actor) -> QuerySet[Conversation]:
    """A bound key knows of no conversation but those that it began itself."""
    rows = Conversation.objects.filter(tenant_id=actor.tenant_id)
    return rows if actor.binding is None else rows.filter(key_id=actor.principal_id)


def conversation_view(row: Conversation) -> ConversationView:
    """Open the title of a conversation that its reader may read."""
    title = open_sealed(tenant_id=row.tenant_id, place=title_place(row.id), blob=bytes(row.sealed_title))
    return ConversationView(
        id=row.id,
        title=title.decode() if title else "",
        persona_id=row.persona_id,
        agent_persona_id=row.agent_persona_id,
        model=row.model,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def turn_view(row: Turn, texts: dict[UUID, str]) -> TurnView:
    return TurnView(
        id=row.id,
        conversation_id=row.conversation_id,
        position=row.position,
        question=texts.get(row.question_id, "") if row.question_id else "",
        answer=texts.get(row.answer_id, "") if row.answer_id else "",
        citations=tuple(
            Citation(memory_id=UUID(part["memory_id"]), marker=part["marker"], score=part["score"])
            for part in row.citations
        ),
        model=row.model,
        end=TurnEnd(row.end),
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        created_at=row.created_at,
    )


def title_place(conversation_id: UUID) -> bytes:
    return b"conversation" + conversation_id.bytes


def _texts(actor: Actor, turns: Sequence[Turn]) -> dict[UUID, str]:
    named = [cube_id for turn in turns for cube_id in (turn.question_id, turn.answer_id) if cube_id is not None]
    readable = list(Cube.objects.visible_to(actor).filter(id__in=named).values_list("id", flat=True))
    return {view.cube.id: view.words.content for view in cubes_view(actor=actor, cube_ids=readable)}
