"""Questions without a question mark, and statements that look like them."""

import pytest

from vault.reader.rules import is_question


@pytest.mark.parametrize(
    "text",
    [
        "what big things do we have to pay this month",
        "which tools i got in the shed",
        "whats on my list",
        "wat am i allergic to",
        "why am i so tired lately",
        "remind me who fixed the boiler",
        "anything I should bring on Sunday",
        "list my medicines",
        "我有啥要交的",
        "我养了几只猫",
        "我身边都有谁",
        "我平时都干嘛",
        "我有什麼東西忘在車上",
        "我的牙医叫什么来着",
        "我儿子现在多高",
    ],
)
def test_question_without_a_mark_is_no_statement(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "What a day we had.",
        "Anything goes for me.",
        "Whatever she cooks, I eat.",
        "My boss knows who broke it.",
        "我想吃点什么",
        "我没什么计划",
        "我买了苹果、梨什么的",
        "我忘了放在哪里",
        "我谁都不信",
        "我随便吃什么都行",
    ],
)
def test_statement_with_a_question_word_is_no_question(text: str) -> None:
    assert not is_question(text)
