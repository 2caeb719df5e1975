"""MemReader, its writing half: messages become drafts of cubes. Deterministic; each cube names its reader."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from vault.cubes.drafts import CubeDraft
from vault.reader.rules import Statement, statements
from vault.vocabulary import Layer, MessageRole, Modality, SemanticType

VERBATIM = "verbatim"
PATTERNS = "patterns/1"
MOST_STATEMENTS = 500  # of one message that become memories of their own; the message itself keeps all
LEAST_CONFIDENCE = 0.5  # of a statement that becomes a memory of its own


@dataclass(frozen=True)
class Message:
    """One message as it came in. `name` is who said it, `timestamp` when."""

    role: MessageRole
    content: str = field(repr=False)
    name: str = ""
    timestamp: datetime | None = None
    message_id: str = ""
    tool_calls: Sequence[Any] = ()
    tool_call_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)


def messages_read(messages: Sequence[Message], *, infer: bool, common: CubeDraft) -> list[CubeDraft]:
    """Drafts for `messages`, in order; what all have in common is taken from `common`.

    Without `infer` each message is one cube, verbatim. With it, each is a page of the short-term layer when it belongs
    to a session, and what it states beside other things becomes a long-term cube derived from it.
    """
    drafts: list[CubeDraft] = []
    for message in messages:
        whole = _verbatim(message, common)
        if not infer:
            drafts.append(whole)
            continue
        found = _statements(message)
        kind = SemanticType(found[0].semantic_type) if len(found) == 1 else whole.semantic_type
        layer = Layer.SHORT_TERM if common.session_id else Layer.LONG_TERM
        parent = len(drafts)
        drafts.append(replace(whole, layer=layer, semantic_type=kind, reader=PATTERNS))
        drafts += _derived(found, whole, parent)
    return drafts


def _verbatim(message: Message, common: CubeDraft) -> CubeDraft:
    tool = message.role is MessageRole.TOOL or (bool(message.tool_calls) and not message.content)
    return replace(
        common,
        content=message.content or json.dumps(list(message.tool_calls), ensure_ascii=False),
        speaker=message.name or message.role,
        message_id=message.message_id,
        event_time=message.timestamp or common.event_time,
        metadata={**common.metadata, **_tools(message), **message.metadata},
        modality=Modality.TOOL_CALL if tool else Modality.TEXT,
        semantic_type=SemanticType.TOOL_TRACE if tool else SemanticType.DIALOGUE,
        reader=VERBATIM,
        is_message=True,
    )


def _tools(message: Message) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    if message.tool_call_id:
        parts["tool_call_id"] = message.tool_call_id
    if message.tool_calls and message.content:
        parts["tool_calls"] = list(message.tool_calls)
    return parts


def _statements(message: Message) -> list[Statement]:
    """What a person states; an assistant's and a tool's words are kept, but they are not facts about anyone."""
    if message.role is not MessageRole.USER:
        return []
    found = [one for one in statements(message.content) if one.confidence >= LEAST_CONFIDENCE]
    return found[:MOST_STATEMENTS]


def _derived(found: Sequence[Statement], whole: CubeDraft, parent: int) -> Iterator[CubeDraft]:
    for statement in found:
        if len(found) == 1 or statement.text == whole.content.strip():
            continue  # the message itself says just this
        yield replace(
            whole,
            content=statement.text,
            semantic_type=SemanticType(statement.semantic_type),
            message_id="",
            session_id="",
            layer=Layer.LONG_TERM,
            reader=PATTERNS,
            is_message=False,
            parent=parent,
        )
