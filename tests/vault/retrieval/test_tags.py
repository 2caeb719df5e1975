"""mode: tag: by the tags that a question names, of visible memories alone, and as many rows as there are."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import World
from tests.vault.api.contract import Contract, contract
from vault.retrieval import tags

SHARED = "/team"


@pytest.fixture
def tagged(alice: Contract) -> Contract:
    for content, labels in (
        ("plan", ["road map"]),
        ("paint", ["Red", "red"]),
        ("both", ["RED", "Road Map"]),
        ("chinese", ["标签"]),
        ("none", []),
    ):
        alice.add(content, tags=labels, namespace=SHARED)
    return alice


def scores(who: Contract, question: str, **asked: Any) -> list[tuple[str, float]]:
    return [(hit["content"], round(hit["score"], 3)) for hit in who.search(question, mode="tag", **asked)]


def test_it_returns_as_many_as_there_are_the_newest_last_at_0(tagged: Contract) -> None:
    rest = [("none", 0), ("chinese", 0)]
    assert scores(tagged, "red") == [("both", 1), ("paint", 1), *rest, ("plan", 0)]
    assert scores(tagged, "red", top_k=3) == [("both", 1), ("paint", 1), rest[0]]
    assert scores(tagged, "nothing that is a tag") == [*rest, ("both", 0), ("paint", 0), ("plan", 0)]


def test_what_scores_less_than_asked_for_is_left_out(tagged: Contract) -> None:
    assert scores(tagged, "red", min_score=0.001) == [("both", 1), ("paint", 1)]


def test_a_tag_is_named_whatever_its_case_and_its_blanks(tagged: Contract) -> None:
    for question in ("road map", "ROAD MAP", "Road  Map", "ｒｏａｄ map"):
        assert scores(tagged, question, top_k=2) == [("both", 1), ("plan", 1)], question


def test_tag_of_several_words_matches_in_a_longer_question(tagged: Contract) -> None:
    assert scores(tagged, "where is my road map", min_score=0.01) == [("both", 0.438), ("plan", 0.438)]
    assert scores(tagged, "where is the map of my road", min_score=0.01) == []


def test_chinese_tag_matches_in_a_question_without_blanks(tagged: Contract) -> None:
    assert scores(tagged, "请找标签的记忆", min_score=0.01) == [("chinese", 0.286)]


def test_the_more_of_the_question_its_tags_say_the_better(tagged: Contract) -> None:
    assert scores(tagged, "a red road map", top_k=3) == [("both", 0.909), ("plan", 0.636), ("paint", 0.273)]


def test_its_score_has_no_parts(tagged: Contract) -> None:
    best = tagged.search("red", mode="tag", explain=True)[0]
    assert (best["score"], set(best["score_parts"].values())) == (1, {0})


def test_filters_and_places_narrow_it(tagged: Contract) -> None:
    tagged.add("elsewhere", tags=["red"])
    assert scores(tagged, "red", namespaces=[SHARED], min_score=0.5) == [("both", 1), ("paint", 1)]
    assert scores(tagged, "red", filters={"NOT": {"tags": "Road Map"}}, top_k=2) == [("elsewhere", 1), ("paint", 1)]
    assert scores(tagged, "red", namespaces=["/nowhere"]) == []


@pytest.mark.parametrize(("who", "seen"), [("bob", 5), ("charlie", 0)])
def test_invisible_memory_gives_no_result_and_its_tag_does_not_count(
    world: World, tagged: Contract, who: str, seen: int
) -> None:
    tagged.add("private", tags=["sealed envelope"])
    assert scores(tagged, "the sealed envelope", top_k=1) == [("private", 0.824)]
    found = scores(contract(world, who), "the sealed envelope")
    assert ("private" in dict(found), len(found)) == (False, seen)
    assert {score for _, score in found} <= {0}


def test_deleted_memory_and_its_tags_are_not_searchable(tagged: Contract) -> None:
    memory = tagged.add("late", tags=["comet"])
    assert scores(tagged, "comet", top_k=1) == [("late", 1)]
    assert tagged.delete(f"memories/{memory['id']}/").status == 204
    assert scores(tagged, "comet", top_k=1) == [("none", 0)]


def test_no_more_rows_are_read_than_are_returned(tagged: Contract) -> None:
    for number in range(12):
        tagged.add(f"red {number}", tags=["red"], namespace=SHARED)
    with CaptureQueriesContext(connection) as queries:
        found = scores(tagged, "red", top_k=4)
    assert found == [(f"red {number}", 1) for number in (11, 10, 9, 8)]
    (bearing,) = [one["sql"] for one in queries if '"vault_cube"."tags" &&' in one["sql"]]
    assert bearing.endswith("LIMIT 4")


@pytest.mark.parametrize("tag", ["road map", "标签", "🙂"])
def test_no_number_of_other_tags_takes_the_place_of_one_that_is_named(
    alice: Contract, monkeypatch: pytest.MonkeyPatch, tag: str
) -> None:
    """Any tag beyond ASCII might be named by a letter that folds, and the first of the alphabet would be looked at."""
    monkeypatch.setattr(tags, "MOST_TAGS", 3)
    alice.add("wanted", tags=[tag])
    alice.add("others", tags=[f"{first}é{number}" for number in range(4) for first in "!~"])
    assert scores(alice, f"about {tag}", top_k=1)[0][0] == "wanted"


def test_no_spellings_of_a_words_beginning_take_the_place_of_a_tag(
    alice: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blanks and case apart all are one, and `app` is no word of the question."""
    monkeypatch.setattr(tags, "MOST_TAGS", 3)
    alice.add("wanted", tags=["apple"])
    alice.add("others", tags=["app", "a p p", "A  p p", "ap p", "APP", "a", "an", "Pie  chart", "pie", "PIE", "Pie"])
    assert scores(alice, "an apple pie", top_k=2) == [("others", 0.5), ("wanted", 0.5)]
