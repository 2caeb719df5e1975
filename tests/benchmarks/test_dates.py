import json
from datetime import date, datetime

from benchmarks.dates import DATA


def test_each_message_has_a_time_with_an_offset_and_a_day_near_it() -> None:
    rows = json.loads(DATA.read_text(encoding="utf-8"))
    assert len({row["id"] for row in rows}) == len(rows) == 180
    for row in rows:
        said = datetime.fromisoformat(row["said"])
        assert said.tzinfo is not None
        assert abs((date.fromisoformat(row["day"]) - said.date()).days) <= 600, row["id"]
