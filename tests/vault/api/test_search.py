"""POST memories/search/: modes, the filter language, and how many rows come back."""

from typing import Any

import pytest

from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import MISSING, Contract, contract, fields_at_fault
from tests.vault.outbox import run_jobs

PARTS = {"lexical", "dense", "context", "entity", "time", "learned", "graph", "fingerprint", "heat", "trust"}
MODES = ("hybrid", "lexical", "dense", "tag", "graph")


@pytest.fixture
def library(alice: Contract) -> Contract:
    """Five memories that differ in every field a filter may name; A and B were said, C, D and E were written."""
    messages = [
        {
            "role": "user",
            "name": "Ann Lee",
            "content": "A tea",
            "message_id": "m1",
            "timestamp": "2020-01-01T00:00:00Z",
        },
        {
            "role": "user",
            "name": "Ben",
            "content": "B tea",
            "message_id": "m2",
            "metadata": {"n": 2, "l": ["x", "y"], "due": "2026-05-01"},
        },
    ]
    said = {"messages": messages, "infer": False, "session_id": "s1", "task_id": "t1"}
    assert alice.post("memories/", {**said, "namespace": "/team", "persona": "alice"}).status == 201
    alice.add(
        "C tea", tags=["red", "Dark Blue"], importance=0.9, semantic_type="goal", expires_at="2199-01-01T00:00:00Z"
    )
    alice.add(
        "D tea",
        tags=["red"],
        metadata={"colour": "Dark Green", "deep": {"a": 1}, "on": True, "agent_id": "Sales"},
        importance=0.1,
    )
    alice.add("E 茶 tea", valid_from="2020-01-01T00:00:00Z", valid_to="2021-01-01T00:00:00Z", sensitivity="public")
    return alice


