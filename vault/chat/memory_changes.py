"""Memory changes from within a chat: forgetting, undoing, excluding memories, and goals."""

from collections.abc import Sequence
from uuid import UUID

from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import FieldError, Invalid, NotFound
from governance.vocabulary import Permission, Verb
from vault.chat.selectors import conversation_locate, select_statements
from vault.cubes.services import cube_delete, cubes_hide
from vault.layers.contradictions import contradiction_undo
from vault.layers.persona_scope import scope_to_conversation
from vault.models import Cube, CubeSource, Turn
from vault.reader.rules import Intent
from vault.vocabulary import Source, SourceKind

MOST_EXCLUDED = 200  # memories that one conversation leaves out


def turn_forget(*, actor: Actor, conversation_id: UUID, turn_id: UUID) -> int:
    """Delete the memories that a turn offered to forget, with the pages that stated them, and return their number.

    Memories that were deleted meanwhile are skipped. If one is held, none is deleted. Raises NotFound; Forbidden; Held.
    Writes: Cube …, AuditEntry ….
    """
    with acting(actor):
        conversation = conversation_locate(actor, conversation_id)
        actor = scope_to_conversation(actor, conversation)
        turn = Turn.objects.filter(conversation=conversation, id=turn_id, intent=Intent.DELETE).first()
        if turn is None:
            raise NotFound
        ids = [UUID(citation["memory_id"]) for citation in turn.citations]
        found = list(Cube.objects.visible_to(actor).filter(id__in=ids, deleted_at=None))
        for cube in found:
            cube_delete(actor=actor, cube_id=cube.id)
        _pages_hide(actor, [cube.id for cube in found])
        return len(found)


def turn_statements_undo(*, actor: Actor, conversation_id: UUID, turn_id: UUID) -> int:
    """Delete the memories that a turn stored from its question, and return their number. The question stays in the
    chat, and corrected statements become valid again.

    Raises NotFound; Forbidden; Held (then none is deleted). Writes: Cube …, AuditEntry.
    """
    with acting(actor):
        conversation = conversation_locate(actor, conversation_id)
        turn = Turn.objects.filter(conversation=conversation, id=turn_id).first()
        if turn is None:
            raise NotFound
        found = list(select_statements(actor, [turn]))
        for corrected in Cube.objects.visible_to(actor).filter(superseded_by__in=[cube.id for cube in found]):
            contradiction_undo(actor=actor, cube_id=corrected.id)
        if found:
            cubes_hide(actor=actor, cubes=found, permission=Permission.CONVERSATION_USE)
        return len(found)


def _pages_hide(actor: Actor, cube_ids: Sequence[UUID]) -> None:
    """Hide the typed messages all of whose stated memories are deleted."""
    rows = CubeSource.objects.filter(cube_id__in=cube_ids, kind=SourceKind.EXTRACT).values("source_id")
    pages = list(Cube.objects.visible_to(actor).filter(id__in=rows, source=Source.CHAT, owner_id=actor.member_id))
    if pages:
        cubes_hide(actor=actor, cubes=pages, permission=Permission.CONVERSATION_USE)


def conversation_exclude(*, actor: Actor, conversation_id: UUID, memory_id: UUID, is_excluded: bool) -> None:
    """Exclude a memory from the answers of one conversation, or include it again.

    Raises NotFound; Forbidden; Invalid (too many are excluded). Writes: Conversation, AuditEntry.
    """
    with acting(actor):
        row = conversation_locate(actor, conversation_id, lock=True)
        if not Cube.objects.visible_to(scope_to_conversation(actor, row)).filter(id=memory_id).exists():
            raise NotFound
        others = [excluded_id for excluded_id in row.excluded if excluded_id != str(memory_id)]
        row.excluded = [*others, str(memory_id)] if is_excluded else others
        if len(row.excluded) > MOST_EXCLUDED:
            raise Invalid(errors=[FieldError("memory_id", f"at most {MOST_EXCLUDED} memories can be left out")])
        row.save(update_fields=["excluded"])
        record(actor=actor, verb=Verb.CONVERSATION_UPDATED, object_type="conversation", object_ids=[row.id])


def conversation_goals_set(*, actor: Actor, conversation_id: UUID, raises_goals: bool) -> None:
    """Set whether answers recall a goal that a question touches. Raises NotFound; Forbidden. Writes: Conversation,
    AuditEntry.
    """
    with acting(actor):
        row = conversation_locate(actor, conversation_id, lock=True)
        row.raises_goals = raises_goals
        row.save(update_fields=["raises_goals"])
        record(actor=actor, verb=Verb.CONVERSATION_UPDATED, object_type="conversation", object_ids=[row.id])
