from datetime import date

import pytest

from tests.harness.cases import each_case
from vault.lexicon.recurrences import read_recurrence, write_recurrence

SUNDAY, LEAP_DAY = date(2026, 11, 29), date(2028, 2, 29)
STATED = [
    ("Thursdays is choir.", "WEEKLY;BYDAY=TH", "every Thursday", date(2026, 12, 3)),
    ("I swim every Tuesday and Friday.", "WEEKLY;BYDAY=TU,FR", "every Tuesday and Friday", date(2026, 12, 1)),
    ("Every other Friday we play.", "WEEKLY;INTERVAL=2;BYDAY=FR", "every other Friday", None),
    ("I run every morning.", "DAILY", "every day", SUNDAY),
    ("It is due on the 1st of every month.", "MONTHLY;BYMONTHDAY=1", "every month on day 1", date(2026, 12, 1)),
    (
        "We meet on the last Friday of every month.",
        "MONTHLY;BYDAY=-1FR",
        "every last Friday of the month",
        date(2026, 12, 25),
    ),
    ("每月第一个周一开会。", "MONTHLY;BYDAY=1MO", "每月第一个周一", date(2026, 12, 7)),
    ("My birthday is 3 June.", "YEARLY;BYMONTH=6;BYMONTHDAY=3", "every year on 3 June", date(2027, 6, 3)),
    ("I'll be 35 on 8 May.", "YEARLY;BYMONTH=5;BYMONTHDAY=8", "every year on 8 May", date(2027, 5, 8)),
    ("I was born on 29 February 1992.", "YEARLY;BYMONTH=2;BYMONTHDAY=29", "every year on 29 February", LEAP_DAY),
    ("每周三晚上打羽毛球。", "WEEKLY;BYDAY=WE", "每周三", date(2026, 12, 2)),
    ("每周一到周三上班。", "WEEKLY;BYDAY=MO,TU,WE", "每周一、周二、周三", date(2026, 11, 30)),
    ("每月15号发工资。", "MONTHLY;BYMONTHDAY=15", "每月15日", date(2026, 12, 15)),
    ("我生日是6月3日。", "YEARLY;BYMONTH=6;BYMONTHDAY=3", "每年6月3日", date(2027, 6, 3)),
]


@each_case("text, rule, words, following", STATED)
def test_recurrence_is_read_with_its_rule_and_its_next_day(
    text: str, rule: str, words: str, following: date | None
) -> None:
    found = read_recurrence(text)
    assert found is not None
    assert (found.rule, found.next_day(SUNDAY)) == (f"FREQ={rule}", following)
    assert write_recurrence(found, "en" if text.isascii() else "zh") == words


@pytest.mark.parametrize(
    "text",
    [
        "We met on Monday.",
        "Monday is fine.",
        "The race is on 3 June.",
        "周三见。",
        "他每次都迟到。",
        "Every guest came.",
    ],
)
def test_single_time_is_no_recurrence(text: str) -> None:
    assert read_recurrence(text) is None
