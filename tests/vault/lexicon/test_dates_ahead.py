"""Times told in passing, as people write them: each is resolved by the clause that names it."""

from datetime import UTC, datetime, timedelta

import pytest

from vault.lexicon.resolved_dates import EARLIEST_YEAR, LATEST_YEAR, time_of
from vault.reader.rules import read_statements

SAID = datetime(2026, 3, 4, 10, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("The choir trip is a week today.", "2026-03-11"),
        ("He flies home two weeks from Friday.", "2026-03-20"),
        ("She goes back for a check three weeks from tomorrow.", "2026-03-26"),
        ("The exam is in ten days.", "2026-03-14"),
        ("两周后要考试。", "2026-03-18"),
        ("We moved the party, so it's on 12 September instead.", "2026-09-12"),
        ("他们订好了，9月12号上船。", "2026-09-12"),
        ("I broke my wrist on 12 September.", "2025-09-12"),
        ("我9月12号摔断了手腕。", "2025-09-12"),
        ("The check-up is on Tuesday 24 Mar at nine.", "2026-03-24"),
        ("Mum comes the weekend of 11 and 12 April.", "2026-04-11"),
        ("They moved it to the 19th.", "2026-03-19"),
        ("It's the 19th, same room.", "2026-03-19"),
        ("19号公司体检。", "2026-03-19"),
        ("下个月去敦煌，18号出发。", "2026-04-18"),
        ("She turned two in January, on the 17th.", "2026-01-17"),
        ("五一去爬山。", "2026-05-01"),
        ("I fell on the ice on New Year's Day.", "2026-01-01"),
        ("We were in Oslo in May, and Bergen in June.", "2025-05-01"),
        ("西安6月初太热，改到6月21号。", "2026-06-21"),
        ("The vet is Thursday week, at ten.", "2026-03-12"),
        ("We play them the Sunday after next.", "2026-03-15"),
        ("The boiler man comes Tuesday of next week.", "2026-03-10"),
        ("Lena flies in next week on Friday.", "2026-03-13"),
        ("The fair is on the second Saturday of April.", "2026-04-11"),
        ("My lease ends on the last day of next month.", "2026-04-30"),
        ("We met on the first Sunday of June 2019.", "2019-06-02"),
        ("In ten days we're in Porto.", "2026-03-14"),
        ("Fri 20th is the school play.", "2026-03-20"),
        ("The recital is on 4/18, front row.", "2026-04-18"),
        ("I quit exactly three weeks ago.", "2026-02-11"),
        ("I quit three weeks ago.", "2026-02-11"),
        ("A month ago today the roof leaked.", "2026-02-04"),
        ("Memorial Day we drive to the lake.", "2026-05-25"),
        ("We ate too much on Easter Monday.", "2025-04-21"),
        ("除夕我们包了饺子。", "2026-02-16"),
        ("大年初三去拜年了。", "2026-02-19"),
        ("农历四月初八是奶奶生日。", "2026-05-24"),
        ("端午节回老家。", "2026-06-19"),
        ("春节那天我值班，忙得很。", "2026-02-17"),
        ("下个月第二个周六办婚礼。", "2026-04-11"),
        ("这个月最后一天交房租。", "2026-03-31"),
        ("周五20号开家长会。", "2026-03-20"),
        ("再过六天就出发。", "2026-03-10"),
    ],
)
def test_time_is_that_of_the_clause_that_names_it(text: str, day: str) -> None:
    found = time_of(text, SAID)
    assert found is not None
    assert f"{found:%Y-%m-%d}" == day


@pytest.mark.parametrize(
    "text",
    [
        "It is on the 3rd floor.",
        "That was for the 2nd time.",
        "我住16号楼。",
        "坐5号线去。",
        "We learned a lot in two weeks of camp.",
        "In two weeks I lost three kilos.",
        "I ate 3/4 of it, and 1/16 inch of icing.",
        "She scored 7/18, not bad.",
        "My Christmas tree still stands.",
        "他住五一路，孩子上六一幼儿园。",
        "他上初三了，还有三天的假。",
    ],
)
def test_number_that_is_no_day_names_no_time(text: str) -> None:
    assert time_of(text, SAID) is None


@pytest.mark.parametrize(
    ("text", "statement", "day"),
    [
        ("I'll be 40 on 8 November, is that old?", "I'll be 40 on 8 November", "2026-11-08"),
        ("小顾后天搬新家请客，送盆绿萝会不会太寒酸？", "小顾后天搬新家请客", "2026-03-06"),
    ],
)
def test_dated_clause_before_a_question_is_a_statement(text: str, statement: str, day: str) -> None:
    (found,) = read_statements(text, speaker="user", said_at=SAID)
    assert found.text == statement
    assert found.event_time is not None
    assert f"{found.event_time:%Y-%m-%d}" == day


@pytest.mark.parametrize("text", ["If I go on Friday, should I take a coat?", "如果我周五去，要带伞吗？"])
def test_condition_of_a_question_is_no_statement(text: str) -> None:
    assert read_statements(text, speaker="user", said_at=SAID) == ()


@pytest.mark.parametrize(
    "text",
    [
        "13月第一个周一见",
        "0月最后一天交房",
        "周六00号见",
        "sat 0th",
        "on 2/30, ok",
        "农历三月三十一",
        "April fools'x",
        "the very  last day of the month",
        "exactly 999 years ago",
        "再过999年",
        "那年三十岁",
    ],
)
@pytest.mark.parametrize("year", [EARLIEST_YEAR, 1900, 2026, 2100, LATEST_YEAR])
def test_time_that_does_not_exist_is_no_error(text: str, year: int) -> None:
    said_at = SAID.replace(year=year)
    found = time_of(text, said_at)
    assert found is None or found.tzinfo is not None
    assert time_of("I fell yesterday.", said_at) == (said_at - timedelta(days=1)).replace(hour=0)
