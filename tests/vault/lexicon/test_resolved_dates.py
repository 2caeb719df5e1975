from datetime import UTC, datetime

from tests.harness.cases import each_case
from vault.lexicon.resolved_dates import time_of, write_dates

SAID_AT = datetime(2026, 5, 8, 9, 20, tzinfo=UTC)


@each_case(
    ("text", "written"),
    [
        ("Yesterday I went to the park.", "Yesterday = 7 May 2026"),
        ("We met last week.", "last week = 27 April 2026 – 3 May 2026"),
        ("昨天我去了公园。", "昨天 = 2026年5月7日"),
        ("I moved last month.", "last month = April 2026"),
        ("The wedding is on 5 September.", ""),
        ("Ada drinks tea.", ""),
        ("I met Tom on Wednesday.", "Wednesday = 6 May 2026"),
        ("Arjun is in Manchester until Thursday.", "Thursday = 14 May 2026"),
        ("The repair guy comes on Friday at 8.", "Friday = 15 May 2026"),
        ("我周三要去看牙。", "周三 = 2026年5月13日"),
        ("她周末要来。", "周末 = 2026年5月9日 – 2026年5月10日"),
        ("我这个月15号要去医院复查。", "这个月15号 = 2026年5月15日"),
        ("上个月二十号我搬家了。", "上个月二十号 = 2026年4月20日"),
        ("I pay the rent on the 3rd of next month.", "the 3rd of next month = 3 June 2026"),
        ("We met on the 5th.", "the 5th = 5 May 2026"),
        ("The rent is due by the 5th.", "the 5th = 5 June 2026"),
        ("我31号去了海边。", "31号 = 2026年3月31日"),
        ("他住在3号楼，坐5号线上班。", ""),
        ("她穿42号，我穿36号。", ""),
        ("上个月31号", ""),
    ],
)
def test_relative_times_are_written_as_dates(text: str, written: str) -> None:
    assert write_dates(text, SAID_AT) == written


@each_case(
    ("text", "day"),
    [
        ("The plumber's coming Monday.", "2026-05-11"),
        ("We're off to Malta with my cousin, July 5 to 12.", "2026-07-05"),
        ("Her recital, the 3rd of March.", "2027-03-03"),
        ("Choir sang in the old mill on Monday.", "2026-05-04"),
        ("I need the car on Tuesday.", "2026-05-12"),
        ("She planted the roses on the 3rd of March.", "2026-03-03"),
        ("11月2号我过生日。", "2026-11-02"),
        ("3月2号搬的家，累坏了。", "2026-03-02"),
    ],
)
def test_a_time_is_ahead_unless_the_sentence_tells_of_the_past(text: str, day: str) -> None:
    found = time_of(text, SAID_AT)
    assert found is not None
    assert found.date().isoformat() == day


@each_case(
    ("text", "said", "start"),
    [
        ("I saw a kestrel yesterday.", "2026-05-02T20:00:00-05:00", "2026-05-01T00:00:00+00:00"),
        ("昨天看到一只红隼。", "2026-05-02T06:00:00+08:00", "2026-05-01T00:00:00+00:00"),
        ("Two hours ago I saw a kestrel.", "2026-05-02T20:15:00-05:00", "2026-05-02T00:00:00+00:00"),
    ],
)
def test_day_is_that_of_the_speakers_clock(text: str, said: str, start: str) -> None:
    assert time_of(text, datetime.fromisoformat(said)) == datetime.fromisoformat(start)
