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
def tagged_memories(alice: Contract) -> Contract:
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


def test_tag_search_is_filled_up_with_score_zero(tagged_memories: Contract) -> None:
    rest = [("none", 0), ("chinese", 0)]
    assert scores(tagged_memories, "red") == [("both", 1), ("paint", 1), *rest, ("plan", 0)]
    assert scores(tagged_memories, "red", top_k=3) == [("both", 1), ("paint", 1), rest[0]]
    assert scores(tagged_memories, "nothing that is a tag") == [*rest, ("both", 0), ("paint", 0), ("plan", 0)]


def test_result_below_min_score_is_left_out(tagged_memories: Contract) -> None:
    assert scores(tagged_memories, "red", min_score=0.001) == [("both", 1), ("paint", 1)]


def test_tag_matches_in_any_case_and_spacing(tagged_memories: Contract) -> None:
    for question in ("road map", "ROAD MAP", "Road  Map", "ｒｏａｄ map"):
        assert scores(tagged_memories, question, top_k=2) == [("both", 1), ("plan", 1)], question


def test_tag_of_several_words_matches_in_a_longer_question(tagged_memories: Contract) -> None:
    assert scores(tagged_memories, "where is my road map", min_score=0.01) == [("both", 0.438), ("plan", 0.438)]
    assert scores(tagged_memories, "where is the map of my road", min_score=0.01) == []


def test_chinese_tag_matches_in_a_question_without_blanks(tagged_memories: Contract) -> None:
    assert scores(tagged_memories, "请找标签的记忆", min_score=0.01) == [("chinese", 0.286)]


def test_tag_that_covers_more_of_the_question_ranks_higher(tagged_memories: Contract) -> None:
    assert scores(tagged_memories, "a red road map", top_k=3) == [("both", 0.909), ("plan", 0.636), ("paint", 0.273)]


def test_score_of_a_tag_search_has_no_parts(tagged_memories: Contract) -> None:
    best = tagged_memories.search("red", mode="tag", explain=True)[0]
    assert (best["score"], set(best["score_parts"].values())) == (1, {0})


def test_filters_and_namespaces_narrow_a_tag_search(tagged_memories: Contract) -> None:
    tagged_memories.add("elsewhere", tags=["red"])
    assert scores(tagged_memories, "red", namespaces=[SHARED], min_score=0.5) == [("both", 1), ("paint", 1)]
    assert scores(tagged_memories, "red", filters={"NOT": {"tags": "Road Map"}}, top_k=2) == [
        ("elsewhere", 1),
        ("paint", 1),
    ]
    assert scores(tagged_memories, "red", namespaces=["/nowhere"]) == []


@pytest.mark.parametrize(("who", "seen"), [("bob", 5), ("charlie", 0)])
def test_invisible_memory_gives_no_result_and_its_tag_does_not_count(
    world: World, tagged_memories: Contract, who: str, seen: int
) -> None:
    tagged_memories.add("private", tags=["sealed envelope"])
    assert scores(tagged_memories, "the sealed envelope", top_k=1) == [("private", 0.824)]
    found = scores(contract(world, who), "the sealed envelope")
    assert ("private" in dict(found), len(found)) == (False, seen)
    assert {score for _, score in found} <= {0}


def test_deleted_memory_and_its_tags_are_not_searchable(tagged_memories: Contract) -> None:
    memory = tagged_memories.add("late", tags=["comet"])
    assert scores(tagged_memories, "comet", top_k=1) == [("late", 1)]
    assert tagged_memories.delete(f"memories/{memory['id']}/").status == 204
    assert scores(tagged_memories, "comet", top_k=1) == [("none", 0)]


def test_tag_search_reads_only_the_rows_it_returns(tagged_memories: Contract) -> None:
    for number in range(12):
        tagged_memories.add(f"red {number}", tags=["red"], namespace=SHARED)
    with CaptureQueriesContext(connection) as queries:
        found = scores(tagged_memories, "red", top_k=4)
    assert found == [(f"red {number}", 1) for number in (11, 10, 9, 8)]
    (bearing,) = [query["sql"] for query in queries if '"vault_cube"."tags" &&' in query["sql"]]
    assert bearing.endswith("LIMIT 4")


@pytest.mark.parametrize("tag", ["road map", "标签", "🙂"])
def test_named_tag_matches_beside_too_many_other_tags(
    alice: Contract, monkeypatch: pytest.MonkeyPatch, tag: str
) -> None:
    """Any tag beyond ASCII might be named by a letter that folds, and the first of the alphabet would be looked at."""
    monkeypatch.setattr(tags, "MOST_TAGS", 3)
    alice.add("wanted", tags=[tag])
    alice.add("others", tags=[f"{first}é{number}" for number in range(4) for first in "!~"])
    assert scores(alice, f"about {tag}", top_k=1)[0][0] == "wanted"


def test_named_tag_matches_beside_many_spellings_of_a_prefix(alice: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blanks and case apart all are one, and `app` is no word of the question."""
    monkeypatch.setattr(tags, "MOST_TAGS", 3)
    alice.add("wanted", tags=["apple"])
    alice.add("others", tags=["app", "a p p", "A  p p", "ap p", "APP", "a", "an", "Pie  chart", "pie", "PIE", "Pie"])
    assert scores(alice, "an apple pie", top_k=2) == [("others", 0.5), ("wanted", 0.5)]
