"""The chat client against a small server that speaks OpenAI's protocol, well and badly."""

import json
import socket
import threading
import traceback
from collections.abc import Iterator

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from governance.transport import READER_LEFT
from vault.providers import openai_endpoint
from vault.providers.openai_endpoint import Endpoint
from vault.providers.openai_llm import MOST_TOKENS, OpenAiLlm
from vault.providers.ports import ChatMessage, ChatRole, Completion, ProviderUnavailable, ReaderDisconnected, TextDelta

KEY, PROMPT = "sk-do-not-tell", "my secret question"
MESSAGES = [ChatMessage(ChatRole.SYSTEM, "Be brief."), ChatMessage(ChatRole.USER, PROMPT)]
PATH = "/v1/chat/completions"
CHAT_OK = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "tiny-1",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Green tea."}}],
    "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
}


@pytest.fixture
def model(httpserver: HTTPServer) -> OpenAiLlm:
    return OpenAiLlm(endpoint_of(httpserver))


def endpoint_of(server: HTTPServer, *, key: str = KEY, read_seconds: float = 5.0) -> Endpoint:
    return Endpoint(url=server.url_for("/v1"), key=key, model="tiny", read_seconds=read_seconds, retries=0)


def chunk(text: str | None, finish: str | None = None) -> dict[str, object]:
    choice = {"index": 0, "delta": {} if text is None else {"content": text}, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "tiny-1", "choices": [choice]}


