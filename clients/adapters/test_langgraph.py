"""`MemosStore` beyond the published store tests (published_store_tests.py): what stopped a store before."""

import asyncio
import time
from typing import TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp, PutOp
from memos_client import AsyncMemos, Memos
from memos_client.langgraph import MemosStore


@pytest.fixture
def store(name: str) -> MemosStore:
    return MemosStore(root=f"/{name}")


@pytest.mark.parametrize(
    "namespace",
    [
        ("users", "alice"),
        ("users",),
        ("my team", "Ann Lee", "notes & ideas"),
        ("安娜", "😀", "a+b", "a/b", "100%"),
        ("Users", "A"),
    ],
)
def test_labels_that_no_path_holds_are_kept(store: MemosStore, namespace: tuple[str, ...]) -> None:
    store.put(namespace, "key/ with spaces", {"text": "Tea."})
    found = store.get(namespace, "key/ with spaces")
    assert found is not None
    assert (found.namespace, found.key) == (namespace, "key/ with spaces")
    assert store.list_namespaces() == [namespace]
    assert [item.namespace for item in store.search(namespace[:1])] == [namespace]


def test_keys_and_filters_that_differ_in_case_alone_are_different(store: MemosStore) -> None:
    store.put(("a",), "Key", {"kind": "Tea"})
    store.put(("a",), "key", {"kind": "tea"})
    assert [store.get(("a",), key).value["kind"] for key in ("Key", "key")] == ["Tea", "tea"]  # type: ignore[union-attr]
    assert [item.key for item in store.search(("a",), filter={"kind": "tea"})] == ["key"]


def test_value_of_100_kb_comes_back_and_is_found_by_its_words(store: MemosStore) -> None:
    """Files of agents are stored as lists of lines (deepagents, backends/store.py)."""
    value = {"content": [f"Line {number} of the report." for number in range(4_000)], "created_at": "2026-05-01"}
    store.put(("filesystem",), "/report.md", value)
    found = store.get(("filesystem",), "/report.md")
    assert found is not None
    assert found.value == value
    assert [item.key for item in store.search(("filesystem",), query="report")] == ["/report.md"]


def test_value_with_none_unicode_and_nesting_comes_back_as_it_was(store: MemosStore) -> None:
    value = {"none": None, "float": 1.5, "nested": {"list": [1, {"a": "\u2028"}]}, "empty": {}, "text": ""}
    store.put(("a",), "k", value)
    found = store.get(("a",), "k")
    assert found is not None
    assert found.value == value


def test_namespace_that_is_too_long_is_refused_with_its_length(store: MemosStore) -> None:
    with pytest.raises(ValueError, match="characters, over 200"):
        store.put(("x" * 200,), "k", {"a": 1})


def test_query_ranks_what_fits_first_below_a_prefix(store: MemosStore) -> None:
    store.put(("users", "ann", "facts"), "1", {"text": "Ann plays the cello."})
    store.put(("users", "ann", "facts"), "2", {"text": "Ann lives in Porto."})
    store.put(("users", "bob", "facts"), "1", {"text": "Bob plays the cello."})
    found = store.search(("users", "ann"), query="Who plays the cello?", limit=1)
    assert [(item.namespace, item.key) for item in found] == [(("users", "ann", "facts"), "1")]
    assert found[0].score is not None


def test_more_items_than_a_page_are_all_found(store: MemosStore) -> None:
    store.batch([PutOp(("many",), str(number), {"number": number}) for number in range(230)])
    assert len(store.search(("many",), limit=500)) == 230
    assert len(store.search(("many",), query="number", filter={"number": {"$gte": 0}}, limit=500)) == 230
    assert sorted(item.value["number"] for item in store.search(("many",), filter={"number": {"$lt": 2}})) == [0, 1]
    got = store.batch([GetOp(("many",), str(number)) for number in range(230)])
    assert [item.value["number"] for item in got if item is not None and not isinstance(item, list)] == [*range(230)]


def test_read_begins_a_time_to_live_anew_unless_told_otherwise(store: MemosStore) -> None:
    """The case of `test_store_ttl` in libs/checkpoint-postgres/tests/test_store.py of langgraph."""
    store.put(("a",), "k", {"text": "Tea."}, ttl=4 / 60)
    time.sleep(2.5)
    assert store.get(("a",), "k", refresh_ttl=True) is not None
    time.sleep(2.5)
    assert len(store.search(("a",), query="tea", refresh_ttl=True)) == 1
    time.sleep(2.5)
    assert store.get(("a",), "k", refresh_ttl=False) is not None
    time.sleep(2.0)
    assert store.get(("a",), "k") is None
    store.put(("a",), "k", {"text": "Coffee."})
    assert store.search(("a",))[0].value == {"text": "Coffee."}


def test_two_that_store_a_new_key_at_once_leave_one_item(name: str) -> None:
    async def act() -> list[object]:
        async with AsyncMemos() as memos:
            store = MemosStore(async_memos=memos, root=f"/{name}")
            await asyncio.gather(*(store.aput(("a",), "k", {"number": number}) for number in range(4)))
            await store.aput(("a",), "k", {"number": 9})
            return [item.value for item in await store.asearch(("a",))]

    assert asyncio.run(act()) == [{"number": 9}]


def test_key_that_may_not_write_is_told_so(name: str) -> None:
    from memos_client import InvalidKey

    with pytest.raises(InvalidKey):
        MemosStore(Memos(api_key="mos_000000000000_wrong")).put((name,), "k", {"a": 1})


class State(TypedDict):
    text: str


@pytest.mark.parametrize("is_async", [False, True])
def test_graph_remembers_across_threads(store: MemosStore, is_async: bool) -> None:
    def remember(state: State, runtime: Runtime[None]) -> State:
        kept = runtime.store
        assert isinstance(kept, BaseStore)
        earlier = kept.search(("users", "ann"), query=state["text"], limit=1)
        kept.put(("users", "ann"), state["text"], {"text": state["text"]})
        return {"text": earlier[0].value["text"] if earlier else "nothing"}

    graph = StateGraph(State).add_node(remember).add_edge(START, "remember").add_edge("remember", END)
    agent = graph.compile(store=store)
    first = agent.invoke({"text": "I like tea."})
    second = (
        asyncio.run(agent.ainvoke({"text": "What do I like?"}))
        if is_async
        else agent.invoke({"text": "What do I like?"})
    )
    assert (first["text"], second["text"]) == ("nothing", "I like tea.")
