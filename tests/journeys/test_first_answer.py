"""The main job on a running product: a conversation goes in, a person asks, the answer cites; a restart keeps all."""

import json
from typing import Any

import pytest

from tests.harness.product import RunningServer, wait_until
from tests.journeys.live import UNEMBEDDED, Live, number

pytestmark = pytest.mark.long

ENGLISH = [
    ("Caroline", "Hey Mel! I finally adopted a greyhound, her name is Pixel."),
    ("Melanie", "How lovely! I signed up for a pottery class last Tuesday."),
    ("Caroline", "We are driving to Lisbon in August to see my sister."),
    ("Melanie", "My kids painted a sunset with me at the weekend."),
]
CHINESE = [
    ("卡罗琳", "我终于领养了一只灰狗，名字叫小像素。"),
    ("梅兰妮", "太好了！我上周二报名了陶艺课。"),
    ("卡罗琳", "我们八月要开车去里斯本看我姐姐。"),
]


def tell(live: Live, said: list[tuple[str, str]], session: str) -> list[dict[str, Any]]:
    """Put a conversation in; the memories of its messages."""
    messages = [
        {"role": "user", "name": name, "content": text, "message_id": f"m{index}", "timestamp": "2026-05-01T10:00:00Z"}
        for index, (name, text) in enumerate(said)
    ]
    body = {"messages": messages, "session_id": session, "namespace": f"/journeys/{session}"}
    results: list[dict[str, Any]] = live.done("POST", "memories/", body)["results"]
    return [memory for memory in results if memory["message_id"]]


def ask(live: Live, question: str) -> dict[str, Any]:
    conversation = live.done("POST", "conversations/", {})
    turn: dict[str, Any] = live.done("POST", f"conversations/{conversation['id']}/turns/", {"content": question})
    return turn


def wait_for_vectors(server: RunningServer) -> None:
    wait_until(lambda: number(server, UNEMBEDDED) == 0, seconds=30, why=server.report)


def test_added_memory_is_searched_cited_and_survives_a_restart(
    running_server: RunningServer,
) -> None:
    live = Live.of(running_server)
    memories = tell(live, ENGLISH, "english")
    wait_for_vectors(running_server)
    scope = {"namespaces": ["/journeys/english"], "query": "What did Caroline adopt?"}
    hits = live.done("POST", "memories/search/", scope)["results"]
    assert hits[0]["content"] == "I finally adopted a greyhound, her name is Pixel."
    assert hits[0]["parents"] == [memories[0]["id"]], "it names the message that states it"
    assert hits[0]["pending_embedding"] is False
    turn = ask(live, "What is the name of the greyhound that Caroline adopted?")
    assert "Pixel" in turn["content"]
    assert turn["model"] == "extractive"
    cited = [live.done("GET", f"memories/{citation['memory_id']}/")["content"] for citation in turn["citations"]]
    assert any("Pixel" in content for content in cited)

    before = live.contents("namespace=/journeys/english")
    assert running_server.stop() == 0
    running_server.start()
    assert live.contents("namespace=/journeys/english") == before
    again = live.done("POST", "memories/search/", scope)["results"]
    assert [hit["id"] for hit in again[:2]] == [hit["id"] for hit in hits[:2]]
    assert live.done("GET", f"memories/{memories[0]['id']}/")["metadata"] == {}
    assert turn["id"] in {newest["id"] for newest in turns_of_newest(live)}


def turns_of_newest(live: Live) -> list[dict[str, Any]]:
    newest = live.done("GET", "conversations/")["results"][0]
    turns: list[dict[str, Any]] = live.done("GET", f"conversations/{newest['id']}/turns/")["results"]
    return turns


def test_the_same_in_chinese(running_server: RunningServer) -> None:
    live = Live.of(running_server)
    memories = tell(live, CHINESE, "chinese")
    wait_for_vectors(running_server)
    scope = {"namespaces": ["/journeys/chinese"], "query": "卡罗琳八月要去哪里？"}
    assert live.done("POST", "memories/search/", scope)["results"][0]["id"] == memories[2]["id"]
    turn = ask(live, "卡罗琳领养的灰狗叫什么名字？")
    assert turn["content"].startswith("你的记忆里写着")
    assert "小像素" in turn["content"]
    assert memories[0]["id"] in {citation["memory_id"] for citation in turn["citations"]}


def test_a_streamed_answer_arrives_as_events(running_server: RunningServer) -> None:
    live = Live.of(running_server)
    live.done("POST", "memories/", {"content": "The lighthouse keeper paints boats.", "namespace": "/journeys/stream"})
    conversation = live.done("POST", "conversations/", {})
    turns = f"conversations/{conversation['id']}/turns/"
    question = {"content": "What does the lighthouse keeper paint?"}
    status, body = live.read("POST", turns, question, accept="text/event-stream")
    assert status == 200
    names = [line.removeprefix("event: ") for line in body.decode().splitlines() if line.startswith("event: ")]
    assert names[0] == "token"
    assert "citation" in names
    assert names[-1] == "done"
    last = json.loads(body.decode().strip().rpartition("data: ")[2])
    changes: dict[str, object] = {"superseded": [], "conflicts": []}  # told once, with the new turn
    assert [turn | changes for turn in live.done("GET", turns)["results"]] == [last]