USAGE = {**chunk(None), "choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}}


def events(*chunks: object, done: bool = True) -> Response:
    lines = [f"data: {json.dumps(each)}\n\n" for each in chunks] + ["data: [DONE]\n\n"] * done
    return Response(lines, mimetype="text/event-stream")


def assert_silent(failure: ProviderUnavailable) -> None:
    """Neither the detail nor a printed traceback repeats the key or the prompt."""
    printed = failure.detail + "".join(traceback.format_exception(failure))
    assert KEY not in printed
    assert PROMPT not in printed


def test_it_completes_and_counts(httpserver: HTTPServer, model: OpenAiLlm) -> None:
    httpserver.expect_oneshot_request(
        PATH,
        method="POST",
        headers={"Authorization": f"Bearer {KEY}"},
        json={
            "model": "tiny",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": PROMPT}],
        },
    ).respond_with_json(CHAT_OK)
    assert model.complete(MESSAGES) == Completion("Green tea.", "tiny-1", 12, 3)


def test_a_server_that_does_not_count_leaves_the_counts_open(httpserver: HTTPServer, model: OpenAiLlm) -> None:
    httpserver.expect_request(PATH).respond_with_json({key: CHAT_OK[key] for key in CHAT_OK if key != "usage"})
    assert model.complete(MESSAGES) == Completion("Green tea.", "tiny-1", None, None)


def test_a_server_without_keys_is_reached_too(httpserver: HTTPServer) -> None:
    httpserver.expect_request(PATH).respond_with_json(CHAT_OK)
    assert OpenAiLlm(endpoint_of(httpserver, key="")).complete(MESSAGES).text == "Green tea."


def test_it_streams_pieces_and_then_the_whole(httpserver: HTTPServer, model: OpenAiLlm) -> None:
    said = [chunk(""), chunk("Green"), chunk(" 茶"), chunk(None, "stop"), USAGE]
    httpserver.expect_request(PATH).respond_with_response(events(*said))
    *pieces, whole = model.stream(MESSAGES)
    assert pieces == [TextDelta("Green"), TextDelta(" 茶")]
    assert whole == Completion("Green 茶", "tiny-1", 12, 3)


def test_a_piece_is_given_before_the_reply_is_complete(httpserver: HTTPServer, model: OpenAiLlm) -> None:
    read = threading.Event()

    def body() -> Iterator[str]:
        yield f"data: {json.dumps(chunk('first'))}\n\n"
        assert read.wait(10)
        yield f"data: {json.dumps(chunk(None, 'stop'))}\n\ndata: [DONE]\n\n"

    httpserver.expect_request(PATH).respond_with_handler(lambda _: Response(body(), mimetype="text/event-stream"))
    stream = model.stream(MESSAGES)
    assert next(stream) == TextDelta("first")
    read.set()
    assert list(stream) == [Completion("first", "tiny-1", None, None)]


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_a_refusal_tells_its_status_but_not_the_servers_words(
    httpserver: HTTPServer, model: OpenAiLlm, status: int
) -> None:
    echo = {"error": {"message": f"bad key {KEY} for {PROMPT}"}}
    httpserver.expect_request(PATH).respond_with_json(echo, status=status)
    with pytest.raises(ProviderUnavailable, match=f"tiny at .* answered with status {status}") as refused:
        model.complete(MESSAGES)
    assert_silent(refused.value)
    with pytest.raises(ProviderUnavailable, match=f"answered with status {status}"):
        list(model.stream(MESSAGES))


BAD_REPLIES = [
    pytest.param("{not json", "cannot be read", id="malformed"),
    pytest.param("[]", "cannot be read", id="a list"),
    pytest.param("null", "cannot be read", id="null"),
    pytest.param('"Green tea."', "cannot be read", id="a string"),
    pytest.param('{"choices": []}', "cannot be read", id="no choice"),
    pytest.param('{"choices": [null]}', "cannot be read", id="null choice"),
    pytest.param('{"choices": {"a": 1}}', "cannot be read", id="choices are no list"),
    pytest.param('{"choices": [{"message": null}]}', "cannot be read", id="no message"),
    pytest.param('{"choices": [{"message": {"content": null}}]}', "an empty reply", id="no content"),
    pytest.param('{"choices": [{"message": {"content": " \\n"}}]}', "an empty reply", id="blank content"),
    pytest.param('{"choices": [{"message": {"content": 7}}]}', "an empty reply", id="content is no text"),
]


@pytest.mark.parametrize(("body", "said"), BAD_REPLIES)
@pytest.mark.parametrize("mimetype", ["application/json", "text/html"])
def test_a_reply_without_text_is_no_reply(
    httpserver: HTTPServer, model: OpenAiLlm, body: str, said: str, mimetype: str
) -> None:
    httpserver.expect_request(PATH).respond_with_data(body, content_type=mimetype)
    with pytest.raises(ProviderUnavailable, match=said if mimetype == "application/json" else None) as failure:
        model.complete(MESSAGES)
    assert_silent(failure.value)


ODD_COUNTS = [
    ({"prompt_tokens": 2**31, "completion_tokens": -1}, (MOST_TOKENS, None)),
    ({"prompt_tokens": 1.5, "completion_tokens": "7"}, (None, None)),
    ({"prompt_tokens": True, "completion_tokens": None}, (None, None)),
    ([1, 2], (None, None)),
    ("many", (None, None)),
]


@pytest.mark.parametrize(("usage", "counts"), ODD_COUNTS)
def test_odd_counts_are_bounded_or_unknown(
    httpserver: HTTPServer, model: OpenAiLlm, usage: object, counts: tuple[int | None, int | None]
) -> None:
    httpserver.expect_oneshot_request(PATH).respond_with_json({**CHAT_OK, "usage": usage})
    reply = model.complete(MESSAGES)
    assert (reply.prompt_tokens, reply.completion_tokens) == counts
    last = {**chunk(None, "stop"), "usage": usage}
    httpserver.expect_oneshot_request(PATH).respond_with_response(events(chunk("Tea."), last))
    (*_, whole) = model.stream(MESSAGES)
    assert isinstance(whole, Completion)
    assert (whole.prompt_tokens, whole.completion_tokens) == counts


@pytest.mark.parametrize(
    ("details", "cached"),
    [({"cached_tokens": 9}, 9), ({"cached_tokens": -1}, None), (None, None), ([], None)],
)
def test_tokens_from_the_servers_cache_are_read_if_they_are_a_count(
    httpserver: HTTPServer, model: OpenAiLlm, details: object, cached: int | None
) -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": details}
    httpserver.expect_oneshot_request(PATH).respond_with_json({**CHAT_OK, "usage": usage})
    assert model.complete(MESSAGES).cached_tokens == cached


@pytest.mark.parametrize("name", ["x" * 10_000, "", "a\x00b", "\ud800", 7, ["tiny"]])
def test_an_odd_name_of_a_model_is_not_taken_over(httpserver: HTTPServer, model: OpenAiLlm, name: object) -> None:
    httpserver.expect_request(PATH).respond_with_json({**CHAT_OK, "model": name})
    assert model.complete(MESSAGES).model == "tiny"


def test_characters_that_cannot_be_stored_are_replaced(httpserver: HTTPServer, model: OpenAiLlm) -> None:
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": "a\x00b\udc00"}}
    httpserver.expect_oneshot_request(PATH).respond_with_json({**CHAT_OK, "choices": [choice]})
    assert model.complete(MESSAGES).text == "a\ufffdb\ufffd"
    said = [chunk("a\x00"), chunk("\ud83d"), chunk("\ude00"), chunk(None, "stop")]
    httpserver.expect_oneshot_request(PATH).respond_with_response(events(*said))
    (*_, whole) = model.stream(MESSAGES)
    assert isinstance(whole, Completion)
    assert whole.text == "a\ufffd\ufffd\ufffd"


def test_a_reply_that_is_too_deep_cannot_be_read(httpserver: HTTPServer, model: OpenAiLlm) -> None:
    httpserver.expect_request(PATH).respond_with_data("[" * 200_000, content_type="application/json")
    with pytest.raises(ProviderUnavailable, match="cannot be read"):
        model.complete(MESSAGES)


def test_a_call_that_was_ended_is_not_tried_again(httpserver: HTTPServer) -> None:
    """A broken connection may work the next time; an answer beyond the bounds would not."""
    big = Response(b" " * (openai_endpoint.ANSWER_BYTES + 1), mimetype="application/json")
    httpserver.expect_request(PATH).respond_with_response(big)
    endpoint = Endpoint(url=httpserver.url_for("/v1"), key=KEY, model="tiny", retries=2)
    with pytest.raises(ProviderUnavailable, match="more than an answer may have"):
        OpenAiLlm(endpoint).complete(MESSAGES)
    assert len(httpserver.log) == 1


def test_stream_ends_when_its_reader_leaves(httpserver: HTTPServer, model: OpenAiLlm) -> None:
    over, left = threading.Event(), threading.Event()

    def body() -> Iterator[str]:
        while not over.wait(0.01):
            yield f"data: {json.dumps(chunk(''))}\n\n"

    httpserver.expect_request(PATH).respond_with_handler(lambda _: Response(body(), mimetype="text/event-stream"))
    token = READER_LEFT.set(left)
    threading.Timer(0.1, left.set).start()
    try:
        with pytest.raises(ReaderDisconnected):
            list(model.stream(MESSAGES))
    finally:
        READER_LEFT.reset(token)
        over.set()


BAD_STREAMS = [
    pytest.param(events(chunk("Gre"), done=False), "broke off", id="cut"),
    pytest.param(events(chunk("Gre")), "broke off", id="done without an end"),
    pytest.param(events(), "broke off", id="nothing"),
    pytest.param(events(chunk(None, "stop")), "an empty reply", id="empty"),
    pytest.param(events(chunk(" "), chunk(None, "stop")), "an empty reply", id="blank"),
    pytest.param(events({"error": {"message": PROMPT + KEY}}), "reported an error", id="error event"),
    pytest.param(events(chunk("Gre"), {"error": {"message": PROMPT}}), "reported an error", id="error event later"),
    pytest.param(events([1]), "cannot be read|broke off", id="a list"),
    pytest.param(events({"choices": [None]}), "cannot be read|broke off", id="null choice"),
    pytest.param(events({"choices": [{"delta": "text"}]}), "cannot be read", id="delta is a string"),
    pytest.param(events({"choices": [{"delta": {"content": 7}}]}), "cannot be read", id="content is a number"),
    pytest.param(Response("data: {oops\n\n", mimetype="text/event-stream"), "cannot be read", id="malformed"),
    pytest.param(Response("{}", mimetype="application/json"), "broke off", id="no stream at all"),
]


@pytest.mark.parametrize(("answer", "said"), BAD_STREAMS)
def test_a_bad_stream_ends_in_a_failure_never_in_a_completion(
    httpserver: HTTPServer, model: OpenAiLlm, answer: Response, said: str
) -> None:
    httpserver.expect_request(PATH).respond_with_response(answer)
    got: list[TextDelta | Completion] = []
    with pytest.raises(ProviderUnavailable, match=said) as failure:
        got.extend(model.stream(MESSAGES))
    assert not any(isinstance(each, Completion) for each in got)
    assert_silent(failure.value)


def test_a_connection_that_breaks_in_the_middle_is_a_failure(httpserver: HTTPServer, model: OpenAiLlm) -> None:
    def handler(_: Request) -> Response:
        half = Response(f"data: {json.dumps(chunk('Gre'))}\n\n", mimetype="text/event-stream")
        half.automatically_set_content_length = False
        half.headers["Content-Length"] = "4000"
        return half

    httpserver.expect_request(PATH).respond_with_handler(handler)
    stream = model.stream(MESSAGES)
    assert next(stream) == TextDelta("Gre")
    with pytest.raises(ProviderUnavailable, match="broke the connection"):
        next(stream)


def test_a_server_that_does_not_answer_is_given_up(httpserver: HTTPServer) -> None:
    over = threading.Event()

    def handler(_: Request) -> Response:
        over.wait(10)
        return Response(status=500)

    httpserver.expect_request(PATH).respond_with_handler(handler)
    model = OpenAiLlm(endpoint_of(httpserver, read_seconds=0.1))
    try:
        with pytest.raises(ProviderUnavailable, match="did not answer in time") as failure:
            model.complete(MESSAGES)
        assert_silent(failure.value)
    finally:
        over.set()


def test_a_closed_port_is_a_failure() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # bound, not listening: nobody else can answer there
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}/v1"
        with pytest.raises(ProviderUnavailable, match="cannot be reached"):
            OpenAiLlm(Endpoint(url=url, key=KEY, model="tiny", retries=0)).complete(MESSAGES)


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host/v1", "http://", "http://[::1/v1", "http://h:x/v1"])
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(ProviderUnavailable, match="is not an http"):
        Endpoint(url=url, key=KEY, model="tiny")


def test_what_is_printed_of_an_endpoint_holds_no_secret() -> None:
    endpoint = Endpoint(url="https://me:pass@host:1/v1?token=t0k", key=KEY, model="tiny")
    assert endpoint.place == "tiny at host:1"
    assert "pass" not in repr(endpoint)
    assert KEY not in repr(endpoint)
