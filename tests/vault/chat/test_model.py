"""A turn with a language model: a small server of the tests' own answers, well, badly, or not to the end."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from governance.database import acting
from memos_web.config import LlmChoice
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.chat.services import Token, turn_begin, turn_stream
from vault.models import Cube, Turn
from vault.providers.openai_llm import MOST_TOKENS

PATH = "/v1/chat/completions"
FACT = "Caroline adopted a greyhound called Pixel in May."
QUESTION = "What did Caroline adopt?"
USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 7,
    "total_tokens": 127,
    "prompt_tokens_details": {"cached_tokens": 100},
}


def chunk(text: str | None = None, **more: Any) -> dict[str, Any]:
    finish = "stop" if text is None else None
    choice = {"index": 0, "delta": {} if text is None else {"content": text}, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "tiny-1", "choices": [choice], **more}


def make_stream(*texts: str, ends: bool = True) -> Response:
    chunks = [chunk(text) for text in texts]
    if ends:
        chunks += [chunk(), chunk() | {"choices": [], "usage": USAGE}]
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"] * ends
    return Response(lines, mimetype="text/event-stream")


@pytest.fixture
def model(httpserver: HTTPServer) -> Iterator[HTTPServer]:
    """The configured language model."""
    choice = LlmChoice(url=httpserver.url_for("/v1"), key="sk-secret-of-the-model", model="tiny")
    with override_settings(MEMOS_LLM=choice):
        yield httpserver


@pytest.fixture
def turns(alice: Contract) -> str:
    """The address of the turns of a conversation of alice's, who has one memory."""
    alice.add(FACT)
    run_jobs()
    return f"conversations/{alice.post('conversations/', {}).json['id']}/turns/"


def answers_with(model: HTTPServer, *texts: str) -> list[dict[str, Any]]:
    """Let the model stream this answer; the bodies of the requests that it gets."""
    asked: list[dict[str, Any]] = []

    def handler(request: Request) -> Response:
        asked.append(request.get_json())
        return make_stream(*texts)

    model.expect_request(PATH).respond_with_handler(handler)
    return asked


def count_rows(world: World) -> tuple[int, int]:
    with acting(world.alice.actor):
        return Turn.objects.count(), Cube.objects.count()


def test_the_models_answer_is_stored_with_its_citations_and_usage(
    model: HTTPServer, alice: Contract, turns: str
) -> None:
    asked = answers_with(model, "A grey", "hound [", "1]. And [7].")
    turn = alice.post(turns, {"content": QUESTION}).json
    assert turn["content"] == "A greyhound [1]. And [7]."
    assert [citation["marker"] for citation in turn["citations"]] == [1]
    assert turn["model"] == "tiny-1"
    assert turn["usage"] == {"prompt_tokens": 120, "completion_tokens": 7, "cached_tokens": 100}
    (request,) = asked
    assert request["model"] == "tiny"
    system = [message["content"] for message in request["messages"] if message["role"] == "system"]
    assert FACT not in "".join(system)
    assert FACT in request["messages"][-1]["content"]


def test_the_stream_passes_on_each_piece_and_each_citation_once(model: HTTPServer, alice: Contract, turns: str) -> None:
    answers_with(model, "A grey", "hound [1", "]. Yes", " [1].")
    events = alice.stream(turns, {"content": QUESTION})
    assert [event.name for event in events] == ["token", "token", "token", "citation", "token", "done"]
    assert "".join(event.data["text"] for event in events if event.name == "token") == "A greyhound [1]. Yes [1]."
    assert events[-1].data["content"] == "A greyhound [1]. Yes [1]."
    changes: dict[str, object] = {"superseded": [], "conflicts": []}
    assert [turn | changes for turn in alice.get(turns).json["results"]] == [events[-1].data]


