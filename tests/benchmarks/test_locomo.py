"""The loader of LoCoMo's layout."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.client import BenchmarkError
from benchmarks.locomo import conversations, recall
from tests.harness.servers import ROOT

DEVELOPMENT_HALF = ROOT.parent / "shared" / "data" / "locomo" / "locomo-dev5.json"


def test_turns_keep_their_order_session_speaker_and_time(locomo_file: Path) -> None:
    turns = conversations(locomo_file)[0].turns
    assert [turn.id for turn in turns] == ["D1:1", "D1:2", "D2:1", "D2:2"]
    assert [turn.session for turn in turns] == [1, 1, 2, 2]
    assert (turns[3].speaker, turns[3].at) == ("Ben", datetime(2023, 5, 12, 9, 5, 1, tzinfo=UTC))


def test_questions_without_an_answer_or_without_evidence_are_left_out(locomo_file: Path) -> None:
    found = conversations(locomo_file)[1].questions
    assert [question.text for question in found] == ["What ate the cherries?", "Who bought the blue boat?"]


def test_evidence_written_in_one_string_is_several_turns(locomo_file: Path) -> None:
    assert conversations(locomo_file)[0].questions[1].evidence == {"D1:2", "D2:2"}


def test_recall_is_the_share_of_the_evidence_in_the_results() -> None:
    assert recall(["D1:2", "D9:1"], frozenset({"D1:2", "D2:2"})) == 0.5
    assert recall([], frozenset({"D1:2"})) == 0.0


def test_it_says_in_one_line_what_it_cannot_read(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    with pytest.raises(BenchmarkError, match="as LoCoMo"):
        conversations(broken)


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        "[]",
        "5",
        '"text"',
        "[1]",
        '[{"conversation": {}}]',
        '[{"sample_id": "a", "conversation": {}, "qa": []}]',
        '[{"sample_id": "a", "conversation": {"session_1": []}, "qa": []}]',
        '[{"sample_id": "a", "conversation": {"session_1": [], "session_1_date_time": "today"}, "qa": []}]',
        '[{"sample_id": "a", "conversation": [], "qa": [{"question": "Who?"}]}]',
    ],
)
def test_json_of_another_layout_is_reported_in_one_line(tmp_path: Path, content: str) -> None:
    other = tmp_path / "other.json"
    other.write_text(content, encoding="utf-8")
    with pytest.raises(BenchmarkError, match=r"other\.json") as told:
        conversations(other)
    assert "\n" not in str(told.value)


@pytest.mark.apart(DEVELOPMENT_HALF.exists(), "the files of LoCoMo beside this checkout")
def test_the_development_half_is_read_whole() -> None:
    found = conversations(DEVELOPMENT_HALF)
    assert {talk.id for talk in found} == {"conv-26", "conv-30", "conv-41", "conv-42", "conv-43"}
    for talk in found:
        assert all(question.evidence <= {turn.id for turn in talk.turns} for question in talk.questions)
