"""`MemosRetriever` by LangChain's standard tests, and `MemosChatMessageHistory` in a chain."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_tests.integration_tests import RetrieversIntegrationTests
from memos_client import Memos
from memos_client.langchain import MemosChatMessageHistory, MemosRetriever

MESSAGES: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage("My sister Mia lives in Porto.", name="Ann"),
    AIMessage(
        "", tool_calls=[{"name": "look_up", "args": {"city": "Porto"}, "id": "call_1"}], usage_metadata=None, id="run-1"
    ),
    AIMessage("I look.", tool_calls=[{"name": name, "args": {}, "id": name} for name in ("map", "clock")], id="run-2"),
    ToolMessage("Noon.", tool_call_id="clock"),
    ToolMessage("Sunny.", tool_call_id="call_1", artifact={"degrees": 21}),
    AIMessage([{"type": "text", "text": "Porto is sunny."}]),
    HumanMessage(
        [{"type": "text", "text": "And this?"}, {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}]
    ),
    FunctionMessage(content="4", name="add"),
    ChatMessage(content="Hello.", role="user"),
    HumanMessage(""),
]


class TestRetriever(RetrieversIntegrationTests):
    """The standard tests of langchain-tests."""

    namespace = f"/retriever-{uuid4().hex[:8]}"

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _memories(cls) -> None:
        with Memos() as memos:
            for number in range(5):
                memos.add(f"This is an example query, number {number}.", namespace=cls.namespace)

    @property
    def retriever_constructor(self) -> type[MemosRetriever]:
        return MemosRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"search": {"namespaces": [self.namespace]}}

    @property
    def retriever_query_example(self) -> str:
        return "example query"


def test_documents_have_the_metadata_of_their_memories_and_fillers_are_left_out(name: str) -> None:
    with Memos() as memos:
        memory = memos.add("The heron nests on the north island.", namespace=f"/{name}", metadata={"page": 7})
        memos.add("Unrelated words.", namespace=f"/{name}")
        retriever = MemosRetriever(memos=memos, k=5, search={"namespaces": [f"/{name}"], "mode": "lexical"})
        (document,) = retriever.invoke("Where does the heron nest?")
    assert (document.id, document.page_content) == (memory.id, "The heron nests on the north island.")
    assert (document.metadata["page"], document.metadata["namespace"]) == (7, f"/{name}")
    assert 0 < document.metadata["score"] <= 1


@pytest.mark.parametrize("infer", [True, False])
def test_messages_come_back_exactly_and_in_order(name: str, infer: bool) -> None:
    history = MemosChatMessageHistory(name, infer=infer)
    history.add_messages(MESSAGES[:6])
    history.add_messages(MESSAGES[6:])
    assert history.messages == MESSAGES
    other = MemosChatMessageHistory(f"{name}-other")
    assert other.messages == []
    history.clear()
    assert history.messages == []


def test_statement_in_a_history_becomes_a_memory_that_a_retriever_finds(name: str) -> None:
    MemosChatMessageHistory(name).add_user_message(f"Hello! My sister {name} lives in Porto. How are you?")
    found = MemosRetriever(k=1).invoke(f"Where does {name} live?")
    assert [document.page_content for document in found] == [f"My sister {name} lives in Porto."]


def test_session_whose_name_differs_in_case_is_another(name: str) -> None:
    MemosChatMessageHistory(name).add_user_message("Tea.")
    assert MemosChatMessageHistory(name.upper()).messages == []


def test_chain_reads_and_writes_the_history(name: str) -> None:
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
    chain = RunnableWithMessageHistory(
        prompt | FakeListChatModel(responses=["Good choice.", "Tea."]),
        MemosChatMessageHistory,
        input_messages_key="question",
        history_messages_key="history",
    )
    config: Any = {"configurable": {"session_id": name}}
    chain.invoke({"question": "I like tea."}, config)
    asyncio.run(chain.ainvoke({"question": "What do I like?"}, config))
    said = [message.content for message in asyncio.run(MemosChatMessageHistory(name).aget_messages())]
    assert said == ["I like tea.", "Good choice.", "What do I like?", "Tea."]
