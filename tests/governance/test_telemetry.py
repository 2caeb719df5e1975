"""Tests of log lines and spans: an id leads from a request to its jobs and model calls, and content stands in none."""

import io
import json
import logging
import logging.config
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from governance.trace import headers_onward, span, work_begins
from memos_web.config import ConfigError, read_config
from memos_web.logs import formatter
from tests.factories import World
from tests.vault.outbox import run_jobs

SECRET = "nightingale"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class Lines:
    """Log lines in JSON."""

    def __init__(self) -> None:
        self.text = io.StringIO()

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.getvalue().splitlines()]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Collect the lines of MEMOS_LOG_FORMAT=json."""
    found, chosen = Lines(), logging.StreamHandler()
    chosen.setStream(found.text)
    made = logging.config.DictConfigurator({"version": 1})
    chosen.setFormatter(made.configure_formatter(formatter("json")))
    loggers = [logging.getLogger(name) for name in ("memos_web.requests", "governance.jobs", "memos")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(chosen)
        logger.setLevel(logging.INFO)
    yield found
    for logger, level in zip(loggers, levels, strict=True):
        logger.removeHandler(chosen)
        logger.setLevel(level)


@pytest.fixture(scope="session")
def exporter() -> InMemorySpanExporter:
    """OpenTelemetry takes one provider for each process."""
    made, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(made))
    trace.set_tracer_provider(provider)
    return made


@pytest.fixture
def clean_exporter(exporter: InMemorySpanExporter) -> InMemorySpanExporter:
    exporter.clear()
    return exporter


def find_span(clean_exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    (found,) = [span for span in clean_exporter.get_finished_spans() if span.name == name]
    return found


def test_request_and_its_jobs_are_logged_under_its_id_without_content(world: World, lines: Lines) -> None:
    reply = world.client("alice").post("memories/", {"content": f"The {SECRET} sings."})
    request_id = reply.headers["X-Request-ID"]
    run_jobs()
    requests = [line for line in lines.read() if line["event"] == "request" and line["request_id"] == request_id]
    assert [(line["method"], line["route"], line["status"]) for line in requests] == [("POST", "api/v1/memories/", 201)]
    jobs = [line for line in lines.read() if line["event"] == "job" and line.get("causes") == [request_id]]
    assert jobs
    assert all(line["request_id"].startswith("job-") and line["tenant"] and line["ms"] >= 0 for line in jobs)
    assert SECRET not in lines.text.getvalue()


def test_address_with_a_query_is_logged_as_its_route(world: World, lines: Lines) -> None:
    assert world.client("alice").get(f"memories/?tags={SECRET}").status == 200
    assert lines.read()[-1]["route"] == "api/v1/memories/"
    assert SECRET not in lines.text.getvalue()


def test_exception_is_logged_as_its_type_and_places(lines: Lines) -> None:
    try:
        raise ValueError(SECRET)
    except ValueError:
        logging.getLogger("memos").exception("it stopped")
    (line,) = lines.read()
    assert (line["event"], line["level"], line["error"]) == ("it stopped", "error", "ValueError")
    assert line["at"][0].startswith("tests/governance/test_telemetry.py:")
    assert SECRET not in lines.text.getvalue()


def test_unknown_log_format_is_refused() -> None:
    with pytest.raises(ConfigError, match="MEMOS_LOG_FORMAT"):
        read_config({"MEMOS_LOG_FORMAT": "xml"})


def test_request_becomes_a_span_of_its_callers_trace(world: World, clean_exporter: InMemorySpanExporter) -> None:
    caller = f"00-{TRACE}-00f067aa0ba902b7-01"
    reply = world.client("alice").post("memories/search/", {"query": SECRET}, traceparent=caller)
    found = find_span(clean_exporter, "POST api/v1/memories/search/")
    assert found.context.trace_id == int(TRACE, 16)
    attributes = dict(found.attributes or {})
    assert attributes["http.response.status_code"] == 200
    assert attributes["memos.request_id"] == reply.headers["X-Request-ID"]
    assert SECRET not in found.to_json()


def test_job_becomes_a_span(world: World, clean_exporter: InMemorySpanExporter) -> None:
    world.client("alice").post("memories/", {"content": f"The {SECRET} sings."})
    run_jobs()
    jobs = [span for span in clean_exporter.get_finished_spans() if span.name.startswith("job ")]
    assert jobs
    assert all(str((span.attributes or {})["memos.request_id"]).startswith("job-") for span in jobs)
    assert not any(SECRET in span.to_json() for span in clean_exporter.get_finished_spans())


def test_failed_span_has_no_message(clean_exporter: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match=SECRET), span("it stops", SpanKind.INTERNAL):
        raise ValueError(SECRET)
    found = find_span(clean_exporter, "it stops")
    assert found.status.status_code is trace.StatusCode.ERROR
    assert dict(found.attributes or {}) == {"error.type": "ValueError"}
    assert SECRET not in found.to_json()


def test_calls_to_other_servers_carry_the_id_and_the_span(clean_exporter: InMemorySpanExporter) -> None:
    work_begins("request-0001")
    with span("it calls", SpanKind.INTERNAL) as current:
        sent = headers_onward()
    assert sent["X-Request-ID"] == "request-0001"
    assert f"{current.get_span_context().trace_id:032x}" in sent["traceparent"]


def test_configured_collector_receives_each_span_and_without_one_nothing_starts(httpserver: HTTPServer) -> None:
    received: list[bytes] = []

    def take(request: Request) -> Response:
        received.append(request.get_data())
        return Response(status=200)

    httpserver.expect_request("/v1/traces", method="POST").respond_with_handler(take)
    code = (
        "from memos_web.telemetry import telemetry_start as start; from governance.trace import span\n"
        "from opentelemetry import trace\n"
        "assert not start({}); assert start()\n"
        "with span('it works', trace.SpanKind.INTERNAL): pass\n"
        "assert trace.get_tracer_provider().force_flush()\n"
    )
    environ = os.environ | {
        "OTEL_EXPORTER_OTLP_ENDPOINT": httpserver.url_for("").rstrip("/"),
        "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
    }
    subprocess.run([sys.executable, "-c", code], check=True, env=environ, cwd=settings.BASE_DIR)
    assert any(b"it works" in body and b"memos-web" in body for body in received)
