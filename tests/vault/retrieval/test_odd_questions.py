"""Tests of unusual questions in every mode: min(top_k, visible) rows, and only visible ones."""

from itertools import product

import pytest

from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs

MODES = ("hybrid", "dense", "lexical", "tag", "graph")
SHARED, PRIVATE = 12, 4
LONGEST = 30_000
TEXTS = ("Melanie met Ben at the Willow Shelter on 7 May 2023. ", "卡罗琳在五月领养了一只灰狗。", "a ", "🙂👩‍🚀 ")
QUESTIONS = [
    *((text * LONGEST)[: LONGEST - 1] + "x" for text in TEXTS),  # no blank at the end, which would be taken off
    " ".join(f"word{number}" for number in range(LONGEST))[:LONGEST],
    "x" * LONGEST,
    "a",
    "茶",
    "?",
    "🙂",
    "👩‍🚀🇩🇪👍🏽",
]


@pytest.fixture
def shared_ids(alice: Contract) -> set[str]:
    """The ids of what bob sees; beside it lies what alice alone sees. What is said is said of who is asked for."""
    said = [f"Memory {number} 🙂: Melanie met Ben at the Willow Shelter. 卡罗琳的灰狗。" for number in range(SHARED)]
    ids = {alice.add(text, namespace="/team", tags=["a", "茶", "🙂"])["id"] for text in said}
    for number in range(PRIVATE):
        alice.add(f"Note {number} 🙂: Melanie met Ben. 卡罗琳的灰狗。", tags=["a", "🙂"])
    run_jobs()
    return ids


def test_odd_question_returns_all_visible_memories_only(alice: Contract, bob: Contract, shared_ids: set[str]) -> None:
    for mode, question in product(MODES, QUESTIONS):
        for top_k in (5, 100):
            found = [hit["id"] for hit in bob.search(question, mode=mode, top_k=top_k)]
            assert len(found) == len({*found}) == min(top_k, SHARED), (mode, question[:40])
            assert shared_ids.issuperset(found), (mode, question[:40])
        assert len(alice.search(question, mode=mode, top_k=100)) == SHARED + PRIVATE, (mode, question[:40])
