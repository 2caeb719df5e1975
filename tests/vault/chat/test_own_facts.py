"""Questions for a group of facts about oneself, whose members share no word with the group's name."""

import pytest

from tests.vault.api.contract import Contract
from tests.vault.api.test_chat_commands import ask, begin
from vault.layers.own_facts import asked_group, belongs_to

ENGLISH = [
    "I play the cello in a quartet.",
    "My brother Otto collects stamps and loves rugby.",
    "I can't stand fennel.",
    "I'm allergic to walnuts.",
    "I love baking on Sundays.",
    "I'm a vegan.",
    "We adopted a beagle named Juno.",
]
CHINESE = [
    "我业余喜欢拍照。",
    "我弟弟特别喜欢喝咖啡。",
    "我讨厌香菜。",
    "我对花生过敏。",
    "我养了一只猫，叫团子。",
]
ASKED = [
    (ENGLISH, "What are my hobbies?", {"cello", "baking"}, {"Otto", "fennel"}),
    (ENGLISH, "What do I like?", {"baking"}, {"rugby", "fennel"}),
    (ENGLISH, "What don't I like?", {"fennel"}, {"baking"}),
    (ENGLISH, "What are my allergies?", {"walnuts"}, {"fennel"}),
    (ENGLISH, "What kind of food do I eat?", {"vegan"}, {"Otto"}),
    (ENGLISH, "What pets do I have?", {"beagle"}, {"cello"}),
    (CHINESE, "我有什么爱好？", {"拍照"}, {"咖啡"}),
    (CHINESE, "我不喜欢什么？", {"香菜"}, {"拍照"}),
    (CHINESE, "我对什么过敏？", {"花生"}, {"香菜"}),
    (CHINESE, "我养了什么宠物？", {"团子"}, {"花生"}),
]


def test_a_question_for_a_group_of_own_facts_has_its_members_and_nothing_of_others(alice: Contract) -> None:
    for texts in (ENGLISH, CHINESE):
        turns = begin(alice)
        for text in texts:
            ask(alice, turns, text)
        for told, question, expected, strange in ASKED:
            if told is texts:
                answer = ask(alice, turns, question)
                assert expected == {word for word in expected if word in answer}, (question, answer)
                assert not [word for word in strange if word in answer], (question, answer)


@pytest.mark.parametrize(
    "question",
    [
        "What are Otto's hobbies?",
        "Do I like fennel?",
        "Where are my keys?",
        "What do I like about Graz?",
        "我喜欢的歌是哪首？",
    ],
)
def test_a_question_for_a_single_fact_or_of_another_person_asks_for_no_group(question: str) -> None:
    assert asked_group(question) is None


def test_a_statement_about_another_person_belongs_to_no_group() -> None:
    group = asked_group("What are my hobbies?")
    assert group is not None
    assert belongs_to("I play chess.", group)
    assert not belongs_to("My sister plays chess.", group)
