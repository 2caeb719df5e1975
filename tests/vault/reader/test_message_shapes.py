"""Messages as the SDKs of language models hold them, made by these SDKs or taken from their published types."""

from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage

from vault.content.tool_calls import ToolCall
from vault.reader.message_calls import read_tool_call, split_tool_calls
from vault.reader.message_shapes import read_shape
from vault.reader.services import Message
from vault.vocabulary import MessageRole, ToolOutcome

FUNCTION = {"name": "get_weather", "arguments": '{"city": "Porto"}'}
CALL = {"id": "call_1", "type": "function", "function": FUNCTION}
DUMP = ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [CALL]}).model_dump()
OUTPUT = ResponseOutputMessage.model_validate(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "It rains.", "annotations": []}],
    }
).model_dump()
ITEM = ResponseFunctionToolCall.model_validate({"type": "function_call", "call_id": "call_1", **FUNCTION}).model_dump()
# anthropic-sdk-python, src/anthropic/types/tool_use_block_param.py and tool_result_block_param.py
USE = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Porto"}}
ANSWER = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "17 °C"}]}
IMAGE = {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (DUMP, {"role": "assistant", "content": "", "tool_calls": [CALL]}),
        (OUTPUT, {"role": "assistant", "content": "It rains."}),
        (ITEM, {"role": "assistant", "content": "", "tool_calls": [CALL]}),
        (
            {"type": "function_call_output", "call_id": "call_1", "output": "17 °C"},
            {"role": "tool", "content": "17 °C", "tool_call_id": "call_1"},
        ),
        ({"role": "developer", "content": "Be short."}, {"role": "system", "content": "Be short."}),
        (
            {"role": "function", "name": "f", "content": "{}", "function_call": None},
            {"role": "tool", "name": "f", "content": "{}"},
        ),
        (
            {"role": "assistant", "content": None, "function_call": FUNCTION},
            {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": FUNCTION}]},
        ),
        (
            {
                "role": "user",
                "content": [{"type": "text", "text": "Look:"}, IMAGE, {"type": "input_text", "text": "Mia."}],
            },
            {"role": "user", "content": "Look:\nMia.", "metadata": {"omitted_parts": ["image_url"]}},
        ),
        (
            {"role": "user", "content": [IMAGE]},
            {"role": "user", "content": "", "metadata": {"omitted_parts": ["image_url"]}},
        ),
        (
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, USE]},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [{"id": "toolu_1", "type": "function", "function": FUNCTION}],
            },
        ),
        (
            {"role": "user", "content": [{**ANSWER, "is_error": True}]},
            {"role": "tool", "content": "17 °C", "tool_call_id": "toolu_1", "metadata": {"outcome": "failed"}},
        ),
        ({"role": "assistant", "content": None, "refusal": "I cannot."}, {"role": "assistant", "content": "I cannot."}),
        (
            {"role": "assistant", "content": None, "audio": {"id": "a", "transcript": "Hello."}},
            {"role": "assistant", "content": "Hello."},
        ),
        ({"role": "assistant", "content": None, "tool_calls": None}, {"role": "assistant"}),
        ({"role": "owner", "content": 7, "mood": "good"}, {"role": "owner", "content": 7, "mood": "good"}),
        (
            {"role": ["user"], "content": [7, None]},
            {"role": ["user"], "content": "", "metadata": {"omitted_parts": ["unknown"]}},
        ),
    ],
)
def test_message_of_an_sdk_is_read(given: dict[str, Any], read: dict[str, Any]) -> None:
    assert read_shape(given) == read


def test_call_and_its_answer_are_one_message() -> None:
    messages = [
        Message(MessageRole.USER, "What is the weather?"),
        Message(MessageRole.ASSISTANT, "I look.", message_id="m", tool_calls=(CALL, {**CALL, "id": "call_2"})),
        Message(MessageRole.TOOL, "17 °C", tool_call_id="call_1"),
        Message(MessageRole.TOOL, "No network.", tool_call_id="call_2", metadata={"outcome": "failed"}),
        Message(MessageRole.TOOL, "Left over.", tool_call_id="call_9"),
    ]
    split = split_tool_calls(messages)
    assert [message.content for message in split] == ["What is the weather?", "I look.", "", "", "Left over."]
    assert [message.message_id for message in split] == ["", "m", "m:1", "m:2", ""]
    arguments = {"city": "Porto"}
    assert [message.call for message in split if message.call] == [
        ToolCall("get_weather", arguments, ToolOutcome.SUCCEEDED, result="17 °C"),
        ToolCall("get_weather", arguments, ToolOutcome.FAILED, error="No network."),
    ]


def test_answer_of_a_tool_with_metadata_is_stored_with_its_call_and_by_itself() -> None:
    answer = Message(MessageRole.TOOL, "17 °C", tool_call_id="call_1", metadata={"sensor": "roof"})
    split = split_tool_calls([Message(MessageRole.ASSISTANT, "", tool_calls=(CALL,)), answer])
    assert split[0].call is not None
    assert (split[0].call.result, split[1:]) == ("17 °C", [answer])


@pytest.mark.parametrize(
    ("raw", "call"),
    [
        (CALL, ToolCall("get_weather", {"city": "Porto"}, None)),
        ({"name": "f"}, ToolCall("f", {}, None)),
        ({"function": {"name": "f", "arguments": "not JSON"}}, ToolCall("f", {"arguments": "not JSON"}, None)),
        ({"function": {"name": "f", "arguments": "[1]"}}, ToolCall("f", {"arguments": [1]}, None)),
        ({"function": {"name": ""}}, None),
        ("text", None),
    ],
)
def test_call_is_read_as_far_as_it_names_a_tool(raw: Any, call: ToolCall | None) -> None:
    assert read_tool_call(raw) == call
