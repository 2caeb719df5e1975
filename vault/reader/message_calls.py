"""The tool calls of messages: each becomes a message of its own, with what its tool answered in the same call."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings

from vault.content.tool_calls import OUTCOME, ToolCall
from vault.reader.services import Message
from vault.vocabulary import MessageRole, ToolOutcome


def split_tool_calls(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with each tool call as a message after the words of its own.

    The answer of a tool becomes a part of its call, if both are among `messages`. It is a message, too, if it has
    metadata, which a call cannot hold. An answer without its call stays a message.
    """
    results = _find_results(messages)
    answered = {call_id for message in messages for raw in message.tool_calls if (call_id := _id_of(raw)) in results}
    split: list[Message] = []
    for message in messages:
        is_told = message.role is MessageRole.TOOL and message.tool_call_id in answered
        if is_told and not message.metadata.keys() - {OUTCOME}:
            continue
        split += _split_message(message, results)
    return split


def read_tool_call(raw: Any, result: Message | None = None) -> ToolCall | None:
    """Return a call as OpenAI's API writes it, with the answer of its tool; None if it names no tool."""
    function = raw.get("function", raw) if isinstance(raw, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str) or not name.strip():
        return None
    arguments = _read_arguments(function.get("arguments", function.get("args")))
    if result is None:
        return ToolCall(name, arguments, outcome=None)
    if result.metadata.get(OUTCOME) == ToolOutcome.FAILED:
        return ToolCall(name, arguments, ToolOutcome.FAILED, error=result.content)
    return ToolCall(name, arguments, ToolOutcome.SUCCEEDED, result=result.content)


def _find_results(messages: Sequence[Message]) -> dict[str, Message]:
    """Return the answers of tools by the id of their call, without those too long to stand in one memory with it."""
    return {
        message.tool_call_id: message
        for message in messages
        if message.role is MessageRole.TOOL
        and message.tool_call_id
        and len(message.content) <= settings.MAX_CONTENT_CHARACTERS // 2
    }


def _split_message(message: Message, results: Mapping[str, Message]) -> list[Message]:
    calls = [(raw, read_tool_call(raw, results.get(_id_of(raw)))) for raw in message.tool_calls]
    if not calls or any(call is None for _, call in calls):
        return [message]
    parts = [message] if message.content else []
    for raw, call in calls:
        named = f"{message.message_id}:{len(parts)}" if message.message_id and parts else message.message_id
        call_id = _id_of(raw) or message.tool_call_id
        parts.append(replace(message, content="", message_id=named, tool_calls=(raw,), tool_call_id=call_id, call=call))
    return parts


def _id_of(raw: Any) -> str:
    found = raw.get("id") if isinstance(raw, Mapping) else None
    return found if isinstance(found, str) else ""


def _read_arguments(given: Any) -> Mapping[str, Any]:
    """Return the arguments as an object; a text that is none stands whole under `arguments`."""
    try:
        found = json.loads(given) if isinstance(given, str) and given else given
    except (ValueError, RecursionError):
        return {"arguments": given}
    return found if isinstance(found, dict) else {"arguments": found} if found is not None else {}
