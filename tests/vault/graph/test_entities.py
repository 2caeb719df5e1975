"""The entities of a text, by their form alone. Pure."""

import time

import pytest

from vault.lexicon.entities import MOST_ENTITIES, entities, find_asked_entities

TEXTS: list[tuple[str, list[str]]] = [
    ("I met Caroline and her friend John Smith.", ["caroline", "john smith"]),
    ("Caroline moved to New York last May.", ["caroline", "new york"]),
    ("Hey Caroline! Thanks, Mel.", ["caroline", "mel"]),
    ("We saw Dr. John Smith at the University of Oxford.", ["john smith", "university of oxford"]),
    ("Caroline's sister called O'Brien.", ["caroline", "o'brien"]),
    ("She reads for NASA now.", ["nasa"]),
    ("Ask @anna_b, not anna@example.org.", ["@anna_b"]),
    ('Have you read "The Great Gatsby"?', ["great gatsby"]),
    ("He gave me “Becoming Nicole” as a “present”.", ["becoming nicole"]),
    ("Zoë lives in São Paulo.", ["zoë", "são paulo"]),
    ("昨天我读了《红楼梦》。", ["红楼梦"]),
    ("王小明在北京大学学习。", ["王小明", "北京大学", "北京"]),
    ("我和李华去了张老师的家。", ["李华", "张老师"]),
    ("老王昨天去了杭州。", ["老王", "杭州"]),
    ("卡罗琳住在巴黎。", ["巴黎", "卡罗琳"]),
    ("玛丽·居里是谁", ["玛丽·居里"]),
]
NOTHING = [
    "",
    "Painting is fun. Luckily it rained. Excited to go!",
    "I think I'm fine. It's OK. Don't! Yesterday was Monday.",
    "When did you go? What happened? How? Why not?",
    "all in small letters, every one",
    "今天我很高兴，因为天气很好。",
    "12 + 30 = 42 & so on … 🙂",
]


def test_names_titles_places_and_handles_are_entities() -> None:
    assert {text: entities(text) for text, _ in TEXTS} == dict(TEXTS)


@pytest.mark.parametrize("text", NOTHING)
def test_ordinary_words_name_nothing_though_they_begin_a_sentence(text: str) -> None:
    assert entities(text) == []


def test_the_same_name_in_another_form_is_the_same_entity() -> None:
    assert entities("ＣＡＲＯＬＩＮＥ, Caroline, CAROLINE’S") == ["caroline"]
    assert entities("“The Great  Gatsby”") == entities("I like The Great Gatsby")


def test_a_question_in_small_letters_is_understood_by_its_content_words() -> None:
    assert find_asked_entities("what did melanie's sister read?") == ["melanie", "sister"]
    assert find_asked_entities("Who is Caroline's friend?") == ["caroline"]
    assert find_asked_entities("王小明住在哪里？") == ["王小明"]


def test_a_long_text_is_bounded_in_number_and_time() -> None:
    many = " and ".join(f"Name{number}x" for number in range(3_000))
    assert len(entities(many)) == MOST_ENTITIES
    hostile = ["A " * 16_000, "王" * 32_000, '"' * 32_000, "《" * 32_000, "卡·" * 16_000, "a'" * 16_000, "@a." * 10_000]
    started = time.process_time()
    for text in hostile:
        entities(text)
    assert time.process_time() - started < 5
