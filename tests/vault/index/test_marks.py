"""Keyed marks: equal for what is equal, telling nothing without the key. Pure."""

from uuid import UUID

from governance.keys.rules import DataKey
from governance.keys.services import TokenMaker
from vault.content.words import Words
from vault.cubes.rules import approximate_tokens
from vault.index.marks import contains, marks_of, message, same
from vault.index.terms import WORD_KIND, index_of, text_index

MAKER = TokenMaker(DataKey(UUID(int=1), b"1" * 32))
OTHER = TokenMaker(DataKey(UUID(int=2), b"2" * 32))


def test_a_mark_depends_on_key_field_and_value() -> None:
    mark = same(MAKER, "speaker", "Ann")
    assert mark == same(MAKER, "speaker", "ANN")
    assert mark != same(MAKER, "speaker", "Anna")
    assert mark != same(MAKER, "session_id", "Ann")
    assert mark != same(OTHER, "speaker", "Ann")
    assert mark != contains(MAKER, "speaker", "Ann")


def test_equal_text_in_another_form_of_unicode_has_the_same_mark() -> None:
    assert same(MAKER, "speaker", "Zo\u00eb") == same(MAKER, "speaker", "Zoe\u0308")


def test_numbers_booleans_and_texts_have_different_marks() -> None:
    assert len({same(MAKER, "metadata.a", value) for value in (1, "1", True, "true", None, "null", [1], {"a": 1})}) == 8


def test_all_that_can_be_filtered_by_is_marked() -> None:
    words = Words(
        content="Hidden.",
        metadata={"a": "two words", "l": [1, "x"], "d": {"k": 1}},
        speaker="Ann Lee",
        session_id="s",
        message_id="m",
        task_id="t",
    )
    marks = marks_of(MAKER, words)
    for field, value in (("speaker", "ann lee"), ("session_id", "s"), ("message_id", "m"), ("task_id", "t")):
        assert same(MAKER, field, value) in marks
    assert same(MAKER, "metadata.d", {"k": 1}) in marks
    for field, part in (("speaker", "lee"), ("metadata.a", "words"), ("metadata.l", 1), ("metadata.l", "X")):
        assert contains(MAKER, field, part) in marks
    assert message(MAKER, "s", "m") in marks
    assert message(MAKER, "m", "s") not in marks
    assert same(MAKER, "metadata.a", "other") not in marks


def test_marks_count_for_nothing_in_a_ranking() -> None:
    words = Words(content="green tea", speaker="Ann")
    indexed = index_of(MAKER, words, text_index(MAKER, words))
    counted = [token for token, frequency in indexed.entries.items() if frequency]
    assert indexed.length == 3  # who said it is searched for too
    assert len(counted) >= 3
    assert indexed.entries[same(MAKER, "speaker", "Ann")] == 0


def test_each_term_is_one_posting() -> None:
    words = Words(content="tea tea 茶茶 tea")
    indexed = index_of(MAKER, words, text_index(MAKER, words))
    assert indexed.entries[MAKER.token(WORD_KIND, "tea")] == 3
    assert indexed.entries[MAKER.token(WORD_KIND, "茶茶")] == 1
    assert indexed.entries[MAKER.token(WORD_KIND, "茶")] == 2  # so that a question of one character finds it
    assert indexed.length == 4


def test_tokens_are_counted_in_both_scripts() -> None:
    assert approximate_tokens("x") == 1
    assert approximate_tokens("eight ch") == 2
    assert approximate_tokens("记忆") == 2
