"""A server that speaks OpenAI's protocol: its address, its client, and its failures said without its secrets."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2
from opentelemetry.trace import SpanKind

from governance.trace import headers_onward, span
from governance.transport import (
    ENCODINGS,
    AddressRefused,
    AnswerTooLong,
    CallEnded,
    Limits,
    OutOfTime,
    Reach,
    ReaderLeft,
    Transport,
)
from vault.providers.ports import ProviderUnavailable, ReaderDisconnected

if TYPE_CHECKING:
    import openai  # else only where a model is called: it takes 40 MB and half a second of each process

CONNECT_SECONDS = 3.0
READ_SECONDS = 60.0  # for each read, so a reply that streams may take longer in all
CALL_SECONDS = 300.0  # for one try of a call, with all that it streams
ANSWER_BYTES = 32 * 1024 * 1024  # 128 embeddings of 8,192 numbers
RETRIES = 1


@dataclass(frozen=True)
class Endpoint:
    """`url` ends where OpenAI's own ends in /v1; `key` may be empty. Raises ProviderUnavailable for a bad url.

    is_of_operator: the operator of the installation wrote the address, which then may be of the private network.
    """

    url: str = field(repr=False)
    key: str = field(repr=False)
    model: str
    read_seconds: float = READ_SECONDS
    retries: int = RETRIES
    is_of_operator: bool = True

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            httpx2.URL(self.url)
            usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except (ValueError, httpx2.InvalidURL):  # brackets or a port that are none, a number that is no address
            usable = False
        if not usable:
            raise ProviderUnavailable(f"The address configured for the model {self.model} is not an http(s) address")

    @property
    def place(self) -> str:
        """The model and its host, for messages to people: no path, no query, no user name or password."""
        return f"{self.model} at {urlsplit(self.url).netloc.rpartition('@')[2]}"

    def client(self) -> "openai.OpenAI":
        import openai

        return openai.OpenAI(
            base_url=self.url,
            api_key=self.key or "none",  # the client demands one; servers without keys ignore it
            max_retries=self.retries,
            http_client=httpx2.Client(
                transport=self.transport(),
                headers={"Accept-Encoding": ENCODINGS},
                follow_redirects=False,
                event_hooks={"request": [_add_trace_headers]},
            ),
        )

    def transport(self) -> Transport:
        limits = Limits(
            seconds=CALL_SECONDS,
            connect_seconds=CONNECT_SECONDS,
            read_seconds=self.read_seconds,
            answer_bytes=ANSWER_BYTES,
        )
        return Transport(limits, Reach.OPERATOR if self.is_of_operator else Reach.PUBLIC)

    def unavailable(self, what: str) -> ProviderUnavailable:
        return ProviderUnavailable(f"The model {self.place} {what}")

    def unreadable(self) -> ProviderUnavailable:
        return self.unavailable("sent a reply that cannot be read")

    @contextmanager
    def translate_failures(self) -> Iterator[None]:
        """Every failure of a call as ProviderUnavailable.

        Raised `from None`: a server's error may repeat the prompt or the key, and a traceback would print it.
        """
        import openai

        server = urlsplit(self.url).hostname or ""
        named = {"gen_ai.request.model": self.model, "server.address": server}
        try:
            with span("model call", SpanKind.CLIENT, named, is_parent=False):
                yield
        except ReaderLeft:
            raise ReaderDisconnected(f"Nobody waits for the model {self.place}") from None
        except (openai.APIConnectionError, httpx2.RequestError, CallEnded) as error:
            cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
            if isinstance(cause, AddressRefused) and self.is_of_operator:
                raise self.unavailable("has no public address: see MEMOS_ALLOW_PRIVATE_ADDRESSES") from None
            raise self.unavailable(_describe_failure(cause)) from None
        except openai.APIStatusError as error:
            raise self.unavailable(f"answered with status {error.status_code}") from None
        except (openai.OpenAIError, httpx2.HTTPError):
            raise self.unavailable("reported an error") from None
        except (ValueError, RecursionError):  # JSON that is none, or too deep
            raise self.unreadable() from None


def _describe_failure(error: BaseException | None) -> str:
    """The failed connection in words that follow the model's name."""
    match error:
        case OutOfTime():
            return f"took longer than {CALL_SECONDS:.0f} seconds"
        case AnswerTooLong():
            return "sent more than an answer may have"
        case httpx2.TimeoutException():
            return "did not answer in time"
        case httpx2.DecodingError():
            return "sent a reply that cannot be read"
    return "cannot be reached, may not be called, or broke the connection"


def _add_trace_headers(request: httpx2.Request) -> None:
    request.headers.update(headers_onward())
