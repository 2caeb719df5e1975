"""conversations/ and their turns, without a language model: whole, and streamed."""

import json

import pytest

from governance.vocabulary import Scope
from tests.factories import World
from tests.vault.api.contract import MISSING, Contract, contract, fields_at_fault
from tests.vault.outbox import run_jobs

CHANGED: dict[str, object] = {"superseded": [], "conflicts": []}  # told once, with a new turn

FACT = "Caroline adopted a greyhound called Pixel in May."
DIALOGUE = {"semantic_type": "dialogue"}
EVENTS_AND_DIALOGUE = json.dumps({"semantic_type": {"in": ["event", "dialogue"]}})
QUESTION = "What did Caroline adopt?"


def begin(client: Contract, **body: object) -> str:
    """A new conversation; the address of its turns."""
    reply = client.post("conversations/", body)
    assert reply.status == 201
    return f"conversations/{reply.json['id']}/turns/"


def test_a_conversation_is_made_renamed_and_deleted(alice: Contract) -> None:
    made = alice.post("conversations/", {"title": "My dog", "persona": "alice"})
    assert (made.status, made.json["title"]) == (201, "My dog")
    assert made.json["persona"] == {"id": alice.get("me/").json["personas"][0]["id"], "name": "alice"}
    address = f"conversations/{made.json['id']}/"
    assert alice.get(address).json == made.json
    renamed = alice.patch(address, {"title": "我的狗"}).json
    assert renamed["title"] == "我的狗"
    assert renamed["updated_at"] > made.json["updated_at"]
    assert alice.get("conversations/").json["count"] == 1
    assert alice.delete(address).status == 204
    for reply in (alice.get(address), alice.delete(address), alice.get(address + "turns/")):
        assert reply.status == 404
    assert alice.get("conversations/").json["count"] == 0


def test_what_a_conversation_cannot_be_is_refused(alice: Contract) -> None:
    for body, field in (
        ({"title": "t" * 201}, "title"),
        ({"title": "\x00"}, "title"),
        ({"persona": "bob"}, "persona"),
        ({"agent_persona": "nobody"}, "agent_persona"),
        ({"model": "gpt-99"}, "model"),
        ({"speling": 1}, "speling"),
    ):
        assert fields_at_fault(alice.post("conversations/", body)) == {field}, body
    address = begin(alice).removesuffix("turns/")
    for change, field in (
        ({"title": ""}, "title"),
        ({"title": None}, "title"),
        ({"model": "x"}, "model"),
        ({"agent_persona": "alice"}, "agent_persona"),
        ({"persona": "alice"}, "persona"),
    ):
        assert field in fields_at_fault(alice.patch(address, change)), change
    assert alice.patch(address, {}).status == 400
    assert alice.get("conversations/").json["count"] == 1


def test_change_of_answering_persona_and_model_is_audited_and_refused_to_others(
    alice: Contract, bob: Contract, charlie: Contract, olivia: Contract, ada: Contract
) -> None:
    agent = olivia.post("personas/", {"name": "Guide", "kind": "agent"}).json["id"]
    address = begin(alice).removesuffix("turns/")
    before = alice.get(address).json
    changes = {"agent_persona": "Guide", "model": "extractive"}
    assert bob.patch(address, changes).status == 404
    assert charlie.patch(address, changes).status == 404
    assert alice.get(address).json == before
    assert ada.get("audit/?verb=conversation.updated").json["results"] == []
    changed = alice.patch(address, changes).json
    assert (changed["agent_persona"]["id"], changed["model"], changed["title"]) == (
        agent,
        "extractive",
        before["title"],
    )
    (entry,) = ada.get("audit/?verb=conversation.updated").json["results"]
    assert entry["detail"]["changed"] == "agent_persona model"
    assert alice.patch(address, {"agent_persona": None}).json["agent_persona"] is None


