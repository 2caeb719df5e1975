"""Tests of keyed marks: equal values have equal marks under one key only. Pure."""

from uuid import UUID

from governance.keys.rules import DataKey
from governance.keys.services import TokenMaker
from vault.content.words import Words
from vault.cubes.rules import approximate_tokens
from vault.index.marks import marks_of, message_mark, part_mark, value_mark, value_marks
from vault.index.terms import WORD_KIND, index_of, text_index

MAKER = TokenMaker(DataKey(UUID(int=1), b"1" * 32))
OTHER = TokenMaker(DataKey(UUID(int=2), b"2" * 32))


def test_a_mark_depends_on_key_field_and_value() -> None:
    mark = value_mark(MAKER, "speaker", "Ann")
    assert mark == value_mark(MAKER, "speaker", "ANN")
    assert mark != value_mark(MAKER, "speaker", "Anna")
    assert mark != value_mark(MAKER, "session_id", "Ann")
    assert mark != value_mark(OTHER, "speaker", "Ann")
    assert mark != part_mark(MAKER, "speaker", "Ann")


def test_equal_text_in_another_form_of_unicode_has_the_same_mark() -> None:
    assert value_mark(MAKER, "speaker", "Zo\u00eb") == value_mark(MAKER, "speaker", "Zoe\u0308")


def test_numbers_booleans_and_texts_have_different_marks() -> None:
    assert (
        len({value_mark(MAKER, "metadata.a", value) for value in (1, "1", True, "true", None, "null", [1], {"a": 1})})
        == 8
    )


def test_every_filterable_field_has_a_mark() -> None:
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
        assert value_mark(MAKER, field, value) in marks
    assert value_mark(MAKER, "metadata.d", {"k": 1}) in marks
    for field, part in (("speaker", "lee"), ("metadata.a", "words"), ("metadata.l", 1), ("metadata.l", "X")):
        assert part_mark(MAKER, field, part) in marks
    assert message_mark(MAKER, "s", "m") in marks
    assert message_mark(MAKER, "m", "s") not in marks
    assert value_mark(MAKER, "metadata.a", "other") not in marks


def test_id_in_another_case_is_another_one_and_ids_of_before_are_still_matched() -> None:
    assert value_mark(MAKER, "session_id", "Sales") != value_mark(MAKER, "session_id", "sales")
    before = MAKER.token("is:session_id", "text:sales")  # as 0.1.0 wrote it
    assert before in value_marks(MAKER, "session_id", "Sales")
    assert before not in marks_of(MAKER, Words(content="Hidden.", session_id="Sales"))


def test_marks_have_frequency_zero() -> None:
    words = Words(content="green tea", speaker="Ann")
    indexed = index_of(MAKER, words, text_index(MAKER, words))
    counted = [token for token, frequency in indexed.entries.items() if frequency]
    assert indexed.length == 3  # who said it is searched for too
    assert len(counted) >= 3
    assert indexed.entries[value_mark(MAKER, "speaker", "Ann")] == 0


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
