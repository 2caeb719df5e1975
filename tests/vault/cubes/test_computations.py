from datetime import UTC, date, datetime

from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import contract
from tests.vault.outbox import run_jobs
from vault.cubes.computations import asked_computation, compute_line
from vault.cubes.passages import Passage

SAID, DAY = datetime(2025, 3, 2, 12, tzinfo=UTC), date(2026, 11, 29)
COMPUTED = [
    ("How old am I?", "I was born on 3 June 1991.", "35 years old on 29 November 2026."),
    ("How old am I?", "I was born in 1991.", "34 or 35 years old on 29 November 2026."),
    ("How old is Otto?", "Otto is 2 and loves trains.", "3 or 4 years old on 29 November 2026."),
    ("How old am I?", "I'll be 35 on 8 November.", "36 years old on 29 November 2026."),
    ("我今年多大了？", "我今年六十三，记性不好。", "2026年11月29日时64或65岁。"),
    ("How long have I worked there?", "I started at the clinic on 14 April 2024.", "2 years on 29 November 2026."),
    ("How long have I sung alto?", "I sing alto, going on nine years.", "About 10 years on 29 November 2026."),
    ("我在公司多久了？", "我2021年7月进的公司", "到2026年11月29日大约5年。"),
    ("我干了多久了？", "我在出版社已经干了六年。", "到2026年11月29日大约7年。"),
    ("我在杭州住了多久？", "我2019年3月搬到杭州。", "到2026年11月29日大约7年。"),
    ("How long did I work in Leeds?", "I spent four years in Leeds.", "4 years."),
    (
        "How many days until my birthday?",
        "I was born on 17 August 1988.",
        "In 261 days, on 17 August 2027: every year on 17 August.",
    ),
    (
        "When is the next book club?",
        "It meets on the first Monday of each month.",
        "In 8 days, on 7 December 2026: every first Monday of the month.",
    ),
    ("How many days until the race?", "The race is on 7 February 2027.", "In 70 days, on 7 February 2027."),
    ("How long until the race?", "The race is on 29 November 2026.", "Today, 29 November 2026."),
    ("When is the next choir?", "Thursdays is choir.", "In 4 days, on 3 December 2026: every Thursday."),
    ("离马拉松还有几天？", "马拉松是2027年2月7日。", "还有70天：2027年2月7日。"),
    ("下次羽毛球是什么时候？", "每周三晚上打羽毛球", "还有3天：2026年12月2日，每周三。"),
    ("How many days is the trip?", "We are in Oslo from 3 May to 10 May 2025.", "8 days: 3 May 2025 – 10 May 2025."),
    ("我们去几天？", "国庆回上饶待着，10月1号到7号", "7天：2025年10月1日 – 2025年10月7日。"),
]
NOT_COMPUTED = [
    ("How old is Otto?", "Otto loves trains."),
    ("How many days until the race?", "The race was on 7 February 2025."),
    ("How long is the holiday?", "The holiday is in March 2025."),
    ("When is my next physio?", "Physio is every second Tuesday."),
    ("What is my name?", "I was born on 3 June 1991."),
    ("How old is the bridge?", "The ticket is 40 euros."),
]


@each_case("question, text, line", COMPUTED)
def test_what_a_question_asks_for_is_computed_from_the_quote(question: str, text: str, line: str) -> None:
    kind = asked_computation(question)
    assert kind is not None
    assert compute_line(kind, {1: Passage(text, "user", SAID)}, 1, DAY, "en" if question.isascii() else "zh") == line


@each_case("question, text", NOT_COMPUTED)
def test_nothing_is_computed_from_what_a_quote_does_not_hold(question: str, text: str) -> None:
    kind = asked_computation(question)
    assert kind is None or not compute_line(kind, {1: Passage(text, "user", SAID)}, 1, DAY, "en")


