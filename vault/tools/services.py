"""Stores tool calls as memories."""

from dataclasses import replace

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.vocabulary import Permission
from vault.content.drafts import CubeDraft
from vault.content.tool_calls import ToolCall, call_metadata, call_text
from vault.cubes.services import AddedCube, cubes_add
from vault.cubes.writer.builder import NO_TEXTS, TextIndexes
from vault.vocabulary import Modality, SemanticType


def tool_call_draft(call: ToolCall, common: CubeDraft) -> CubeDraft:
    """Return the draft of a call's memory. common: its namespace and other fields. Equal calls are stored
    separately."""
    return replace(
        common,
        content=call_text(call),
        title=common.title or call.name,
        metadata={**common.metadata, **call_metadata(call)},
        modality=Modality.TOOL_CALL,
        semantic_type=SemanticType.TOOL_TRACE,
        reader="tool_call",
        allow_duplicates=True,
    )


def tool_call_add(*, actor: Actor, draft: CubeDraft, texts: TextIndexes = NO_TEXTS) -> AddedCube:
    """Store a tool call as a memory. Raises and writes as `cubes_add`."""
    authorize(actor, Permission.MEMORY_CREATE)
    return cubes_add(actor=actor, drafts=[draft], texts=texts)[0]
