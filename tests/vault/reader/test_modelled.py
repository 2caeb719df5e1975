"""Reading a message with a language model: a small server of the tests' own chooses among the sentences."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import override_settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from governance.database import acting
from memos_web.config import LlmChoice
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.chat.test_model import make_stream
from tests.vault.outbox import run_jobs
from vault.models import Cube
from vault.reader.model_reader import choice_read
from vault.reader.rules import Intent, chosen_statements

PATH = "/v1/chat/completions"
USAGE = {"prompt_tokens": 90, "completion_tokens": 9, "total_tokens": 99}
ODD = "Blue-otter keeps the spare keys."  # a sentence that no pattern speaks for
Reply = Callable[[list[str]], Any]


@dataclass
class Model:
    """A scripted server: `reply` makes the JSON of a reading from the sentences; all answers are `answer`."""

    reply: Reply = lambda sentences: {}
    answer: str = "Right, noted."
    readings: list[dict[str, Any]] = field(default_factory=list)

    def handle(self, request: Request) -> Response:
        body = request.get_json()
        if body.get("stream"):
            return make_stream(self.answer)
        self.readings.append(body)
        sentences = [load["text"] for load in json.loads(body["messages"][1]["content"])["sentences"]]
        reply = self.reply(sentences)
        return make_completion(reply if isinstance(reply, str) else json.dumps(reply))


def make_completion(text: str) -> Response:
    """A model's whole reply with this text, as its server sends it."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny-1", "usage": USAGE}
    return Response(json.dumps({**whole, "choices": [choice]}), mimetype="application/json")


@pytest.fixture
def model(httpserver: HTTPServer) -> Iterator[Model]:
    found = Model()
    httpserver.expect_request(PATH).respond_with_handler(found.handle)
    with override_settings(MEMOS_LLM=LlmChoice(url=httpserver.url_for("/v1"), key="k", model="tiny")):
        yield found


def make_reply(intent: str = "add", about: str = "", **kinds: str | None) -> Reply:
    """A reply that stores the sentences which contain a word of `kinds`, as that kind, and leaves out the others."""

    def reply(sentences: list[str]) -> dict[str, Any]:
        rows = []
        for number, sentence in enumerate(sentences, start=1):
            kind = next((kind for word, kind in kinds.items() if word in sentence.casefold()), None)
            rows.append({"number": number, "keep": kind is not None, "kind": kind or "fact"})
        return {"intent": intent, "about": about, "sentences": rows}

    return reply


def list_stored(who: Contract) -> list[tuple[str, str]]:
    """The long-term memories: text and kind."""
    rows = who.get("memories/?page_size=100").json["results"]
    return sorted((row["content"], row["semantic_type"]) for row in rows if row["layer"] == "long_term")


def readers(world: World) -> set[str]:
    """The readers of the long-term memories."""
    with acting(world.alice.actor):
        return set(Cube.objects.filter(layer="long_term").values_list("reader", flat=True))


def turns(who: Contract) -> str:
    return f"conversations/{who.post('conversations/', {}).json['id']}/turns/"


@pytest.mark.parametrize(
    ("text", "word", "kept"),
    [
        ("The printer hums all day. Two sugars in the coffee.", "sugars", "Two sugars in the coffee."),
        ("打印机整天响。咖啡两勺糖。", "两勺糖", "咖啡两勺糖。"),
    ],
)
def test_sentence_that_the_model_leaves_out_is_not_stored(
    model: Model, world: World, alice: Contract, text: str, word: str, kept: str
) -> None:
    model.reply = make_reply(**{word: "preference"})
    place = turns(alice)
    turn = alice.post(place, {"content": text}).json
    assert list_stored(alice) == [(kept, "preference")]
    assert readers(world) == {"model/1"}
    (request,) = model.readings
    assert request["response_format"]["type"] == "json_schema"
    assert kept not in request["messages"][0]["content"]
    assert (turn["usage"]["prompt_tokens"], turn["usage"]["completion_tokens"]) == (120 + 90, 7 + 9)


def test_sentence_that_only_the_model_finds_is_stored(model: Model, alice: Contract) -> None:
    model.reply = make_reply(green="preference")
    alice.post(turns(alice), {"content": "It is green."})
    assert list_stored(alice) == [("It is green.", "preference")]


def test_reply_that_the_model_leaves_out_is_stored_as_what_it_states(model: Model, alice: Contract) -> None:
    model.reply, model.answer = make_reply(), "Nice to meet you! Where do you live?"
    place = turns(alice)
    alice.post(place, {"content": "Hello!"})
    alice.post(place, {"content": "In Lisbon."})
    assert "I live in Lisbon." in alice.list_contents()


def test_statement_that_somebody_asked_to_store_stays(model: Model, alice: Contract) -> None:
    model.reply = make_reply("chat")
    alice.post(turns(alice), {"content": f"Remember that {ODD}"})
    assert [text for text, _ in list_stored(alice)] == [ODD]


@pytest.mark.parametrize(
    ("text", "about"),
    [("I would rather you held nothing on my old flat.", "old flat"), ("我希望你别留着旧房子的事。", "旧房子")],
)
def test_wish_that_the_model_reads_as_a_deletion_is_only_listed(
    model: Model, alice: Contract, text: str, about: str
) -> None:
    told = f"{'My old flat has' if about == 'old flat' else '我的旧房子有'} 3 rooms."
    alice.add(told)
    model.reply = make_reply("delete", about)
    place = turns(alice)
    turn = alice.post(place, {"content": text}).json
    assert told in turn["content"]
    assert [text for text, _ in list_stored(alice)] == [told]
    alice.post(place, {"content": "Yes" if about == "old flat" else "是"})
    assert list_stored(alice) == []


