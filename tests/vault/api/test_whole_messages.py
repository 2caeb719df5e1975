"""Answers quote a short message whole, once, also where a search finds single statements of it."""

from uuid import UUID

import pytest

from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.api.test_chat_commands import begin
from tests.vault.api.test_chat_stories import tell
from tests.vault.outbox import run_jobs
from vault.chat.memory_changes import conversation_exclude

AT = "2026-11-02T09:00:00+00:00"
OTHERS = ("I cooked lentil soup on Sunday.", "The garden gate squeaks again.", "昨天我去看了牙医。")


@pytest.mark.parametrize(
    ("message", "question"),
    [
        ("Oh and Nutmeg! Our spaniel. She turns nine in March.", "How old will Nutmeg be in March?"),
        ("说到团子，它是只柯基。三月就满九岁了。", "团子三月几岁？"),
    ],
    ids=["en", "zh"],
)
def test_answer_has_the_whole_message_of_a_statement(alice: Contract, message: str, question: str) -> None:
    tell(alice, "first", AT, message, *OTHERS)
    run_jobs()
    turn = alice.post(begin(alice), {"content": question}).json
    assert turn["content"].count(message) == 1
    cited = alice.get(f"memories/{turn['citations'][0]['memory_id']}/").json
    assert (cited["content"], cited["semantic_type"]) == (message, "dialogue")


def test_statement_of_a_long_message_is_quoted_without_it(alice: Contract) -> None:
    statement = "Our spaniel Nutmeg turns nine in March."
    tell(alice, "first", AT, f"{statement} {'The weather was grey and the tram was late again. ' * 7}", *OTHERS)
    run_jobs()
    turn = alice.post(begin(alice), {"content": "How old will our spaniel Nutmeg be in March?"}).json
    assert f"“{statement}”" in turn["content"]


def test_message_of_a_replaced_statement_is_quoted_no_more(alice: Contract) -> None:
    tell(alice, "first", AT, "Good news! I live in Lisbon now. Bea helped me with the boxes.", *OTHERS)
    run_jobs()
    turns = begin(alice)
    alice.post(turns, {"content": "Actually, I live in Porto now."})
    run_jobs()
    for question, told in (("Where do I live?", "Porto"), ("Who helped me with the boxes?", "Bea")):
        answer = alice.post(turns, {"content": question}).json["content"]
        assert told in answer
        assert "Lisbon" not in answer


def test_message_that_the_reader_left_out_is_not_quoted_nor_is_its_statement(alice: Contract, world: World) -> None:
    message = "Oh and Nutmeg! Our spaniel. She turns nine in March."
    tell(alice, "first", AT, message, *OTHERS)
    run_jobs()
    turns = begin(alice)
    first = alice.post(turns, {"content": "How old will Nutmeg be in March?"}).json
    left_out = UUID(first["citations"][0]["memory_id"])
    conversation = UUID(turns.split("/")[1])
    conversation_exclude(actor=world.alice.actor, conversation_id=conversation, memory_id=left_out, is_excluded=True)
    assert "March" not in alice.post(turns, {"content": "How old will Nutmeg be in March?"}).json["content"]
