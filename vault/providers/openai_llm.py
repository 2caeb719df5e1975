"""Chat completions from any server that speaks OpenAI's protocol, whole or streamed."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, cast

from openai import Omit, omit
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessageParam
from openai.types.shared_params import ResponseFormatJSONSchema

from governance.transport import EVENT_STREAM, clean_text
from vault.providers.openai_endpoint import Endpoint
from vault.providers.ports import ChatMessage, Completion, EngineUse, TextDelta

LONGEST_MODEL = 100  # characters of a name
MOST_TOKENS = 100_000_000  # of a reply or a prompt; a server that counts more is not believed


@dataclass
class _Reply:
    """The received part of a reply. The client does not check the server's JSON, so every field is checked here."""

    endpoint: Endpoint
    pieces: list[str] = field(default_factory=list)
    finished: bool = False
    model: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None

    def note(self, answer: ChatCompletion | ChatCompletionChunk) -> None:
        """Model and token counts: in the one answer, or in the last chunks of a stream (when the server counts)."""
        model, usage = getattr(answer, "model", None), getattr(answer, "usage", None)
        if isinstance(model, str) and model.isprintable() and 1 <= len(model) <= LONGEST_MODEL:
            self.model = model
        self.prompt_tokens = _read_count(usage, "prompt_tokens", self.prompt_tokens)
        self.completion_tokens = _read_count(usage, "completion_tokens", self.completion_tokens)
        details = getattr(usage, "prompt_tokens_details", None)
        self.cached_tokens = _read_count(details, "cached_tokens", self.cached_tokens)

    def piece(self, chunk: ChatCompletionChunk) -> str:
        """The chunk's text; empty in chunks that carry the role, the end or the usage. Raises ProviderUnavailable."""
        self.note(chunk)
        try:
            choice = chunk.choices[0] if chunk.choices else None
            self.finished = self.finished or (choice is not None and choice.finish_reason is not None)
            text = choice.delta.content if choice is not None else None
        except (AttributeError, KeyError, TypeError):
            raise self.endpoint.unreadable() from None
        if text is not None and not isinstance(text, str):
            raise self.endpoint.unreadable()
        return clean_text(text or "")

    def completion(self, text: object) -> Completion:
        if not isinstance(text, str) or not text.strip():
            raise self.endpoint.unavailable("sent an empty reply")
        return Completion(
            clean_text(text),
            self.model or self.endpoint.model,
            self.prompt_tokens,
            self.completion_tokens,
            self.cached_tokens,
        )


class OpenAiLlm:
    """A model behind OpenAI's protocol. engine: what serves it, and so how a request names caches and adapters."""

    def __init__(self, endpoint: Endpoint, engine: str = "openai") -> None:
        self.name = endpoint.model
        self._engine = engine
        self._endpoint = endpoint
        self._client = endpoint.client()

    @property
    def place(self) -> tuple[str, str]:
        return self._endpoint.url, self._endpoint.model

    def complete(self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any] | None = None) -> Completion:
        with self._endpoint.translate_failures():
            answer = self._client.chat.completions.create(
                model=self._endpoint.model,
                messages=_encode_messages(messages),
                response_format=_response_format(schema),
            )
        reply = _Reply(self._endpoint)
        reply.note(answer)
        try:
            text = answer.choices[0].message.content
        except (AttributeError, IndexError, KeyError, TypeError):
            raise self._endpoint.unreadable() from None
        return reply.completion(text)

    def stream(self, messages: Sequence[ChatMessage], use: EngineUse | None = None) -> Iterator[TextDelta | Completion]:
        reply = _Reply(self._endpoint)
        with closing(self._chunks(messages, use or EngineUse())) as chunks:
            for chunk in chunks:
                if piece := reply.piece(chunk):
                    reply.pieces.append(piece)
                    yield TextDelta(piece)
        if not reply.finished:
            raise self._endpoint.unavailable("broke off its reply")
        if use is not None and use.adapter:
            reply.model = self.name  # the name of an adapter is for the engine alone
        yield reply.completion("".join(reply.pieces))

    def _chunks(self, messages: Sequence[ChatMessage], use: EngineUse) -> Generator[ChatCompletionChunk, None, None]:
        is_local = self._engine == "local"
        named: dict[str, Any] = {"caches": list(use.caches), "adapter": use.adapter} if is_local else {}
        if use.moved:
            named["moved"] = [{"name": name, "again": again} for name, again in use.moved]
        if self._engine != "openai" and use.salt:
            named["cache_salt"] = use.salt
        with self._endpoint.translate_failures():
            chunks = self._client.chat.completions.create(
                model=self._endpoint.model if is_local else use.adapter or self._endpoint.model,
                extra_body=named or None,
                messages=_encode_messages(messages),
                stream=True,
                stream_options={"include_usage": True},
                extra_headers={"Accept": EVENT_STREAM},  # the transport then checks each event
            )
            with chunks:
                yield from chunks


def _encode_messages(messages: Sequence[ChatMessage]) -> list[ChatCompletionMessageParam]:
    return [
        cast(ChatCompletionMessageParam, {"role": message.role.value, "content": message.content})
        for message in messages
    ]


def _response_format(schema: Mapping[str, Any] | None) -> ResponseFormatJSONSchema | Omit:
    if schema is None:
        return omit
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": dict(schema), "strict": True}}


def _read_count(usage: object, name: str, known: int | None) -> int | None:
    count = getattr(usage, name, None)
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        return known
    return min(count, MOST_TOKENS)