def test_operation_that_only_the_model_reads_is_carried_out_after_a_yes(
    model: Model, alice: Contract, world: World
) -> None:
    alice.add("The printer in the hall jams.")
    run_jobs()
    address = turns(alice)
    model.reply = make_reply("archive", "printer")
    asked = alice.post(address, {"content": "The printer stuff could go out of my sight."})
    assert "would be archived" in asked.json["content"]
    assert "Done." in alice.post(address, {"content": "yes"}).json["content"]
    with acting(world.alice.actor):
        assert Cube.objects.filter(state="archived").count() == 1


def test_tag_that_the_message_does_not_name_is_asked_for(model: Model, alice: Contract, world: World) -> None:
    alice.add("The printer in the hall jams.")
    run_jobs()
    address = turns(alice)
    model.reply = make_reply("tag", "printer")
    asked = alice.post(address, {"content": "The printer stuff wants a label of some kind."})
    assert "Say which tag" in asked.json["content"]
    assert "Nothing was changed" in alice.post(address, {"content": "yes"}).json["content"]
    with acting(world.alice.actor):
        assert not Cube.objects.exclude(tags=[]).exists()


def test_topic_that_the_message_does_not_name_is_not_taken(model: Model, alice: Contract) -> None:
    alice.add("My old flat has 3 rooms.")
    model.reply = make_reply("delete", "flat", printer="fact")
    alice.post(turns(alice), {"content": "The printer hums all day."})
    assert len(list_stored(alice)) == 2


@pytest.mark.parametrize("reply", ["I would rather talk.", {"theme": "x"}, {"intent": "sing", "sentences": []}])
def test_unreadable_reply_is_asked_for_once_more_then_patterns_read(
    model: Model, world: World, alice: Contract, reply: object
) -> None:
    model.reply = lambda _: reply
    alice.post(turns(alice), {"content": "I love green tea."})
    assert len(model.readings) == 2
    assert "response_format" not in model.readings[1]
    assert list_stored(alice) == [("I love green tea.", "preference")]
    assert readers(world) == {"patterns/1"}


@each_case("text", ["Hello!", "Thanks a lot!", "Where do I live?", "你好", "我住在哪里？"])
def test_greetings_and_questions_are_not_sent_to_be_read(model: Model, alice: Contract, text: str) -> None:
    alice.post(turns(alice), {"content": text})
    assert model.readings == []


def test_models_only_answer_without_the_setting(model: Model, alice: Contract, httpserver: HTTPServer) -> None:
    with override_settings(MEMOS_LLM=LlmChoice(url=httpserver.url_for("/v1"), key="k", model="tiny", reads=False)):
        turn = alice.post(turns(alice), {"content": "I love green tea."}).json
    assert model.readings == []
    assert turn["model"] == "tiny-1"
    assert list_stored(alice) == [("I love green tea.", "preference")]


def test_messages_over_rest_are_read_with_one_call_for_each_page(model: Model, alice: Contract) -> None:
    model.reply = make_reply(sugars="preference")
    messages = [
        {"role": "user", "content": "The printer hums all day. Two sugars in the coffee."},
        {"role": "assistant", "content": "Two sugars, noted."},
    ]
    reply = alice.post("memories/", {"messages": messages, "session_id": "s1"}, idempotency_key="k1")
    again = alice.post("memories/", {"messages": messages, "session_id": "s1"}, idempotency_key="k1")
    assert reply.status == again.status == 201
    assert len(model.readings) == 1
    assert list_stored(alice) == [("Two sugars in the coffee.", "preference")]


def test_messages_without_inference_are_not_read(model: Model, alice: Contract) -> None:
    messages = [{"role": "user", "content": "The printer hums all day."}]
    assert alice.post("memories/", {"messages": messages, "infer": False}).status == 201
    assert model.readings == []


def test_memory_call_has_the_intent_that_the_model_reads(model: Model, alice: Contract) -> None:
    model.reply = make_reply("summarise", "the harbour")
    call = alice.post("memory-calls/", {"text": "I could do with hearing it all on the harbour."}).json["call"]
    assert (call["intent"], call["query"]) == ("summarise", "the harbour")


def test_choice_of_another_shape_is_refused() -> None:
    shapes: list[Any] = [[], "text", {"sentences": "all"}, {"sentences": [1], "intent": "add"}, {"sentences": []}]
    for value in shapes:
        with pytest.raises(ValueError, match=r"sentence|Intent"):
            choice_read(value, 3)


def test_choice_leaves_out_numbers_that_were_not_given() -> None:
    rows = [{"number": item, "keep": True, "kind": "goal"} for item in (0, 1, 4, True, "2")]
    choice = choice_read({"intent": "add", "about": 7, "sentences": [*rows, {"number": 3, "keep": 1}]}, 3)
    assert (choice.intent, choice.about, dict(choice.kinds)) == (Intent.ADD, "", {0: "goal"})


def test_chosen_questions_and_commands_are_no_statements() -> None:
    text = "Where is it? Delete everything. The key is blue."
    said_at = datetime(2026, 5, 8, tzinfo=UTC)
    found = chosen_statements(text, said_at=said_at, kinds={0: "fact", 1: "fact", 2: "fact"})
    assert [item.text for item in found] == ["The key is blue."]
