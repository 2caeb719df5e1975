"""Rules of histories: how the messages of a framework become messages of a conversation, and back. Pure."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from memos_client.models import Json, Memory

FORMAT = "history_format"  # names in the metadata of a message
MESSAGE = "history_message"
LONGEST_CONTENT = 32_000

Role = Literal["user", "assistant", "system", "tool"]


@dataclass(frozen=True)
class Entry:
    """One message. `raw`: the message as the framework has it, as JSON; the others are what the server reads of it."""

    role: Role
    text: str
    raw: Json = field(repr=False)
    name: str = ""
    tool_calls: tuple[Json, ...] = ()
    tool_call_id: str = ""


def message_of(entry: Entry, format_name: str) -> Json:
    """An entry as a message of `POST memories/`."""
    text = entry.text.strip()[:LONGEST_CONTENT]
    message: Json = {
        "role": entry.role,
        "content": text or ("" if entry.tool_calls else json.dumps(entry.raw, ensure_ascii=False)[:LONGEST_CONTENT]),
        "timestamp": datetime.now(UTC).isoformat(),
        "metadata": {FORMAT: format_name, MESSAGE: entry.raw},
    }
    optional = {"name": entry.name, "tool_calls": list(entry.tool_calls), "tool_call_id": entry.tool_call_id}
    return message | {name: value for name, value in optional.items() if value}


def filters_of(format_name: str) -> Json:
    """The filter for all messages of a history, also for those that state nothing."""
    return {f"metadata.{FORMAT}": format_name, "dialogue_only": {"in": [True, False]}}


def is_of_history(memory: Memory, session_id: str) -> bool:
    """True for a message itself, false for a statement that was read from one."""
    return memory.session_id == session_id and MESSAGE in memory.metadata and not memory.raw["parents"]


def is_same_message(memory: Memory, other: Memory) -> bool:
    """True for two neighbours of a history that were stored from one message."""
    return (memory.raw["said_at"], raw_of(memory)) == (other.raw["said_at"], raw_of(other))


def raw_of(memory: Memory) -> Any:
    return memory.metadata[MESSAGE]


def text_of_parts(content: Any) -> str:
    """The text of a message's content: a text, or a list of texts and of parts with a `text`."""
    return content if isinstance(content, str) else "\n".join(_texts(content if isinstance(content, list) else []))


def _texts(parts: Iterable[Any]) -> Iterator[str]:
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            yield text
