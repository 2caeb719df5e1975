"""A conversation's persona bounds all that its turns read and write: a secret told to one persona is not told in the
conversation of another, on any path of the chat.
"""

import html
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from governance.vocabulary import Scope
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.layers import persona_scope

TOLD = (  # said by the parent: a canary, the statement, a question, a similar question
    ("Zephyrine", "My therapist is Zephyrine.", "Who is my therapist?", "What's the name of the therapist I see?"),
    ("Quibberry", "I prefer Quibberry tea.", "Which tea do I prefer?", "What tea do I like best?"),
    ("Marlowquay", "My goal is to lose weight at Marlowquay.", "What are my goals?", "Should I order a burger?"),
    (
        "Vandelbrot",
        "Remember that my locker code is Vandelbrot.",
        "What is my locker code?",
        "Which code do I need?",
    ),
    ("林语泉", "我的心理医生是林语泉。", "我的心理医生是谁？", "我看的心理医生叫什么名字？"),
    ("紫云镇", "我的目标是搬到紫云镇。", "我的目标是什么？", "我想搬到哪里？"),
    ("七七四九", "记住我的柜子密码是七七四九。", "我的柜子密码是什么？", "我柜子的密码是多少？"),
)
IMPORTED = ("Oxbarrow", "I secretly rented a flat in Oxbarrow.", "Where did I rent a flat?")
TITLE = "Plans about Pennyfarrow"
CANARIES = (*(canary for canary, *_ in TOLD), IMPORTED[0], "Pennyfarrow")
COMMANDS = (
    "What do you know about me?",
    "Summarise what you know about me.",
    "What did I tell you about my therapist?",
    "What did we talk about yesterday?",
    "Forget that I prefer tea.",
    "Forget everything about my therapist.",
    "Actually, my therapist is Max.",
    "你知道我的什么？",
    "总结一下你知道的关于我的事。",
    "忘记我的心理医生。",
)
QUESTIONS = (*(question for _, _, *questions in TOLD for question in questions), IMPORTED[2])


@dataclass(frozen=True)
class Talk:
    """A conversation over REST, and the same member's browser."""

    client: Contract
    browser: Client
    id: str

    @property
    def turns(self) -> str:
        return f"conversations/{self.id}/turns/"

    def ask(self, question: str) -> dict[str, Any]:
        reply = self.client.post(self.turns, {"content": question})
        assert reply.status == 201, reply
        turn: dict[str, Any] = reply.json
        return turn

    def page(self, address: str) -> str:
        response = self.browser.get(address)
        assert response.status_code == 200, (address, response)
        return html.unescape(response.content.decode())


def start(world: World, alice: Contract, persona: str | None, **more: str) -> Talk:
    """A conversation with the agent "Guide", which has no language model."""
    body = {"agent_persona": "Guide", **more} | ({"persona": persona} if persona else {})
    begun = alice.post("conversations/", body)
    assert begun.status == 201, begun
    return Talk(alice, signed_in(world.alice), begun.json["id"])


def tell_secrets(world: World, alice: Contract) -> Talk:
    """Tell the secrets in a conversation of the persona "parent"; the conversation."""
    for name, kind in (("parent", "user"), ("manager", "user"), ("Guide", "agent")):
        made = alice.post("personas/", {"name": name, "kind": kind})
        assert made.status == 201
        assert kind == "agent" or alice.patch(f"personas/{made.json['id']}/settings/", {"tau": 0.5}).status == 200
    talk = start(world, alice, "parent", title=TITLE)
    for _, statement, *_ in TOLD:
        talk.ask(statement)
    untitled = start(world, alice, "parent")
    untitled.ask("Is Zephyrine at Marlowquay?")  # its title from now on
    messages = [{"role": "user", "content": IMPORTED[1]}]
    body = {"messages": messages, "persona": "parent", "session_id": "diary", "infer": True}
    assert alice.post("memories/", body).status == 201
    talk.ask("Summarise what you know about me.")
    run_jobs()
    return talk


