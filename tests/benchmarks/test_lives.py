from pathlib import Path

import pytest

from benchmarks.client import BenchmarkError
from benchmarks.lives import PLACE, read_life


@pytest.mark.parametrize("path", sorted(PLACE.glob("*.json")), ids=lambda path: path.stem)
def test_labels_of_a_life_name_its_messages_in_order(path: Path) -> None:
    life = read_life(path)
    order = {message["message_id"]: number for number, (_, message) in enumerate(life.messages)}
    assert len(order) == 60
    assert all(order[older] < order[newer] for newer, older in life.changes)
    assert order.keys() >= life.dates.keys()
    assert {asked.kind for asked in life.questions} == {"fact", "newest", "join", "list", "time", "unanswerable"}
    unanswerable = [asked for asked in life.questions if not asked.labelled.is_answerable]
    assert {asked.kind for asked in unanswerable} == {"unanswerable"}


def test_a_file_that_is_no_life_is_named(tmp_path: Path) -> None:
    path = tmp_path / "life.json"
    path.write_text('{"chats": []}', encoding="utf-8")
    with pytest.raises(BenchmarkError, match=r"cannot read .*life\.json as a life"):
        read_life(path)
