"""`MemosMemory` in an agent of AutoGen, with a model that a script plays."""

import asyncio
import os

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_core.models import ModelFamily, SystemMessage
from autogen_ext.models.replay import ReplayChatCompletionClient
from memos_client import AsyncMemos
from memos_client.autogen import MemosMemory


def text(content: str, **metadata: str) -> MemoryContent:
    return MemoryContent(content=content, mime_type=MemoryMimeType.TEXT, metadata=metadata or None)


def test_memories_are_found_with_their_kinds_and_cleared(name: str) -> None:
    async def act() -> None:
        memory = MemosMemory(namespace=f"/{name}")
        await memory.add(text("Tom likes green tea.", source="chat"))
        await memory.add(MemoryContent(content={"city": "Porto"}, mime_type=MemoryMimeType.JSON))
        await memory.add(MemoryContent(content="# Tea", mime_type="text/x-note"))
        (first, *_) = (await memory.query("What does Tom like to drink?")).results
        assert first.content == "Tom likes green tea."
        assert first.metadata is not None
        assert first.metadata["source"] == "chat"
        (city,) = (await memory.query("Porto", limit=1)).results
        assert (city.content, city.mime_type) == ({"city": "Porto"}, MemoryMimeType.JSON)
        with pytest.raises(ValueError, match="no images and no bytes"):
            await memory.add(MemoryContent(content=b"\x00", mime_type=MemoryMimeType.BINARY))
        await memory.clear()
        assert (await memory.query("Tom")).results == []
        await memory.close()

    asyncio.run(act())


def test_agent_gets_the_memory_for_its_task(name: str) -> None:
    info = {
        "vision": False,
        "function_calling": False,
        "json_output": False,
        "family": ModelFamily.UNKNOWN,
        "structured_output": False,
    }

    async def act() -> list[str]:
        async with AsyncMemos() as memos:
            memory = MemosMemory(memos, namespace=f"/{name}")
            await memory.add(text("The spare key is under the blue pot."))
            model = ReplayChatCompletionClient(["Under the pot."], model_info=info)  # type: ignore[arg-type]
            agent = AssistantAgent("helper", model_client=model, memory=[memory])
            await agent.run(task="Where is the spare key?")
            (call,) = model.create_calls
            return [str(message.content) for message in call["messages"] if isinstance(message, SystemMessage)]

    assert any("under the blue pot" in said for said in asyncio.run(act()))


def test_component_is_loaded_again_without_its_key(name: str) -> None:
    dumped = MemosMemory(namespace=f"/{name}", limit=3).dump_component()
    assert os.environ["MEMOS_API_KEY"] not in dumped.model_dump_json()
    loaded = MemosMemory.load_component(dumped)
    assert loaded.dump_component() == dumped
