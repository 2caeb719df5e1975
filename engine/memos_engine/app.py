"""The calls of the engine over HTTP: OpenAI's models and chat completions, and calls for caches and adapters."""

import asyncio
import hmac
import json
import logging
import re
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from dataclasses import asdict, dataclass, field
from functools import partial
from threading import Event, Thread
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from memos_engine import adapters
from memos_engine.adapters import Pair, Progress, examine, load_adapter, read_recipe, train
from memos_engine.caches import TooLarge, Unreadable, decode_cache
from memos_engine.composition import Cancelled
from memos_engine.model import BadRequest, Model, Reply, Request

logger = logging.getLogger(__name__)
NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
MOST_JSON = 8 * 1024 * 1024
RETRY_SECONDS = 5
MOST_TRAININGS = 16  # that are remembered, with their results
CAPABILITIES = ("complete", "prefix_cache", "kv_inject", "adapter_serve", "adapter_train")
KV_COMPOSE = "kv_compose"  # where the model's keys can be moved
MOST_AGAIN = 1024  # tokens of a moved cache that are read again


class Busy(Exception):
    """Too many requests wait already."""


class NotThere(Exception):
    """No cache or adapter has this name."""


@dataclass
class Engine:
    """A model, the queue in front of it, and trainings. queue: the requests that may wait."""

    model: Model
    token: str = field(repr=False)
    queue: int = 8
    waiting: int = 0
    trainings: dict[str, Progress] = field(default_factory=dict)
    worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "model"))

    def __post_init__(self) -> None:
        self.registry = CollectorRegistry()
        make = partial(Counter, registry=self.registry)
        self.requests = make("engine_requests", "Requests by call and outcome", ["call", "outcome"])
        self.prompt_tokens = make("engine_prompt_tokens", "Tokens of prompts", ["source"])
        self.reply_tokens = make("engine_reply_tokens", "Tokens of replies")
        self.first_token = Histogram("engine_first_token_seconds", "Time to the first token", registry=self.registry)
        Gauge("engine_waiting", "Requests in the queue or being answered", registry=self.registry).set_function(
            lambda: self.waiting
        )
        sizes = Gauge("engine_cache_bytes", "Bytes of caches in memory", registry=self.registry)
        sizes.set_function(lambda: self.model.caches.size)

    async def run(self, call: Callable[[], Any], http: HttpRequest | None = None, left: Event | None = None) -> Any:
        """Run a call when it is its turn. left: is set when the client leaves. Raises Busy; Cancelled."""
        with self.hold_place():
            future = asyncio.get_running_loop().run_in_executor(self.worker, call)
            while not future.done():
                await asyncio.wait({future}, timeout=0.1)
                if http is not None and left is not None and await http.is_disconnected():
                    left.set()
            return future.result()

    def hold_place(self) -> "_Place":
        """Return the context of a place in the queue. Raises Busy if there is none."""
        return _Place(self)

    async def stream(self, pieces: Callable[[Event], Iterator[Any]]) -> AsyncIterator[Any]:
        """Yield what a call yields in the worker; the call ends when the client leaves."""
        loop, left = asyncio.get_running_loop(), Event()
        arrived: asyncio.Queue[tuple[Any, BaseException | None]] = asyncio.Queue()

        def work() -> None:
            failure: BaseException | None = StopAsyncIteration()
            try:
                with closing(pieces(left)) as found:  # type: ignore[type-var]
                    for piece in found:
                        loop.call_soon_threadsafe(arrived.put_nowait, (piece, None))
            except Exception as raised:  # noqa: BLE001  the reader of the queue raises it
                failure = raised
            loop.call_soon_threadsafe(arrived.put_nowait, (None, failure))

        with self.hold_place():
            future = loop.run_in_executor(self.worker, work)
            try:
                while True:
                    piece, failure = await arrived.get()
                    if isinstance(failure, StopAsyncIteration):
                        return
                    if failure is not None:
                        raise failure
                    yield piece
            finally:
                left.set()
                future.cancel()


class _Place:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def __enter__(self) -> None:
        if self.engine.waiting > self.engine.queue:
            raise Busy
        self.engine.waiting += 1

    def __exit__(self, *_: object) -> None:
        self.engine.waiting -= 1


