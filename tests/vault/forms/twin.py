"""A deterministic twin of the local engine: it speaks the engine's protocol (`engine/`) and computes nothing.

Its caches are the messages that they were built of, as safetensors would be: bytes of its model alone.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

TOKEN = "the token of the engine"
BYTES_PER_TOKEN = 100
TEXT_TOKEN, CACHE_TOKEN, COPY_BYTE = 0.01, 0.001, 0.000001  # seconds


def count_tokens(text: str) -> int:
    return max(len(text) // 4, 1)


@dataclass
class EngineTwin:
    """The state of the twin. reply: what the model says; asked: the bodies of chat requests."""

    fingerprint: str = "f" * 64
    name: str = "tiny"
    reply: str = "As the handbook says [1]."
    caches: dict[str, str] = field(default_factory=dict)
    pinned: set[str] = field(default_factory=set)
    adapters: dict[str, bytes] = field(default_factory=dict)
    trained: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    recipes: list[dict[str, Any]] = field(default_factory=list)
    report: dict[str, float] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    text_token: float = TEXT_TOKEN
    is_movable: bool = True
    is_busy: bool = False
    is_down: bool = False

    def serve(self, server: HTTPServer) -> None:
        server.expect_request("/v1/models").respond_with_handler(self._guard(self._models))
        server.expect_request("/v1/measure").respond_with_handler(self._guard(self._measure))
        server.expect_request("/v1/measure/composition").respond_with_handler(self._guard(self._compare))
        server.expect_request("/v1/chat/completions").respond_with_handler(self._guard(self._chat))
        server.expect_request("/v1/prefixes").respond_with_handler(self._guard(self._forget))
        for path, handler in (("caches", self._caches), ("adapters", self._adapters)):
            server.expect_request(_below(f"/v1/{path}")).respond_with_handler(self._guard(handler))

    def _guard(self, handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            if request.headers.get("Authorization") != f"Bearer {TOKEN}":
                return Response("{}", 401)
            if self.is_down:
                return Response("{}", 500)
            if self.is_busy and not request.path.endswith("completions"):
                return Response("{}", 503, {"Retry-After": "5"})
            return handler(request)

        return answer

    def _models(self, _: Request) -> Response:
        entry = {
            "id": self.name,
            "fingerprint": self.fingerprint,
            "context": 4096,
            "bytes_per_token": BYTES_PER_TOKEN,
            "capabilities": ["kv_compose"] if self.is_movable else [],
        }
        return _json({"object": "list", "data": [entry]})

    def _measure(self, request: Request) -> Response:
        given = request.get_json()
        context, query = given["context"], given["query"]
        size = context * BYTES_PER_TOKEN
        return _json(
            {
                "context": context,
                "query": query,
                "bytes": size,
                "build_seconds": self.text_token * context,
                "copy_seconds": COPY_BYTE * size,
                "text_seconds": self.text_token * (context + query),
                "cache_seconds": self.text_token * query + CACHE_TOKEN * context,
            }
        )

    def _compare(self, request: Request) -> Response:
        given = request.get_json()
        assert all(block.startswith("[1] ") for block in given["blocks"])
        rows = [
            {"again": again, "kl": 0.3 - again / 200, "reply": "six" if again else "seven", "seconds": 0.1, "moved": 50}
            for again in given["again"]
        ]
        compared = {"tokens": 300, "seconds": 0.4, "reply": "six", "without": 0.8, "rows": rows}
        return _json(compared)

    def _chat(self, request: Request) -> Response:
        body = request.get_json()
        self.asked.append(body)
        text = "".join(message["content"] for message in body["messages"])
        cached = 0
        for name in body.get("caches", []):
            held = self.caches.get(name, "\0")
            cached = max(cached, count_tokens(held) if text.startswith(held) else 0)
        cached += sum(count_tokens(self.caches[each["name"]]) - each["again"] for each in body.get("moved", []))
        usage = {
            "prompt_tokens": count_tokens(text),
            "completion_tokens": 5,
            "total_tokens": count_tokens(text) + 5,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        named = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": self.name}
        reply = self._adapted(body) or self.reply
        chunks = [
            {**named, "choices": [{"index": 0, "delta": {"content": reply}, "finish_reason": None}]},
            {**named, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {**named, "choices": [], "usage": usage},
        ]
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        return Response([*lines, "data: [DONE]\n\n"], mimetype="text/event-stream")

    def _adapted(self, body: dict[str, Any]) -> str:
        """Return the trained answer to a question, if the request names an adapter that knows it."""
        question = body["messages"][-1]["content"].rpartition("Question: ")[2]
        pairs = json.loads(self.adapters.get(body.get("adapter", ""), b"[]"))
        return next((pair["answer"] for pair in pairs if question in {pair["question"], *pair["paraphrases"]}), "")

    def _caches(self, request: Request) -> Response:
        name = request.path.removeprefix("/v1/caches").strip("/")
        if not name:
            return _json({"caches": [{"name": each, "tokens": 1} for each in self.caches]})
        if request.method == "POST":
            self.caches[name] = "".join(message["content"] for message in request.get_json()["messages"])
            return _json({"name": name, "tokens": count_tokens(self.caches[name]), "seconds": 0.5}, 201)
        if request.method == "PUT":
            self.caches[name] = request.get_data().removeprefix(self.fingerprint.encode()).decode()
            if request.args.get("pinned") == "true":
                self.pinned.add(name)
            return _json({"name": name}, 201)
        if name not in self.caches:
            return Response("{}", 404)
        if request.method == "DELETE":
            del self.caches[name]
            return Response(status=204)
        return Response(self.fingerprint.encode() + self.caches[name].encode(), mimetype="application/octet-stream")

    def _forget(self, request: Request) -> Response:
        self.forgotten.append(request.args["salt"])
        return _json({"forgotten": 1})

    def _adapters(self, request: Request) -> Response:
        name, _, part = request.path.removeprefix("/v1/adapters/").partition("/")
        if request.method == "POST" and not part:
            self.trained[name] = request.get_json()["pairs"]
            self.recipes.append(request.get_json()["recipe"])
        elif request.method == "PUT":
            self.adapters[name] = request.get_data()
        elif request.method == "DELETE":
            there = self.adapters.pop(name, None) is not None
            return Response(status=204 if self.trained.pop(name, None) is not None or there else 404)
        elif name not in self.trained and name not in self.adapters:
            return Response("{}", 404)
        elif part == "weights":
            return Response(json.dumps(self.trained[name]), mimetype="application/octet-stream")
        state = {"status": "examined" if name in self.adapters else "trained", "step": 80, "steps": 80, "loss": 0.01}
        return _json({"name": name, "loaded": name in self.adapters, "report": self.report, "error": "", **state}, 202)


def _json(content: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(content), status, mimetype="application/json")


def _below(prefix: str) -> Any:
    import re

    return re.compile(rf"{re.escape(prefix)}(/.*)?")
