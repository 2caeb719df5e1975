"""Index terms, query terms, languages and keywords, in English, Chinese and others."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.cases import each_case
from vault.lexicon.entities import entities
from vault.lexicon.normal import normal_form
from vault.lexicon.temporal_expressions import mentions_time
from vault.lexicon.tokens import day_terms, keywords, language_of, query_terms, single_characters, terms


@each_case(
    ("text", "expected"),
    [
        ("Caroline's dogs don't like the O’Brien café", ["carolin", "dog", "like", "o", "brien", "cafe"]),
        ("We can't, won't and didn't; they're", []),
        ("running RUNS run", ["run", "run", "run"]),
        ("on 2023-05-08 at 10:30 for $1,234.50", ["2023", "05", "08", "10", "30", "1234", "50", "5-8"]),
        ("user_id ２０２３ ﬁle", ["user", "id", "2023", "file"]),
        ("我的猫叫咪咪", ["的猫", "猫叫", "叫咪", "咪咪"]),
        ("猫", ["猫"]),
        ("我用 Python 3 写代码。", ["我用", "python", "3", "写代", "代码"]),
        ("カラオケ", ["カラ", "ラオ", "オケ"]),
        ("안녕하세요", ["안녕", "녕하", "하세", "세요"]),
        ("Привет, мир", ["привет", "мир"]),
        ("हिन्दी।", ["हिन्दी"]),
        ("", []),
        ("😀🎉 …!!! —", ["😀", "🎉"]),
        ("Party🎉 at 7!", ["parti", "🎉", "7"]),
        ("我爱🐱猫", ["我爱", "🐱", "猫"]),
        ("😂😂", ["😂", "😂"]),
        ("👍🏽 👍", ["👍", "👍"]),
        ("❤️ ❤ ☕️ ⏰", ["❤", "❤", "☕", "⏰"]),
        ("👩🏽‍🚀 👨‍👩‍👧", ["👩", "🚀", "👨", "👩", "👧"]),
        ("🇩🇪🇨🇳 🇩", ["🇩🇪", "🇨🇳", "🇩"]),
        ("7️⃣ → • ■ 🏽", ["7"]),
        ("的 了 是的", []),
    ],
)
def test_text_has_the_expected_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(("one", "other"), [("cafe\u0301", "café"), ("İstanbul", "istanbul"), ("STRASSE", "straße")])
def test_different_spellings_have_equal_terms(one: str, other: str) -> None:
    assert terms(one) == terms(other) != []


def test_overlong_word_is_cut() -> None:
    assert [len(term) for term in terms("a" * 32_000)] == [64]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When did Caroline go to the support group?", ["carolin", "go", "support", "group"]),
        ("How many kids does Melanie have?", ["kid", "melani"]),
        ("What kind of tea is it?", ["tea"]),
        ("我的猫叫什么名字？", ["猫叫", "名字"]),
        ("卡罗琳喜欢猫吗", ["卡罗", "罗琳", "喜欢", "猫"]),
        ("他住在哪里？", ["他住", "住在"]),
        ("green tea", ["green", "tea"]),
        ("🎂", ["🎂"]),
        ("Where is the 🎂?", ["🎂"]),
    ],
)
def test_query_terms_leave_out_question_words(question: str, expected: list[str]) -> None:
    assert query_terms(question) == expected


@pytest.mark.parametrize(("question", "kept"), [("Who?", ["who"]), ("What is it?", ["what"]), ("什么？", ["什么"])])
def test_question_words_stay_when_nothing_else_is_left(question: str, kept: list[str]) -> None:
    assert query_terms(question) == kept


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I love tea.", "en"),
        ("¿Dónde está?", "en"),
        ("我喜欢绿茶", "zh"),
        ("我用 Python 写代码", "zh"),
        ("I love 北京 so much", "en"),
        ("東京に行きました", "ja"),
        ("안녕하세요", "ko"),
        ("Привет", "und"),
        ("123 😀", "und"),
        ("", "und"),
    ],
)
def test_text_has_the_expected_language(text: str, language: str) -> None:
    assert language_of(text) == language


def test_keywords_are_phrases_of_the_text_as_they_stand_in_it() -> None:
    text = (
        "I went to an LGBTQ support group yesterday. The transgender stories were inspiring! Our support group is here."
    )
    found = keywords(text, limit=3)
    assert found[:2] == ["LGBTQ support group", "transgender stories"]
    assert len(found) == 3
    assert all(keyword in text for keyword in found)


def test_chinese_keywords_are_repeated_pieces_without_function_words() -> None:
    found = keywords("我昨天去了故宫博物院,非常漂亮。故宫博物院的历史很悠久,我想学习书法。", limit=4)
    assert found[0] == "故宫博物院"
    assert not {"我", "昨天", "的", "非常"} & set(found)


def test_a_text_without_content_has_no_keywords() -> None:
    assert keywords("And so it was, of the... 的了 😀") == []


@settings(deadline=None, derandomize=True, database=None)
@given(st.text(max_size=300))
def test_any_text_has_stable_terms(text: str) -> None:
    assert all(terms(text))
    assert terms(text) == terms(text)
    assert bool(query_terms(text)) == bool(terms(text))
    assert len(keywords(text)) <= 8
    assert keywords(text) == keywords(text)
    assert language_of(text) in {"en", "zh", "ja", "ko", "und"}


@pytest.mark.parametrize(
    "unit", ["a", "a'", "1,", "1,234", "how ", "how many ", "我", "什", "我们去", "e\u0301", ". ", "Ab "]
)
def test_longest_memory_is_read_quickly(unit: str) -> None:
    text = (unit * 32_000)[:32_000]
    began = time.process_time()
    terms(text), query_terms(text), language_of(text), keywords(text)
    assert time.process_time() - began < 2  # about 0.04 s; a quadratic step would take minutes


def test_threads_may_stem_at_once() -> None:
    text = "running dogs were happily jumping over lazily sleeping foxes " * 200
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: terms(text), range(16)))
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("南京市长江大桥什么时候通车的？", ["南京", "京市", "长江", "江大", "大桥", "通车"]),
        ("研究生命的起源", ["研究", "生命", "起源"]),
        ("王小明喜欢吃什么", ["王小", "小明", "喜欢", "吃"]),
    ],
)
def test_chinese_question_has_no_bigram_across_words(question: str, asked: list[str]) -> None:
    assert query_terms(question) == asked


def test_unknown_chinese_name_keeps_its_bigrams() -> None:
    assert query_terms("喆玥琰住哪里") == ["喆玥", "玥琰", "琰住"]
    assert {"喆玥", "玥琰"} <= set(terms("喆玥琰住在上海"))


def test_overlong_word_is_no_keyword() -> None:
    assert keywords("a" * 5_000) == []
    assert keywords(f"The otter, {'q' * 65}, swims.") == ["otter", "swims"]


PIECES = st.sampled_from(
    [
        *(
            "Ann",
            "Ann's",
            "don't",
            "New York",
            "Dr. Lee",
            "The",
            "the cats",
            "running",
            "1,000",
            "2024",
            "@bob_1",
            "O'Brien",
        ),
        *(
            "last",
            "week_end",
            "March",
            "marching",
            "may",
            '"Dune"',
            "...",
            "--",
            "\n",
            "'",
            "x_y",
            "a" * 70,
            "Is",
            "of",
            "&",
        ),
    ]
)


@given(st.lists(PIECES | st.text(st.characters(max_codepoint=127), max_size=8), max_size=12).map(" ".join))
def test_non_ascii_character_leaves_the_other_terms(text: str) -> None:
    """Plain texts take a shorter way."""
    other = f"{text} \u00bf"
    assert terms(other) == terms(text)
    assert keywords(other) == keywords(text)
    assert entities(other) == entities(text)
    assert mentions_time(other) == mentions_time(text)
    assert single_characters(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "12 May",
        "May 12th",
        "May the 12th",
        "the 12th of may, 2027",
        "2027-05-12",
        "2027/5/12",
        "12.05.2027",
        "12.5.2027",
        "5月12日",
        "五月十二日",
        "五月十二號",
        "on 12th May",
        "Sept. 3 and May 12",
        "10–12 May",
        "May 10th to the 12th",
        "5月10日至12日",
        "5/12/2027",
        "12/05/2027",
    ],
)
def test_day_in_any_spelling_is_a_term(text: str) -> None:
    assert "5-12" in terms(text)
    assert "5-12" in day_terms(text)


@pytest.mark.parametrize(
    "text",
    [
        "12 disks",
        "May 1234",
        "Mayor 12",
        "2027-13-12",
        "12.5 mays",
        "maybe 12",
        "1.2.3.2027",
        "二月",
        "五个月十二日元",
        "99/99/2027",
        "v12.05.20271",
    ],
)
def test_other_numbers_are_no_day_terms(text: str) -> None:
    assert day_terms(text) == []


@pytest.mark.parametrize("text", ["12–14 May", "12th to 14th of May", "May 12-14", "5月12至14日", "五月十二日到十四日"])
def test_each_of_several_days_is_a_term(text: str) -> None:
    assert day_terms(text) == ["5-12", "5-13", "5-14"]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("closed on 3 and 12 May", ["5-3", "5-12"]),
        ("June 5 until 10 pm", ["6-5"]),
        ("March 3 to 5 pm", ["3-3"]),
        ("May 12 and 14 people came", ["5-12"]),
        ("room 4 - 12 May 2025", ["5-12"]),
        ("at 10:30-12 May", ["5-12"]),
    ],
)
def test_text_like_a_day_range_has_only_its_days(text: str, days: list[str]) -> None:
    assert day_terms(text) == days


def test_ambiguous_date_gives_both_day_terms() -> None:
    assert day_terms("25/12/2027") == day_terms("12/25/2027") == ["12-25"]
    assert day_terms("5/12/2027") == ["12-5", "5-12"]
    assert day_terms("5/5/2027") == ["5-5"]
    assert day_terms("14 to 12 May") == ["5-14", "5-12"]


def test_long_run_of_marks_is_read_in_linear_time() -> None:
    """To normalise them would. What is normalised has at most thirty on a letter."""
    assert len(normal_form("NFKC", "x" + "\u0301\u0316" * 16_000)) <= 32
    assert normal_form("NFKC", "e\u0301" * 3) == "\u00e9" * 3
    assert len(normal_form("NFKD", "\ufdfa" * 32_000)) == 3 * 32_000
    assert len(normal_form("NFKD", "\ufdfa" * 50)) == 18 * 50  # a short text is not cut


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Wi-Fi", "wifi"),
        ("e-mail", "email"),
        ("E-MAILS", "email"),
        ("my X-ray", "the xray"),
        ("Wi-Fi的密码", "wifi密码"),
    ],
)
def test_words_with_and_without_a_hyphen_match_each_other(one: str, other: str) -> None:
    assert {*terms(one)} & {*query_terms(other)}
    assert {*terms(other)} & {*query_terms(one)}


@pytest.mark.parametrize("text", ["a - b", "-x", "--force", "x-", "one-two-three-four-five", "555-1234", "pp. 12-14"])
def test_hyphen_outside_a_word_joins_nothing(text: str) -> None:
    assert terms(text) == terms(text.replace("-", " "))
