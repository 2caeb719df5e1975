"""Language models of a tenant: asked in their order, each with its key, price and limits; another's are never asked."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.test import override_settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memos_web.config import LlmChoice
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.chat.test_model import FACT, QUESTION, make_stream
from tests.vault.outbox import run_jobs
from vault.overview.key_costs import key_costs_by_day

NO_MODEL = "The language model gave no answer."


@pytest.fixture
def private(httpserver: HTTPServer) -> Iterator[HTTPServer]:
    """A server on this machine, which the operator allows to call."""
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
        yield httpserver


def add(olivia: Contract, server: HTTPServer, name: str, **more: Any) -> dict[str, Any]:
    body = {"model": name, "address": server.url_for(f"/{name}/v1"), "key": f"sk-{name}", "retries": 0}
    reply = olivia.post("models/", body | more)
    assert reply.status == 201, reply
    added: dict[str, Any] = reply.json
    return added


def answers(server: HTTPServer, name: str, *texts: str) -> list[Request]:
    """Let a model stream this answer, or fail without one; its requests."""
    asked: list[Request] = []

    def handler(request: Request) -> Response:
        asked.append(request)
        return make_stream(*texts) if texts else Response("down", status=500)

    server.expect_request(f"/{name}/v1/chat/completions").respond_with_handler(handler)
    return asked


def ask(who: Contract, question: str = QUESTION, **conversation: str) -> dict[str, Any]:
    begun = who.post("conversations/", conversation).json
    reply = who.post(f"conversations/{begun['id']}/turns/", {"content": question})
    assert reply.status == 201, reply
    turn: dict[str, Any] = reply.json
    return turn | {"conversation": begun["id"]}


def test_a_model_that_is_down_gives_way_to_the_next_whose_tokens_are_priced(
    private: HTTPServer, world: World, olivia: Contract
) -> None:
    first, second = answers(private, "big"), answers(private, "small", "A greyhound [1].")
    add(olivia, private, "big", prompt_price="3", completion_price="15")
    add(olivia, private, "small", prompt_price="0.5", completion_price="2", cached_price="0.05", currency="EUR")
    olivia.add(FACT)
    run_jobs()
    turn = ask(olivia)
    assert (turn["content"], turn["failed_models"]) == ("A greyhound [1].", ["big"])
    assert turn["cost"] == {
        "amount": "0.000029",
        "currency": "EUR",
    }  # a million: 20 read at 0.5, 100 at 0.05, 7 written at 2
    assert (len(first), len(second)) == (1, 1)
    assert second[0].headers["Authorization"] == "Bearer sk-small"
    (usage,) = olivia.get("models/usage/").json["results"]
    assert usage == {
        "model": "tiny-1", "answers": 1, "prompt_tokens": 120, "completion_tokens": 7,
        "cached_tokens": 100, "cost": "0.000029", "currency": "EUR",
    }  # fmt: skip
    costs = key_costs_by_day(actor=world.olivia.actor, key_id=world.olivia.key.id, days=30)
    assert {currency: spent[-2:] for currency, spent in costs.items()} == {"EUR": [Decimal(0), Decimal("0.000029")]}
    browser = signed_in(world.olivia)
    why = browser.get(f"/chat/{turn['conversation']}/turns/{turn['id']}/why/").content.decode()
    assert "<dd>big</dd>" in why
    assert "<dd>0.000029 EUR</dd>" in why
    assert "100 of those read came from the server's cache" in why
    assert f"[1] &quot;{FACT}&quot; (said by" in why
    assert f"Question: {QUESTION}" in why
    page = browser.get(f"/chat/{turn['conversation']}/").content.decode()
    assert "tiny-1 answered instead." in page
    assert "0.000029 EUR" in browser.get("/settings/models/").content.decode()


def test_all_models_down_leave_an_extractive_reply_that_says_so(private: HTTPServer, olivia: Contract) -> None:
    answers(private, "big")
    answers(private, "small")
    add(olivia, private, "big")
    add(olivia, private, "small")
    olivia.add(FACT)
    run_jobs()
    turn = ask(olivia)
    assert turn["content"].startswith(NO_MODEL)
    assert FACT in turn["content"]
    assert (turn["model"], turn["failed_models"]) == ("extractive", ["big", "small"])


def test_the_models_of_a_tenant_come_before_the_installations(private: HTTPServer, olivia: Contract) -> None:
    answers(private, "own")
    answers(private, "installed", "A greyhound [1].")
    add(olivia, private, "own")
    choice = LlmChoice(url=private.url_for("/installed/v1"), key="k", model="installed")
    with override_settings(MEMOS_LLM=choice):
        turn = ask(olivia)
        assert (turn["failed_models"], turn["cost"]) == (["own"], None)
        assert ask(olivia, model="installed")["failed_models"] == []


def test_a_conversation_asks_its_model_first(private: HTTPServer, olivia: Contract) -> None:
    first, second = answers(private, "big", "Big."), answers(private, "small", "Small.")
    add(olivia, private, "big")
    add(olivia, private, "small")
    assert ask(olivia, model="small")["content"].startswith("Small.")
    assert (len(first), len(second)) == (0, 1)
    assert olivia.post("conversations/", {"model": "huge"}).status == 400


def test_model_and_agent_of_a_conversation_change_for_its_next_question(private: HTTPServer, olivia: Contract) -> None:
    first, second = answers(private, "big", "Big."), answers(private, "small", "Small.")
    add(olivia, private, "big")
    add(olivia, private, "small")
    olivia.post("personas/", {"name": "Guide", "kind": "agent"})
    begun = ask(olivia)
    address = f"conversations/{begun['conversation']}/"
    changed = olivia.patch(address, {"model": "small", "agent_persona": "Guide"})
    assert changed.status == 200, changed
    assert olivia.post(f"{address}turns/", {"content": QUESTION}).json["content"].startswith("Small.")
    assert "Guide" in second[0].get_data(as_text=True)
    back = olivia.patch(address, {"model": "", "agent_persona": None}).json
    assert (back["model"], back["agent_persona"], back["title"]) == ("", None, olivia.get(address).json["title"])
    assert olivia.post(f"{address}turns/", {"content": QUESTION}).json["content"].startswith("Big.")
    assert "Guide" not in first[-1].get_data(as_text=True)


def test_a_slow_model_gives_way_after_its_timeout(private: HTTPServer, olivia: Contract) -> None:
    from threading import Event

    done = Event()

    def handler(_: Request) -> Response:
        done.wait(10)
        return make_stream("Late.")

    private.expect_request("/slow/v1/chat/completions").respond_with_handler(handler)
    add(olivia, private, "slow", timeout_seconds=1)
    answers(private, "quick", "Quick.")
    add(olivia, private, "quick")
    try:
        turn = ask(olivia)
    finally:
        done.set()
    assert turn["failed_models"] == ["slow"]


def test_the_order_is_changed_and_a_removed_model_is_not_asked(private: HTTPServer, olivia: Contract) -> None:
    first, second = answers(private, "big", "Big."), answers(private, "small", "Small.")
    big = add(olivia, private, "big")
    small = add(olivia, private, "small")
    assert olivia.patch(f"models/{small['id']}/", {"position": 1}).json["position"] == 1
    assert [model["model"] for model in olivia.get("models/").json["results"]] == ["small", "big"]
    ask(olivia)
    assert (len(first), len(second)) == (0, 1)
    assert olivia.delete(f"models/{small['id']}/").status == 204
    ask(olivia)
    assert (len(first), len(second)) == (1, 1)
    assert olivia.get(f"models/{big['id']}/").json["position"] == 1


def test_another_tenants_models_are_neither_shown_nor_asked(
    private: HTTPServer, world: World, olivia: Contract
) -> None:
    asked = answers(private, "big", "Big.")
    added = add(olivia, private, "big")
    charlie = Contract(world.charlie.key.text)
    assert ask(charlie)["model"] == "extractive"
    assert asked == []
    assert charlie.get(f"models/{added['id']}/").status in {403, 404}


@pytest.mark.parametrize("who", ["alice", "bob", "charlie"])
def test_who_does_not_operate_the_tenant_sets_no_model(
    private: HTTPServer, world: World, olivia: Contract, who: str
) -> None:
    added = add(olivia, private, "big")
    person = Contract(world.person(who).key.text)
    refused = {403} if who != "charlie" else {403, 404}
    body = {"model": "x", "address": "https://model.example/v1"}
    if who != "charlie":
        assert person.post("models/", body).status == 403
        assert person.get("models/").status == 403
        assert person.get("models/usage/").status == 403
    assert person.patch(f"models/{added['id']}/", {"position": 1}).status in refused
    assert person.delete(f"models/{added['id']}/").status in refused


@each_case(
    ("change", "field"),
    [
        ({"address": "http://model.example/v1"}, "address"),
        ({"address": "https://127.0.0.1/v1"}, "address"),
        ({"address": "https://[::1]/v1"}, "address"),
        ({"address": "https://2130706433/v1"}, "address"),
        ({"address": "https://user:word@model.example/v1"}, "address"),
        ({"address": "ftp://model.example/v1"}, "address"),
        ({"model": "extractive"}, "model"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"retries": 9}, "retries"),
        ({"prompt_price": "-1"}, "prompt_price"),
        ({"completion_price": "1.23456"}, "completion_price"),
        ({"cached_price": "-1"}, "cached_price"),
        ({"currency": "usd"}, "currency"),
    ],
)
def test_a_draft_that_cannot_be_used_is_refused(olivia: Contract, change: dict[str, Any], field: str) -> None:
    reply = olivia.post("models/", {"model": "tiny", "address": "https://model.example/v1"} | change)
    assert reply.status == 400
    assert [error["field"] for error in reply.json["errors"]] == [field]
    assert olivia.get("models/").json["results"] == []


def test_the_key_is_shown_nowhere(private: HTTPServer, world: World, olivia: Contract) -> None:
    added = add(olivia, private, "big", key="sk-nobody-reads-this")
    assert added["has_key"] is True
    page = signed_in(world.olivia).get("/settings/models/").content.decode()
    assert "big" in page
    for shown in (str(added), str(olivia.get("models/").json), page, str(olivia.get("audit/").json)):
        assert "sk-nobody" not in shown


def test_models_are_added_tested_moved_and_removed_on_the_page(private: HTTPServer, world: World) -> None:
    browser = signed_in(world.olivia)
    private.expect_request("/big/v1/chat/completions").respond_with_json(
        {"id": "1", "object": "chat.completion", "created": 1, "model": "big",
         "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ready"}}]}
    )  # fmt: skip
    form = {"timeout_seconds": "5", "retries": "0", "prompt_price": "0.5", "completion_price": "", "currency": "eur"}
    for name in ("small", "big"):
        reply = browser.post(
            "/settings/models/add/", {"model": name, "address": private.url_for(f"/{name}/v1"), **form}
        )
        assert reply.status_code == 303
    first, second = Contract(world.olivia.key.text).get("models/").json["results"]
    assert (first["model"], second["model"], second["currency"]) == ("small", "big", "EUR")
    tested = browser.post("/settings/models/", {"part": second["id"]}).content.decode()
    assert "ready" in tested
    assert browser.post(f"/settings/models/{second['id']}/earlier/").status_code == 303
    assert browser.post(f"/settings/models/{first['id']}/remove/").status_code == 303
    (left,) = Contract(world.olivia.key.text).get("models/").json["results"]
    assert (left["model"], left["position"]) == ("big", 1)
    faulty = browser.post("/settings/models/add/", {"model": "x", "address": "nowhere", **form, "retries": "many"})
    assert faulty.status_code == 422
    shown = faulty.content.decode()
    assert 'id="id_retries_error">Enter a whole number.' in shown
    assert (
        'id="id_address_error">Write the whole address'
        in signed_in(world.olivia)
        .post("/settings/models/add/", {"model": "x", "address": "nowhere", **form})
        .content.decode()
    )
