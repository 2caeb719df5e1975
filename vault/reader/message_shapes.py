"""Messages as agents hold them, in our own fields: those of OpenAI's chat and responses APIs with the dumps of its SDK,
and the parts of Anthropic's messages. Pure.

Shapes: openai-python src/openai/types/chat and src/openai/types/responses, anthropic-sdk-python src/anthropic/types.
"""

import json
from collections.abc import Mapping
from typing import Any

ROLES = {"developer": "system", "function": "tool", "human": "user", "ai": "assistant", "model": "assistant"}
# What the SDKs dump beside the words of a message, and what calls and their answers are made of in the responses API.
DUMPED = frozenset({"refusal", "annotations", "audio", "function_call", "parsed", "id", "type", "status", "phase"})
OF_ITEMS = frozenset({"call_id", "arguments", "output"})
FIELDS = frozenset({"role", "name", "content", "timestamp", "message_id", "tool_calls", "tool_call_id", "metadata"})
CALLS = frozenset({"tool_use", "tool-call"})
RESULTS = frozenset({"tool_result", "tool-result"})
OMITTED = "omitted_parts"  # in the metadata: types of the parts of a message that are no text

Shape = dict[str, Any]


def read_shape(given: Mapping[str, Any]) -> Shape:
    """Return a message in the fields of REST's `messages`; unknown fields and values stay, to be refused there.

    Null is absent. Parts of text are joined by line breaks; other parts are named in the metadata.
    """
    message: Shape = {str(name): value for name, value in given.items() if value is not None}
    kind = message.get("type")
    if kind == "function_call":
        return _make_call(message)
    if kind == "function_call_output":
        return _make_result(message)
    words = {name: message.pop(name) for name in DUMPED if name in message}
    role = message.get("role")
    if isinstance(role, str):
        message["role"] = ROLES.get(role, role)
    _read_content(message, words)
    if not isinstance(message.get("tool_calls", []), list) and not message["tool_calls"]:
        del message["tool_calls"]
    if message.get("tool_calls"):
        message.setdefault("content", "")
    return message


def _read_content(message: Shape, words: Shape) -> None:
    """Replace the content by its text, and add what stands beside the content or among its parts."""
    calls = message["tool_calls"] if isinstance(message.get("tool_calls"), list) else []
    if isinstance(words.get("function_call"), Mapping):
        calls = [*calls, {"type": "function", "function": dict(words["function_call"])}]
    content = message.get("content")
    if isinstance(content, list):
        calls = [*calls, *(_read_use(part) for part in content if _kind_of(part) in CALLS)]
        _read_parts(message, content)
    elif isinstance(content, Mapping) and message.get("role") == "tool":
        message["content"] = json.dumps(content, ensure_ascii=False)
    if not message.get("content"):
        _read_transcript(message, words)
    if calls:
        message["tool_calls"] = calls


def _read_parts(message: Shape, parts: list[Any]) -> None:
    results = [part for part in parts if _kind_of(part) in RESULTS]
    if results and len(results) == len(parts) == 1:
        message |= _read_result(results[0])
        return
    texts = [text for part in parts if (text := _text_of(part)) is not None]
    message["content"] = "\n".join(texts)
    omitted = sorted({kind for part in parts if _text_of(part) is None and (kind := _kind_of(part)) not in CALLS})
    metadata = message.get("metadata", {})
    if omitted and isinstance(metadata, Mapping):
        message["metadata"] = {**metadata, OMITTED: omitted}


def _read_transcript(message: Shape, words: Shape) -> None:
    """Take a refusal, or what was spoken, for the content of a message without one."""
    audio = words.get("audio")
    spoken = words.get("refusal") or (audio.get("transcript") if isinstance(audio, Mapping) else None)
    if isinstance(spoken, str) and spoken:
        message["content"] = spoken


def _kind_of(part: Any) -> str:
    return (
        str(part.get("type", "unknown"))
        if isinstance(part, Mapping)
        else "text"
        if isinstance(part, str)
        else "unknown"
    )


def _text_of(part: Any) -> str | None:
    """Return the text of a part, also of a result among other parts; None for a part without text."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return None
    if _kind_of(part) in RESULTS:
        return str(_read_result(part)["content"])
    text = part.get("text", part.get("refusal"))
    return text if isinstance(text, str) and _kind_of(part) not in {"thinking", "reasoning"} else None


def _read_use(part: Mapping[str, Any]) -> Shape:
    arguments = part.get("input", part.get("args", {}))
    function = {"name": part.get("name", part.get("toolName")), "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": part.get("id", part.get("toolCallId")), "type": "function", "function": function}


def _read_result(part: Mapping[str, Any]) -> Shape:
    result: Shape = {
        "role": "tool",
        "content": _write_output(part.get("content", part.get("output", part.get("result")))),
    }
    if call_id := part.get("tool_use_id", part.get("toolCallId")):
        result["tool_call_id"] = call_id
    if part.get("is_error") or part.get("isError"):
        result["metadata"] = {"outcome": "failed"}
    return result


def _make_call(item: Shape) -> Shape:
    function = {"name": item.get("name"), "arguments": item.get("arguments", "")}
    call = {"id": item.get("call_id"), "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def _make_result(item: Shape) -> Shape:
    result: Shape = {"role": "tool", "content": _write_output(item.get("output"))}
    return result | ({"tool_call_id": item["call_id"]} if item.get("call_id") else {})


def _write_output(output: Any) -> str:
    if isinstance(output, str):
        return output
    if isinstance(output, list) and output and all(_text_of(part) is not None for part in output):
        return "\n".join(str(_text_of(part)) for part in output)
    return "" if output is None else json.dumps(output, ensure_ascii=False)
