"""A question that says who spoke, or when, finds what they said then, though no word of it tells."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from governance.actor import Actor
from tests.factories import World
from tests.governance.access.grants.test_grants import give_grant
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.content.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.retrieval import sources, statements
from vault.retrieval.lexical import Candidates
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search
from vault.vocabulary import SearchMode

TEAM = "/team"
MAY, LATER = datetime(2025, 5, 10, tzinfo=UTC), datetime(2025, 9, 1, tzinfo=UTC)
NAMES = ("Ben", "Cleo", "Dora", "Emil", "Finn", "Gita", "Hugo", "Ines")
IN_MAY = ["Lunch was cold.", "Someone should order gaskets.", "The pump leaks."]
WHO_AND_WHEN = "What did Ada say in May 2025?"
QUESTIONS = [WHO_AND_WHEN, "What did Ada say?", "What did Ada say about the pump?", "What happened in May 2025?"]
ALL = {"importance": {"gte": 0}}
BOTH = pytest.mark.parametrize("filters", [None, ALL], ids=["unfiltered", "filtered"])


def drafts(speaker: str, texts: Sequence[str], at: datetime, *, session: str = "") -> list[CubeDraft]:
    """Each a minute after the other."""
    return [
        CubeDraft(
            content=text,
            speaker=speaker,
            event_time=at + timedelta(minutes=number),
            session_id=session,
            namespace=TEAM,
        )
        for number, text in enumerate(texts)
    ]


@pytest.fixture
def team(world: World) -> World:
    """Nine people over two months. Everyone speaks of the budget; what Ada says of it is longest, and least of all."""
    said = drafts("Ada", IN_MAY, MAY, session="may")
    said += drafts("Ben", ["Then close the valve.", "Fine by me."], MAY + timedelta(hours=1), session="may-2")
    for number, name in enumerate(NAMES):
        texts = [f"Budget {name} {index}." for index in range(20)]
        said += drafts(name, texts, LATER + timedelta(hours=number))
        said += drafts(name, [f"Hello {index}." for index in range(20)], MAY - timedelta(days=40 - number))
    long = " after all that was written about pumps, valves and gaskets in the quarterly report of the plant"
    said += drafts("Ada", [f"The budget is {word}{long}." for word in ("tight", "signed")], LATER)
    cubes_add(actor=world.alice.actor, drafts=said)
    run_jobs()
    return world


def results(actor: Actor, question: str, *, top_k: int = 10, filters: Any = None) -> list[tuple[str, str]]:
    """Return speaker and text of the results, best first."""
    hits = memories_search(actor=actor, search=SearchQuery(query=question, top_k=top_k, filters=filters))
    return [(hit.view.words.speaker, hit.view.words.content) for hit in hits]


def list_named_speakers(actor: Actor, question: str) -> set[str]:
    """Those who spoke, and are taken for somebody whom the question names."""
    hits = memories_search(actor=actor, search=SearchQuery(query=question, top_k=100))
    return {hit.view.words.speaker for hit in hits if hit.parts.entity}


@BOTH
def test_statements_of_a_speaker_in_the_month_come_first(team: World, filters: Any) -> None:
    first = results(team.alice.actor, "What did Ada say in May 2025?", top_k=3, filters=filters)
    assert sorted(first) == [
        ("Ada", "Lunch was cold."),
        ("Ada", "Someone should order gaskets."),
        ("Ada", "The pump leaks."),
    ]


@BOTH
@each_case("question", ["What did Ada say in May 2025?", "What happened in May 2025?", "What did Ada say?"])
def test_first_rows_are_equal_for_any_top_k(team: World, question: str, filters: Any) -> None:
    all_of_them = results(team.alice.actor, question, top_k=100, filters=filters)
    for top_k in (1, 5, 30):
        assert results(team.alice.actor, question, top_k=top_k, filters=filters) == all_of_them[:top_k]


@BOTH
def test_memories_of_a_named_month_rank_first(team: World, filters: Any) -> None:
    first = results(team.alice.actor, "What happened in May 2025?", top_k=5, filters=filters)
    assert {content for _, content in first} >= {"The pump leaks.", "Then close the valve.", "Fine by me."}


@BOTH
def test_named_speaker_of_a_common_topic_ranks_first(team: World, filters: Any) -> None:
    first = results(team.alice.actor, "What did Ada say about the budget?", top_k=2, filters=filters)
    assert [name for name, _ in first] == ["Ada", "Ada"]
    assert all("budget" in content for _, content in first)


@BOTH
def test_both_of_two_named_speakers_count(team: World, filters: Any) -> None:
    first = results(team.alice.actor, "Did Ada and Gita agree on the budget?", top_k=22, filters=filters)
    assert {name for name, _ in first} == {"Ada", "Gita"}


def test_statements_of_a_named_person_rank_before_statements_about_them(team: World) -> None:
    cubes_add(actor=team.alice.actor, drafts=drafts("Ben", ["Ada, Ada, Ada!", "Where is Ada?"], LATER))
    run_jobs()
    first = results(team.alice.actor, "What did Ada say?", top_k=7)
    assert [name for name, _ in first] == ["Ada"] * 5 + ["Ben"] * 2


@each_case("name", ["pump", "Pump"])
@each_case("question", ["Why is the pump broken?", "why is the pump broken", "Pump broken?"])
def test_speaker_named_like_a_word_leaves_the_word_in_the_question(world: World, name: str, question: str) -> None:
    """Writers choose their name; without one it is their role, as `assistant`."""
    notes = [f"The lamp {number} is broken." for number in range(30)]
    right = "The pump in hall seven lost its pressure again."
    cubes_add(actor=world.alice.actor, drafts=drafts("", [*notes, right], MAY))
    cubes_add(actor=world.alice.actor, drafts=drafts(name, ["Fine."], MAY))
    run_jobs()
    assert ("", right) in results(world.alice.actor, question, top_k=2)


@BOTH
@each_case(
    ("question", "now_and_then"),
    [
        ("What was said last month?", "There is a party every last Thursday of a month."),
        ("What happened yesterday?", "I adopted a greyhound yesterday."),
        ("上个月说了什么?", "我女儿上个月开始学钢琴了。"),
        ("上周发生了什么?", "上周我通过了考试。"),
        ("What did we talk about last week?", "Last week we talked about the talk of last week."),
    ],
)
def test_memory_of_that_day_ranks_before_memory_that_names_the_word(
    world: World, question: str, now_and_then: str, filters: Any
) -> None:
    """`yesterday` in an old text was another day."""
    old = drafts("", [now_and_then], datetime.now(UTC) - timedelta(days=400))
    days = (1, 7, 20, 28, 33, 40)
    lately = [drafts("", [f"The lamp {day} was cleaned."], datetime.now(UTC) - timedelta(days=day)) for day in days]
    cubes_add(actor=world.alice.actor, drafts=[*old, *(draft for group in lately for draft in group)])
    run_jobs()
    first, *_ = results(world.alice.actor, question, filters=filters)
    assert first[1].startswith("The lamp")


@pytest.mark.parametrize("name", ["June", "April", "Sunday", "Karl"])
def test_speaker_named_like_a_month_or_day_is_recognised(world: World, name: str) -> None:
    said = ["The cello needs new strings.", "We meet at the station.", "Buy bread."]
    others = ["You should play at our party.", "There is a shop open seven days a week."]
    cubes_add(actor=world.alice.actor, drafts=drafts(name, said, MAY) + drafts("Art", others, LATER))
    run_jobs()
    first = results(world.alice.actor, f"What did {name} say?", top_k=3)
    assert {who for who, _ in first} == {name}
    assert list_named_speakers(world.alice.actor, f"What did {name} say?") == {name}


@BOTH
@each_case(
    ("question", "note"),
    [
        ("Where did Ada move to?", "Ada moved to Lisbon in March."),
        ("What is the glove size of Ada?", "Glove size of Ada: 7."),
    ],
)
def test_notes_about_a_named_person_come_first_when_nobody_spoke(
    team: World, question: str, note: str, filters: Any
) -> None:
    notes = ["Ada moved to Lisbon in March.", "Jun moved to Glasgow.", "The servers moved downstairs."]
    notes += [f"Glove size of {name}: {size}." for size, name in enumerate(("Ben", "Cleo", "Dora", "Ada"), 4)]
    cubes_add(actor=team.alice.actor, drafts=drafts("", notes, LATER))
    run_jobs()
    assert results(team.alice.actor, question, top_k=1, filters=filters) == [("", note)]
    no_other_word = results(team.alice.actor, "Where does Ada live now?", top_k=7, filters=filters)
    assert {content for name, content in no_other_word if not name} == {notes[0], notes[-1]}  # beside all that she said


def test_speaker_with_part_of_the_name_is_not_meant(team: World) -> None:
    notes = ["李小明搬到了北京。", "王小明搬到了上海。"]
    cubes_add(actor=team.alice.actor, drafts=drafts("王小明", ["好的。"], LATER) + drafts("", notes, LATER))
    run_jobs()
    hits = memories_search(actor=team.alice.actor, search=SearchQuery(query="王小明住在哪里？"))
    assert {hit.view.words.content for hit in hits if hit.parts.entity} == {"好的。", "王小明搬到了上海。"}


def test_name_is_a_term_where_speakers_have_no_weight(team: World) -> None:
    cubes_add(actor=team.alice.actor, drafts=drafts("", ["Glove size of Ada: 7.", "Glove size of Ben: 8."], LATER))
    run_jobs()
    search = SearchQuery(query="glove size Ada", mode=SearchMode.LEXICAL)
    first, second, *_ = memories_search(actor=team.alice.actor, search=search)
    assert "Ada" in first.view.words.content
    assert first.score > second.score


@each_case(
    ("question", "names"),
    [
        ("What did Ada and Adam say?", {"Ada", "Adam"}),
        ("What did Adam say?", {"Adam"}),
        ("王芳和王芳芳说了什么？", {"王芳", "王芳芳"}),
        ("What is on 12 May 2027?", set()),
        ("What did May say?", {"May"}),
        ("Ada's", {"Ada"}),
        ("Will", {"Will"}),
        ("Will said", {"Will"}),
        ("Will it rain?", set()),
    ],
)
def test_name_counts_only_as_a_whole_word(team: World, question: str, names: set[str]) -> None:
    said = [
        draft for name in ("Adam", "王芳", "王芳芳", "May", "Will") for draft in drafts(name, [f"{name}: yes."], LATER)
    ]
    cubes_add(actor=team.alice.actor, drafts=said)
    run_jobs()
    assert list_named_speakers(team.alice.actor, question) == names


@BOTH
@each_case(
    ("question", "wrong"),
    [
        ("What did Ada say on 2025-05-10?", "The permit expires on 2025-12-31."),
        ("What did Ada say last May?", "We may last long."),
        ("Ada, May 2025", "The year 2025 in numbers."),
    ],
)
def test_words_of_a_time_expression_weigh_less_than_the_time(
    team: World, question: str, wrong: str, filters: Any
) -> None:
    team_said = drafts("Ada", IN_MAY, datetime(datetime.now(UTC).year - 1, 5, 10, tzinfo=UTC))
    cubes_add(actor=team.alice.actor, drafts=[*team_said, *drafts("Ben", [wrong], LATER)])
    run_jobs()
    first = results(team.alice.actor, question, top_k=3, filters=filters)
    assert sorted(content for _, content in first) == IN_MAY


@each_case("mode", [SearchMode.HYBRID, SearchMode.LEXICAL])
@each_case(
    ("question", "right"),
    [
        ("Which meeting about the flat is on 15 June?", "The long meeting about the flat takes place on 15 June."),
        ("12 May", "Ben's birthday is on May 12."),
        ("6月15日的会", "6月15日开会。"),
    ],
)
def test_memory_that_names_a_day_is_a_result_for_it(world: World, question: str, right: str, mode: SearchMode) -> None:
    texts = [right, "Meeting about the flat: 14 June.", "Meeting about the flat: 16 June.", "I bought 12 disks."]
    cubes_add(actor=world.alice.actor, drafts=drafts("", [*texts, "6月14日开会。", "6月16日开会。"], LATER))
    run_jobs()
    hits = memories_search(actor=world.alice.actor, search=SearchQuery(query=question, mode=mode))
    assert hits[0].view.words.content == right
    assert hits[0].score > hits[1].score


ODD = [
    "la\u017ft week",
    "on fr\u0131day",
    "\u017feven days ago",
    "999 years before 一〇〇〇年",
    "3 m\u0131nutes ago minute",
]


@each_case("question", ODD)
def test_question_in_odd_letters_returns_results(team: World, question: str) -> None:
    assert results(team.alice.actor, question, top_k=3)


def test_name_that_is_a_function_word_is_recognised_by_its_capital(team: World) -> None:
    cubes_add(actor=team.alice.actor, drafts=drafts("Will", ["The heron is back."], LATER))
    run_jobs()
    assert list_named_speakers(team.alice.actor, "What did Will say?") == {"Will"}
    assert list_named_speakers(team.alice.actor, "What will Ada say?") == {"Ada"}


@pytest.mark.parametrize("question", ["王芳说了什么？", "昨晚王芳说过的话", "你记得王芳吗"])
def test_name_is_recognised_in_a_sentence_without_spaces(team: World, question: str) -> None:
    said = [*drafts("王芳", ["苍鹭回来了。", "水泵又坏了。"], LATER), *drafts("王芳芳", ["今天下雨。"], LATER)]
    cubes_add(actor=team.alice.actor, drafts=said)
    run_jobs()
    assert list_named_speakers(team.alice.actor, question) == {"王芳"}
    assert list_named_speakers(team.alice.actor, question.replace("王芳", "王芳芳")) == {"王芳芳"}


@BOTH
def test_words_count_among_all_statements_of_the_named_speaker(
    team: World, monkeypatch: pytest.MonkeyPatch, filters: Any
) -> None:
    """There is more that she said later than is looked at, and more that others said than is taken by words alone."""
    monkeypatch.setattr(sources, "LEAST_FITTING", 1)
    monkeypatch.setattr(sources.Dense, "find", lambda *_: Candidates(None))
    cubes_add(actor=team.alice.actor, drafts=drafts("Ada", [f"Howdy {number}." for number in range(20)], LATER))
    run_jobs()
    first = results(team.alice.actor, "What did Ada say about the budget?", top_k=2, filters=filters)
    assert all(name == "Ada" and "budget" in content for name, content in first)


def test_statement_of_a_month_is_a_result_after_many_later_statements(team: World) -> None:
    """Others said more that month than is looked at in any case, and so did she herself later."""
    more = drafts("Cleo", [f"Ahoy {number}." for number in range(10 * sources.LEAST_DATED)], MAY + timedelta(hours=2))
    more += drafts("Ada", [f"Howdy {number}." for number in range(2 * sources.LEAST_FITTING)], LATER)
    cubes_add(actor=team.alice.actor, drafts=more)
    run_jobs()
    first = results(team.alice.actor, WHO_AND_WHEN, top_k=3)
    assert sorted(first) == [("Ada", text) for text in IN_MAY]


@pytest.mark.parametrize("question", [WHO_AND_WHEN, "pump"])
def test_search_restores_the_planner_settings(team: World, question: str) -> None:
    """Later statements of the transaction are planned as before the search."""
    told: list[tuple[str, ...]] = []

    def tell(_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('enable_nestloop'), current_setting('enable_sort')")
            told.append(cursor.fetchone())

    memories_search(actor=team.alice.actor, search=SearchQuery(query=question), within=tell)
    assert told == [("on", "on")]


@pytest.mark.sampled(3)
@BOTH
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("is_private", [True, False])
def test_invisible_memories_take_no_place(
    team: World, alice: Contract, monkeypatch: pytest.MonkeyPatch, question: str, filters: Any, is_private: bool
) -> None:
    """Each thing hidden from bob would come before what he sees, and there are more of them than are looked at."""
    for name in ("LEAST_FITTING", "LOOKED_THROUGH", "DATED"):
        monkeypatch.setattr(sources, name, 1)
    monkeypatch.setattr(sources.Dense, "find", lambda *_: Candidates(None))  # which finds most of so few memories
    before = results(team.bob.actor, question, top_k=3, filters=filters)
    said = drafts("Ada", [f"The pump {number}." for number in range(30)], MAY + timedelta(hours=2))
    place = None if is_private else TEAM
    added = cubes_add(actor=team.alice.actor, drafts=[replace(draft, namespace=place) for draft in said])
    run_jobs()
    for view in () if is_private else added:
        give_grant(alice, team, "bob", "memory", str(view.cube.id), effect="deny")
    assert results(team.bob.actor, question, top_k=3, filters=filters) == before


@BOTH
def test_granted_memory_is_searchable_by_speaker_and_time(team: World, alice: Contract, filters: Any) -> None:
    (said,) = drafts("Ada", ["Only this."], MAY)
    (added,) = cubes_add(actor=team.alice.actor, drafts=[replace(said, namespace=None)])
    run_jobs()
    assert ("Ada", "Only this.") not in results(team.bob.actor, WHO_AND_WHEN, top_k=100, filters=filters)
    give_grant(alice, team, "bob", "memory", str(added.cube.id))
    for question in (WHO_AND_WHEN, "What did Ada say?", "What happened in May 2025?"):
        assert ("Ada", "Only this.") in results(team.bob.actor, question, top_k=6, filters=filters)


def test_memory_outside_sessions_ranks_before_small_talk_beside_a_weaker_hit(world: World) -> None:
    note = "The spare key of the boathouse hangs behind the blue lantern."
    talk = ["Morning!", "Did you lock the boathouse?", "I think so.", "Good.", "See you at noon."]
    cubes_add(actor=world.alice.actor, drafts=[*drafts("Ben", talk, MAY, session="talk"), *drafts("", [note], MAY)])
    run_jobs()
    first = results(world.alice.actor, "Where does the spare key of the boathouse hang?", top_k=3)
    assert first[0] == ("", note)


def test_memory_without_a_session_scores_like_one_in_a_session(world: World) -> None:
    talk = ["The heron nests by the weir.", "Near the weir?", "Yes."]
    alone = drafts("", ["The heron nests by the mill."], MAY)
    cubes_add(actor=world.alice.actor, drafts=[*drafts("Ben", talk, MAY, session="talk"), *alone])
    run_jobs()
    hits = memories_search(actor=world.alice.actor, search=SearchQuery(query="Where nests the heron?"))
    by_itself, told = (next(hit for hit in hits if text in hit.view.words.content) for text in ("mill", "by the weir"))
    assert told.parts.session == by_itself.parts.session > 0
    assert told.parts.context == pytest.approx(by_itself.parts.context)


@pytest.mark.parametrize(
    ("speaker", "asked"),
    [
        ("José", "José"),
        ("José", "Jose"),
        ("Jose", "José"),
        ("Jose\u0301", "José"),
        ("José", "Jose\u0301"),
        ("Zoë", "zoe"),
    ],
)
def test_speaker_is_recognised_with_and_without_accents(alice: Contract, speaker: str, asked: str) -> None:
    messages = [
        {"role": "user", "name": name, "content": f"The pump leaks, {number}."}
        for number, name in enumerate((speaker, "Ben", "Cleo"))
    ]
    assert alice.post("memories/", {"messages": messages, "infer": False, "session_id": "s"}).status == 201
    run_jobs()
    first = alice.search(f"What did {asked} say?", explain=True)[0]
    assert (first["speaker"], first["score_parts"]["entity"]) == (speaker, 1)
    assert len(alice.search("pump", filters={"speaker": {"contains": asked}})) == 1
    assert len(alice.search("pump", filters={"speaker": speaker})) == 1


def test_named_person_is_recognised_with_and_without_accents(alice: Contract) -> None:
    for content in ("A call from José about the pump.", "A call from Ben about the pump.", "Zoe called."):
        alice.add(content)
    run_jobs()
    assert alice.search("What about Jose?")[0]["content"] == "A call from José about the pump."
    assert alice.search("Zoë?", mode="graph")[0]["content"] == "Zoe called."


@pytest.mark.parametrize("limit", [3, 5])
def test_speakers_statements_with_a_time_are_candidates(
    world: World, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """It is not among the speaker's latest, no word leads to it, and the pool has enough of the speaker already."""
    monkeypatch.setattr(statements, "NEAREST", 1)
    monkeypatch.setattr(sources, "LEAST_FITTING", 4)
    monkeypatch.setattr(statements, "CANDIDATES_PER_RESULT", 1)
    told = ["In March 2019 it was new.", "It broke on Sunday.", "Since 2021 it has been blue."]
    lately = [f"The mill, line {number}." for number in range(30)]
    whole = ["The turquoise gasket of the Vexley pump in the mill is gone."]
    cubes_add(actor=world.alice.actor, drafts=[*drafts("Zoë", told, MAY), *drafts("Zoë", lately, LATER)])
    rain = [f"In 20{number} it rained." for number in range(10, 30)]
    cubes_add(actor=world.alice.actor, drafts=drafts("Ben", [*whole, *rain], LATER))
    run_jobs()
    question = "When did Zoe mention the turquoise gasket of the Vexley pump in the mill?"
    first = results(world.alice.actor, question, top_k=limit)
    assert {*first[:3]} == {("Zoë", text) for text in told}
    assert results(world.alice.actor, question, top_k=limit, filters=ALL)[:3] == first[:3]