class TokenMiddleware:
    """Refuses every call without the shared token; only /health is open."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != "/health":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self.expected):
                await _refuse(401, "invalid_token", "this engine needs its token")(scope, receive, send)
                return
        await self.app(scope, receive, send)


def make_app(engine: Engine) -> Starlette:
    """Return the application. Its errors have OpenAI's form."""
    calls: list[tuple[str, str, Callable[[Engine, HttpRequest], Any]]] = [
        ("GET", "/health", _health),
        ("GET", "/metrics", _metrics),
        ("GET", "/v1/models", _models),
        ("POST", "/v1/chat/completions", _chat),
        ("POST", "/v1/measure", _measure),
        ("POST", "/v1/measure/composition", _measure_composition),
        ("GET", "/v1/caches", _caches_list),
        ("POST", "/v1/caches/{name}", _cache_build),
        ("PUT", "/v1/caches/{name}", _cache_load),
        ("GET", "/v1/caches/{name}", _cache_get),
        ("DELETE", "/v1/caches/{name}", _cache_delete),
        ("DELETE", "/v1/prefixes", _prefixes_forget),
        ("POST", "/v1/adapters/{name}", _adapter_train),
        ("GET", "/v1/adapters/{name}", _adapter_state),
        ("GET", "/v1/adapters/{name}/weights", _adapter_weights),
        ("PUT", "/v1/adapters/{name}", _adapter_load),
        ("POST", "/v1/adapters/{name}/examination", _adapter_examine),
        ("DELETE", "/v1/adapters/{name}", _adapter_delete),
    ]
    routes = [Route(path, _handle(engine, path, call), methods=[method]) for method, path, call in calls]
    return Starlette(routes=routes, middleware=[Middleware(TokenMiddleware, token=engine.token)])


