"""Answers before questions with the same words; long texts before notes that have one common word of the question."""

import pytest

from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs

FILLER = " ".join(f"Point {number} of the minutes was about budgets, rooms and the canteen." for number in range(150))


@pytest.mark.parametrize(
    ("asks", "tells", "question"),
    [
        ("Is the boat house green?", "The boat house is green.", "Which colour has the boat house?"),
        ("图书馆的门是绿的吗？", "图书馆的门是绿的。", "图书馆的门是什么颜色？"),
    ],
)
def test_answer_ranks_before_a_question_with_the_same_words(
    alice: Contract, asks: str, tells: str, question: str
) -> None:
    """The later of two that say the same would else come first."""
    alice.add(tells)
    alice.add(asks)
    run_jobs()
    hits = alice.search(question, explain=True)
    assert [hit["content"] for hit in hits] == [tells, asks]
    assert hits[1]["score_parts"]["lexical"] > 0.8
    assert hits[1]["score"] < 0.85 * hits[0]["score"]


def test_question_about_questions_returns_the_question(alice: Contract) -> None:
    """Between equal matches the later comes first."""
    alice.add("The boat house is green.")
    alice.add("Is the boat house green?")
    run_jobs()
    assert alice.search("Who was asked about the boat house?")[0]["content"].endswith("?")
    assert alice.search("Who was told about the boat house?")[0]["content"].endswith(".")


def test_question_changed_to_a_statement_loses_its_penalty(alice: Contract) -> None:
    asked = alice.add("Is the boat house green?")
    run_jobs()
    before = alice.search("boat house green")[0]["score"]
    assert (
        alice.patch(f"memories/{asked['id']}/", {"content": "Is the boat house green."}, if_match='"1"').status == 200
    )
    run_jobs()
    assert alice.search("boat house green")[0]["score"] > before


@pytest.mark.parametrize("mode", ["hybrid", "lexical"])
def test_long_answer_ranks_before_notes_that_share_a_word(alice: Contract, mode: str) -> None:
    minutes = alice.add(f"{FILLER} The turbine on Vexley Hill was repaired by Hanna. {FILLER}"[:20_000])
    for number in range(30):
        alice.add(f"Repaired lamp {number}.")
    run_jobs()
    assert alice.search("Who repaired the turbine on Vexley Hill?", mode=mode, top_k=1)[0]["id"] == minutes["id"]
