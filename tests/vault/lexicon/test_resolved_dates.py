from datetime import UTC, datetime

import pytest

from vault.lexicon.resolved_dates import dates_written

SAID_AT = datetime(2026, 5, 8, 9, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Yesterday I went to the park.", "Yesterday = 2026-05-07"),
        ("We met last week.", "last week = 2026-04-27 – 2026-05-03"),
        ("昨天我去了公园。", "昨天 = 2026-05-07"),
        ("I moved last month.", "last month = 2026-04"),
        ("The wedding is on 5 September.", ""),
        ("Ada drinks tea.", ""),
    ],
)
def test_relative_times_are_written_as_dates(text: str, written: str) -> None:
    assert dates_written(text, SAID_AT) == written
