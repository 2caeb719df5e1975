"""The embeddings client against a small server that speaks OpenAI's protocol, well and badly."""

import json

import numpy as np
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from vault.providers.openai_embedder import TEXTS_PER_CALL, OpenAiEmbedder
from vault.providers.openai_endpoint import Endpoint
from vault.providers.ports import ProviderUnavailable

PATH = "/v1/embeddings"


@pytest.fixture
def embedder(httpserver: HTTPServer) -> OpenAiEmbedder:
    return OpenAiEmbedder(Endpoint(url=httpserver.url_for("/v1"), key="sk-x", model="mini", retries=0))


def answer(*vectors: object) -> Response:
    rows = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    return Response(json.dumps({"object": "list", "model": "mini", "data": rows}), mimetype="application/json")


def lengths(request: Request) -> Response:
    """A server whose vector for a text is (its length, 1), sent in reverse order."""
    rows = [{"index": at, "embedding": [len(text), 1]} for at, text in enumerate(request.get_json()["input"])]
    return Response(json.dumps({"data": rows[::-1]}), mimetype="application/json")


def test_rows_come_in_the_order_of_the_texts_and_have_length_one(
    httpserver: HTTPServer, embedder: OpenAiEmbedder
) -> None:
    httpserver.expect_request(PATH).respond_with_handler(lengths)
    vectors = embedder.embed(["a", "bbb"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [[0.70710678, 0.70710678], [0.9486833, 0.31622777]], rtol=1e-6)
    assert (embedder.name, embedder.dimension) == ("openai/mini", 2)


def test_many_texts_are_sent_in_several_calls(httpserver: HTTPServer, embedder: OpenAiEmbedder) -> None:
    httpserver.expect_request(PATH).respond_with_handler(lengths)
    texts = ["x" * (1 + at % 7) for at in range(TEXTS_PER_CALL + 5)]
    vectors = embedder.embed(texts)
    assert len(httpserver.log) == 2
    np.testing.assert_allclose(vectors[:, 0] / vectors[:, 1], [len(text) for text in texts], rtol=1e-5)


def test_dimension_is_requested_when_it_is_not_configured(httpserver: HTTPServer, embedder: OpenAiEmbedder) -> None:
    httpserver.expect_oneshot_request(PATH).respond_with_handler(lengths)
    assert embedder.embed([]).shape == (0, 2)
    assert embedder.dimension == 2


def test_another_dimension_than_before_is_refused(httpserver: HTTPServer, embedder: OpenAiEmbedder) -> None:
    httpserver.expect_oneshot_request(PATH).respond_with_response(answer([1, 0]))
    httpserver.expect_oneshot_request(PATH).respond_with_response(answer([1, 0, 0]))
    embedder.embed(["a"])
    with pytest.raises(ProviderUnavailable, match="embeddings of 3 numbers, 2 before"):
        embedder.embed(["a"])
    assert embedder.dimension == 2


BAD_ANSWERS = [
    pytest.param(answer([1, 0]), "one embedding per text", id="too few"),
    pytest.param(answer([1, 0], [1, 0], [1, 0]), "one embedding per text", id="too many"),
    pytest.param(answer([1, 0], [1, 0, 0]), "cannot be read", id="ragged"),
    pytest.param(answer([1, 0], [float("nan"), 0]), "zero or not finite", id="NaN"),
    pytest.param(answer([1, 0], [float("inf"), 0]), "zero or not finite", id="infinite"),
    pytest.param(answer([1, 0], [0, 0]), "zero or not finite", id="zero"),
    pytest.param(answer([], []), "embeddings of 0 numbers", id="empty vectors"),
    pytest.param(answer([1] * 8193, [1] * 8193), "embeddings of 8193 numbers", id="too long"),
    pytest.param(answer(["a"], ["b"]), "cannot be read", id="words"),
    pytest.param(answer(None, None), "cannot be read|one embedding per text", id="null"),
    pytest.param(answer([[1]], [[1]]), "cannot be read|one embedding per text", id="nested"),
    pytest.param(Response("{}", mimetype="application/json"), "cannot be read|reported an error", id="no data"),
    pytest.param(Response("{", mimetype="application/json"), "cannot be read", id="malformed"),
    pytest.param(Response("<html>", mimetype="text/html"), "cannot be read|reported an error", id="a page"),
    pytest.param(Response("no", status=500), "status 500", id="500"),
]


@pytest.mark.parametrize(("reply", "said"), BAD_ANSWERS)
def test_a_bad_answer_is_a_failure_and_never_a_vector(
    httpserver: HTTPServer, embedder: OpenAiEmbedder, reply: Response, said: str
) -> None:
    httpserver.expect_request(PATH).respond_with_response(reply)
    with pytest.raises(ProviderUnavailable, match=said):
        embedder.embed(["a", "b"])