def _handle(engine: Engine, path: str, call: Callable[[Engine, HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Return a call whose errors are answers, and which is counted."""

    async def answer(http: HttpRequest) -> Response:
        try:
            response: Response = await call(engine, http)
        except (BadRequest, Unreadable) as failure:
            response = _refuse(400, "bad_request", str(failure))
        except NotThere:
            response = _refuse(404, "not_found", "there is nothing of this name")
        except TooLarge as failure:
            response = _refuse(413, "too_large", str(failure))
        except Busy:
            response = _refuse(503, "busy", "too many requests wait", {"Retry-After": str(RETRY_SECONDS)})
        except (Cancelled, ClientDisconnect):
            response = Response(status_code=499)
        engine.requests.labels(path, f"{response.status_code}").inc()
        return response

    return answer


def _refuse(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "type": code, "code": code}}, status, headers)


async def _health(engine: Engine, _: HttpRequest) -> Response:
    return JSONResponse({"status": "ok"})


async def _metrics(engine: Engine, _: HttpRequest) -> Response:
    return Response(generate_latest(engine.registry), media_type="text/plain; version=0.0.4")


async def _models(engine: Engine, _: HttpRequest) -> Response:
    model = engine.model
    entry = {
        "id": model.name,
        "object": "model",
        "created": 0,
        "owned_by": "memos-engine",
        "fingerprint": model.fingerprint,
        "capabilities": (*CAPABILITIES, KV_COMPOSE) if model.can_move else CAPABILITIES,
        "context": model.longest,
        "dtype": str(model.dtype).removeprefix("torch."),
        "bytes_per_token": model.bytes_per_token,
    }
    return JSONResponse({"object": "list", "data": [entry]})


async def _chat(engine: Engine, http: HttpRequest) -> Response:
    """Answer a chat completion, whole or as a stream."""
    given = await _read_json(http)
    request = _read_chat(engine, given)
    reply, told = Reply(), f"chatcmpl-{uuid.uuid4().hex}"
    if given.get("stream"):
        engine.hold_place().__enter__()  # raises Busy before the stream begins
        engine.waiting -= 1
        is_counted = bool((given.get("stream_options") or {}).get("include_usage"))
        return StreamingResponse(_chunks(engine, request, reply, told, is_counted), media_type="text/event-stream")
    left = Event()
    engine.model.encode(request.messages)  # raises BadRequest before it waits
    text = await engine.run(lambda: "".join(engine.model.generate(request, reply, left.is_set)), http, left)
    _count(engine, reply)
    message = {"role": "assistant", "content": text}
    return JSONResponse(
        {
            "id": told,
            "object": "chat.completion",
            "created": int(time.time()),
            "model": engine.model.name,
            "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
            "usage": _usage(reply),
            "timings": _timings(reply),
        }
    )


async def _chunks(engine: Engine, request: Request, reply: Reply, told: str, is_counted: bool) -> AsyncIterator[str]:
    def encode(choices: list[dict[str, Any]], **more: Any) -> str:
        named = {"id": told, "object": "chat.completion.chunk", "created": int(time.time()), "model": engine.model.name}
        return f"data: {json.dumps({**named, 'choices': choices, **more})}\n\n"

    try:
        async with aclosing(engine.stream(lambda left: engine.model.generate(request, reply, left.is_set))) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield encode([{"index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": None}])
    except (BadRequest, Busy) as failure:
        yield f"data: {json.dumps({'error': {'message': str(failure) or 'too many requests wait'}})}\n\n"
        return
    _count(engine, reply)
    yield encode([{"index": 0, "delta": {}, "finish_reason": reply.finish}])
    if is_counted:
        yield encode([], usage=_usage(reply), timings=_timings(reply))
    yield "data: [DONE]\n\n"


async def _measure(engine: Engine, http: HttpRequest) -> Response:
    given = await _read_json(http)
    context, query = _whole(given, "context"), _whole(given, "query")
    return JSONResponse(await engine.run(lambda: engine.model.measure(context, query)))


async def _measure_composition(engine: Engine, http: HttpRequest) -> Response:
    """Compare prompts of moved caches with the full prompt."""
    given = await _read_json(http)
    blocks, agains = given.get("blocks"), given.get("again")
    system, whole, question = (given.get(part) for part in ("system", "text", "question"))
    if not (isinstance(system, str) and isinstance(whole, str) and isinstance(question, str)):
        raise BadRequest("system, text and question are texts")
    if not isinstance(blocks, list) or len(blocks) < 2 or not all(isinstance(block, str) for block in blocks):
        raise BadRequest("blocks is a list of two texts or more")
    if not isinstance(agains, list) or not 1 <= len(agains) <= 8:
        raise BadRequest("again is a list of numbers")
    again = [_whole({"again": number}, "again", least=0) for number in agains]
    most = _whole(given, "max_tokens", 32)
    return JSONResponse(
        await engine.run(lambda: engine.model.measure_composition(system, (blocks, whole), question, again, most))
    )


async def _caches_list(engine: Engine, _: HttpRequest) -> Response:
    caches = engine.model.caches
    listed = [{"name": name, "tokens": tokens} for name, tokens in caches.names().items()]
    return JSONResponse({"caches": listed, "bytes": caches.size, "budget": caches.budget, "evicted": caches.evicted})


async def _cache_build(engine: Engine, http: HttpRequest) -> Response:
    """Build a cache of a prompt's beginning and keep it by name."""
    name, given = _name(http), await _read_json(http)
    messages, model = _read_messages(given), engine.model

    def build() -> dict[str, Any]:
        ids = model.encode_beginning(messages)
        if not 1 <= len(ids) < model.longest:
            raise BadRequest(f"the text has {len(ids)} tokens, and the model reads {model.longest}")
        if len(ids) * model.bytes_per_token > model.caches.budget:
            raise TooLarge("the cache is larger than the budget")
        begun = time.monotonic()
        cache = model.build_cache(ids)
        model.caches.put(name, cache, is_pinned=bool(given.get("pinned")))
        return {"tokens": len(ids), "bytes": cache.size, "seconds": time.monotonic() - begun}

    return JSONResponse({"name": name, "fingerprint": model.fingerprint, **await engine.run(build)}, 201)


async def _cache_load(engine: Engine, http: HttpRequest) -> Response:
    """Load a cache from safetensors; ?pinned=true keeps it until nothing else can leave."""
    name, model = _name(http), engine.model
    content = await _read_body(http, model.caches.budget + MOST_JSON)
    is_pinned = http.query_params.get("pinned") == "true"

    def load() -> dict[str, Any]:
        begun = time.monotonic()
        cache = decode_cache(content, model.fingerprint, model.shapes, model.like)
        model.caches.put(name, cache, is_pinned=is_pinned)
        return {"name": name, "tokens": len(cache.ids), "bytes": cache.size, "seconds": time.monotonic() - begun}

    return JSONResponse(await engine.run(load), 201)


async def _cache_get(engine: Engine, http: HttpRequest) -> Response:
    cache = engine.model.caches.get(_name(http))
    if cache is None:
        raise NotThere
    content = await engine.run(lambda: cache.encode(engine.model.fingerprint))
    return Response(content, media_type="application/octet-stream")


async def _cache_delete(engine: Engine, http: HttpRequest) -> Response:
    if not engine.model.caches.remove(_name(http)):
        raise NotThere
    return Response(status_code=204)


async def _prefixes_forget(engine: Engine, http: HttpRequest) -> Response:
    return JSONResponse({"forgotten": engine.model.caches.forget(http.query_params.get("salt"))})


async def _adapter_train(engine: Engine, http: HttpRequest) -> Response:
    """Begin a training. It runs beside requests; its state says how far it is."""
    name, given = _name(http), await _read_json(http)
    pairs, recipe = _read_pairs(given), read_recipe(dict(given.get("recipe") or {}))
    if any(progress.status == "training" and not progress.cancelled for progress in engine.trainings.values()):
        raise Busy
    progress = engine.trainings[name] = Progress(steps=recipe.steps)
    for old in list(engine.trainings)[:-MOST_TRAININGS]:
        del engine.trainings[old]

    def work() -> None:
        progress.content = train(engine.model, pairs, recipe, progress)
        progress.status = "trained"

    _run_apart(progress, work)
    return JSONResponse(_state(engine, name), 202)


def _run_apart(progress: Progress, work: Callable[[], None]) -> None:
    """Run work in a thread of its own. Its state tells whether it failed, and the log tells why."""

    def run() -> None:
        try:
            work()
        except Cancelled:
            progress.status = "cancelled"
        except Exception as failure:
            logger.exception("the work on an adapter failed")
            progress.status, progress.error = "failed", type(failure).__name__

    Thread(target=run, name="adapter", daemon=True).start()


async def _adapter_state(engine: Engine, http: HttpRequest) -> Response:
    return JSONResponse(_state(engine, _name(http)))


async def _adapter_weights(engine: Engine, http: HttpRequest) -> Response:
    progress = engine.trainings.get(_name(http))
    if progress is None or not progress.content:
        raise NotThere
    return Response(progress.content, media_type="application/octet-stream")


async def _adapter_load(engine: Engine, http: HttpRequest) -> Response:
    name, content = _name(http), await _read_body(http, engine.model.caches.budget)
    await engine.run(lambda: load_adapter(engine.model, name, content))
    return JSONResponse({"name": name, "loaded": True}, 201)


async def _adapter_examine(engine: Engine, http: HttpRequest) -> Response:
    """Begin the examination of a loaded adapter; its state holds the report later."""
    name, given = _name(http), await _read_json(http)
    pairs, strangers = _read_pairs(given), [str(text) for text in given.get("strangers") or []]
    _require_adapter(engine, name)
    progress = engine.trainings.setdefault(name, Progress())
    progress.status, progress.report = "in examination", None

    def work() -> None:
        def run(call: Callable[..., Any], *values: Any) -> Any:
            return engine.worker.submit(call, *values).result()

        progress.report = examine(engine.model, name, pairs, strangers, run)
        progress.status = "examined"

    _run_apart(progress, work)
    return JSONResponse(_state(engine, name), 202)


async def _adapter_delete(engine: Engine, http: HttpRequest) -> Response:
    """Cancel the training of an adapter, forget its weights, and unload it."""
    name = _name(http)
    progress = engine.trainings.pop(name, None)
    if progress is not None:
        progress.cancelled, progress.content = True, b""
    is_loaded = await engine.run(lambda: adapters.unload_adapter(engine.model, name))
    if progress is None and not is_loaded:
        raise NotThere
    return Response(status_code=204)


def _state(engine: Engine, name: str) -> dict[str, Any]:
    is_loaded = name in getattr(engine.model.model, "peft_config", {})
    progress = engine.trainings.get(name)
    if progress is None and not is_loaded:
        raise NotThere
    told = progress or Progress(status="loaded")
    parts = {part: getattr(told, part) for part in ("status", "step", "steps", "loss", "error")}
    report = asdict(told.report) if told.report else None
    return {"name": name, "loaded": is_loaded, "fingerprint": engine.model.fingerprint, "report": report, **parts}


def _require_adapter(engine: Engine, name: str) -> None:
    if name not in getattr(engine.model.model, "peft_config", {}):
        raise NotThere


def _read_chat(engine: Engine, given: dict[str, Any]) -> Request:
    """Return the request for a reply. Raises BadRequest; NotThere for a model, cache or adapter that is not loaded."""
    if given.get("response_format") not in (None, {"type": "text"}):
        raise BadRequest("this engine gives replies as text only")
    if given.get("model") not in {engine.model.name, None}:
        raise NotThere
    names = given.get("caches") or []
    if not isinstance(names, list) or len(names) > 8 or not all(isinstance(name, str) for name in names):
        raise BadRequest("caches is a list of names")
    adapter = str(given.get("adapter") or "")
    if adapter:
        _require_adapter(engine, adapter)
    temperature = given.get("temperature") or 0
    if not isinstance(temperature, int | float) or not 0 <= temperature <= 2:
        raise BadRequest("temperature is a number from 0 to 2")
    return Request(
        messages=_read_messages(given),
        most_tokens=_whole(given, "max_completion_tokens", _whole(given, "max_tokens", 512)),
        temperature=temperature,
        seed=_whole(given, "seed", 0, least=0),
        names=names,
        adapter=adapter,
        salt=str(given.get("cache_salt") or "").partition("\n")[0],
        moved=_read_moved(given, names),
    )


def _read_moved(given: dict[str, Any], names: list[str]) -> list[tuple[str, int]]:
    """Return the caches of a request that may stand elsewhere than at the head of the prompt. Raises BadRequest."""
    moved = given.get("moved") or []
    if not isinstance(moved, list) or not all(isinstance(each, dict) and each.get("name") in names for each in moved):
        raise BadRequest("moved is a list of caches that the request names")
    read = [(str(each["name"]), _whole(each, "again", 0, least=0)) for each in moved]
    if any(again > MOST_AGAIN for _, again in read):
        raise BadRequest(f"again is a number up to {MOST_AGAIN}")
    return read


def _read_messages(given: dict[str, Any]) -> list[dict[str, str]]:
    messages = given.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages is a list of messages")
    read = []
    for message in messages:
        role, content = (message.get(part) for part in ("role", "content")) if isinstance(message, dict) else ("", "")
        if role not in {"system", "user", "assistant"}:
            raise BadRequest("a message has the role system, user or assistant")
        read.append({"role": role, "content": _read_content(content)})
    return read


def _read_content(content: Any) -> str:
    """Return the content of a message, a text or OpenAI's list of parts, of which only texts can be read."""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise BadRequest("a message has its content as text, or as parts of the type text")
    return "\n".join(str(text) for text in texts)


def _read_pairs(given: dict[str, Any]) -> list[Pair]:
    pairs = given.get("pairs")
    if not isinstance(pairs, list) or not 1 <= len(pairs) <= 5_000:
        raise BadRequest("pairs is a list of questions with answers")
    read = []
    for pair in pairs:
        parts = [pair.get("question"), pair.get("answer"), *(pair.get("paraphrases") or [])]
        if not all(isinstance(part, str) and part.strip() for part in parts):
            raise BadRequest("a pair has a question and an answer, and paraphrases of the question")
        read.append(Pair(parts[0], parts[1], parts[2:]))
    return read


def _whole(given: dict[str, Any], name: str, default: int | None = None, least: int = 1) -> int:
    number = given.get(name)
    number = default if number is None else number
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= 2**31:
        raise BadRequest(f"{name} is a whole number from {least}")
    return number


def _name(http: HttpRequest) -> str:
    name = str(http.path_params["name"])
    if not NAME.fullmatch(name):
        raise BadRequest("a name has up to 80 letters, digits, hyphens and underscores")
    return name


async def _read_json(http: HttpRequest) -> dict[str, Any]:
    try:
        given = json.loads(await _read_body(http, MOST_JSON))
    except (ValueError, RecursionError):
        raise BadRequest("the body is no JSON") from None
    if not isinstance(given, dict):
        raise BadRequest("the body is no JSON object")
    return given


async def _read_body(http: HttpRequest, most: int) -> bytes:
    parts, size = [], 0
    async for part in http.stream():
        size += len(part)
        if size > most:
            raise TooLarge(f"at most {most} bytes")
        parts.append(part)
    return b"".join(parts)


def _usage(reply: Reply) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
    }


def _timings(reply: Reply) -> dict[str, float]:
    return {"prompt_seconds": reply.prompt_seconds, "first_token_seconds": reply.first_token_seconds}


def _count(engine: Engine, reply: Reply) -> None:
    engine.prompt_tokens.labels("cache").inc(reply.cached_tokens)
    engine.prompt_tokens.labels("text").inc(reply.prompt_tokens - reply.cached_tokens)
    engine.reply_tokens.inc(reply.completion_tokens)
    engine.first_token.observe(reply.first_token_seconds)
