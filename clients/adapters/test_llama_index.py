"""`MemosMemoryBlock` in LlamaIndex's `Memory`."""

import asyncio

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import InsertMethod, Memory
from memos_client import AsyncMemos, Memos
from memos_client.llama_index import MemosMemoryBlock


def test_message_that_left_the_short_term_memory_is_inserted_when_it_is_asked_for(name: str) -> None:
    async def act() -> tuple[str, str]:
        async with AsyncMemos() as memos:
            block = MemosMemoryBlock(async_memos=memos, namespace=f"/{name}")
            memory = Memory.from_defaults(
                session_id=name,
                token_limit=60,
                chat_history_token_ratio=0.5,
                token_flush_size=20,
                memory_blocks=[block],
                insert_method=InsertMethod.USER,
            )
            await memory.aput(ChatMessage(role="user", content="My sister Mia plays the cello in Porto."))
            for number in range(6):
                await memory.aput(ChatMessage(role="assistant", content=f"Noted, that is answer number {number}."))
                await memory.aput(ChatMessage(role="user", content=f"And here is some more talk, number {number}."))
            question = ChatMessage(role="user", content="Which instrument does Mia play?")
            found = await memory.aget(input=question.content)
            return str([message.content for message in found]), await block.aget([question])

    inserted, text = asyncio.run(act())
    assert "Mia plays the cello" in text
    assert "Mia plays the cello" in inserted
    with Memos() as memos:
        assert {memory.session_id for memory in memos.memories(filters={"namespace": f"/{name}"})} == {name}


def test_block_without_a_question_inserts_nothing() -> None:
    block = MemosMemoryBlock()
    assert asyncio.run(block.aget([])) == ""
    assert asyncio.run(block.aget([ChatMessage(role="assistant", content="Hello.")])) == ""
