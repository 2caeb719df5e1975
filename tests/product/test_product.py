"""The routes of MemOS: requests in the shapes that its package publishes, with keys of several people."""

import asyncio
from typing import Any

import httpx2
import pytest

from governance.vocabulary import Scope
from memos_web.handler import ThreadedHandler
from memos_web.product.app import PRODUCT
from memos_web.product.translation import filters_of, limits_of, make_addition, make_search
from memos_web.protocols import NotTranslated, WithProtocol
from tests.factories import World, key_for
from tests.harness.cases import each_case

PORTO = {"role": "user", "content": "My sister Mia lives in Porto.", "chat_time": "2026-11-01T10:00:00"}


def sent(world: World, who: str, method: str, path: str, body: Any = None, key: str | None = None) -> tuple[int, Any]:
    async def run() -> tuple[int, Any]:
        django = ThreadedHandler()
        transport = httpx2.ASGITransport(app=WithProtocol(PRODUCT, django, api=django))
        headers = {"Authorization": f"Token {getattr(world, who).key.text if key is None else key}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://testserver", headers=headers) as http:
            reply = await http.request(method, f"/product{path}", json=body)
            return reply.status_code, reply.json()

    return asyncio.run(run())


def memories(answer: Any, kind: str = "text_mem") -> list[str]:
    return [memory["memory"] for cube in answer["data"][kind] for memory in cube["memories"]]


def test_added_memory_is_searched_in_its_cube(world: World) -> None:
    asked = {
        "user_id": "anna",
        "mem_cube_id": "home",
        "messages": [PORTO],
        "async_mode": "sync",
        "custom_tags": ["family"],
    }
    status, reply = sent(world, "olivia", "POST", "/add", asked)
    assert (status, reply["code"], reply["data"][0]["cube_id"]) == (200, 200, "home")
    search = {"query": "Where does Mia live?", "user_id": "anna", "readable_cube_ids": ["home"]}
    _, found = sent(world, "olivia", "POST", "/search", search)
    (cube,) = found["data"]["text_mem"]
    (memory,) = cube["memories"]
    assert (cube["cube_id"], memory["memory"], memory["metadata"]["tags"]) == ("home", PORTO["content"], ["family"])
    stored = world.client("olivia").get(f"memories/{memory['id']}/").json
    assert (stored["namespace"]["path"], stored["persona"]["name"]) == ("/cubes/home", "anna")
    assert sent(world, "olivia", "GET", f"/get_memory/{memory['id']}")[1]["data"]["memory"] == PORTO["content"]


def test_search_of_one_user_leaves_out_another(world: World) -> None:
    sent(world, "olivia", "POST", "/add", {"user_id": "anna", "messages": [PORTO]})
    sent(world, "olivia", "POST", "/add", {"user_id": "bert", "messages": "Mia is a cat."})
    assert memories(sent(world, "olivia", "POST", "/search", {"query": "Mia", "user_id": "bert"})[1]) == [
        "Mia is a cat."
    ]


def test_client_routes_answer_in_its_shapes(world: World) -> None:
    asked = {"user_id": "anna", "conversation_id": "c1", "messages": [PORTO], "tags": ["family"], "async_mode": True}
    data = sent(world, "olivia", "POST", "/add/message", asked)[1]["data"]
    assert (data["success"], data["status"]) == (True, "completed")
    search = {"query": "Where does Mia live?", "user_id": "anna", "memory_limit_number": 3, "include_skill": False}
    (found,) = sent(world, "olivia", "POST", "/search/memory", search)[1]["data"]["memory_detail_list"]
    assert (found["memory_value"], found["conversation_id"], found["tags"]) == (PORTO["content"], "c1", ["family"])
    page = sent(world, "olivia", "POST", "/get/memory", {"user_id": "anna", "page": 1, "size": 10})[1]["data"]
    assert (len(page["memory_detail_list"]), page["total"], page["pages"]) == (1, 1, 1)
    assert sent(world, "olivia", "GET", f"/get/memory/{found['id']}")[1]["data"]["id"] == found["id"]


@pytest.mark.parametrize("kind", ["/get_memory", "/get/memory"])
def test_memories_are_listed_by_filter(world: World, kind: str) -> None:
    for info in ({"room": "kitchen"}, {"room": "hall"}):
        sent(
            world,
            "olivia",
            "POST",
            "/add",
            {"user_id": "anna", "messages": f"The {info['room']} is red.", "info": info},
        )
    asked = {
        "user_id": "anna",
        "filter": {"and": [{"info.room": "hall"}, {"created_at": {"gt": "2020-01-01T00:00:00Z"}}]},
    }
    answer = str(sent(world, "olivia", "POST", kind, asked)[1]["data"])
    assert "hall is red" in answer
    assert "kitchen" not in answer


