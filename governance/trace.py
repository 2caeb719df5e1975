"""The request or job that a thread works on: for log lines, spans of OpenTelemetry and calls to model endpoints.

A span's attributes are ids, names of routes and topics, and numbers: never content, and no query of an address.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.trace import Span, SpanKind
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

TRACER = trace.get_tracer("memos")
_notes: ContextVar[dict[str, set[Any]] | None] = ContextVar("notes of work", default=None)


def work_begins(request_id: str, causes: Sequence[str] = ()) -> None:
    """From now on this thread works on a request or a job, and on nothing that it worked on before.

    causes: the ids of the requests that caused a job.
    """
    clear_contextvars()
    _notes.set({})
    bind_contextvars(request_id=request_id, **({"causes": list(causes)} if causes else {}))


def noted_in_work(name: str) -> set[Any]:
    """Return the set of that name that the present request or job keeps; outside of both, a new one."""
    notes = _notes.get()
    return set() if notes is None else notes.setdefault(name, set())


@contextmanager
def span(
    name: str,
    kind: SpanKind,
    attributes: Mapping[str, str] | None = None,
    *,
    caller: Mapping[str, str] | None = None,
    is_parent: bool = True,
) -> Iterator[Span]:
    """A span of OpenTelemetry; costs next to nothing where none are exported.

    caller: the headers of a request, whose `traceparent` the span continues. is_parent: False inside a generator, which
    may go on in another context. Of an exception the span keeps the type alone: the message may repeat content.
    """
    current = TRACER.start_span(name, propagate.extract(caller) if caller is not None else None, kind, attributes)
    used = trace.use_span(current, record_exception=False, set_status_on_exception=False)
    try:
        with used if is_parent else nullcontext():
            yield current
    except Exception as error:
        span_fail(current, type(error).__name__)
        raise
    finally:
        current.end()


def span_fail(current: Span, error: str) -> None:
    current.set_status(trace.StatusCode.ERROR)
    current.set_attribute("error.type", error)


def headers_onward() -> dict[str, str]:
    """Headers for a call to another server: the id of the request or job, and the span that it belongs to."""
    headers = {"X-Request-ID": str(get_contextvars().get("request_id", ""))}
    propagate.inject(headers)
    return {name: value for name, value in headers.items() if value}
