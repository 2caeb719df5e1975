"""Sends spans to an OpenTelemetry collector, if OpenTelemetry's own environment variables name one."""

import os
from collections.abc import Mapping

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def telemetry_start(environ: Mapping[str, str] = os.environ) -> bool:
    """Start to export the spans of this process; returns whether a collector is configured.

    The exporter reads address, headers, service name and sampler from `OTEL_…` variables. It sends from a thread of its
    own: a collector that is down delays no request.
    """
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or not any(environ.get(name) for name in ENDPOINTS):
        return False
    # Imported only here: the exporter's protocol buffers cost memory.
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = {} if environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: "memos-web"}
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return True
