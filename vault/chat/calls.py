"""The call that a text makes of the memory, read and not carried out."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.pages import Last
from governance.vocabulary import Permission
from vault.chat.selectors import turns_list
from vault.chat.services import FOLLOWED
from vault.reader.rules import MemoryCall, memory_call


def call_read(*, actor: Actor, text: str, past: Sequence[str] = ()) -> MemoryCall:
    """past: the questions before the text, the last one last; they complete a follow-up. Raises Forbidden."""
    authorize(actor, Permission.CONVERSATION_USE)
    return memory_call(text, said_at=datetime.now(UTC), past=past)


def last_questions(*, actor: Actor, conversation_id: UUID) -> list[str]:
    """The last FOLLOWED questions of one of the actor's own conversations, oldest first.

    Raises NotFound; Forbidden. Writes: AuditEntry naming the memories of its turns, AuditEntry?.
    """
    turns = turns_list(actor=actor, conversation_id=conversation_id, pages=Last(FOLLOWED))
    return [turn.question for turn in turns if turn.question]
