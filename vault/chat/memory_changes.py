"""Memory changes from within a chat: operations that a turn offered, undoing, excluding memories, and goals."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.denials import record_and_return_denial
from governance.errors import Conflict, FieldError, Forbidden, Held, Invalid, NotFound, VersionConflict
from governance.vocabulary import Permission, Verb
from vault.chat.selectors import conversation_locate, select_statements, select_stating_messages, turn_get
from vault.content.drafts import CubeChanges
from vault.cubes.services import cube_delete, cube_update, cubes_hide
from vault.layers.contradictions import contradiction_undo
from vault.layers.persona_scope import scope_to_conversation
from vault.lifecycle.services import cube_transition
from vault.models import Cube, Turn
from vault.reader.rules import Intent, read_tag
from vault.vocabulary import State

MOST_EXCLUDED = 200  # memories that one conversation leaves out
STATES = {Intent.ARCHIVE: State.ARCHIVED, Intent.RESTORE: State.ACTIVATED}
CONFIRMED = frozenset({Intent.DELETE, Intent.TAG, *STATES})  # intents that are carried out once the member agrees


@dataclass(frozen=True)
class Operation:
    """The outcome of an offer. reply: its name in PHRASES; done: the memories that were changed, without messages;
    messages: those that stated them, changed too; left: the number of memories that were not changed.
    """

    intent: Intent
    reply: str
    done: tuple[UUID, ...] = ()
    messages: tuple[UUID, ...] = ()
    left: int = 0


def turn_operate(*, actor: Actor, conversation_id: UUID, turn_id: UUID) -> Operation:
    """Do what a turn offered with the memories that it lists.

    Deletes, archives, restores or tags. Deletions and archivings include the messages that stated the memories.
    Memories that may not be changed are skipped; but if one of a deletion is held, none is deleted. Raises NotFound;
    Forbidden; Held. Writes: Cube …, Turn, AuditEntry ….
    """
    with acting(actor):
        conversation = conversation_locate(actor, conversation_id)
        actor = scope_to_conversation(actor, conversation)
        row = Turn.objects.filter(conversation=conversation, id=turn_id, intent__in=CONFIRMED).first()
        if row is None:
            raise NotFound
        ids = [UUID(citation["memory_id"]) for citation in row.citations]
        found = list(Cube.objects.visible_to(actor).filter(id__in=ids, deleted_at=None))
        if row.intent == Intent.DELETE:
            for cube in found:
                cube_delete(actor=actor, cube_id=cube.id)
            done = tuple(cube.id for cube in found)
            hidden = _hide_messages(actor, done)
            return Operation(Intent.DELETE, "forgotten" if found else "delete_none", done, hidden)
        pages = list(select_stating_messages(actor, ids)) if row.intent in STATES else []
    intent = Intent(row.intent)  # a model may have read it
    question = turn_get(actor=actor, conversation_id=conversation_id, turn_id=turn_id).question or ""
    tag = read_tag(question) if intent is Intent.TAG else ""
    done, messages = (
        tuple(cube.id for cube in cubes if _change_memory(actor, intent, tag, cube)) for cubes in (found, pages)
    )
    with acting(actor):
        Turn.objects.filter(id=turn_id).update(intent=Intent.CHAT)  # it offers nothing any more
    left = len(found) - len(done)
    reply = "operation_failed" if not done else "operation_partly" if left else "operation_done"
    return Operation(intent, reply, done, messages, left)


def _change_memory(actor: Actor, intent: Intent, tag: str, cube: Cube) -> bool:
    """Archive, restore or tag a memory, and return whether it was changed. A refusal is in the audit log."""
    try:
        if intent in STATES:
            cube_transition(actor=actor, cube_id=cube.id, to=STATES[intent])
        elif tag and tag not in cube.tags:
            cube_update(
                actor=actor,
                cube_id=cube.id,
                expected_versions={cube.version},
                changes=CubeChanges(tags=(*cube.tags, tag)),
            )
        else:
            return False
    except Forbidden as refusal:
        record_and_return_denial(actor=actor, denial=refusal, path=f"memories/{cube.id}/")
        return False
    except (NotFound, Held, Invalid, Conflict, VersionConflict):
        return False
    return True


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


def _hide_messages(actor: Actor, cube_ids: Sequence[UUID]) -> tuple[UUID, ...]:
    """Hide the typed messages that state these memories, and return them."""
    messages = list(select_stating_messages(actor, cube_ids))
    if messages:
        cubes_hide(actor=actor, cubes=messages, permission=Permission.CONVERSATION_USE)
    return tuple(message.id for message in messages)


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
