"""Distilling with a language model: a small server of the tests' own chooses well, badly, or not at all."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from governance.database import acting
from governance.models import AuditEntry
from memos_web.config import LlmChoice
from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.layers.test_layers_api import persona_of
from tests.vault.layers.test_long_term import FIGURES, profile, say
from vault.layers.model_reader import MOST_SENTENCES, choice_read
from vault.models import LayerEntry, Page, Segment, Trait
from vault.providers.structured import find_json
from vault.reader import model_reader
from vault.reconciliation import relations

PATH = "/v1/chat/completions"
HOME = "Lisbon has been home to me for a year."
STORY = (HOME, "I love running along the river. The weather was grey.", "Thanks!")


@pytest.fixture
def model(httpserver: HTTPServer) -> Iterator[HTTPServer]:
    with override_settings(MEMOS_LLM=LlmChoice(url=httpserver.url_for("/v1"), key="k", model="tiny")):
        yield httpserver


@pytest.fixture
def mind(world: World, alice: Contract) -> str:
    found = persona_of(world, "alice")
    assert alice.patch(f"personas/{found}/settings/", {"stm_pages": 1, "theta": -1, "tau": 2.5}).status == 200
    return found


def is_reading(request: Request) -> bool:
    """Return whether a message is read or reconciled, before it is stored; these tests leave that to the patterns."""
    return request.get_json()["messages"][0]["content"] in {model_reader.INSTRUCTIONS, relations.INSTRUCTIONS}


def replies(model: HTTPServer, *texts: str, status: int = 200) -> list[dict[str, Any]]:
    """Let the model reply with these, the last one again and again; the bodies of its requests."""
    asked: list[dict[str, Any]] = []

    def handler(request: Request) -> Response:
        if is_reading(request):
            return Response(status=400)
        asked.append(request.get_json())
        text = texts[min(len(asked), len(texts)) - 1]
        message = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny-1", "usage": usage}
        return Response(json.dumps({**body, "choices": [message]}), status=status, mimetype="application/json")

    model.expect_request(PATH).respond_with_handler(handler)
    return asked


def data_of(request: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(request["messages"][1]["content"])
    return found


def choose_reply(asked: dict[str, Any]) -> dict[str, Any]:
    """A good choice: Lisbon is the home, running is liked, the second sentence stands for its page."""
    statements = [
        {
            "number": statement["number"],
            "keep": "grey" not in statement["text"],
            "field": "home" if "Lisbon" in statement["text"] else "",
        }
        for statement in asked["statements"]
    ]
    traits = [{"page": 1, "dimension": "planning", "weight": 1}, {"page": 2, "dimension": "nonsense", "weight": 1}]
    return {"statements": statements, "traits": traits, "gists": [{"page": 2, "sentence": 2}]}


def test_model_chooses_fields_traits_and_gists_among_what_is_stored(
    model: HTTPServer, world: World, alice: Contract, mind: str
) -> None:
    asked: list[dict[str, Any]] = []

    def handler(request: Request) -> Response:
        if is_reading(request):
            return Response(status=400)
        asked.append(request.get_json())
        text = json.dumps(choose_reply(data_of(asked[-1])))
        choice = {"index": 0, "message": {"role": "assistant", "content": f"```json\n{text}\n```"}}
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny-1", "choices": [choice]}
        return Response(json.dumps(body), mimetype="application/json")

    model.expect_request(PATH).respond_with_handler(handler)
    say(alice, *STORY)
    (request,) = asked
    assert request["response_format"]["type"] == "json_schema"
    assert HOME not in request["messages"][0]["content"]
    assert profile(alice, mind) == {"home": HOME}
    with acting(world.alice.actor):
        assert set(Trait.objects.values_list("dimension", flat=True)) == {"planning"}
        second = Page.objects.get(position=2)
        detail = AuditEntry.objects.filter(verb="segment.changed", detail__has_key="model").get().detail
        assert detail["model"] == "tiny-1"
        assert detail["tokens"] > 0
    content = alice.get(f"memories/{second.query_id}/").json["content"]
    memory, version, start, end = second.gist
    assert (memory, version, content[start:end]) == (str(second.query_id), 1, "The weather was grey.")


@pytest.mark.parametrize("row", FIGURES["robustness"], ids=lambda row: row["case"])
def test_reply_of_another_shape_is_asked_for_once_more_and_then_left(
    model: HTTPServer, world: World, alice: Contract, mind: str, row: dict[str, str]
) -> None:
    asked = replies(model, row["reply"])
    say(alice, *STORY)
    assert len(asked) == 2
    assert "response_format" not in asked[1]
    assert asked[1]["messages"][-2]["content"] == row["reply"]
    with acting(world.alice.actor):
        assert Segment.objects.get().unpromoted == 0
        assert Page.objects.exclude(promoted_at=None).count() == Page.objects.exclude(segment=None).count() == 2
        assert Trait.objects.filter(dimension="running").exists()  # what the words themselves say
        assert not LayerEntry.objects.filter(name="home").exists()


def test_second_reply_is_taken_where_it_can_be_read(model: HTTPServer, alice: Contract, mind: str) -> None:
    good = json.dumps({"statements": [{"number": 1, "keep": True, "field": "home"}], "traits": [], "gists": []})
    asked = replies(model, "I would rather talk.", good)
    say(alice, *STORY)
    assert len(asked) == 2
    assert profile(alice, mind) == {"home": HOME}


def test_model_that_is_down_leaves_distilling_to_the_words(
    model: HTTPServer, world: World, alice: Contract, mind: str
) -> None:
    replies(model, "SECRET", status=400)
    say(alice, *STORY)
    with acting(world.alice.actor):
        assert Segment.objects.get().unpromoted == 0
        assert Trait.objects.filter(dimension="running").exists()
        assert not AuditEntry.objects.filter(verb="segment.changed", detail__has_key="model").exists()


@pytest.mark.parametrize("value", [[], "text", 3, {"theme": "t"}, {"statements": "all"}, {"traits": [1]}])
def test_choice_of_another_shape_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"list of objects|object of statements"):
        choice_read(value, 3, 3)


def test_choice_leaves_out_numbers_that_were_not_given() -> None:
    value = {
        "statements": [
            {"number": 1, "keep": True, "field": "home"},
            {"number": 2, "keep": False, "field": ""},
            {"number": 9, "keep": True, "field": "work"},
            {"number": True, "keep": True, "field": "work"},
            {"number": 3, "keep": True, "field": "password"},
        ],
        "traits": {"page": 1, "dimension": "planning", "weight": -1},
        "gists": [{"page": 1, "sentence": MOST_SENTENCES + 1}, {"page": 2, "sentence": 1}],
    }
    choice = choice_read(value, 2, 3)
    assert dict(choice.fields) == {0: "home", 2: ""}
    assert choice.dropped == {1}
    assert choice.traits == ((0, "planning", -1),)
    assert dict(choice.gists) == {1: 0}


@pytest.mark.parametrize("text", ['{"a": 1}', '```json\n{"a": 1}\n```', 'Here it is: {"a": 1} I hope it helps.'])
def test_json_is_read_out_of_words_and_fences(text: str) -> None:
    assert find_json(text) == {"a": 1}


@pytest.mark.parametrize("text", ["", "none", "{", "}{", "{'a': 1}", "Error: Could not get response from LLM."])
def test_text_without_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        find_json(text)