def test_age_is_answered_and_goes_with_the_memory_that_tells_it(world: World) -> None:
    alice = contract(world, "alice")
    told = alice.post("memories/", {"messages": [{"role": "user", "content": "I was born on 3 June 1991."}]})
    run_jobs()
    conversation = alice.post("conversations/", {"model": "extractive"}).json["id"]
    turns = f"conversations/{conversation}/turns/"
    asked = alice.post(turns, {"content": "How old am I?"}).json
    assert "born on 3 June 1991" in asked["content"]
    assert "years old on" in asked["content"]
    assert alice.get(turns).json["results"][-1]["content"] == asked["content"], "it is computed again for each reader"
    for memory in told.json["results"]:
        assert alice.delete(f"memories/{memory['id']}/?purge=true").status == 204
    left = alice.get(turns).json["results"][-1]["content"] or ""
    assert "years old" not in left
    assert "[=" not in left


def test_quote_tells_the_day_of_an_event_and_not_a_day_that_comes_again() -> None:
    moved = "Anna moved to Lisbon in March and works from the office on Tuesdays."
    said_in_june, march = datetime(2025, 6, 2, 12, tzinfo=UTC), datetime(2025, 3, 1, tzinfo=UTC)
    assert "happened March 2025" in Passage(moved, "user", said_in_june, happens=march).line(1)
    weekly = Passage("I have choir every Thursday.", "user", SAID, happens=datetime(2025, 3, 6, tzinfo=UTC)).line(1)
    assert "6 March" not in weekly


def test_day_is_answered_by_what_lasts_into_it_and_what_comes_again(world: World) -> None:
    alice = contract(world, "alice")
    for text in (
        "We are in Tyrol from 27 December to 2 January.", "I have choir every Thursday evening.", "I met Ann on 1 May.",
    ):  # fmt: skip
        message = {"role": "user", "content": text, "timestamp": "2026-11-20T12:00:00Z"}
        alice.post("memories/", {"messages": [message], "infer": True})
    run_jobs()
    turns = f"conversations/{alice.post('conversations/', {'model': 'extractive'}).json['id']}/turns/"
    for question, text in (("What do I have on 3 December 2026?", "choir"), ("What is on 29 December 2026?", "Tyrol")):
        asked = alice.post(turns, {"content": question}).json["content"]
        assert text in asked
        assert "Ann" not in asked


def test_place_of_a_computation_in_a_quoted_text_stays_text(world: World) -> None:
    alice = contract(world, "alice")
    alice.post(
        "memories/", {"content": "I was born on 3 June 1991 [=age 1 2026-11-29] in Ghent.", "namespace": "/team"}
    )
    run_jobs()
    turns = f"conversations/{alice.post('conversations/', {'model': 'extractive'}).json['id']}/turns/"
    asked = alice.post(turns, {"content": "When was I born?"}).json["content"]
    assert "[=age 1 2026-11-29]" in asked
    assert "[=age 1 2026-11-29]" in alice.get(turns).json["results"][-1]["content"]


def test_memory_shows_the_end_of_its_event_and_when_it_comes_again(world: World) -> None:
    alice = contract(world, "alice")
    messages = [
        {"role": "user", "content": "We are in Oslo from 3 May to 10 May 2027.", "timestamp": "2026-03-02T12:00:00Z"},
        {"role": "user", "content": "I have choir every Thursday evening.", "timestamp": "2026-03-02T12:00:00Z"},
    ]
    stored = alice.post("memories/", {"messages": messages, "infer": True}).json["results"]
    shown = [alice.get(f"memories/{memory['id']}/").json for memory in stored]
    trip = next(memory for memory in shown if "Oslo" in memory["content"])
    assert (trip["event_time"][:10], trip["event_end"][:10], trip["recurrence"]) == ("2027-05-03", "2027-05-11", None)
    choir = next(memory for memory in shown if "choir" in memory["content"])
    assert (choir["recurrence"], choir["event_end"]) == ("FREQ=WEEKLY;BYDAY=TH", None)
