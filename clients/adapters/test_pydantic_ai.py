"""The tools of MemOS Web in an agent of Pydantic AI, by MCP, with a model that a function plays."""

import asyncio
import json

import pytest
from memos_client import MemosError
from memos_client.pydantic_ai import memos_toolset
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def test_agent_stores_and_finds_a_memory(name: str) -> None:
    def play(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert {"add_memory", "search_memories"} <= {tool.name for tool in info.function_tools}
        returned = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        if not returned:
            return ModelResponse([ToolCallPart("add_memory", {"content": f"{name} likes green tea."})])
        if len(returned) == 1:
            return ModelResponse([ToolCallPart("search_memories", {"query": f"What does {name} like?"})])
        return ModelResponse([TextPart(json.dumps(returned[1].content, default=str))])

    agent = Agent(FunctionModel(play), toolsets=[memos_toolset()])
    assert f"{name} likes green tea." in asyncio.run(agent.run("Remember the tea.")).output


def test_toolset_without_a_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMOS_API_KEY")
    with pytest.raises(MemosError, match="MEMOS_API_KEY"):
        memos_toolset()
