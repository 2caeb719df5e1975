"""Model tokens: counted after each answer; at the limit the next question is refused until the month ends."""

from datetime import date

import pytest
from pytest_httpserver import HTTPServer

from governance.database import acting
from governance.models import Usage
from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.chat.test_model import QUESTION, answers_with, model, turns
from tests.vault.policies.test_quotas import is_refused, read_usage, set_quota
from vault.chat.rules import count_tokens_used
from vault.models import Turn
from vault.providers.ports import ChatMessage, ChatRole, Completion

__all__ = ["model", "turns"]
MONTH = 31 * 24 * 3600
ANSWER = 127  # tokens of one turn, as the tests' model counts them


@pytest.mark.parametrize("kind", ["tenant", "member", "api_key"])
def test_at_the_limit_the_next_question_is_refused(
    model: HTTPServer, olivia: Contract, alice: Contract, turns: str, kind: str
) -> None:
    asked = answers_with(model, "A greyhound [1].")
    assert alice.post(turns, {"content": QUESTION}).status == 201  # before there was a quota, and counted by it
    set_quota(olivia, kind, model_tokens_per_month=2 * ANSWER)
    reader = olivia if kind == "tenant" else alice
    assert read_usage(reader, kind)["model_tokens_per_month"] == ANSWER
    assert alice.post(turns, {"content": QUESTION}).status == 201
    reply = alice.post(turns, {"content": QUESTION})
    assert is_refused(reply)
    assert 0 < int(reply.headers["Retry-After"]) <= MONTH
    assert is_refused(alice.post(turns, {"content": QUESTION}, accept="text/event-stream"))
    assert (len(asked), read_usage(reader, kind)["model_tokens_per_month"]) == (2, 2 * ANSWER)


def test_a_new_month_begins_with_nothing_used(
    world: World, model: HTTPServer, olivia: Contract, alice: Contract, turns: str
) -> None:
    answers_with(model, "A greyhound [1].")
    set_quota(olivia, model_tokens_per_month=ANSWER)
    assert alice.post(turns, {"content": QUESTION}).status == 201
    assert is_refused(alice.post(turns, {"content": QUESTION}))
    with acting(world.alice.actor):
        Turn.objects.update(created_at="2020-01-15T00:00:00Z")
        Usage.objects.update(month=date(2020, 1, 1))
    assert alice.post(turns, {"content": QUESTION}).status == 201


def test_without_room_for_its_answer_no_model_is_asked(
    model: HTTPServer, olivia: Contract, alice: Contract, turns: str
) -> None:
    asked = answers_with(model, "A greyhound [1].")
    set_quota(olivia, memories=1)
    reply = alice.post(turns, {"content": QUESTION})
    assert is_refused(reply)
    assert "Retry-After" not in reply.headers
    assert asked == []


def test_answers_without_a_model_use_no_tokens(olivia: Contract, alice: Contract, turns: str) -> None:
    set_quota(olivia, model_tokens_per_month=0)
    assert alice.post(turns, {"content": QUESTION}).status == 201


def test_what_the_server_does_not_count_is_estimated() -> None:
    told = Completion("x", "m", prompt_tokens=3, completion_tokens=4)
    untold = Completion("", "m", prompt_tokens=None, completion_tokens=None)
    asked = [ChatMessage(ChatRole.USER, "twelve chars")]
    assert count_tokens_used(told, asked, "said") == (3, 4)
    assert count_tokens_used(untold, asked, "said this") == (3, 3)