def test_model_receives_the_previous_turns(model: HTTPServer, alice: Contract, turns: str) -> None:
    asked = answers_with(model, "A greyhound [1].")
    alice.post(turns, {"content": QUESTION})
    alice.post(turns, {"content": "And its name?"})
    roles = [message["role"] for message in asked[1]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert asked[1]["messages"][1]["content"] == QUESTION
    assert asked[1]["messages"][2]["content"].startswith("A greyhound")


def test_profile_stands_at_the_head_of_each_prompt_and_says_why(
    model: HTTPServer, world: World, alice: Contract, turns: str
) -> None:
    asked = answers_with(model, "In Porto [1].")
    persona = alice.get("personas/").json["results"][0]["id"]
    assert alice.patch(f"personas/{persona}/profile/", {"home": "Porto"}).status == 200
    run_jobs()
    first = alice.post(turns, {"content": QUESTION}).json
    run_jobs()
    second = alice.post(turns, {"content": "What is Pixel?"}).json
    heads = [request["messages"][1]["content"].splitlines()[0] for request in asked]
    assert heads[0] == heads[1]
    assert heads[0].startswith('[1] "Home: Porto"')
    assert "Home: Porto" not in asked[1]["messages"][-1]["content"]
    assert [turn["citations"][0]["marker"] for turn in (first, second)] == [1, 1]
    why = signed_in(world.alice).get(f"/chat/{turns.split('/')[1]}/turns/{second['id']}/why/").content.decode()
    assert "As text, before the conversation: always: your profile" in why
    assert "As text, after the conversation: " in why
    shown = why.partition("<pre")[2]
    assert shown.index("Home: Porto") < shown.index("What is Pixel?")
    assert shown.count("Home: Porto") == 1


def test_sentence_without_a_marker_is_attributed_to_the_profile(model: HTTPServer, alice: Contract, turns: str) -> None:
    answers_with(model, "Your home is Porto.")
    persona = alice.get("personas/").json["results"][0]["id"]
    assert alice.patch(f"personas/{persona}/profile/", {"home": "Porto"}).status == 200
    run_jobs()
    assert alice.post(turns, {"content": QUESTION}).json["content"] == "Your home is Porto. [1]"


def test_preloaded_memory_that_its_reader_may_no_longer_read_is_not_sent(
    model: HTTPServer, alice: Contract, turns: str
) -> None:
    asked = answers_with(model, "Yes [1].")
    secret = alice.add("The greyhound is called Pixel by all neighbours.")["id"]
    run_jobs()
    alice.post(turns, {"content": QUESTION})
    run_jobs()
    alice.post(turns, {"content": "How tall are herons?"})
    run_jobs()
    assert alice.delete(f"memories/{secret}/").status == 204
    alice.post(turns, {"content": "And how tall are storks?"})
    first, second, third = (json.dumps(request) for request in asked if request.get("stream"))
    assert ("neighbours" in first, "neighbours" in second, "neighbours" in third) == (False, True, False)


def test_a_conversation_may_do_without_the_model(model: HTTPServer, alice: Contract) -> None:
    alice.add(FACT)
    conversation = alice.post("conversations/", {"model": "extractive"}).json
    turn = alice.post(f"conversations/{conversation['id']}/turns/", {"content": QUESTION}).json
    assert turn["model"] == "extractive"
    assert model.log == []
    assert alice.post("conversations/", {"model": "tiny"}).status == 201
    assert alice.post("conversations/", {"model": "other"}).status == 400


def test_odd_answer_of_a_model_is_stored_as_data(model: HTTPServer, alice: Contract, turns: str) -> None:
    odd = {"prompt_tokens": 2**31, "completion_tokens": 2**63}
    chunks = [chunk("a\x00\ud800 [1]", model="m" * 10_000), chunk(), chunk() | {"choices": [], "usage": odd}]
    lines = [f"data: {json.dumps(part)}\n\n" for part in chunks]
    model.expect_request(PATH).respond_with_handler(lambda _: Response(lines, mimetype="text/event-stream"))
    turn = alice.post(turns, {"content": QUESTION}).json
    assert (turn["content"], turn["model"]) == ("a\ufffd\ufffd [1]", "tiny-1")
    assert turn["usage"] == {"prompt_tokens": MOST_TOKENS, "completion_tokens": MOST_TOKENS, "cached_tokens": 0}
    assert alice.stream(turns, {"content": QUESTION})[-1].name == "done"
    assert [found["content"] for found in alice.get(turns).json["results"]] == [turn["content"]] * 2


def fails_with(model: HTTPServer, answer: Response) -> None:
    body, kind, status = answer.get_data(), answer.mimetype, answer.status_code
    model.expect_request(PATH).respond_with_handler(lambda _: Response(body, status=status, mimetype=kind))


def test_a_model_that_breaks_off_stores_nothing_and_says_so(
    model: HTTPServer, world: World, alice: Contract, turns: str
) -> None:
    fails_with(model, make_stream("A grey", "hound [1", ends=False))
    before = count_rows(world)
    reply = alice.post(turns, {"content": QUESTION})
    assert (reply.status, reply.code) == (503, "provider_unavailable")
    assert "Retry-After" in reply.headers
    events = alice.stream(turns, {"content": QUESTION})
    assert events[-1].name == "error"
    assert events[-1].data["code"] == "provider_unavailable"
    assert "sk-secret" not in reply.json["detail"] + events[-1].data["detail"]
    assert count_rows(world) == before


@pytest.mark.parametrize("failure", ["status", "empty", "garbage"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_model_without_a_first_word_leaves_an_extractive_reply_that_says_so(
    model: HTTPServer, alice: Contract, turns: str, failure: str, language: str
) -> None:
    answers = {
        "status": Response("SECRET WORDS OF THE SERVER", status=400),
        "empty": make_stream(),
        "garbage": Response("data: {nonsense\n\n", mimetype="text/event-stream"),
    }
    fails_with(model, answers[failure])
    question, said = {
        "en": (QUESTION, "The language model gave no answer. This reply was made without it."),
        "zh": ("Caroline 领养了什么？", "语言模型没有回答，这个回答没有用到它。"),
    }[language]
    turn = alice.post(turns, {"content": question}).json
    assert turn["content"].splitlines()[0] == said
    assert (turn["model"], turn["failed_models"], turn["cost"]) == ("extractive", ["tiny"], None)
    assert turn["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "cached_tokens": 0}
    assert FACT in turn["content"] or language == "zh"
    assert "SECRET" not in turn["content"]
    events = alice.stream(turns, {"content": question})
    assert "".join(event.data["text"] for event in events if event.name == "token").startswith(said)
    assert [memory["content"].splitlines()[0] for memory in alice.get(turns).json["results"]] == [said, said]


def test_a_failed_turn_under_a_key_may_be_tried_again(model: HTTPServer, alice: Contract, turns: str) -> None:
    model.expect_ordered_request(PATH).respond_with_handler(lambda _: make_stream("Tea", ends=False))
    model.expect_ordered_request(PATH).respond_with_handler(lambda _: make_stream("Tea [1]."))
    assert alice.post(turns, {"content": QUESTION}, idempotency_key="k").status == 503
    assert alice.post(turns, {"content": QUESTION}, idempotency_key="k").status == 201
    assert alice.post(turns, {"content": QUESTION}, idempotency_key="k").status == 201
    assert alice.get(turns).json["count"] == 1


def test_partial_answer_is_stored_as_interrupted_when_the_reader_leaves(
    model: HTTPServer, world: World, alice: Contract, turns: str
) -> None:
    answers_with(model, "A greyhound [1].", " It is called", " Pixel.")
    plan = turn_begin(actor=world.alice.actor, conversation_id=world_conversation(alice), content=QUESTION)
    events = turn_stream(plan=plan)
    assert isinstance(events, Iterator)
    assert isinstance(next(events), Token)
    events.close()
    (turn,) = alice.get(turns).json["results"]
    assert (turn["end"], turn["content"]) == ("interrupted", "A greyhound [1].")
    assert [citation["marker"] for citation in turn["citations"]] == [1]


def test_a_reader_who_left_before_the_first_word_leaves_no_turn(
    model: HTTPServer, world: World, alice: Contract, turns: str
) -> None:
    answers_with(model, "A greyhound [1].")
    before = count_rows(world)
    plan = turn_begin(actor=world.alice.actor, conversation_id=world_conversation(alice), content=QUESTION)
    turn_stream(plan=plan).close()
    assert count_rows(world) == before


def test_retrieval_is_in_the_audit_log_before_the_first_word(model: HTTPServer, world: World, alice: Contract) -> None:
    from governance.models import AuditEntry

    memory = alice.add(FACT)
    alice.post("conversations/", {})
    turn_begin(actor=world.alice.actor, conversation_id=world_conversation(alice), content=QUESTION)
    with acting(world.alice.actor):
        entry = AuditEntry.objects.filter(verb="memory.searched").latest("id")
    assert [str(object_id) for object_id in entry.object_ids] == [memory["id"]]
    assert model.log == []


def world_conversation(alice: Contract) -> Any:
    """The id of alice's newest conversation."""
    return alice.get("conversations/").json["results"][0]["id"]
