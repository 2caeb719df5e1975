"""MemReader for messages to store: turns them into drafts of cubes. Deterministic; each cube names its reader."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from django.utils.timezone import localtime

from vault.content.drafts import CubeDraft
from vault.content.tool_calls import ToolCall, call_metadata, call_text
from vault.lexicon.resolved_dates import time_of
from vault.reader.rules import Statement, read_statements, sentences
from vault.vocabulary import Layer, MessageRole, Modality, SemanticType

VERBATIM = "verbatim"
PATTERNS = "patterns/1"
MODEL = "model/1"  # a language model chose among the sentences
NONE_CHOSEN: Mapping[int, Sequence[Statement]] = {}
MOST_STATEMENTS = 500  # of one message that become memories of their own; the message itself keeps all
PAGE_ROLES = frozenset({MessageRole.USER, MessageRole.ASSISTANT})  # whose messages are sides of pages
LONGEST_EVENT = 500  # characters of a bare statement that is read for the time of its event
LEAST_CONFIDENCE = 0.5  # of a statement that becomes a memory of its own


@dataclass(frozen=True)
class Message:
    """An incoming message. `name`: the speaker; `timestamp`: when it was said; `call`: the only thing that it holds."""

    role: MessageRole
    content: str = field(repr=False)
    name: str = ""
    timestamp: datetime | None = None
    message_id: str = ""
    tool_calls: Sequence[Any] = ()
    tool_call_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    call: ToolCall | None = field(default=None, repr=False)


def messages_read(
    messages: Sequence[Message],
    *,
    infer: bool,
    common: CubeDraft,
    chosen: Mapping[int, Sequence[Statement]] = NONE_CHOSEN,
    may_repeat: bool = False,
) -> list[CubeDraft]:
    """Return drafts for `messages`, in order; `common` has the fields that all of them share.

    chosen: statements that a language model has read, by message index; patterns read the other messages. may_repeat: a
    statement without a time of its own may be another occasion of a stored one.

    Without `infer` each message is one cube, verbatim. With it, a message of a session is a page of the short-term
    layer, and each of its statements becomes a long-term cube of the same session, derived from the message. A message
    without statements is marked as dialogue only.
    """
    drafts: list[CubeDraft] = []
    for index, message in enumerate(messages):
        whole = _draft_message(message, common)
        if not infer or message.call is not None:
            drafts.append(whole)
            continue
        reader = MODEL if index in chosen else PATTERNS
        found = chosen[index] if index in chosen else _find_statements(message, common)
        kind = SemanticType(found[0].semantic_type) if _is_whole(found, whole) else whole.semantic_type
        layer = Layer.SHORT_TERM if common.session_id else Layer.LONG_TERM
        parent = len(drafts)
        role = message.role if message.role in PAGE_ROLES else None
        page = replace(whole, layer=layer, semantic_type=kind, reader=reader, page_role=role)
        if _is_whole(found, whole):
            page = replace(page, event_time=found[0].event_time or page.event_time)
        is_whole = _is_whole(found, whole) and found[0].event_time is None
        page = replace(page, is_dialogue_only=kind is SemanticType.DIALOGUE and not found)
        drafts.append(replace(page, may_repeat=may_repeat and is_whole))
        statements = _draft_statements(found, page, parent)
        drafts += [
            replace(draft, may_repeat=may_repeat and draft.event_time == page.event_time) for draft in statements
        ]
    return drafts


def draft_content(common: CubeDraft) -> CubeDraft:
    """Return the draft of a bare statement. Without a time of its own it has that of the event which its only sentence
    names, and was said now.
    """
    if common.event_time is not None:
        return replace(common, event_time=common.event_time.astimezone(UTC))
    now = localtime()
    is_single = len(common.content) <= LONGEST_EVENT and len(sentences(common.content)) == 1
    if not is_single or time_of(common.content, now) is None:
        return common
    found = read_statements(common.content, speaker=MessageRole.USER, said_at=now)
    if len(found) != 1 or found[0].text != common.content.strip() or found[0].event_time is None:
        return common
    return replace(common, event_time=found[0].event_time, said_at=now.astimezone(UTC))


def _draft_message(message: Message, common: CubeDraft) -> CubeDraft:
    said_at = message.timestamp or common.event_time
    said_at = said_at.astimezone(UTC) if said_at else None
    tool = message.role is MessageRole.TOOL or (bool(message.tool_calls) and not message.content)
    call = message.call
    return replace(
        common,
        content=call_text(call)
        if call
        else message.content or json.dumps(list(message.tool_calls), ensure_ascii=False),
        title=common.title or (call.name if call else ""),
        speaker=message.name or message.role,
        message_id=message.message_id,
        event_time=said_at,
        said_at=said_at,
        metadata={**common.metadata, **_tool_metadata(message), **message.metadata},
        modality=Modality.TOOL_CALL if tool else Modality.TEXT,
        semantic_type=SemanticType.TOOL_TRACE if tool else SemanticType.DIALOGUE,
        reader=VERBATIM,
        is_message=True,
    )


def _tool_metadata(message: Message) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    if message.call is not None:
        parts |= call_metadata(message.call)
    if message.tool_call_id:
        parts["tool_call_id"] = message.tool_call_id
    if message.tool_calls and message.content:
        parts["tool_calls"] = list(message.tool_calls)
    return parts


def _find_statements(message: Message, common: CubeDraft) -> list[Statement]:
    """Return a person's statements. The words of assistants and tools are stored, but state no facts."""
    said_at = message.timestamp or common.event_time or localtime()
    found = read_statements(message.content, speaker=message.role, said_at=said_at)
    return [statement for statement in found if statement.confidence >= LEAST_CONFIDENCE][:MOST_STATEMENTS]


def _is_whole(found: Sequence[Statement], whole: CubeDraft) -> bool:
    """Return whether a message is exactly one statement, so that the message itself is the memory."""
    return len(found) == 1 and found[0].text == whole.content.strip()


def _draft_statements(found: Sequence[Statement], whole: CubeDraft, parent: int) -> Iterator[CubeDraft]:
    if _is_whole(found, whole):
        return
    for statement in found:
        yield statement_draft(whole, statement, parent, reader=whole.reader)


def statement_draft(page: CubeDraft, statement: Statement, parent: int, *, reader: str = PATTERNS) -> CubeDraft:
    """Return the draft of a statement: a long-term memory of the page's session and speaker, derived from draft
    `parent`.
    """
    return replace(
        page,
        content=statement.text,
        semantic_type=SemanticType(statement.semantic_type),
        event_time=statement.event_time or page.event_time,
        message_id="",
        layer=Layer.LONG_TERM,
        reader=reader,
        is_message=False,
        is_dialogue_only=False,
        page_role=None,
        parent=parent,
    )
