"""Sends traces to an OpenTelemetry collector by OTLP over HTTP (`volcano-py[otel]`). Volcano: none.

A thread of the SDK sends them in batches; one that cannot be sent is dropped, and no cycle waits. What the standard
environment variables of OpenTelemetry set (headers, certificates, sampling, resource attributes) holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from volcano_py import __version__
from volcano_py.scheduler.framework.config import ConfigurationError
from volcano_py.scheduler.tracing.job_traces import TracedSpan

if TYPE_CHECKING:
    from opentelemetry.context import Context

TIMEOUT = 5.0
"""Seconds of one request, with its retries."""
_NANO = 1e9


class TraceExporter:
    """`endpoint`: address of the collector, such as `http://collector:4318`. Raises ConfigurationError without the
    extra."""

    def __init__(self, endpoint: str) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            text = "--otlp-endpoint needs OpenTelemetry; install volcano-py[otel]"
            raise ConfigurationError(text) from None
        own = Resource.create({SERVICE_NAME: "volcano-scheduler", SERVICE_VERSION: __version__})
        self._provider = TracerProvider(resource=own.merge(OTELResourceDetector().detect()))
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=TIMEOUT)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("volcano_py.scheduler", __version__)

    def send(self, span: TracedSpan, parent: str) -> None:
        """Send a trace. `parent`: a W3C trace context; an invalid one counts as none."""
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._write(span, TraceContextTextMapPropagator().extract({"traceparent": parent}))

    def close(self) -> None:
        """Send what waits, and end the thread."""
        self._provider.shutdown()

    def _write(self, span: TracedSpan, context: Context) -> None:
        from opentelemetry.trace import set_span_in_context

        begin = int(span.begin * _NANO)
        written = self._tracer.start_span(span.name, context, attributes=span.attributes, start_time=begin)
        inner = set_span_in_context(written, context)
        for child in span.spans:
            self._write(child, inner)
        written.end(int(span.end * _NANO))