FILTERS: list[tuple[dict[str, Any], str]] = [
    ({}, "ABCDE"),
    # tags are labels, equal to what they hold
    ({"tags": "red"}, "CD"),
    ({"tags": {"eq": "red"}}, "CD"),
    ({"tags": {"ne": "red"}}, "ABE"),
    ({"tags": {"in": ["Dark Blue", "none"]}}, "C"),
    ({"tags": {"contains": "red"}}, "CD"),
    # sealed fields, by keyed marks, without regard to case
    ({"speaker": "ann lee"}, "A"),
    ({"speaker": {"contains": "LEE"}}, "A"),
    ({"speaker": {"in": ["Ben", "Ann Lee"]}}, "AB"),
    ({"speaker": {"ne": "Ben"}}, "ACDE"),
    ({"session_id": "s1"}, "AB"),
    ({"session_id": {"ne": "s1"}}, "CDE"),
    ({"message_id": {"eq": "m2"}}, "B"),
    # ids of clients are opaque
    ({"session_id": "S1"}, ""),
    ({"session_id": {"exists": True}}, "AB"),
    ({"persona": {"exists": False}}, "CDE"),
    ({"metadata.agent_id": "Sales"}, "D"),
    ({"metadata.agent_id": "sales"}, ""),
    ({"metadata.agent_id": {"exists": True}}, "D"),
    ({"metadata.agent_id": {"exists": False}}, "ABCE"),
    ({"message_id": {"in": ["m1", "m2"]}}, "AB"),
    ({"message_id": {"contains": "m1"}}, "A"),
    ({"task_id": "t1"}, "AB"),
    ({"metadata.colour": "dark green"}, "D"),
    ({"metadata.colour": {"contains": "green"}}, "D"),
    ({"metadata.colour": {"ne": "dark green"}}, "ABCE"),
    ({"metadata.n": 2}, "B"),
    ({"metadata.n": "2"}, ""),
    ({"metadata.n": {"gte": 2, "lt": 2.5}}, "B"),
    ({"metadata.n": {"gt": 2}}, ""),
    ({"metadata.n": {"lte": -3}}, ""),
    ({"metadata.due": {"gte": "2026-04-30T23:00:00-01:00"}}, "B"),
    ({"metadata.due": {"lt": "2026-05-01"}}, ""),
    ({"metadata.n": {"in": [1, 2, 3]}}, "B"),
    ({"metadata.l": {"contains": "y"}}, "B"),
    ({"metadata.on": True}, "D"),
    ({"metadata.nothing": "x"}, ""),
    # enumerations and other clear ones
    ({"semantic_type": "goal"}, "C"),
    ({"semantic_type": {"in": ["goal", "dialogue"]}}, "ABC"),
    ({"semantic_type": {"ne": "goal"}}, "ABDE"),
    ({"state": "generated"}, "ABCDE"),
    ({"layer": {"ne": "long_term"}}, ""),
    ({"type": {"eq": "plaintext"}}, "ABCDE"),
    ({"modality": {"contains": "text"}}, "ABCDE"),
    ({"source": "api"}, "ABCDE"),
    ({"sensitivity": "public"}, "E"),
    ({"namespace": "/team"}, "AB"),
    ({"namespace": {"ne": "/team"}}, "CDE"),
    ({"persona": "alice"}, "AB"),
    ({"persona": {"ne": "alice"}}, "CDE"),
    # times and numbers have an order
    ({"event_time": {"gt": "2019-01-01T00:00:00Z"}}, "A"),
    ({"event_time": {"lt": "2019-01-01T00:00:00Z"}}, ""),
    ({"event_time": "2020-01-01T01:00:00+01:00"}, "A"),
    ({"event_time": {"ne": "2020-01-01T00:00:00Z"}}, "BCDE"),
    ({"said_at": {"lt": "2020-01-01T00:00:01Z"}}, "A"),
    ({"said_at": {"ne": "2020-01-01T00:00:00Z"}}, "BCDE"),
    ({"updated_at": {"gte": "2020-01-01"}}, "ABCDE"),
    ({"expires_at": {"exists": True}}, "C"),
    ({"valid_from": {"gte": "2020-01-01T00:00:00Z"}}, "E"),
    ({"valid_to": {"lte": "2021-01-01T00:00:00Z"}}, "E"),
    ({"created_at": {"gt": "2020-01-01T00:00:00Z", "lt": "2199-01-01T00:00:00Z"}}, "ABCDE"),
    ({"expires_at": {"gt": "2100-01-01T00:00:00Z"}}, "C"),
    ({"importance": {"gte": 0.9}}, "C"),
    ({"importance": {"gt": 0.1, "lt": 0.9}}, "ABE"),
    ({"importance": {"in": [0.1, 0.9]}}, "CD"),
    ({"importance": 0.5}, "ABE"),
    ({"heat": {"gte": 1}}, ""),
    # combined
    ({"tags": "red", "importance": {"lt": 0.5}}, "D"),
    ({"AND": [{"tags": "red"}, {"tags": "Dark Blue"}]}, "C"),
    ({"OR": [{"speaker": "Ben"}, {"semantic_type": "goal"}]}, "BC"),
    ({"NOT": {"tags": "red"}}, "ABE"),
    ({"NOT": {"tags": "red", "semantic_type": "goal"}}, "ABDE"),
    ({"NOT": {"NOT": {"tags": "red"}}}, "CD"),
    ({"OR": [{"AND": [{"session_id": "s1"}, {"NOT": {"speaker": "Ben"}}]}, {"metadata.on": True}]}, "AD"),
    ({"tags": "red", "OR": [{"importance": {"gt": 0.5}}, {"speaker": "Ben"}]}, "C"),
    ({"NOT": {"speaker": {"in": ["Ben", "Ann Lee"]}}, "sensitivity": {"ne": "public"}}, "CD"),
]


def test_every_operator_on_every_kind_of_field(library: Contract) -> None:
    wrong = {}
    for filters, expected in FILTERS:
        got = "".join(text[0] for text in library.search_contents("tea", filters=filters))
        if got != expected:
            wrong[str(filters)] = f"{got}, not {expected}"
    assert wrong == {}


