"""Rerankers: scores in 0..1 in the order of the texts, from whatever source, or ProviderUnavailable."""

import json
from importlib.util import find_spec
from typing import Any

import pytest
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memos_web.config import ConfigError, RerankerChoice, read_config
from vault.providers import registry
from vault.providers.openai_endpoint import Endpoint
from vault.providers.ports import ProviderUnavailable
from vault.providers.reranker import OverlapReranker, blend_scores
from vault.providers.reranker_cross_encoder import CrossEncoderReranker, sigmoid
from vault.providers.reranker_endpoint import EndpointReranker

PATH = "/v1/rerank"


@pytest.fixture
def endpoint(httpserver: HTTPServer) -> EndpointReranker:
    return EndpointReranker(Endpoint(url=httpserver.url_for("/v1"), key="sk-x", model="mini", retries=0))


def reply(body: Any) -> Response:
    return Response(json.dumps(body), mimetype="application/json")


def test_the_twin_scores_by_shared_words() -> None:
    scores = OverlapReranker().score("Where does Anna live?", ["Anna does live here, where?", "Anna", "", "我"])
    assert scores == [1.0, 0.25, 0.0, 0.0]
    assert OverlapReranker().score("我的猫", ["猫在这里"]) == [pytest.approx(1 / 3)]
    assert OverlapReranker().score("?!", ["a"]) == [0.0]


def test_the_blend_stays_between_0_and_1_and_grows_with_both() -> None:
    assert blend_scores(0, 0) == 0
    assert blend_scores(1, 1) == pytest.approx(1)
    assert blend_scores(0.2, 0.9) > blend_scores(0.9, 0.2) > blend_scores(0.8, 0.2)


def test_an_endpoint_gets_question_and_texts_and_its_scores_are_put_in_order(
    httpserver: HTTPServer, endpoint: EndpointReranker
) -> None:
    def by_length(request: Request) -> Response:
        sent = request.get_json()
        assert (sent["model"], sent["query"], sent["top_n"]) == ("mini", "q", 2)
        assert request.headers["Authorization"] == "Bearer sk-x"
        rows = [{"index": at, "relevance_score": len(text) / 10} for at, text in enumerate(sent["documents"])]
        return reply({"results": rows[::-1]})

    httpserver.expect_request(PATH, method="POST").respond_with_handler(by_length)
    assert endpoint.score("q", ["a", "bbb"]) == [0.1, 0.3]
    assert endpoint.name == "openai/mini"


def test_no_texts_are_no_call(httpserver: HTTPServer, endpoint: EndpointReranker) -> None:
    assert endpoint.score("q", []) == CrossEncoderReranker("m").score("q", []) == []
    assert httpserver.log == []


@pytest.mark.parametrize(
    "answer",
    [
        reply({"results": [{"index": 0, "relevance_score": 0.5}]}),
        reply({"results": [{"index": 0, "relevance_score": 0.5}, {"index": 0, "relevance_score": 0.5}]}),
        reply({"results": [{"index": 0, "relevance_score": 0.5}, {"index": 1, "relevance_score": 7.5}]}),
        reply({"results": [{"index": 0, "relevance_score": 0.5}, {"index": 1, "relevance_score": float("nan")}]}),
        reply({"results": [{"index": 0}, {"index": 1}]}),
        reply({"results": None}),
        reply([]),
        Response("not json", mimetype="application/json"),
        Response("sk-x was wrong", status=401),
        Response("", status=500),
    ],
    ids=["too few", "twice", "above 1", "nan", "no score", "null", "list", "no json", "401", "500"],
)
def test_any_other_answer_is_a_failure_that_tells_no_secret(
    httpserver: HTTPServer, endpoint: EndpointReranker, answer: Response
) -> None:
    httpserver.expect_request(PATH).respond_with_response(answer)
    with pytest.raises(ProviderUnavailable) as failure:
        endpoint.score("the question", ["a", "b"])
    assert "mini at localhost" in failure.value.detail or "mini at 127.0.0.1" in failure.value.detail
    assert "sk-x" not in failure.value.detail
    assert "the question" not in failure.value.detail


def test_a_logit_becomes_a_share() -> None:
    assert sigmoid(0) == 0.5
    assert sigmoid(2) == pytest.approx(0.8807970)
    assert (sigmoid(-1000), sigmoid(1000)) == (0.0, 1.0)


@pytest.mark.apart(find_spec("sentence_transformers") is None, "an environment without the extra `ml`")
def test_without_the_extra_it_says_what_is_missing() -> None:
    with pytest.raises(ProviderUnavailable, match="needs the extra `ml`: sentence_transformers is not installed"):
        CrossEncoderReranker("some/model").score("q", ["a"])


@pytest.mark.apart(find_spec("sentence_transformers") is not None, "the extra `ml`")
def test_a_model_that_is_not_on_this_machine_is_not_downloaded() -> None:
    with pytest.raises(ProviderUnavailable, match="not on this machine"):
        CrossEncoderReranker("nobody/no-such-model").score("q", ["a"])


@pytest.mark.parametrize(
    ("family", "kind"),
    [("overlap", OverlapReranker), ("sentence-transformers", CrossEncoderReranker), ("openai", EndpointReranker)],
)
def test_the_settings_choose_the_reranker_and_it_is_built_once(settings: Settings, family: str, kind: type) -> None:
    settings.MEMOS_RERANKER = RerankerChoice(family=family, model="m", url="http://127.0.0.1:9/v1", key="k")
    assert type(registry.reranker()) is kind
    assert registry.reranker() is registry.reranker()


def test_it_is_off_unless_it_is_set(settings: Settings) -> None:
    assert read_config({}).reranker == RerankerChoice(family="", model="", url="", key="")
    assert registry.reranker() is None


def test_its_address_is_its_own_or_the_embedders() -> None:
    shared = {"MEMOS_RERANKER": "openai/r", "MEMOS_EMBEDDER_URL": "http://127.0.0.1:1/v1", "MEMOS_EMBEDDER_KEY": "e"}
    assert read_config(shared).reranker == RerankerChoice("openai", "r", "http://127.0.0.1:1/v1", "e")
    own = {**shared, "MEMOS_RERANKER_URL": "http://127.0.0.1:2/v1", "MEMOS_RERANKER_KEY": "r"}
    assert read_config(own).reranker == RerankerChoice("openai", "r", "http://127.0.0.1:2/v1", "r")


@pytest.mark.parametrize("value", ["magic", "sentence-transformers", "openai", "openai/without-an-address"])
def test_a_bad_choice_is_one_line_that_names_the_setting(value: str) -> None:
    with pytest.raises(ConfigError, match="MEMOS_RERANKER"):
        read_config({"MEMOS_RERANKER": value})
