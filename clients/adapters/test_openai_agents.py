"""`MemosSession` in runs of an agent, with a model that a script plays."""

import asyncio
from typing import Any

import pytest
from agents import Agent, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.memory.session import Session
from agents.models.interface import Model
from memos_client import AsyncMemos, Memos
from memos_client.openai_agents import MemosSession
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

ITEMS: list[Any] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "My sister Mia lives in Porto."},
    {
        "role": "user",
        "content": [{"type": "input_text", "text": "And?"}, {"type": "input_image", "image_url": "data:,x"}],
    },
    {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
    {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "look_up", "arguments": '{"city": "Porto"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "Sunny."},
    {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "21"}]},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Sunny, 21°.", "annotations": []}],
    },
]


class Scripted(Model):
    """Answers with each output in turn, and notes what it was asked."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs = list(outputs)
        self.asked: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **more: Any) -> ModelResponse:
        self.asked.append(input)
        return ModelResponse(output=[self.outputs.pop(0)], usage=Usage(), response_id=None)

    def stream_response(self, *rest: Any, **more: Any) -> Any:
        raise NotImplementedError


def said(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id="msg", type="message", role="assistant", status="completed", content=[part])


@pytest.mark.parametrize("infer", [True, False])
def test_items_come_back_exactly_and_in_order(name: str, infer: bool) -> None:
    async def act() -> None:
        async with AsyncMemos() as memos:
            session = MemosSession(name, memos, infer=infer)
            assert isinstance(session, Session)
            assert await session.get_items() == []
            assert await session.pop_item() is None
            await session.add_items(ITEMS[:3])
            await session.add_items(ITEMS[3:])
            assert await session.get_items() == ITEMS
            assert await session.get_items(limit=2) == ITEMS[-2:]
            assert await session.get_items(limit=0) == []
            assert await session.pop_item() == ITEMS[-1]
            assert await session.get_items() == ITEMS[:-1]
            assert await MemosSession(f"{name}-other", memos).get_items() == []
            await session.clear_session()
            assert await session.get_items() == []

    asyncio.run(act())


def test_agent_with_a_tool_continues_a_session(name: str) -> None:
    @function_tool
    def look_up(city: str) -> str:
        """Look the weather up."""
        return f"Sunny in {city}."

    call = ResponseFunctionToolCall(
        type="function_call", id="fc_1", call_id="call_1", name="look_up", arguments='{"city": "Porto"}'
    )
    model = Scripted(call, said("Sunny."), said("Porto."))

    async def act() -> str:
        async with AsyncMemos() as memos:
            agent = Agent(name="Guide", model=model, tools=[look_up])
            config = RunConfig(tracing_disabled=True)
            await Runner.run(agent, "How is Porto?", session=MemosSession(name, memos), run_config=config)
            result = await Runner.run(agent, "Which city?", session=MemosSession(name, memos), run_config=config)
            return str(result.final_output)

    assert asyncio.run(act()) == "Porto."
    kinds = [item.get("type", "message") for item in model.asked[-1]]
    assert kinds == ["message", "function_call", "function_call_output", "message", "message"]
    assert model.asked[-1][-1]["content"] == "Which city?"


def test_statement_in_a_session_becomes_a_memory(name: str) -> None:
    async def act() -> None:
        async with AsyncMemos() as memos:
            items: list[Any] = [{"role": "user", "content": f"Hello! My sister {name} lives in Porto. Thanks?"}]
            await MemosSession(name, memos).add_items(items)

    asyncio.run(act())
    with Memos() as memos:
        assert memos.search(f"Where does {name} live?", limit=1)[0].content == f"My sister {name} lives in Porto."