BAD_FILTERS: list[tuple[Any, str]] = [
    ({"speling": 1}, "filters.speling"),
    ({"AND": [{"tags": "red"}, {"speling": 1}]}, "filters.AND.1.speling"),
    ({"NOT": {"OR": [{"speling": 1}]}}, "filters.NOT.OR.0.speling"),
    ({"content": "tea"}, "filters.content"),
    ({"metadata": {"eq": 1}}, "filters.metadata"),
    ({"tags": {"gt": "a"}}, "filters.tags"),
    ({"tags": {"like": "a"}}, "filters.tags"),
    ({"tags": 1}, "filters.tags"),
    ({"tags": {"in": "red"}}, "filters.tags"),
    ({"tags": {"in": []}}, "filters.tags"),
    ({"speaker": None}, "filters.speaker"),
    ({"speaker": {}}, "filters.speaker"),
    ({"speaker": {"eq": ["Ben"]}}, "filters.speaker"),
    ({"session_id": 1}, "filters.session_id"),
    ({"message_id": {"in": ["m1", None]}}, "filters.message_id"),
    ({"task_id": {"contains": True}}, "filters.task_id"),
    ({"metadata.n": {}}, "filters.metadata.n"),
    ({"metadata.n": {"gt": "high"}}, "filters.metadata.n"),
    ({"metadata.n": {"exists": True}}, "filters.metadata.n"),
    ({"persona": {"exists": "yes"}}, "filters.persona"),
    ({"id": "first"}, "filters.id"),
    ({"namespace": "team"}, "filters.namespace"),
    ({"namespace": {"ne": "/team/"}}, "filters.namespace"),
    ({"NOT": {"namespace": {"in": ["/team", "/../team"]}}}, "filters.NOT.namespace"),
    ({"persona": " "}, "filters.persona"),
    ({"persona": {"contains": "a\nb"}}, "filters.persona"),
    ({"state": "asleep"}, "filters.state"),
    ({"importance": "high"}, "filters.importance"),
    ({"importance": True}, "filters.importance"),
    ({"event_time": "yesterday"}, "filters.event_time"),
    ({"event_time": "2020-01-01T00:00:00"}, "filters.event_time"),
    ({"AND": {}}, "filters.AND"),
    ({"OR": []}, "filters.OR"),
    ({"NOT": []}, "filters.NOT"),
    ([], "filters"),
    ("tags", "filters"),
]


def test_a_bad_filter_is_named_by_its_place(alice: Contract) -> None:
    wrong = {}
    for filters, field in BAD_FILTERS:
        got = fields_at_fault(alice.post("memories/search/", {"query": "tea", "filters": filters}))
        if got != {field}:
            wrong[str(filters)] = got
    assert wrong == {}


def test_unknown_field_is_answered_with_the_valid_fields(alice: Contract) -> None:
    reply = alice.post("memories/search/", {"query": "tea", "filters": {"speling": 1}})
    message = reply.json["errors"][0]["message"]
    for known in ("tags", "speaker", "session_id", "message_id", "metadata.<key>", "event_time", "importance", "heat"):
        assert known in message


def test_a_filter_too_deep_or_too_wide_is_refused(alice: Contract) -> None:
    deep: dict[str, Any] = {"tags": "a"}
    for _ in range(30):
        deep = {"NOT": deep}
    wide = {"OR": [{"tags": "a"}] * 200}
    for filters in (deep, wide):
        assert alice.post("memories/search/", {"query": "tea", "filters": filters}).status == 400


BAD_BODIES: list[tuple[dict[str, Any], str]] = [
    ({}, "query"),
    ({"query": ""}, "query"),
    ({"query": "\x00"}, "query"),
    ({"query": "\ud800"}, "query"),
    ({"query": "tea", "top_k": 0}, "top_k"),
    ({"query": "tea", "top_k": 101}, "top_k"),
    ({"query": "tea", "mode": "psychic"}, "mode"),
    ({"query": "tea", "min_score": 1.5}, "min_score"),
    ({"query": "tea", "as_of": "then"}, "as_of"),
    ({"query": "tea", "layers": ["top"]}, "layers.0"),
    ({"query": "tea", "types": ["gold"]}, "types.0"),
    ({"query": "tea", "namespaces": "/team"}, "namespaces"),
    ({"query": "tea", "namespaces": ["/team", "team"]}, "namespaces.1"),
    ({"query": "tea", "namespaces": ["/team/"]}, "namespaces.0"),
    ({"query": "tea", "namespaces": ["/Users/alice"]}, "namespaces.0"),
    ({"query": "tea", "namespaces": ["/" + "a" * 200]}, "namespaces.0"),
    ({"query": "tea", "personas": ["a\nb"]}, "personas.0"),
    ({"query": "tea", "personas": ["a" * 201]}, "personas.0"),
    ({"query": "tea", "explain": "please"}, "explain"),
    ({"query": "tea", "speling": 1}, "speling"),
]


def test_a_bad_body_is_named(alice: Contract) -> None:
    for body, field in BAD_BODIES:
        assert fields_at_fault(alice.post("memories/search/", body)) == {field}, body
    assert alice.post("memories/search/", {"query": "x" * 32_001}).status == 413


