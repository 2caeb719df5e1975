"""Tests of the labels that a question names."""

from itertools import product

import pytest

from vault.lexicon import labels
from vault.lexicon.labels import find_labels, fold_label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("red", "red"),
        ("What is red?", "RED"),
        ("show me the ROAD   map, please", "road map"),
        ("road map", " Road\tMap "),
        ("请找标签的记忆", "标签"),
        ("关于AI的记忆", "ai"),
        ("ＡＩ notes", "AI"),
        ("die straße", "STRASSE"),
        ("CAFÉ today", "cafe\u0301"),
        ("learn c++ now", "C++"),
        ("version 1.2 is out", "1.2"),
        ("what is #1", "#1"),
        ("party 🎉!", "🎉"),
        ("reddish red", "red"),
        ("한국어를 배운다", "한국어"),
    ],
)
def test_text_with_the_label_names_the_label(text: str, label: str) -> None:
    assert find_labels(fold_label(text), [label]) == {label: fold_label(label)}


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("reddish", "red"),
        ("infrared", "red"),
        ("road-side map", "road map"),
        ("the road", "road map"),
        ("标", "标签"),
        ("标签12", "标签1"),
        ("2024", "24"),
        ("v1.2 is out", "1.2"),
        ("हिन्दी", "हिन्द"),
        ("red", ""),
        ("red", "  "),
    ],
)
def test_text_with_a_similar_word_does_not_name_the_label(text: str, label: str) -> None:
    assert find_labels(fold_label(text), [label]) == {}


def test_each_spelling_maps_to_its_folded_form() -> None:
    assert find_labels("red", ["Red", "RED", "blue", "red"]) == {"Red": "red", "RED": "red", "red": "red"}


def test_label_inside_many_words_is_checked_at_few_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []

    def count_check(left: str, right: str) -> bool:
        looked.append(left)
        return True

    monkeypatch.setattr(labels, "_is_one_word", count_check)
    spellings = ["".join(letters) for letters in product("aA", repeat=7)]
    assert find_labels("a" * 1_000, spellings) == {}
    assert len(looked) <= labels.MOST_PLACES * 2
