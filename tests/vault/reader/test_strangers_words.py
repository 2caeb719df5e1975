"""Sentences of strangers, with siblings: facts to store, texts to leave, and commands."""

from datetime import UTC, datetime

import pytest

from vault.layers.own_facts import asked_group, belongs_to
from vault.lexicon.labels import find_word
from vault.reader.rules import Intent, Passage, about, memory_call, names_in, read_statements, unstated_kind

SAID_AT = datetime(2026, 11, 23, 12, tzinfo=UTC)
TOLD = [
    "The kitchen was painted green.",
    "I enjoy long walks.",
    "I moved to Bruges.",
    "I live in Ghent.",
    "Ada plays the cello.",
    "We already met Al.",
    "Ed repairs bikes.",
    "My memory is bad.",
    "My sister lives in Ghent.",
    "I work as a nurse at St Luke's.",
    "我住在根特",
    "我搬到了布鲁日",
    "豆豆三岁了",
    "我喜欢晨跑。",
    "Jo lent me a drill.",
    "I'm allergic to nuts.",
    "I don't eat meat.",
    "Kit is my nephew.",
]


def texts_of(text: str) -> list[str]:
    return [statement.text for statement in read_statements(text, speaker="user", said_at=SAID_AT)]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("forget Kit", ["Kit is my nephew."]),
        ("forget Jo", ["Jo lent me a drill."]),
        ("forget al", ["We already met Al."]),
        ("delete the memory about Ada", ["Ada plays the cello."]),
        ("delete the memory about Ed", ["Ed repairs bikes."]),
        ("please erase everything about Ann", []),
        ("remove the note that says that I don't eat meat", ["I don't eat meat."]),
        ("forget that I eat meat", []),
        ("forget that I am allergic to nuts", ["I'm allergic to nuts."]),
        ("forget that my sister lives in Ghent", ["My sister lives in Ghent."]),
        ("delete my cello notes", ["Ada plays the cello."]),
        ("忘掉我住在根特", ["我住在根特"]),
        ("别记得我喜欢晨跑", ["我喜欢晨跑。"]),
        ("删除关于豆豆的记忆", ["豆豆三岁了"]),
        ("把豆豆的记忆删掉", ["豆豆三岁了"]),
        ("忘了乐乐", []),
    ],
)
def test_only_what_is_named_is_forgotten(text: str, meant: list[str]) -> None:
    call = memory_call(text, said_at=SAID_AT)
    passages = [Passage(told, told, 1.0, own=True) for told in TOLD]
    assert call.intent is Intent.DELETE
    assert about(call.query, passages, own=False, is_statement=call.is_statement) == meant


@pytest.mark.parametrize(
    ("text", "name", "place"),
    [("we also met al.", "al", 12), ("enjoy", "jo", -1), ("jo's drill", "jo", 0), ("小雨来了", "小雨", 0)],
)
def test_name_is_a_whole_word(text: str, name: str, place: int) -> None:
    assert find_word(text, name) == place


def test_name_is_spelled_as_where_it_is_a_word() -> None:
    assert names_in("also ask Al about it") == ["Al"]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("remind me to water the ficus on Sunday", "2026-11-29"),
        ("Can you remind me to call mum tomorrow?", "2026-11-24"),
        ("please remind me about the dentist on Friday at 9", "2026-11-27"),
        ("Don't let me forget to pay the rent", None),
        ("提醒我下周三交物业费", "2026-12-02"),
        ("记得提醒我周五交房租", "2026-11-27"),
        ("能不能提醒我明天给妈妈打电话？", "2026-11-24"),
    ],
)
def test_reminder_is_a_goal_with_its_day(text: str, day: str | None) -> None:
    (goal,) = read_statements(text, speaker="user", said_at=SAID_AT)
    assert goal.semantic_type == "goal"
    assert (goal.event_time.date().isoformat() if goal.event_time else None) == day
    assert memory_call(text, said_at=SAID_AT).intent is Intent.ADD


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("I see my therapist on Fridays", "I see my therapist on Fridays"),
        ("I know a good dentist", "I know a good dentist"),
        ("They hand over the keys on the 5th", "They hand over the keys on the 5th"),
        ("You know, I am diabetic", "I am diabetic"),
        ("One more thing: my rent is 900", "my rent is 900"),
        ("I want to talk to my boss about a raise", "I want to talk to my boss about a raise"),
        ("I asked my landlord for a new boiler", "I asked my landlord for a new boiler"),
        ("I'll ask my sister to feed the cat", "I'll ask my sister to feed the cat"),
        ("I will be back in Berlin on 3 May", "I will be back in Berlin on 3 May"),
        ("Help desk moved to floor 3", "Help desk moved to floor 3"),
        ("Answer key is in the drawer", "Answer key is in the drawer"),
        ("你知道我有哮喘", "我有哮喘"),
        ("给我女儿报了舞蹈班", "给我女儿报了舞蹈班"),
        ("帮我妈换了灯泡", "帮我妈换了灯泡"),
        ("翻译是我的工作", "翻译是我的工作"),
        ("推荐信已经寄出了", "推荐信已经寄出了"),
        ("麻烦的是车坏了", "麻烦的是车坏了"),
        ("我问了医生，手术在周五", "我问了医生，手术在周五"),
        ("测试环境的密码是abc", "测试环境的密码是abc"),
        ("Dinner is off", "Dinner is off"),
        ("not running any more", "not running any more"),
        ("add: my locker code is 5521", "my locker code is 5521"),
        ("Add a memory: the spare key is at Bo's", "the spare key is at Bo's"),
        ("请添加：我的储物柜密码是5521", "我的储物柜密码是5521"),
        ("新增一条记忆：我对青霉素过敏", "我对青霉素过敏"),
    ],
)
def test_fact_is_stored_in_whatever_words(text: str, stated: str) -> None:
    assert texts_of(text) == [stated]


