"""Statements of weeks ago are recalled: by an event, by their day, with yes or no, and with their reason."""

from datetime import timedelta

import pytest

from governance.database import database_now
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.api.test_chat_commands import ask, begin
from tests.vault.outbox import run_jobs
from tests.vault.policies.policy_factories import create_policy

SMALL_TALK = ("Good morning!", "How are you?", "Thanks, see you.", "早上好！", "谢谢。")


def tell(who: Contract, session: str, at: str, *contents: str) -> None:
    messages = [{"role": "user", "content": content, "timestamp": at} for content in contents]
    reply = who.post("memories/", {"messages": messages, "session_id": session, "infer": True})
    assert reply.status in {200, 201}, reply  # 200: said before


@pytest.mark.parametrize(
    ("told", "others", "questions", "recalled"),
    [
        (
            "I went for a run in the wetland park this morning and saw a red squirrel.",
            ("I cooked lentil soup for Ben.", "My sister is looking for a flat.", "I repaired my bicycle."),
            ("What did I see in the wetland park?", "Where did I go for a run?", "Where did I see a squirrel?"),
            ("squirrel", "wetland park", "wetland park"),
        ),
        (
            "今天早上我在湿地公园跑步，看到了一只松鼠。",
            ("我给小本做了扁豆汤。", "我姐姐在找房子。", "我修好了自行车。"),
            ("我在湿地公园看到了什么？", "我在哪里跑步？", "我在哪里看到了松鼠？"),
            ("松鼠", "湿地公园", "湿地公园"),
        ),
    ],
    ids=["en", "zh"],
)
def test_event_of_three_weeks_ago_is_recalled_by_its_place_and_its_animal(
    world: World,
    alice: Contract,
    told: str,
    others: tuple[str, ...],
    questions: tuple[str, ...],
    recalled: tuple[str, ...],
) -> None:
    now = database_now()
    tell(alice, "first", (now - timedelta(days=21)).isoformat(), *SMALL_TALK, told)
    for number, other in enumerate(others):
        tell(alice, f"later {number}", (now - timedelta(days=14 - number)).isoformat(), *SMALL_TALK, other)
    run_jobs()
    turns = begin(alice)
    for question, part in zip(questions, recalled, strict=True):
        answer = ask(alice, turns, question)
        assert part in answer, (question, answer)
        assert not [other for other in others if other in answer], (question, answer)


@pytest.mark.parametrize(
    ("topics", "other", "question"),
    [
        (
            ("I ordered the kitchen tiles.", "My sister is looking for a flat."),
            "I repaired my bicycle.",
            "What did we talk about on 27 April?",
        ),
        (("我订了厨房的瓷砖。", "我姐姐在找房子。"), "我修好了自行车。", "4月27日我们聊了什么？"),
    ],
    ids=["en", "zh"],
)
def test_question_about_a_day_is_answered_with_its_topics(
    alice: Contract, topics: tuple[str, ...], other: str, question: str
) -> None:
    tell(alice, "april", "2026-04-27T10:00:00Z", *SMALL_TALK, *topics)
    tell(alice, "may", "2026-05-03T10:00:00Z", *SMALL_TALK, other)
    run_jobs()
    answer = ask(alice, begin(alice), question)
    assert [topic for topic in topics if topic not in answer] == [], answer
    assert other not in answer


@each_case(
    ("told", "question", "opening"),
    [
        ("I don't like badminton.", "I don't like badminton, right?", "Yes."),
        ("I don't like badminton.", "Do I like badminton?", "No."),
        ("我不喜欢打羽毛球。", "我不喜欢打羽毛球，对吧？", "是的。"),
        ("我不喜欢打羽毛球。", "我喜欢打羽毛球吗？", "不是。"),
    ],
)
def test_question_for_yes_or_no_is_answered_with_it_and_the_evidence(
    alice: Contract, told: str, question: str, opening: str
) -> None:
    tell(alice, "first", "2026-04-27T10:00:00Z", told)
    run_jobs()
    answer = ask(alice, begin(alice), question)
    assert answer.startswith(opening), answer
    assert told in answer


@pytest.mark.parametrize(
    ("told", "question"),
    [
        ("I moved to Ghent because my daughter lives there.", "Why did I move to Ghent?"),
        ("我搬到了根特，因为我女儿住在那里。", "我为什么搬到根特？"),
    ],
)
def test_question_for_a_reason_is_answered_with_the_statement_that_has_it(
    alice: Contract, told: str, question: str
) -> None:
    tell(alice, "first", "2026-04-27T10:00:00Z", told, "I like Ghent.")
    run_jobs()
    assert told in ask(alice, begin(alice), question)


FORMS = {"where": {"namespace": "/forms"}, "purposes": ["forms"]}
ADDRESS_FORM = ("I live at Rua da Rosa 12 in Lisbon.", "My tax number is on the blue card.")


def recall_answer(who: Contract, question: str, purpose: str) -> tuple[str, list[str]]:
    """The chat's answer, and the contents that the search finds, both for one purpose."""
    headers = {"x_memory_purpose": purpose} if purpose else {}
    conversation = who.post("conversations/", {}).json["id"]
    turn = who.post(f"conversations/{conversation}/turns/", {"content": question}, **headers).json
    found = who.post("memories/search/", {"query": question, "top_k": 5}, **headers).json["results"]
    return turn["content"], [memory["content"] for memory in found]


def test_facts_of_the_address_form_are_offered_to_the_visa_form_until_the_purpose_forbids_it(
    alice: Contract, olivia: Contract
) -> None:
    for content in ADDRESS_FORM:
        alice.add(content, namespace="/forms", task_id="address-form")
    run_jobs()
    question = "Where do I live, for the visa form?"
    for purpose in ("", "forms", "newsletter"):
        answer, found = recall_answer(alice, question, purpose)
        assert "Rua da Rosa 12" in answer
        assert ADDRESS_FORM[0] in found
    create_policy(olivia, "purpose", FORMS, name="forms only")
    answer, found = recall_answer(alice, question, "forms")
    assert "Rua da Rosa 12" in answer
    assert ADDRESS_FORM[0] in found
    for purpose in ("", "newsletter"):
        answer, found = recall_answer(alice, question, purpose)
        assert "Rua da Rosa" not in answer
        assert ADDRESS_FORM[0] not in found


def test_a_search_within_a_task_finds_its_facts_only(alice: Contract) -> None:
    alice.add(ADDRESS_FORM[0], task_id="address-form")
    alice.add("I live in Lisbon, and the visa is for Japan.", task_id="visa-form")
    run_jobs()
    body = {"query": "Where do I live?", "top_k": 5}
    everywhere = alice.post("memories/search/", body).json["results"]
    assert len(everywhere) == 2
    own = alice.post("memories/search/", body | {"task_id": "address-form"}).json["results"]
    assert [memory["content"] for memory in own] == [ADDRESS_FORM[0]]