def test_without_the_right_nothing_is_added_or_read(world: World) -> None:
    memory_id = sent(world, "olivia", "POST", "/add", {"user_id": "anna", "messages": [PORTO]})[1]["data"][0][
        "memory_id"
    ]
    assert sent(world, "bob", "POST", "/add", {"user_id": "anna", "messages": [PORTO]})[0] == 403
    assert sent(world, "charlie", "GET", f"/get_memory/{memory_id}")[0] == 404
    change = {"memory_id": memory_id, "content": "Mia lives in Lisbon."}
    assert sent(world, "charlie", "POST", "/update/memory", change)[0] == 404
    assert world.client("olivia").get(f"memories/{memory_id}/").json["version"] == 1
    assert memories(sent(world, "charlie", "POST", "/search", {"query": "Mia", "user_id": "anna"})[1]) == []
    reader = key_for(world.alice, Scope.MEMORIES_READ).text
    status, reply = sent(world, "alice", "POST", "/add", {"messages": [PORTO]}, key=reader)
    assert (status, reply["code"], reply["data"]) == (403, 403, None)
    assert sent(world, "alice", "POST", "/search", {"query": "Mia"}, key="mos_wrong")[0] == 401


@each_case(
    ("path", "body", "word"),
    [
        ("/add", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "image_url"),
        ("/add", {"messages": [{**PORTO, "chat_time": "yesterday"}]}, "messages.0.timestamp"),
        ("/add", {"messages": [PORTO], "is_feedback": True}, "is_feedback"),
        ("/add", {"user_id": "anna"}, "messages"),
        ("/search", {"query": "Mia", "internet_search": True}, "internet_search"),
        ("/search", {"query": "Mia", "filter": {"weather": "rain"}}, "weather"),
        ("/search", {"query": "Mia", "filter": {"tags": {"like": "x"}}}, "like"),
        ("/search", {"query": "Mia", "top_k": "many"}, "text_mem"),
        ("/update/memory", {"memory_id": "x", "status": "archived"}, "status"),
        ("/update/memory", {"memory_id": "x"}, "content or title"),
        ("/delete_memory", {}, "Name what to delete"),
        ("/delete_memory", {"memory_ids": ["x"], "user_id": "anna"}, "memory_ids"),
        ("/delete/memory", {"user_id": "anna", "conversation_id": ""}, "conversation_id"),
        ("/delete/memory", {"user_id": "anna", "conversation_id": None}, "conversation_id"),
        ("/delete/memory", {"user_id": "anna", "memory_ids": []}, "memory_ids"),
        ("/delete/memory", {"user_id": "anna", "mem_cube_id": " "}, "mem_cube_id"),
        ("/delete/memory", {"user_id": "anna", "writable_cube_ids": []}, "writable_cube_ids"),
        ("/delete/memory", {"user_id": "", "filter": {"session_id": "*"}}, "user_id"),
        ("/delete/memory", {"user_id": "anna", "filter": {}}, "filter"),
        ("/delete/memory", {"user_id": "anna", "filter": {"and": [{"session_id": "s1"}, {}]}}, "and"),
        ("/delete/memory", {"user_id": "anna", "filter": {"session_id": ""}}, "session_id"),
        ("/delete/memory", {"user_id": "anna", "filter": {"tags": {"in": [""]}}}, "in"),
    ],
)
def test_request_without_an_equal_is_refused_with_its_reason(world: World, path: str, body: Any, word: str) -> None:
    status, reply = sent(world, "olivia", "POST", path, body)
    assert (status, reply["code"]) == (400, 400)
    assert word in reply["message"]


def test_route_without_an_equal_is_not_implemented(world: World) -> None:
    status, reply = sent(world, "olivia", "POST", "/chat/complete", {"query": "Hello"})
    assert (status, "chat/complete" in reply["message"]) == (501, True)


def test_limits_are_for_each_kind() -> None:
    assert limits_of({"top_k": 3}) == {"text_mem": 3, "pref_mem": 6, "tool_mem": 6}
    assert limits_of({"include_preference": False, "search_tool_memory": False})["text_mem"] == 10
    assert make_search({"query": "x", "top_k": 500})["top_k"] == 100
    with pytest.raises(NotTranslated):
        make_search({"query": "x", "top_k": 0, "include_preference": False, "search_tool_memory": False})


def test_fast_mode_stores_messages_as_they_are() -> None:
    assert make_addition({"messages": [PORTO], "mode": "fast"})["infer"] is False
    assert make_addition({"messages": [PORTO]})["messages"][0]["timestamp"] == "2026-11-01T10:00:00+00:00"


def test_filter_keeps_pages_of_dialogue_out() -> None:
    assert filters_of({}) == {
        "NOT": {"AND": [{"semantic_type": "dialogue"}, {"layer": {"in": ["short_term", "mid_term"]}}]}
    }