def test_an_answer_quotes_a_memory_and_cites_it(alice: Contract) -> None:
    memory = alice.add(FACT)
    alice.add("The weather in Oslo was fine.")
    run_jobs()
    turns = begin(alice)
    reply = alice.post(turns, {"content": QUESTION})
    assert reply.status == 201
    turn = reply.json
    assert turn["question"] == QUESTION
    assert FACT in turn["content"]
    assert (turn["model"], turn["end"]) == ("extractive", "complete")
    assert turn["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "cached_tokens": 0}
    cited = {citation["marker"]: citation for citation in turn["citations"]}
    assert memory["id"] in {citation["memory_id"] for citation in turn["citations"]}
    for marker, citation in cited.items():
        assert f"[{marker}]" in turn["content"]
        assert 0 < citation["score"] <= 1
        assert alice.get(f"memories/{citation['memory_id']}/").status == 200
    assert [CHANGED | stored for stored in alice.get(turns).json["results"]] == [turn]


def test_without_a_memory_it_says_so(alice: Contract) -> None:
    turn = alice.post(begin(alice), {"content": "What is the capital of Peru?"}).json
    assert turn["citations"] == []
    assert "Nothing in your memories" in turn["content"]


def test_a_chinese_question_is_answered_in_chinese(alice: Contract) -> None:
    alice.add("卡罗琳在五月领养了一只灰狗。")
    turns = begin(alice)
    turn = alice.post(turns, {"content": "卡罗琳领养了什么？"}).json
    assert "你的记忆里写着" in turn["content"]
    assert "灰狗" in turn["content"]
    assert len(turn["citations"]) == 1
    assert "你的记忆里没有" in alice.post(turns, {"content": "秘鲁的首都是哪里？"}).json["content"]


def test_turns_come_oldest_first_in_pages(alice: Contract) -> None:
    turns = begin(alice)
    for number in range(3):
        alice.post(turns, {"content": f"Question {number}?"})
    page = alice.get(turns + "?page_size=2").json
    assert [turn["question"] for turn in page["results"]] == ["Question 0?", "Question 1?"]
    rest = alice.get(page["next"].removeprefix("http://testserver")).json
    assert [turn["question"] for turn in rest["results"]] == ["Question 2?"]
    assert page["count"] == 3


def test_an_untitled_conversation_is_called_by_its_first_question(alice: Contract) -> None:
    turns = begin(alice)
    alice.post(turns, {"content": f"{QUESTION}\n" + "and so on " * 20})
    alice.post(turns, {"content": "Something else?"})
    title = alice.get(turns.removesuffix("turns/")).json["title"]
    assert title.startswith(QUESTION)
    assert len(title) <= 60


def test_chat_turn_becomes_memory_of_the_member_only(alice: Contract, bob: Contract) -> None:
    turns = begin(alice, persona="alice")
    alice.post(turns, {"content": "I moved to Lisbon."})
    said = alice.get(f"memories/?source=chat&filters={EVENTS_AND_DIALOGUE}").json["results"]
    statement, answer, page = said
    layers = [(memory["speaker"], memory["layer"], memory["semantic_type"]) for memory in said]
    assert layers == [
        ("user", "long_term", "event"),
        ("assistant", "short_term", "dialogue"),
        ("user", "short_term", "dialogue"),
    ]
    assert statement["content"] == page["content"] == "I moved to Lisbon."
    assert (statement["parents"], statement["session_id"]) == ([page["id"]], page["session_id"])
    assert {row["persona"]["name"] for row in said} == {"alice"}
    paths = ["/users/alice", "/users/alice/chat", "/users/alice/chat"]
    assert [row["namespace"]["path"] for row in said] == paths
    assert [memory["id"] for memory in alice.get("memories/").json["results"]] == [statement["id"], page["id"]]
    assert answer["dialogue_only"] is True
    assert bob.list_contents() == bob.list_contents("semantic_type=dialogue") == []


@pytest.mark.parametrize(
    "content",
    ["Hello", "Thanks a lot!", "Summarize what you know", "What do you know about me?", "谢谢你", "总结一下你知道的"],
)
def test_what_states_nothing_becomes_no_memory_and_is_no_evidence(alice: Contract, content: str) -> None:
    turns = begin(alice)
    alice.post(turns, {"content": content})
    assert alice.list_contents() == []
    said = alice.get("memories/?semantic_type=dialogue").json["results"]
    assert len(said) == 2
    assert {row["namespace"]["path"] for row in said} == {"/users/alice/chat"}
    assert alice.post(turns, {"content": f"{content}?"}).json["citations"] == []


def test_a_statement_names_the_day_that_it_speaks_of(alice: Contract) -> None:
    turns = begin(alice)
    alice.post(turns, {"content": "Hi! I moved to Lisbon on 3 May 2021. How are you?"})
    (statement,) = alice.get("memories/?source=chat&semantic_type=event").json["results"]
    assert statement["content"] == "I moved to Lisbon on 3 May 2021."
    assert statement["event_time"].startswith("2021-05-03T00:00:00")


def test_a_deleted_conversation_takes_its_statements_with_it(alice: Contract) -> None:
    turns = begin(alice)
    alice.post(turns, {"content": "I moved to Lisbon."})
    assert alice.delete(turns.removesuffix("turns/")).status == 204
    assert alice.list_contents() == alice.list_contents("semantic_type=dialogue") == []


def test_questions_of_chats_do_not_displace_memories(alice: Contract) -> None:
    alice.add("Anna lives in Porto.")
    turns = begin(alice)
    for number in range(12):
        alice.post(turns, {"content": f"Where does Anna live, {number}?"})
    run_jobs()
    assert alice.search_contents("Where does Anna live?") == ["Anna lives in Porto."]
    session = turns.split("/")[1]
    asked = alice.search("Where does Anna live, 7?", session_id=session, top_k=3, filters=DIALOGUE)
    assert "Where does Anna live, 7?" in [memory["content"] for memory in asked]
    found = alice.search("Where does Anna live?", namespaces=["/users/alice/chat"], filters=DIALOGUE)
    assert found[0]["source"] == "chat"


@pytest.mark.parametrize("question", ["法国的首都是哪里？", "What is the capital of Peru?"])
def test_it_says_so_when_nothing_answers(alice: Contract, question: str) -> None:
    for content in (
        "小明在上海的一家医院做护士。",
        "我每周三晚上去打羽毛球。",
        "Anna lives in Porto.",
        "妈妈的生日是七月十二号。",
    ):
        alice.add(content)
    run_jobs()
    turn = alice.post(begin(alice), {"content": question}).json
    assert turn["citations"] == []


def test_markers_of_a_quoted_answer_count_from_one(alice: Contract) -> None:
    for content in ("Jon is great.", "Jon went to Paris in May.", "Ann was in Paris with Jon in June."):
        alice.add(content)
    run_jobs()
    turn = alice.post(begin(alice), {"content": "When was Jon in Paris?"}).json
    assert [citation["marker"] for citation in turn["citations"]] == list(range(1, len(turn["citations"]) + 1))
    assert "great" not in turn["content"]


def test_statement_in_chat_answers_a_later_question(alice: Contract) -> None:
    alice.post(begin(alice), {"content": "I moved to Lisbon in March."})
    run_jobs()
    turn = alice.post(begin(alice), {"content": "When did I move to Lisbon?"}).json
    assert "March" in turn["content"]
    assert len(turn["citations"]) == 1


def test_an_answer_is_no_evidence_for_the_next_one(alice: Contract) -> None:
    turns = begin(alice)
    alice.post(turns, {"content": "Where does the heron nest?"})
    run_jobs()
    assert alice.post(turns, {"content": "Where does the heron nest?"}).json["citations"] == []


def test_deleting_a_conversation_deletes_its_turns_and_memories(alice: Contract) -> None:
    turns = begin(alice)
    alice.post(turns, {"content": "I moved to Lisbon."})
    assert alice.delete(turns.removesuffix("turns/")).status == 204
    assert alice.list_contents() == []


def test_a_dry_run_deletes_no_conversation(alice: Contract, bob: Contract) -> None:
    turns = begin(alice)
    alice.post(turns, {"content": "I moved to Lisbon."})
    address = turns.removesuffix("turns/")
    reply = alice.delete(address + "?dry_run=true")
    assert (reply.status, reply.json["dry_run"], reply.json["count"]) == (200, True, len(reply.json["ids"]))
    assert address.split("/")[1] in reply.json["ids"]
    assert len(alice.list_contents(f"filters={EVENTS_AND_DIALOGUE}")) == 3
    assert alice.get(turns).json["count"] == 1
    assert fields_at_fault(alice.delete(address + "?dry_run=maybe")) == {"dry_run"}
    assert fields_at_fault(alice.delete(address + "?purge=true")) == {"purge"}
    assert bob.delete(address + "?dry_run=maybe").status == 404
    assert alice.get(address).status == 200


def test_a_deleted_question_leaves_its_turn_without_words(alice: Contract) -> None:
    turns = begin(alice)
    alice.post(turns, {"content": "I moved to Lisbon."})
    for memory in alice.get(f"memories/?filters={EVENTS_AND_DIALOGUE}").json["results"]:
        alice.delete(f"memories/{memory['id']}/?purge=true")
    (turn,) = alice.get(turns).json["results"]
    assert (turn["question"], turn["content"]) == ("", "")


def test_a_stream_gives_the_same_answer_in_pieces(alice: Contract) -> None:
    memory = alice.add(FACT)
    run_jobs()
    turns = begin(alice)
    events = alice.stream(turns, {"content": QUESTION})
    names = [event.name for event in events]
    assert names[-1] == "done"
    assert set(names) == {"token", "citation", "done"}
    turn = events[-1].data
    assert "".join(event.data["text"] for event in events if event.name == "token") == turn["content"]
    assert [event.data for event in events if event.name == "citation"] == turn["citations"]
    assert turn["citations"][0]["memory_id"] == memory["id"]
    assert turn["model"] == "extractive"
    assert [CHANGED | stored for stored in alice.get(turns).json["results"]] == [turn]


def test_a_stream_that_cannot_begin_is_a_problem(alice: Contract) -> None:
    turns = begin(alice)
    stream = {"accept": "text/event-stream"}
    assert alice.post(turns, {"content": ""}, **stream).status == 400
    assert alice.post(turns, {"content": "x" * 32_001}, **stream).status == 413
    assert alice.post(f"conversations/{MISSING}/turns/", {"content": "x?"}, **stream).status == 404
    assert Contract(key=None).post(turns, {"content": "x?"}, **stream).status == 401
    assert alice.post(turns, {"content": "x?"}, idempotency_key="k", **stream).status == 400
    assert alice.get(turns).json["count"] == 0


def test_a_turn_under_a_key_is_asked_once(alice: Contract) -> None:
    turns = begin(alice)
    first = alice.post(turns, {"content": QUESTION}, idempotency_key="k")
    again = alice.post(turns, {"content": QUESTION}, idempotency_key="k")
    assert (first.status, first.json) == (again.status, again.json)
    assert alice.get(turns).json["count"] == 1


def test_a_question_that_is_none_is_refused(alice: Contract) -> None:
    turns = begin(alice)
    bad: list[object] = ["", "  ", "\x00", "\ud800", None, 3]
    for content in bad:
        assert fields_at_fault(alice.post(turns, {"content": content})) == {"content"}, repr(content)
    assert fields_at_fault(alice.post(turns, {"content": "x?", "speling": 1})) == {"speling"}
    assert alice.post(turns, {"content": "x" * 32_001}).status == 413
    assert alice.get(turns).json["count"] == 0


def test_a_viewer_may_chat_over_what_they_may_read(alice: Contract, bob: Contract) -> None:
    alice.add(FACT, namespace="/team")
    assert FACT in bob.post(begin(bob), {"content": QUESTION}).json["content"]


@pytest.mark.parametrize("scopes", [[Scope.MEMORIES_READ], [Scope.MEMORIES_WRITE], [Scope.ADMIN]])
def test_a_key_without_the_scope_does_not_chat(world: World, alice: Contract, scopes: list[Scope]) -> None:
    turns = begin(alice)
    client = contract(world, "alice", *scopes)
    for reply in (
        client.post("conversations/", {}),
        client.get("conversations/"),
        client.get(turns),
        client.post(turns, {"content": QUESTION}),
        client.patch(turns.removesuffix("turns/"), {"title": "x"}),
        client.delete(turns.removesuffix("turns/")),
    ):
        assert reply.status == 403
    assert alice.get("conversations/").json["count"] == 1


def test_the_auditor_does_not_chat(ada: Contract) -> None:
    assert ada.post("conversations/", {}).status == 403
    assert ada.get("conversations/").status == 403
