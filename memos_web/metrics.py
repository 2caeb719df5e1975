"""`/metrics` for Prometheus, behind a token of its own: counts, durations and ages, never names or content.

With several web processes, each writes its counts to the folder `PROMETHEUS_MULTIPROC_DIR`, and a scrape adds them up.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from secrets import compare_digest

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from opentelemetry.trace import SpanKind
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from governance.apikeys.request_log import note_key_request
from governance.audit.health import audit_health
from governance.errors import DomainError
from governance.heartbeats import Part, silent_parts
from governance.outbox.selectors import QueueHealth, outbox_health, queue_healths
from governance.trace import span, span_fail
from governance.vocabulary import PrincipalKind, Weight

logger = logging.getLogger("memos_web.requests")
Handler = Callable[[HttpRequest], HttpResponse]
REQUESTS = Counter("memos_requests", "Requests answered, by pattern of the address.", ["method", "route", "status"])
SECONDS = Histogram(
    "memos_request_seconds",
    "Time until a request was answered, in seconds.",
    ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
BUSY = Counter("memos_requests_busy", "Requests that were answered 503 because the server was busy or in trouble.")
POOL_WAITS = Counter("memos_pool_waits", "Times that a call waited for a connection to the database.")
POOL_SECONDS = Counter("memos_pool_wait_seconds", "Seconds that calls waited for a connection to the database.")
POOL_TIMEOUTS = Counter("memos_pool_timeouts", "Times that no connection to the database was free in time.")
NO_ROUTE = "none"  # of an address that does not exist: one label for all, so that nobody can make many


class MetricsMiddleware:
    """Counts and times each request; with `MEMOS_LOG_FORMAT=json`, logs it; with a collector, sends it as a span."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        begun = time.perf_counter()
        method = request.method if request.method in {"GET", "POST", "PATCH", "PUT", "DELETE"} else "other"
        with span(method, SpanKind.SERVER, caller=request.headers) as current:
            response = self.get_response(request)
            match = request.resolver_match
            route = match.route if match is not None else NO_ROUTE
            current.update_name(f"{method} {route}")
            current.set_attributes(
                {
                    "http.request.method": method,
                    "http.route": route,
                    "http.response.status_code": response.status_code,
                    "memos.request_id": response.get("X-Request-ID", ""),
                }
            )
            if response.status_code >= 500:
                span_fail(current, str(response.status_code))
        seconds = time.perf_counter() - begun
        REQUESTS.labels(method, route, str(response.status_code)).inc()
        SECONDS.labels(route).observe(seconds)
        if response.status_code == 503:
            BUSY.inc()
        _log_key_request(request, method, route, response.status_code, seconds)
        pool = getattr(connection, "pool", None)  # none of a command or a test, which have a connection of their own
        if pool is not None:
            pool_count(pool.pop_stats())
        what = {"method": method, "route": route, "status": response.status_code, "ms": round(seconds * 1000, 1)}
        logger.info("request", extra=what)
        return response


def _log_key_request(request: HttpRequest, method: str, route: str, status: int, seconds: float) -> None:
    actor = request.caller.actor  # type: ignore[attr-defined]
    if actor is not None and actor.principal_kind is PrincipalKind.API_KEY:
        note_key_request(
            tenant_id=actor.tenant_id,
            key_id=actor.principal_id,
            method=method,
            route=route,
            status=status,
            seconds=seconds,
        )


def pool_count(stats: Mapping[str, int]) -> None:
    """Add the waits of a pool of connections; stats: of its `pop_stats`."""
    POOL_WAITS.inc(stats.get("requests_queued", 0))
    POOL_SECONDS.inc(stats.get("requests_wait_ms", 0) / 1000)
    POOL_TIMEOUTS.inc(stats.get("requests_errors", 0))


class InstallationCollector:
    """The state of jobs and of the audit log over all tenants, read from the database at each scrape."""

    def collect(self) -> Iterator[Metric]:
        """Yield gauges; only `memos_database_up` without a database."""
        try:
            outbox, audit, silent, queues = outbox_health(), audit_health(), silent_parts(), queue_healths()
        except (DatabaseError, DomainError):
            yield GaugeMetricFamily("memos_database_up", "1 if the database answers.", value=0)
            return
        yield GaugeMetricFamily("memos_database_up", "1 if the database answers.", value=1)
        yield from _queue_gauges(queues)
        yield GaugeMetricFamily("memos_dead_letters", "Events that failed too often.", value=outbox.parked)
        yield GaugeMetricFamily(
            "memos_audit_seal_lag_seconds",
            "Age of the oldest audit entry without a seal.",
            value=audit.unsealed_seconds,
        )
        yield GaugeMetricFamily(
            "memos_audit_checkpoint_lag_seconds",
            "Age of the oldest seal without a checkpoint.",
            value=audit.unsigned_seconds,
        )
        parts = GaugeMetricFamily("memos_part_up", "1 if a part in the background runs.", labels=["part"])
        for part in Part:
            parts.add_metric([part.value], 0 if part in silent else 1)
        yield parts


def _queue_gauges(queues: Mapping[Weight, QueueHealth]) -> list[Metric]:
    due = GaugeMetricFamily("memos_outbox_due", "Events that are due, also those at work.", labels=["queue"])
    oldest = GaugeMetricFamily("memos_outbox_oldest_seconds", "Age of the oldest event that is due.", labels=["queue"])
    waiting = GaugeMetricFamily(
        "memos_outbox_waiting_seconds", "Age of the oldest due event that no worker has taken.", labels=["queue"]
    )
    for weight, health in queues.items():
        due.add_metric([weight.value], health.due)
        oldest.add_metric([weight.value], health.oldest_seconds)
        waiting.add_metric([weight.value], health.waiting_seconds)
    return [due, oldest, waiting]


def metrics(request: HttpRequest) -> HttpResponse:
    """404 without a configured token, 401 with another than that."""
    token: str = settings.METRICS_TOKEN
    if not token:
        return HttpResponse(status=404)
    if not compare_digest(request.headers.get("Authorization", "").encode(), f"Bearer {token}".encode()):
        return HttpResponse(status=401, headers={"WWW-Authenticate": "Bearer"})
    registry = CollectorRegistry()
    registry.register(InstallationCollector())
    counted = REGISTRY
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        counted = CollectorRegistry()
        MultiProcessCollector(counted)  # type: ignore[no-untyped-call]
    return HttpResponse(generate_latest(counted) + generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