@pytest.mark.parametrize(
    "text",
    [
        "who borrowed my ladder",
        "is Tom coming tomorrow",
        "what happened to my keys",
        "我的护照放哪了",
        "我钥匙在哪",
        "护照还在不在",
        "周五去不去爬山",
        "I want to ask you something",
        "I was asking about the weather",
        "I'll be right back",
        "remind me what I said",
        "我想知道明天的天气",
        "给我讲个笑话",
        "帮我翻译一下",
        "总结一下在上海的事",
        "From your memories:\n“I moved to Lisbon in May.” [1] (you said, 2 May 2026)\n“My cat is Pip.” [2] (you said)",
        "你的记忆里写着：\n“我搬到了里斯本。” [1] （你说，2026年5月2日）",
        '{"id": "0198f3a0-0000-7000-8000-000000000001", "layer": "long_term", "said_by": "user", "text": "I moved."}',
    ],
)
def test_questions_requests_and_own_words_of_the_product_are_not_stored(text: str) -> None:
    assert texts_of(text) == []


def test_statement_after_a_pasted_answer_is_stored() -> None:
    assert texts_of("“My cat is Pip.” [1] (you said, 2 May 2026)\nMy cat is called Max.") == ["My cat is called Max."]


@pytest.mark.parametrize(
    "text",
    ["right, talk later", "ok, gotta run", "Alright, I have to go now", "先这样吧", "好嘞，回头聊", "嗯嗯，明天再聊"],
)
def test_end_of_a_talk_is_a_farewell(text: str) -> None:
    assert texts_of(text) == []
    assert unstated_kind(text) == "farewell"


@pytest.mark.parametrize(
    ("text", "intent", "query"),
    [
        ("unfreeze the memory about my lease", "unfreeze", "lease"),
        ("解冻关于合同的记忆", "unfreeze", "合同"),
        ("update my hedgehog memory", "update", "hedgehog"),
        ("update my hedgehog memory: he is called Pip now", "update", "hedgehog"),
        ("更新关于豆豆的记忆：它三岁了", "update", "豆豆"),
        ("搜一下仓鼠", "search", "仓鼠"),
        ("在我的记忆里搜一下仓鼠", "search", "仓鼠"),
        ("search my memories for hamsters", "search", "hamsters"),
        ("find my notes about the boiler", "search", "boiler"),
        ("Audit", "audit", ""),
        ("审计一下", "audit", ""),
        ("freeze my notes", "freeze", ""),
        ("undo the last change", "rollback", ""),
        ("撤销上一次修改", "rollback", ""),
        ("promote my chess notes", "promote", "chess"),
        ("merge my garden notes", "fuse", "garden"),
        ("restore my Lisbon memories", "restore", "Lisbon"),
        ("tag my boiler notes as house", "tag", "boiler"),
        ("总结关于锅炉的记忆", "summarise", "锅炉"),
    ],
)
def test_command_is_recognised_and_not_stored(text: str, intent: str, query: str) -> None:
    call = memory_call(text, said_at=SAID_AT)
    assert (call.intent, call.query, call.is_operation) == (Intent(intent), query, True)
    assert texts_of(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Merge lanes are closed",
        "Change of plans: dinner is at eight",
        "搜救队救了他",
        "取消了周五的会议",
        "找到了新工作",
        "Lock the door at nine",
    ],
)
def test_what_only_begins_like_a_command_is_none(text: str) -> None:
    assert not memory_call(text, said_at=SAID_AT).is_operation


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        (
            "We found a flat in Rowan Terrace. Costs 1,150 a month. Starts in spring.",
            ["We found a flat in Rowan Terrace. Costs 1,150 a month. Starts in spring."],
        ),
        ("我们在中山路找到了房子。月租三千二。我喜欢阳台。", ["我们在中山路找到了房子。月租三千二。", "我喜欢阳台。"]),
        ("Maya had the baby. It's a girl.", ["Maya had the baby. It's a girl."]),
        ("我报了个瑜伽班。每周二晚上。", ["我报了个瑜伽班。每周二晚上。"]),
        ("I joined a choir. Every Tuesday at 7. I love it.", ["I joined a choir. Every Tuesday at 7."]),
        ("I live in Leeds. On Friday I fly to Rome.", ["I live in Leeds.", "On Friday I fly to Rome."]),
        ("I bought a kettle. It was fun.", ["I bought a kettle."]),
    ],
)
def test_fragment_is_stored_with_what_it_is_about(text: str, stated: list[str]) -> None:
    assert texts_of(text) == stated


@pytest.mark.parametrize("question", ["What are my goals?", "list my goals", "我的目标是什么？", "我有哪些目标"])
def test_question_for_goals_finds_any_goal_but_those_given_up(question: str) -> None:
    group = asked_group(question)
    assert group is not None
    goals = ["I want to save 5,000 for a boat.", "I am trying to spend less time on my phone.", "我打算考驾照"]
    others = ["I gave up on the marathon.", "我不想考研了", "I have a boat."]
    assert [text for text in (*goals, *others) if belongs_to(text, group)] == goals