def replies_of(
    talk: Talk, persona: str | None, questions: tuple[str, ...] = QUESTIONS, commands: tuple[str, ...] = COMMANDS
) -> Iterator[tuple[str, str]]:
    """Yield each path of a conversation with its whole reply, without the question."""
    yield "suggestions", talk.page(f"/chat/{talk.id}/")
    begun = talk.browser.post("/chat/", {"content": questions[0]})["Location"].partition("#")[0]
    yield "begun in the browser", talk.page(begun)
    for question in (*questions, *commands):
        turn = talk.ask(question)
        yield f"turn: {question}", json.dumps(without_question(turn), ensure_ascii=False)
        for memory in turn["citations"]:
            cited = talk.client.get(f"memories/{memory['memory_id']}/").json
            yield f"evidence: {question}", str(cited["content"])
        yield f"why: {question}", talk.page(f"/chat/{talk.id}/turns/{turn['id']}/why/").replace(question, "")
    for question in questions[::2]:
        events = talk.client.stream(talk.turns, {"content": question})
        said = "".join(event.data["text"] for event in events if event.name == "token")
        yield f"stream: {question}", said
    for question in (*questions[1::2], *commands):
        yield from replies_of_calls(talk, persona, question)
    listed = talk.client.get(f"{talk.turns}?page_size=200").json["results"]
    yield "list of turns", json.dumps([without_question(turn) for turn in listed], ensure_ascii=False)
    for word in ("therapist", "tea", "Plans", "医生"):
        yield "search of conversations", talk.page(f"/chat/{talk.id}/?find={word}")
    run_jobs()
    yield "page", talk.page(f"/chat/{talk.id}/")
    if persona is not None:
        named = next(row["id"] for row in talk.client.get("personas/").json["results"] if row["name"] == persona)
        yield "layers", talk.page(f"/layers/?persona={named}")
        for part in ("stm", "segments", "profile", "traits", "working-set"):
            yield part, json.dumps(talk.client.get(f"personas/{named}/{part}/").json)


def replies_of_calls(talk: Talk, persona: str | None, question: str) -> Iterator[tuple[str, str]]:
    """The replies of memory-calls/ and memories/context/ for the conversation, and for its persona."""
    for place in ({"session_id": talk.id}, *([{"persona": persona}] if persona else [])):
        context = talk.client.post("memories/context/", {"query": question, **place})
        assert context.status == 200, context
        yield f"context: {question}", context.json["text"]
        call = talk.client.post("memory-calls/", {"text": question, "execute": True, **place})
        assert call.status == 200, call
        yield f"call: {question}", json.dumps(call.json["result"], ensure_ascii=False)


def without_question(turn: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in turn.items() if name != "question"}


def find_leaks(replies: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(path, canary) for path, reply in replies for canary in CANARIES if canary in reply]


@pytest.mark.parametrize("persona", ["manager", pytest.param(None, marks=pytest.mark.full)])
def test_secret_of_one_persona_appears_on_no_path_of_another(
    world: World, alice: Contract, persona: str | None
) -> None:
    talk = tell_secrets(world, alice)
    parent = next(row["id"] for row in alice.get("personas/").json["results"] if row["name"] == "parent")
    assert "Zephyrine" in talk.page(f"/layers/?persona={parent}")
    assert "What do you know about Zephyrine?" not in talk.page("/chat/")
    assert "All conversations" in talk.page(f"/chat/{talk.id}/")
    questions = QUESTIONS if persona else QUESTIONS[:6]
    assert find_leaks(replies_of(start(world, alice, persona), persona, questions)) == []


def test_the_same_conversation_answers_with_its_secrets(world: World, alice: Contract) -> None:
    talk = tell_secrets(world, alice)
    for canary, _, question, _ in TOLD:
        assert canary in talk.ask(question)["content"], question
    assert IMPORTED[0] in talk.ask(IMPORTED[2])["content"]
    assert "Zephyrine" in talk.page(f"/chat/{talk.id}/")


