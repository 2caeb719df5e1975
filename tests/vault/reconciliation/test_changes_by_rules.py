"""Decisions of the rules alone on earlier statements: replaced, corrected, cancelled, or left in force."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.api.test_chat_commands import begin
from tests.vault.reconciliation.test_relations import EARLY, LATE, stored
from vault.reader.rules import memory_call
from vault.reconciliation.corrections import find_ended

SAID_AT = datetime(2026, 11, 23, 12, tzinfo=UTC)
# What was said before, what is said now, and the number of the statement that ends; None: none does.
CHANGES: list[tuple[list[str], str, int | None]] = [
    (["I live in Ghent.", "I like tea."], "I moved to Bruges.", 0),
    (["I live in Ghent."], "I've just moved from Ghent to Bruges.", 0),
    (["I live in Ghent."], "I moved to a new desk.", None),
    (["我住在厦门。"], "从厦门搬到了杭州。", 0),
    (["I drive a Volvo."], "I drive a Skoda now.", 0),
    (["I drive a Volvo."], "I drive a van on Sundays.", None),
    (["My phone number is 555 0100."], "My phone number is 555 0199.", 0),
    (["My locker code is 5521."], "My locker code is 7710.", 0),
    (["我的车牌号是沪A12345。"], "我的车牌号是沪B54321。", 0),
    (["我在律所工作。"], "我从律所跳槽到银行。", 0),
    (["I work as a nurse."], "I work at St Luke's.", None),
    (["My sister is a nurse."], "My sister is in Rome.", None),
    (["My cat is called Pip.", "My cat is ill."], "My cat is better.", None),
    (["The meeting is at 3.", "I like jazz."], "Correction: the meeting is at 4.", 0),
    (["会议在三点。", "我喜欢爵士乐。"], "说错了，会议在四点。", 0),
    (["The meeting is at 3.", "The meeting with Bo is at 5."], "Correction: the meeting is at 4.", None),
    (["Dinner with Sam is on Friday at 7.", "Lunch with Bo on Monday."], "Dinner with Sam is off.", 0),
    (["Dinner with Sam on Friday.", "Dinner with Bo on Monday."], "Dinner is off.", None),
    (["I want to learn Italian.", "I speak French."], "I'm no longer learning Italian.", 0),
    (["I go running every morning.", "I like jazz."], "Not running any more.", 0),
    (["I sing in the choir.", "I like jazz."], "I quit the choir.", 0),
    (["我计划五月去西藏旅行。", "我喜欢西瓜。"], "西藏不去了。", 0),
    (["我在学法语。", "我会说德语。"], "我不学法语了。", 0),
    (["I have a girlfriend called Ana.", "Ana has a dog."], "We broke up.", 0),
    (["我女朋友叫安娜。", "我有一只猫。"], "分手了。", 0),
    (["I like tea.", "I have a boat."], "The wedding is off.", None),
    (["I want to run a marathon.", "I run every day."], "I'm off to bed.", None),
    (["I have a dog."], "I also have a cat.", None),
    (["想去桂林，18号出发。", "我喜欢爬山。"], "唉，桂林去不成了，腿摔了。", 0),
    (["I give a pottery class on 9 May.", "I like tea."], "Too few came so the pottery class isn't going ahead.", 0),
    (["We have a picnic on Sunday."], "If it rains, the picnic is off.", None),
    (["The school play is on 4 May.", "Dinner on 4 May."], "They've pushed the play a week, to the 11th.", 0),
    (["My driving test is in June.", "I passed the maths test."], "The driving test was put off until August.", 0),
    (["I bought a sofa on Monday."], "I moved the sofa to the kitchen.", None),
    (["周三体检。", "周五开会。"], "体检推迟到下周一了。", 0),
    (["报了六月的日语考试。", "我在学日语。"], "日语考试通知下来了，改到9月。", 0),
    (["Larsson owes me 640 kroner.", "Larsson is ill."], "I misread it, Larsson owes me 460 kroner.", 0),
    (["豆豆4月16号满周岁。", "豆豆会走了。"], "豆豆是26号的生日，我说早了十天。", 0),
    (["豆豆4月16号满周岁。"], "豆豆4月26号打针。", None),
    (["Bo works on Thursday."], "I swapped shifts with Bo, so I work on Friday.", None),
    (["小王给了我2个苹果。"], "我昨天说错话了，给小王发了3个红包。", None),
    (["我记得小王住3楼。"], "我没记错，小王有5只猫。", None),
    (["我们周日去野餐。"], "下雨的话，野餐就取消了。", None),
]


@pytest.mark.parametrize(("before", "now", "ended"), CHANGES)
def test_statement_ends_what_it_certainly_changes(before: list[str], now: str, ended: int | None) -> None:
    earlier = [(UUID(int=number), text) for number, text in enumerate(before)]
    is_correction = memory_call(now, said_at=SAID_AT).intent == "update"
    found = find_ended(now, said_at=SAID_AT, earlier=earlier, is_correction=is_correction)
    assert (found.id.int if found else None) == ended


@pytest.mark.parametrize(
    ("before", "now", "rest"),
    [
        ("我住在厦门，养了一只猫", "我搬到了杭州", "我养了一只猫"),
        ("I live in Ghent and have a cat.", "I moved to Bruges.", "I have a cat"),
        ("I live in Ghent, my sister lives in Rome.", "I moved to Bruges.", "my sister lives in Rome"),
        ("I live in Ghent, for the work.", "I moved to Bruges.", ""),
        (
            "The concert's on May 4 at three, in the mill, we're playing Bach and I have a solo.",
            "They've pushed the concert to the 11th.",
            "Concert: we're playing Bach, I have a solo",
        ),
        ("I live in Ghent.", "I moved to Bruges.", ""),
    ],
)
def test_other_clauses_of_an_ended_statement_stay(before: str, now: str, rest: str) -> None:
    found = find_ended(now, said_at=SAID_AT, earlier=[(UUID(int=0), before)], is_correction=False)
    assert found is not None
    assert found.rest == rest


def say(who: Contract, place: str, text: str) -> Any:
    return who.post(place, {"content": text}).json


def send(who: Contract, text: str, at: str) -> Any:
    message = {"role": "user", "content": text, "timestamp": at}
    return who.post("memories/", {"messages": [message], "session_id": at}).json


@each_case(
    "old, new",
    [
        ("I live in Lisbon.", "I moved to Porto."),
        ("My locker code is 5521.", "My locker code is 7710."),
        ("我的邮箱是a@example.com。", "我的邮箱是b@example.com。"),
    ],
)
def test_message_of_one_sentence_says_what_it_ended(alice: Contract, old: str, new: str) -> None:
    first = send(alice, old, EARLY)["results"][0]["id"]
    reply = send(alice, new, LATE)
    assert [(change["id"], change["by"]) for change in reply["superseded"]] == [(first, reply["results"][0]["id"])]


def test_turn_says_what_it_ended(world: World, alice: Contract) -> None:
    place = begin(alice)
    assert say(alice, place, "I live in Lisbon.")["superseded"] == []
    turn = say(alice, place, "I moved to Porto.")
    ids = [(change["id"], change["by"], change["relation"]) for change in turn["superseded"]]
    older, newer = stored(world, "I live in Lisbon."), stored(world, "I moved to Porto.")
    assert ids == [(str(older.id), str(newer.id), "supersedes")]
    assert turn["conflicts"] == []


@each_case(
    "told, correction, whole",
    [
        ("My train leaves at 9:10.", "I was wrong: 9:40", "My train leaves at 9:40."),
        ("The plumber comes on Tuesday.", "no, I said Thursday", "The plumber comes on Thursday."),
        ("和王医生的会议是三点。", "说错了，四点", "和王医生的会议是四点。"),
        (
            "The vet sees Momo on the 26th.",
            "Ben looks at me. It's the 27th, same time. He has it on the wall.",
            "The vet sees Momo on the 27th.",
        ),
        ("小林来厦门，31号上午的火车。", "她发了截图来，是30号晚上那趟，我记岔了。", "小林来厦门，30号晚上的火车。"),
    ],
)
@pytest.mark.parametrize("way", ["turns", "messages", "one request"])
def test_correction_of_a_value_of_the_last_message_is_made_whole(
    alice: Contract, way: str, told: str, correction: str, whole: str
) -> None:
    if way == "turns":
        place = begin(alice)
        say(alice, place, told)
        reply = say(alice, place, correction)
    else:
        texts = [[told], [correction]] if way == "messages" else [[told, correction]]
        replies = [alice.post("memories/", {"messages": messages_of(part), "session_id": whole}) for part in texts]
        reply = replies[-1].json
    (change,) = reply["superseded"]
    shown = [alice.get(f"memories/{change[side]}/").json["content"] for side in ("id", "by")]
    assert shown == [told, whole]
    assert change["relation"] == "corrects"


def messages_of(texts: list[str]) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


@pytest.mark.parametrize(
    "correction",
    ["It's the 27th today and I am tired.", "I got it wrong, her birthday is the 27th.", "看错了，我的生日是27号。"],
)
def test_value_of_something_else_corrects_nothing(alice: Contract, correction: str) -> None:
    texts = ["The vet sees Momo on the 26th.", "26号去看牙。", correction]
    reply = alice.post("memories/", {"messages": messages_of(texts), "session_id": "s"}).json
    assert reply["superseded"] == []


def test_statements_of_one_request_end_each_other_in_their_order(alice: Contract) -> None:
    texts = ["I live in Lisbon.", "I moved to Porto.", "I moved to Faro."]
    reply = alice.post("memories/", {"messages": messages_of(texts), "session_id": "s"}).json
    ids = [memory["id"] for memory in reply["results"]]
    assert [(change["id"], change["by"]) for change in reply["superseded"]] == [(ids[0], ids[1]), (ids[1], ids[2])]
    assert [memory["superseded_by"] for memory in reply["results"]] == [ids[1], ids[2], None]


def test_items_of_a_bulk_call_end_earlier_statements(alice: Contract) -> None:
    first = alice.add("I live in Lisbon.")["id"]
    session = {"session_id": "s", "infer": True}
    talk = [{"role": "assistant", "content": "How many cats do you have?"}, {"role": "user", "content": "Two."}]
    items = [{"content": "I moved to Porto."}, {"content": "I moved to Faro."}, {"messages": talk, **session}]
    reply = alice.post("memories/bulk/", {"items": items}).json
    texts = {row["memory"]["content"]: (row["index"], row["memory"]["id"]) for row in reply["results"]}
    assert {text: index for text, (index, _id) in texts.items()} == {
        "I moved to Porto.": 0,
        "I moved to Faro.": 1,
        "I have two cats.": 2,
    }
    porto, faro = texts["I moved to Porto."][1], texts["I moved to Faro."][1]
    assert [(change["id"], change["by"]) for change in reply["superseded"]] == [(first, porto), (porto, faro)]
    assert [row["memory"]["superseded_by"] for row in reply["results"]] == [faro, None, None]


def test_statement_that_holds_again_is_stored_anew(alice: Contract) -> None:
    first = alice.add("I live in Turin.")["id"]
    away = alice.add("I moved to Oslo.")["id"]
    back = alice.post("memories/", {"content": "I live in Turin."})
    (memory,) = back.json["results"]
    assert (back.status, memory["id"] != first, memory["superseded_by"]) == (201, True, None)
    assert [(change["id"], change["by"]) for change in back.json["superseded"]] == [(away, memory["id"])]
    again = alice.post("memories/", {"content": "I live in Turin."})
    assert (again.status, again.json["results"][0]["id"]) == (200, memory["id"])


def test_memory_added_on_a_page_ends_an_earlier_statement(world: World, alice: Contract) -> None:
    older = alice.add("I live in Lisbon.")["id"]
    answer = signed_in(world.alice).post(
        "/memories/new/", {"content": "I moved to Porto.", "semantic_type": "fact", "sensitivity": "internal"}
    )
    assert answer.status_code == 303
    newer = str(stored(world, "I moved to Porto.").id)
    assert alice.get(f"memories/{older}/").json["superseded_by"] == newer


def test_clause_that_is_still_true_stays(world: World, alice: Contract) -> None:
    send(alice, "我住在厦门，养了一只猫", EARLY)
    assert send(alice, "我搬到了杭州", LATE)["superseded"] != []
    rest = stored(world, "我养了一只猫")
    assert (rest.valid_to, rest.has_sources) == (None, True)


def test_deletion_of_the_newer_puts_the_older_into_force_again(alice: Contract) -> None:
    first = send(alice, "I live in Lisbon.", EARLY)["results"][0]["id"]
    second = send(alice, "I moved to Porto.", LATE)["results"][0]["id"]
    assert alice.get(f"memories/{first}/").json["superseded_by"] == second
    assert alice.delete(f"memories/{second}/").status == 204
    told = alice.get(f"memories/{first}/").json
    assert (told["valid_to"], told["superseded_by"]) == (None, None)


def test_statement_whose_end_a_person_takes_away_is_superseded_no_more(alice: Contract) -> None:
    first = send(alice, "I live in Lisbon.", EARLY)["results"][0]["id"]
    send(alice, "I moved to Porto.", LATE)
    etag = f'"{alice.get(f"memories/{first}/").json["version"]}"'
    changed = alice.send("patch", f"memories/{first}/", {"valid_to": None}, if_match=etag)
    assert (changed.json["valid_to"], changed.json["superseded_by"]) == (None, None)
