"""Each example of what the reader understands and the chat answers, in English and Chinese, without a model."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs

DAY, LATER = "2026-05-08T09:00:00Z", "2026-05-20T09:00:00Z"
NOTHING = ("Nothing in your memories answers this.", "你的记忆里没有这方面的内容。")
LIST = ("This is what your memories hold:", "你的记忆里有这些：")


@dataclass(frozen=True)
class Message:
    """One message of a dated conversation."""

    text: str
    at: str = DAY
    session: str = "first"
    role: str = "user"
    name: str = ""


@dataclass(frozen=True)
class Example:
    """told: messages, in the order in which they were said; asked: in one conversation, the last one is judged.

    has: in the answer, in this order; lacks: not in it.
    """

    told: tuple[Message | str, ...]
    asked: tuple[str, ...]
    has: tuple[str, ...]
    lacks: tuple[str, ...] = ()


def tell(who: Contract, told: tuple[Message | str, ...]) -> list[dict[str, Any]]:
    """Store the messages as their conversations; the memories of the reply, without the pages."""
    said = [Message(item) if isinstance(item, str) else item for item in told]
    stored: list[dict[str, Any]] = []
    for session in dict.fromkeys(item.session for item in said):
        messages = [
            {"role": item.role, "content": item.text, "timestamp": item.at} | ({"name": item.name} if item.name else {})
            for item in said
            if item.session == session
        ]
        reply = who.post("memories/", {"messages": messages, "session_id": session, "infer": True})
        assert reply.status == 201, reply
        stored += reply.json["results"]
    run_jobs()
    return [row for row in stored if row["semantic_type"] != "dialogue"]


def answers(who: Contract, asked: tuple[str, ...]) -> list[dict[str, Any]]:
    turns = f"conversations/{who.post('conversations/', {}).json['id']}/turns/"
    found: list[dict[str, Any]] = []
    for item in asked:
        reply = who.post(turns, {"content": item})
        assert reply.status == 201, reply
        run_jobs()
        found.append(reply.json)
    return found


def stored_contents(who: Contract) -> list[str]:
    """The contents of all memories but the messages of conversations."""
    rows = who.get("memories/?page_size=200").json["results"]
    return [row["content"] for row in rows if row["semantic_type"] != "dialogue"]


def judge_answer(example: Example, answer: str) -> None:
    at = 0
    for part in example.has:
        found = answer.find(part, at)
        assert found >= 0, (part, answer)
        at = found + len(part)
    assert [part for part in example.lacks if part in answer] == [], answer


@each_case("text", ["Hello", "Where does Anna live?", "总结一下你知道的", "我不是这个意思。"])
def test_what_states_nothing_becomes_no_memory(alice: Contract, text: str) -> None:
    """More such texts stand in tests/vault/reader/test_rules_extraction.py."""
    assert tell(alice, (text,)) == []
    (turn,) = answers(alice, (text,))
    assert turn["citations"] == []
    assert stored_contents(alice) == []


@pytest.mark.parametrize(
    ("text", "kind", "statement"),
    [
        ("Hello! Yesterday I visited the wetland park.", "event", "Yesterday I visited the wetland park."),
        ("你好！我昨天去了湿地公园。", "event", "我昨天去了湿地公园。"),
    ],
)
def test_statement_becomes_a_memory_with_its_kind_day_speaker_session_and_source(
    alice: Contract, text: str, kind: str, statement: str
) -> None:
    (memory,) = tell(alice, (text,))
    assert (memory["content"], memory["semantic_type"]) == (statement, kind)
    assert (memory["speaker"], memory["session_id"]) == ("user", "first")
    assert memory["event_time"][:10] == "2026-05-07"
    pages = {memory["id"] for memory in alice.get("memories/?semantic_type=dialogue").json["results"]}
    assert set(memory["parents"]) == pages
    found = [memory["id"] for memory in alice.search(statement, min_score=0.01)]
    assert memory["id"] in found
    assert not pages & set(found)


COMMANDS = {
    "remember": Example(
        (),
        ("Remember that the wifi code is blue-otter-42.", "What is the wifi code?"),
        ("the wifi code is blue-otter-42", "[1]"),
    ),
    "remember, in Chinese": Example(
        (), ("记住：无线网的密码是蓝獭四十二。", "无线网的密码是什么？"), ("无线网的密码是蓝獭四十二", "[1]")
    ),
    "forget lists what goes": Example(
        ("I work as a nurse.", "I love green tea."),
        ("Forget what I said about my job.",),
        ("Say yes, or press Forget", "I work as a nurse.", "[1]"),
        ("green tea",),
    ),
    "forget lists what goes, in Chinese": Example(
        ("我的工作是护士。", "我喜欢绿茶。"),
        ("忘掉我说过的关于工作的事。",),
        ("回答“是”或按“忘掉”", "我的工作是护士。", "[1]"),
        ("绿茶",),
    ),
    "forgotten after a yes": Example(
        ("I work as a nurse.",),
        ("Forget what I said about my job.", "Yes.", "What is my job?"),
        (NOTHING[0],),
        ("nurse",),
    ),
    "forgotten after a yes, in Chinese": Example(
        ("我的工作是护士。",), ("忘掉我说过的关于工作的事。", "是的。", "我的工作是什么？"), (NOTHING[1],), ("护士",)
    ),
    "about me": Example(
        ("My name is Maya.", "I love green tea.", "I want to lose weight.", "Anna lives in Porto."),
        ("What do you know about me?",),
        (LIST[0], "Profile:", "My name is Maya.", "[1]", "Preferences:", "green tea", "[2]", "Goals:", "weight", "[3]"),
        ("Porto",),
    ),
    "about me, in Chinese": Example(
        ("我叫小雅。", "我喜欢绿茶。", "我想减肥。", "安娜住在波尔图。"),
        ("你知道关于我的什么？",),
        (LIST[1], "基本情况：", "我叫小雅。", "[1]", "喜好：", "绿茶", "[2]", "目标：", "减肥", "[3]"),
        ("波尔图",),
    ),
    "about Anna": Example(
        ("Anna lives in Porto.", "Anna likes the sea.", "Jon likes tea."),
        ("Summarise what you know about Anna.",),
        (LIST[0], "Porto", "sea"),
        ("Jon",),
    ),
    "about Anna, in Chinese": Example(
        ("安娜住在波尔图。", "安娜喜欢大海。", "小乔喜欢茶。"),
        ("总结一下你知道的关于安娜的事。",),
        (LIST[1], "波尔图", "大海"),
        ("小乔",),
    ),
    "name of a pronoun": Example(
        ("Theo lives in Ghent.", "Theo works as a baker.", "Clara lives in Oslo."),
        ("Where does Theo live?", "And what does he do for work?"),
        ("Theo works as a baker.",),
        ("Clara",),
    ),
    "name of a pronoun, in Chinese": Example(
        ("小明住在苏州。", "小明的工作是面包师。", "小红住在杭州。"),
        ("小明住在哪里？", "他的工作是什么？"),
        ("小明的工作是面包师。",),
        ("小红",),
    ),
    "other name": Example(
        ("Theo lives in Ghent.", "Clara lives in Oslo."),
        ("Where does Theo live?", "What about Clara?"),
        ("Clara lives in Oslo.",),
        ("Ghent",),
    ),
    "other name, in Chinese": Example(
        ("小明住在苏州。", "小红住在杭州。"), ("小明住在哪里？", "那小红呢？"), ("小红住在杭州。",), ("苏州",)
    ),
    "when, as a follow-up": Example(
        ("I visited the castle on 3 March 2026.",),
        ("Did I visit the castle?", "When?"),
        ("3 March 2026",),
    ),
}

GOALS = {
    "goal beside an answer": Example(
        ("I want to lose weight.", "I ate a burger yesterday."),
        ("Can you recommend a burger?",),
        ("You have a goal that this touches:", "I want to lose weight."),
    ),
    "goal that is the answer itself": Example(
        ("I've decided to give up coffee, three cups a day is too much.",),
        ("How many cups of coffee did I drink a day?",),
        ("three cups a day", "[1]"),
        ("You have a goal", "[2]"),
    ),
    "goal after an answer that was itself the goal": Example(
        ("I've decided to give up coffee, three cups a day is too much.",),
        ("How many cups of coffee did I drink a day?", "Should I order an espresso?"),
        ("You have a goal that this touches:", "give up coffee"),
    ),
}

ANSWERED = {
    "who": Example(("Clara repaired my bicycle.", "My bicycle is red."), ("Who repaired my bicycle?",), ("Clara",)),
    "who, in Chinese": Example(("小红修好了我的自行车。", "我的自行车是红的。"), ("谁修好了我的自行车？",), ("小红",)),
    "where": Example(("I bought the lamp in Ghent.", "The lamp is green."), ("Where did I buy the lamp?",), ("Ghent",)),
    "where, in Chinese": Example(("我在根特买了台灯。", "台灯是绿色的。"), ("我在哪里买的台灯？",), ("根特",)),
    "how many": Example(
        ("I have three cousins in Porto.", "My cousins like football."),
        ("How many cousins do I have?",),
        ("three cousins",),
    ),
    "how many, in Chinese": Example(
        ("我在波尔图有三个表弟。", "我的表弟喜欢足球。"), ("我有几个表弟？",), ("三个表弟",)
    ),
    "which": Example(
        ("We decided on the blue tiles for the kitchen.", "The kitchen is small."),
        ("Which tiles did we decide on for the kitchen?",),
        ("blue tiles",),
    ),
    "which, in Chinese": Example(
        ("我们给厨房选了蓝色的瓷砖。", "厨房很小。"), ("我们给厨房选了哪种瓷砖？",), ("蓝色的瓷砖",)
    ),
    "when, resolved": Example(
        ("Yesterday I visited the wetland park.",), ("When did I visit the wetland park?",), ("7 May 2026",)
    ),
    "when, resolved, in Chinese": Example(("我昨天去了湿地公园。",), ("我什么时候去了湿地公园？",), ("2026年5月7日",)),
    "why": Example(
        ("I moved to Ghent because my daughter lives there.", "I like Ghent."),
        ("Why did I move to Ghent?",),
        ("because my daughter lives there",),
    ),
    "why, in Chinese": Example(
        ("我搬到了根特，因为我女儿住在那里。", "我喜欢根特。"), ("我为什么搬到根特？",), ("因为我女儿住在那里",)
    ),
    "why, in the sentence after it": Example(
        ("I sold the car. The reason is that the repairs cost too much.",),
        ("Why did I sell the car?",),
        ("the repairs cost too much",),
    ),
    "why, in the sentence after it, in Chinese": Example(
        ("我把车卖了。因为修理太贵了。",), ("我为什么把车卖了？",), ("因为修理太贵了",)
    ),
    "yes": Example(("I don't like badminton.",), ("I don't like badminton, right?",), ("Yes.", "badminton", "[1]")),
    "no": Example(("I don't like badminton.",), ("Do I like badminton?",), ("No.", "I don't like badminton.", "[1]")),
    "yes, in Chinese": Example(("我不喜欢打羽毛球。",), ("我不喜欢打羽毛球，对吧？",), ("是的。", "羽毛球", "[1]")),
    "no, in Chinese": Example(
        ("我不喜欢打羽毛球。",), ("我喜欢打羽毛球吗？",), ("不是。", "我不喜欢打羽毛球。", "[1]")
    ),
    "named person": Example(
        ("Clara moved to Oslo.", "Theo moved to Ghent."), ("Where did Theo move to?",), ("Ghent",), ("Oslo",)
    ),
    "named person, in Chinese": Example(
        ("小红搬到了奥斯陆。", "小明搬到了根特。"), ("小明搬到了哪里？",), ("根特",), ("奥斯陆",)
    ),
    "of what others say of themselves": Example(
        (Message("I adopted a parrot.", role="user", name="Clara"), "I adopted a cat."),
        ("What did I adopt?",),
        ("cat",),
        ("parrot",),
    ),
    "what was decided last week": Example(
        (
            Message("We decided to close the library.", at="2026-05-08T09:00:00Z"),
            Message("We decided to open the pool.", at=LATER, session="later"),
        ),
        ("What was decided on 8 May?",),
        ("close the library",),
        ("pool",),
    ),
    "what was decided, in Chinese": Example(
        (Message("我们决定关闭图书馆。"), Message("我们决定开放游泳池。", at=LATER, session="later")),
        ("5月8日决定了什么？",),
        ("关闭图书馆",),
        ("游泳池",),
    ),
    "topics of a day": Example(
        (
            Message("I ordered the kitchen tiles.", at="2026-04-27T10:00:00Z", session="april"),
            Message("My sister is looking for a flat.", at="2026-04-27T10:01:00Z", session="april"),
            Message("The topic of the talk is bread.", at=LATER, session="later"),
        ),
        ("What did we talk about on 27 April?",),
        ("kitchen tiles", "looking for a flat"),
        ("bread",),
    ),
    "topics of a day, in Chinese": Example(
        (
            Message("我订了厨房的瓷砖。", at="2026-04-27T10:00:00Z", session="april"),
            Message("我姐姐在找房子。", at="2026-04-27T10:01:00Z", session="april"),
            Message("讲座的话题是面包。", at=LATER, session="later"),
        ),
        ("4月27日我们聊了什么？",),
        ("瓷砖", "找房子"),
        ("面包",),
    ),
    "lead-in with what follows": Example(
        ("Here is what I did in the garden:\n- I repaired the gate.\n- I painted the shed.",),
        ("What did I do in the garden?",),
        ("repaired the gate",),
    ),
    "lead-in with what follows, in Chinese": Example(
        ("我在花园里做了这些：\n- 修好了大门。\n- 给棚子刷了漆。",), ("我在花园里做了什么？",), ("修好了大门",)
    ),
    "through its neighbour": Example(
        (
            Message("Where did you buy the lamp?", role="assistant"),
            Message("At the flea market in Ghent, for ten euros."),
        ),
        ("Where did I buy the lamp?",),
        ("At the flea market in Ghent",),
    ),
    "through its neighbour, in Chinese": Example(
        (Message("你在哪里买的台灯？", role="assistant"), Message("在根特的跳蚤市场，花了十欧元。")),
        ("我在哪里买的台灯？",),
        ("根特的跳蚤市场",),
    ),
    "in short, whole messages": Example(
        ("My dentist is Dr. Lee. Her practice is in Mill Road.",), ("Who is my dentist?",), ("My dentist is Dr. Lee.",)
    ),
}

DECLINED = {
    "of nobody known": Example(("Anna lives in Porto.",), ("Where does Sven live?",), (NOTHING[0],)),
    "of nobody known, in Chinese": Example(("安娜住在波尔图。",), ("小斯住在哪里？",), (NOTHING[1],)),
    "of another person": Example(
        ("Anna has a parrot called Kiwi.",), ("What is the parrot of Theo called?",), (NOTHING[0],)
    ),
    "of another person, in Chinese": Example(("安娜有一只鹦鹉叫奇异果。",), ("小明的鹦鹉叫什么？",), (NOTHING[1],)),
    "of nothing stored": Example(("I love green tea.",), ("What is the capital of Mongolia?",), (NOTHING[0],)),
    "of nothing stored, in Chinese": Example(("我喜欢绿茶。",), ("蒙古的首都是哪里？",), (NOTHING[1],)),
    "with the nearest": Example(
        ("My dentist has a practice in Mill Road.",),
        ("When does my dentist open the practice?",),
        (NOTHING[0], "These come closest, and do not answer it:", "Mill Road", "[1]"),
    ),
    "with the nearest, in Chinese": Example(
        ("我的牙医的诊所在磨坊路。",),
        ("我的牙医的诊所什么时候开门？",),
        (NOTHING[1], "最接近的是这些，但没有回答这个问题：", "磨坊路", "[1]"),
    ),
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    "example", [pytest.param(key, id=name) for name, key in (COMMANDS | GOALS | ANSWERED | DECLINED).items()]
)
def test_example_is_answered(alice: Contract, example: Example) -> None:
    tell(alice, example.told)
    judge_answer(example, str(answers(alice, example.asked)[-1]["content"]))


@pytest.mark.parametrize(
    ("told", "asked"),
    [("I work as a nurse.", "Forget what I said about my job."), ("我的工作是护士。", "忘掉我说过的关于工作的事。")],
)
def test_nothing_is_forgotten_before_the_confirmation(alice: Contract, told: str, asked: str) -> None:
    tell(alice, (told,))
    answers(alice, (asked,))
    assert stored_contents(alice) == [told]
    answers(alice, (asked, "no"))
    assert stored_contents(alice) == [told]


@pytest.mark.parametrize(
    ("question", "statement"),
    [("Where did I go for a run?", "I went for a run."), ("我去哪里跑步了？", "我去跑步了。")],
)
def test_question_is_no_evidence_of_itself(alice: Contract, question: str, statement: str) -> None:
    for _ in range(2):
        (turn,) = answers(alice, (question,))
        assert turn["citations"] == []
    (turn,) = answers(alice, (statement,))
    assert turn["citations"] == []