def test_unknown_choice_is_answered_with_the_valid_choices(alice: Contract) -> None:
    for field, value, known in (("mode", "psychic", [*MODES, "memoryos"]), ("layers", ["top"], ["long_term"])):
        reply = alice.post("memories/search/", {"query": "tea", field: value})
        assert all(item in reply.json["errors"][0]["message"] for item in known), reply.json


def test_what_the_address_of_a_list_names_wrongly_is_reported(alice: Contract) -> None:
    for asked, field in (
        ("namespace=team", "namespace"),
        ("namespace=/team/", "namespace"),
        ("persona=%00", "persona"),
    ):
        assert fields_at_fault(alice.get(f"memories/?{asked}")) == {field}


@pytest.mark.parametrize("who", ["bob", "charlie"])
def test_a_place_and_a_persona_in_filters_that_one_may_not_read_answer_as_those_that_do_not_exist(
    world: World, alice: Contract, who: str
) -> None:
    hidden = alice.add("Nobody else reads this.")["namespace"]
    persona = alice.post("personas/", {"name": "The one whom only alice knows"})
    assert persona.status == 201, persona
    other = contract(world, who)
    for known, unknown in (
        ({"namespaces": [hidden["path"]]}, {"namespaces": ["/users/nobody-at-all"]}),
        ({"filters": {"namespace": hidden["path"]}}, {"filters": {"namespace": "/users/nobody-at-all"}}),
        ({"filters": {"namespace": hidden["id"]}}, {"filters": {"namespace": str(MISSING)}}),
        ({"filters": {"persona": persona.json["id"]}}, {"filters": {"persona": str(MISSING)}}),
    ):
        replies = [other.post("memories/search/", {"query": "reads", **asked}) for asked in (known, unknown)]
        assert [(reply.status, reply.json["results"]) for reply in replies] == [(200, []), (200, [])]


@each_case("mode", MODES)
def test_a_search_where_there_is_nothing_is_an_empty_list(alice: Contract, mode: str) -> None:
    reply = alice.post("memories/search/", {"query": "anything", "mode": mode})
    assert reply.json["results"] == []
    assert reply.json["mode"] == mode
    assert reply.json["took_ms"] >= 0
    assert alice.search("anything", namespaces=["/nowhere"]) == []


@pytest.mark.parametrize("mode", MODES)
def test_min_of_top_k_and_visible_rows_come_back(alice: Contract, mode: str) -> None:
    for number in range(7):
        alice.add(f"Memory number {number} of the garden.")
    run_jobs()
    for top_k, expected in ((1, 1), (5, 5), (7, 7), (100, 7)):
        assert len(alice.search("garden", top_k=top_k, mode=mode)) == expected
    assert len(alice.search("nothing that any of them says", mode=mode)) == 7


def test_results_are_best_first_with_scores_from_0_to_1(library: Contract) -> None:
    library.add("Green tea from the mountains of Yunnan.")
    run_jobs()
    for mode in ("hybrid", "lexical", "dense"):
        hits = library.search("green tea from Yunnan", mode=mode)
        scores = [hit["score"] for hit in hits]
        assert hits[0]["content"].startswith("Green tea"), mode
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


def test_new_memory_is_searchable_by_words_at_once_and_by_vector_when_embedded(alice: Contract) -> None:
    memory = alice.add("The lighthouse keeper paints boats.")
    assert memory["pending_embedding"] is True
    hit = alice.search("lighthouse", explain=True)[0]
    assert hit["score_parts"]["lexical"] > 0
    assert hit["score_parts"]["dense"] == 0
    run_jobs()
    hit = alice.search("lighthouse", explain=True)[0]
    assert hit["score_parts"]["dense"] > 0
    assert hit["pending_embedding"] is False


def test_score_parts_come_only_when_asked_for(library: Contract) -> None:
    assert all("score_parts" not in hit for hit in library.search("tea"))
    for hit in library.search("tea", explain=True):
        assert set(hit["score_parts"]) == PARTS
        assert all(0 <= part <= 1 for part in hit["score_parts"].values())


def test_what_scores_less_than_asked_for_is_left_out(library: Contract) -> None:
    run_jobs()
    hits = library.search("茶")
    bar = hits[0]["score"]
    assert [hit["id"] for hit in library.search("茶", min_score=bar)] == [hits[0]["id"]]