def test_without_the_scope_the_canaries_appear(world: World, alice: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    tell_secrets(world, alice)
    monkeypatch.setattr(persona_scope, "PersonaScope", lambda *_: None)
    leaks = find_leaks(replies_of(start(world, alice, "manager"), "manager", QUESTIONS[:2], COMMANDS[:1]))
    found = {path.partition(":")[0] for path, _ in leaks}
    assert {"turn", "evidence", "why", "stream", "page", "context", "call", "list of turns", "suggestions"} <= found


def test_memories_without_a_persona_and_mounted_ones_answer_all_personas(world: World, alice: Contract) -> None:
    tell_secrets(world, alice)
    alice.add("My passport number is Tulliver.")
    alice.add("The parents' meeting is in Hollowmere.", persona="parent", namespace="/school")
    talk = start(world, alice, "manager")
    assert "Tulliver" in talk.ask("What is my passport number?")["content"]
    assert "Hollowmere" not in talk.ask("Where is the parents' meeting?")["content"]
    mounted = alice.post("mounts/", {"conversation": talk.id, "namespace": "/school"})
    assert mounted.status == 201, mounted
    assert "Hollowmere" in talk.ask("Where is the parents' meeting?")["content"]


def test_a_request_in_a_conversation_of_another_persona_is_refused(world: World, alice: Contract) -> None:
    talk = tell_secrets(world, alice)
    body = {"text": "Who is my therapist?", "execute": True, "session_id": talk.id, "persona": "manager"}
    assert alice.post("memory-calls/", body).status == 400
    made = alice.post("memory-calls/", body | {"text": "Remember that I like figs.", "persona": "parent"})
    assert [memory["persona"]["name"] for memory in made.json["result"]["memories"]] == ["parent"]


def test_a_key_of_a_persona_chats_within_its_persona(world: World, alice: Contract, olivia: Contract) -> None:
    tell_secrets(world, alice)
    alice.add("The vault of the family is in Nettleby.")
    parent, manager = (
        Contract(olivia.post("api-keys/", key_of(world, name)).json["api_key"]) for name in ("parent", "manager")
    )
    for key, canary in ((parent, True), (manager, False)):
        begun = key.post("conversations/", {}).json
        turns = f"conversations/{begun['id']}/turns/"
        reply = key.post(turns, {"content": "Who is my therapist?"})
        assert reply.status == 201, reply
        assert ("Zephyrine" in reply.json["content"]) is canary
        assert "Nettleby" not in key.post(turns, {"content": "Where is the vault of the family?"}).json["content"]
        key.post(turns, {"content": "My desk is by the window."})
        assert "window" in key.post(turns, {"content": "Where is my desk?"}).json["content"]
        assert key.stream(turns, {"content": "Where is my desk?"})[-1].name == "done"
        assert len(key.get(turns).json["results"]) == 5
        assert {memory["persona"]["name"] for memory in key.get("memories/").json["results"]} == {
            "parent" if canary else "manager"
        }
        assert key.post("conversations/", {"persona": "manager" if canary else "parent"}).status == 400


def key_of(world: World, persona: str) -> dict[str, Any]:
    """A key of alice that is bound to one of her personas."""
    scopes = [Scope.MEMORIES_READ, Scope.MEMORIES_WRITE, Scope.CHAT]
    return {"member": str(world.alice.member.id), "name": persona, "persona": persona, "scopes": scopes}


def test_persona_beside_namespaces_returns_the_memories_of_either_under_permission(
    world: World, alice: Contract, bob: Contract, charlie: Contract, olivia: Contract
) -> None:
    codes = {
        "Kestrel": {"persona": "manager"},
        "Plover": {"namespace": "/team"},
        "Dunlin": {"namespace": "/team", "persona": "parent"},
        "Osprey": {"persona": "parent"},
        "Garganey": {"namespace": "/elsewhere"},
    }
    manager, _ = (alice.post("personas/", {"name": name, "kind": "user"}).json["id"] for name in ("manager", "parent"))
    for bird, fields in codes.items():
        alice.add(f"The code of the door is {bird}.", **fields)

    def birds(client: Contract, kind: str, **named: Any) -> set[str]:
        reply = client.post(f"memories/{kind}/", {"query": "Which code has the door?", **named})
        assert reply.status == 200, reply
        return {bird for bird in codes if bird in json.dumps(reply.json)}

    searched = {"personas": ["manager"], "namespaces": ["/team"]}
    assembled = {"persona": "manager", "namespaces": ["/team"]}
    for kind, named in (("search", searched), ("context", assembled)):
        assert birds(alice, kind, **named) == {"Kestrel", "Plover", "Dunlin"}
        assert birds(alice, kind, **{**named, "namespaces": ["/nowhere"]}) >= {"Kestrel"}
        for other in (bob, charlie):
            refused = other.post(f"memories/{kind}/", {"query": "Which code?", **named, "namespaces": ["/team"]})
            assert (refused.status, refused.json["code"]) == (400, "unknown_persona")
    assert birds(alice, "search", **{**searched, "namespaces": ["/nowhere"]}) == {"Kestrel"}
    key = {"member": str(world.alice.member.id), "scopes": list(Scope), "persona": manager}
    bound = Contract(key=olivia.post("api-keys/", key).json["api_key"])
    assert birds(bound, "search", **searched) == birds(bound, "context", **assembled) == {"Kestrel"}
