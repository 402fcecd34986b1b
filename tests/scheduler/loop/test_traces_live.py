"""Traces that a scheduler sends to an OpenTelemetry collector."""

import re
import sys

import pytest
from aiohttp import web
from live_scheduler import Live, put_gang, put_node
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from volcano_py.scheduler.framework.config import ConfigurationError
from volcano_py.scheduler.tracing.otlp import TraceExporter


class Collector:
    """An OTLP endpoint on loopback."""

    def __init__(self):
        self.spans = {}
        self.resources = []

    async def __aenter__(self):
        app = web.Application()
        app.router.add_post("/v1/traces", self._take)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.endpoint = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *exc):
        await self._runner.cleanup()

    async def _take(self, request):
        sent = ExportTraceServiceRequest.FromString(await request.read())
        for resource in sent.resource_spans:
            self.resources += [(a.key, a.value.string_value) for a in resource.resource.attributes]
            for scope in resource.scope_spans:
                self.spans |= {span.name: span for span in scope.spans}
        return web.Response(status=200, content_type="application/x-protobuf")


async def test_a_gang_is_one_trace(tmp_path, api):
    put_node(api, "n1")
    async with Collector() as collector:
        async with Live(tmp_path, api, otlp_endpoint=collector.endpoint) as live:
            put_gang(api, "g", 2)
            await live.until(lambda: len(api.bindings) == 2 and not live.scheduler.handle.unanswered)
        root = collector.spans["schedule default/g"]
        assert root.parent_span_id == b"" and ("service.name", "volcano-scheduler") in collector.resources
        inside = [span for name, span in collector.spans.items() if name in ("wait for nodes", "bind", "bind pod")]
        assert len(inside) == 3 and all(span.trace_id == root.trace_id for span in inside)
        assert collector.spans["bind pod"].parent_span_id == collector.spans["bind"].span_id


PROFILES = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{schedulerName: platform}]
"""


async def test_a_pod_of_a_profile_is_a_trace_of_its_own(tmp_path, api):
    put_node(api, "n1")
    file = tmp_path / "profiles.yaml"
    file.write_text(PROFILES)
    async with Collector() as collector:
        async with Live(tmp_path, api, config=str(file), otlp_endpoint=collector.endpoint) as live:
            spec = {"schedulerName": "platform", "containers": [{"name": "c"}]}
            api.put("pods", {"metadata": {"name": "alone", "namespace": "default"}, "spec": spec})
            await live.until(lambda: api.bindings and not live.scheduler.handle.unanswered)
        root = collector.spans["schedule default/alone"]
        assert {name for name, span in collector.spans.items() if span.parent_span_id == root.span_id} == {
            "wait for nodes",
            "bind",
        }


@pytest.mark.slow
async def test_a_collector_that_is_out_of_reach_stops_nothing(tmp_path, api):
    put_node(api, "n1")
    async with Live(tmp_path, api, otlp_endpoint="http://127.0.0.1:9") as live:
        put_gang(api, "g", 2)
        await live.until(lambda: len(api.bindings) == 2)


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(
        ConfigurationError, match=re.escape("--otlp-endpoint needs OpenTelemetry; install volcano-py[otel]")
    ):
        TraceExporter("http://127.0.0.1:9")