def test_the_scope_narrows_what_is_searched(library: Contract) -> None:
    assert library.search_contents("tea", namespaces=["/team"]) == ["A tea", "B tea"]
    assert library.search_contents("tea", personas=["alice"]) == ["A tea", "B tea"]
    assert library.search_contents("tea", session_id="s1") == ["A tea", "B tea"]
    assert library.search_contents("tea", task_id="t1") == ["A tea", "B tea"]
    assert library.search_contents("tea", layers=["short_term"]) == []
    assert library.search_contents("tea", types=["activation"]) == []
    assert len(library.search_contents("tea", types=["plaintext"], layers=["long_term"])) == 5


def test_as_of_leaves_out_what_was_not_true_then(library: Contract) -> None:
    assert library.search_contents("tea", as_of="2020-06-01T00:00:00Z") == ["A tea", "E 茶 tea"]
    for moment in ("2019-12-31T23:59:59Z", "2021-01-01T00:00:00Z"):
        assert "E 茶 tea" not in library.search_contents("tea", as_of=moment)


def test_what_is_valid_is_so_from_its_first_moment_and_until_just_before_its_last(library: Contract) -> None:
    moments = {
        "2019-12-31T23:59:59.999999Z": False,
        "2020-01-01T00:00:00Z": True,
        "2020-12-31T23:59:59.999999Z": True,
        "2021-01-01T00:00:00Z": False,
    }
    assert {moment: "E 茶 tea" in library.search_contents("tea", as_of=moment) for moment in moments} == moments


def test_tagged_memories_are_searchable_by_tag(library: Contract) -> None:
    assert library.search_contents("red", mode="tag", min_score=0.1) == ["C tea", "D tea"]
    assert library.search_contents("Dark Blue", mode="tag", min_score=0.1) == ["C tea"]
    assert library.search_contents("green", mode="tag", min_score=0.1) == []


def test_chinese_memory_is_searchable_by_its_words(alice: Contract) -> None:
    alice.add("卡罗琳在五月领养了一只灰狗。")
    alice.add("会议定在星期三下午。")
    run_jobs()
    assert alice.search("谁领养了灰狗？")[0]["content"].startswith("卡罗琳")
    assert alice.search("什么时候开会议")[0]["content"].startswith("会议")


@pytest.mark.parametrize(
    ("content", "question"),
    [("Her birthday 🎂 is on Friday.", "🎂"), ("做得好👍🏽", "👍"), ("We 👩‍🚀 fly", "🚀"), ("From 🇩🇪 with love", "🇩🇪")],
)
def test_an_emoji_finds_what_has_it(alice: Contract, content: str, question: str) -> None:
    alice.add(content)
    alice.add("Another day 🎉🇨🇳 👎.")
    for mode in ("lexical", "hybrid"):
        first, rest = alice.search(question, mode=mode, explain=True)
        assert (first["content"], first["score_parts"]["lexical"]) == (content, 1.0), mode
        assert rest["score_parts"]["lexical"] == 0, mode


def test_fifty_searches_on_one_connection_stay_full_for_the_smallest(world: World, alice: Contract) -> None:
    """A generic plan, taken after some runs, must not starve whoever can see little."""
    items = [{"content": f"Row {number} of a large shared place.", "namespace": "/team"} for number in range(300)]
    assert alice.post("memories/bulk/", {"items": items}).status == 201
    charlie = contract(world, "charlie")
    for number in range(12):
        charlie.add(f"Row {number} of a small place.")
    run_jobs()
    for round_ in range(55):
        assert len(charlie.search(f"row {round_} place", top_k=10)) == 10, round_
    assert len(alice.search("row place", top_k=100)) == 100


def test_the_auditor_does_not_search(ada: Contract) -> None:
    assert ada.post("memories/search/", {"query": "tea"}).status == 403
    assert ada.post("memories/search/", {"speling": 1}).status == 403
    assert ada.get("memories/").status == 403


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense", "tag", "graph"])
def test_who_sees_no_namespace_finds_what_is_granted_by_itself_and_nothing_else(
    world: World, alice: Contract, mode: str
) -> None:
    memory = alice.add("The otter sleeps under the weir.", tags=["otter"])["id"]
    alice.add("The otter wakes.", tags=["otter"])
    run_jobs()
    auditor = contract(world, "ada")
    assert auditor.post("memories/search/", {"query": "otter", "mode": mode}).status == 403
    grant = {
        "principal": {"kind": "member", "id": str(world.ada.member.id)},
        "object": {"type": "memory", "id": memory},
        "action": "read",
    }
    assert alice.post("grants/", grant).status == 201
    assert [hit["id"] for hit in auditor.search("otter", mode=mode)] == [memory]
