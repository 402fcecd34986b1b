"""The load of nodes, as Prometheus serves it from node-exporter: instant queries of the CPU and the memory of one node,
in percent, as the scheduler's plugin usage sends them.

The load of a node is what its running pods use: their requests, or the amounts in their annotations
`sandbox/cpu-usage` and `sandbox/memory-usage`. The annotations `sandbox/cpu-load` and `sandbox/memory-load` of a node
replace it by a percentage. Averages over time are those of now.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from volcano_py.sandbox.apiserver.apimachinery import quantity
from volcano_py.sandbox.apiserver.registry.api import Api, complete

Object = dict[str, Any]

_INSTANCE = re.compile(r'instance="((?:[^"\\]|\\.)*)"')
_INTERVAL = 1.0
"""Seconds between two readings of pods and nodes."""
_METRICS = {"node_cpu_seconds_total": "cpu", "node_memory_MemAvailable_bytes": "memory"}


class Prometheus:
    """Serves the nodes of an API server. `port`: where it listens, once it is started."""

    def __init__(self, api: Api) -> None:
        self.port = 0
        self._nodes, self._pods = (api.resource("", plural) for plural in ("nodes", "pods"))
        self._answered = 0
        self._loads: dict[tuple[str, str], float] = {}
        self._scraped = -_INTERVAL
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError."""
        app = web.Application()
        app.router.add_get("/api/v1/query", self._query)
        app.router.add_post("/api/v1/query", self._query)
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _query(self, request: web.Request) -> web.Response:
        form: Mapping[str, Any] = await request.post() if request.method == "POST" else request.query
        text = str(form.get("query") or request.query.get("query") or "")
        instance, resource = _INSTANCE.search(text), next((r for name, r in _METRICS.items() if name in text), None)
        if instance is None or resource is None:
            why = (
                "the sandbox answers only queries of node_cpu_seconds_total and node_memory_MemAvailable_bytes of one "
            )
            document = {"status": "error", "errorType": "bad_data", "error": f"{why}instance: {text!r}"}
            return web.json_response(document, status=400)
        name = re.sub(r"\\(.)", r"\1", instance[1])
        percent = self.load(name, resource)
        rows = [] if percent is None else [{"metric": {"instance": name}, "value": [time.time(), f"{percent:g}"]}]
        self._answered += 1
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": rows}})

    async def _metrics(self, request: web.Request) -> web.Response:
        line = f'prometheus_http_requests_total{{code="200",handler="/api/v1/query"}} {self._answered}\n'
        return web.Response(text=line, content_type="text/plain")

    def load(self, name: str, resource: str) -> float | None:
        """The load of a node in percent, not older than a second; None: there is no such node."""
        if time.monotonic() - self._scraped > _INTERVAL:
            self._loads, self._scraped = self._scrape(), time.monotonic()
        return self._loads.get((name, resource))

    def _scrape(self) -> dict[tuple[str, str], float]:
        """The load of all nodes, by name and resource."""
        used: dict[tuple[str, str], float] = defaultdict(float)
        for pod in self._pods.collection.entries.values():
            if pod.fields["spec.nodeName"] and pod.fields["status.phase"] == "Running":
                manifest = complete(self._pods, pod.load())
                for resource in _METRICS.values():
                    used[pod.fields["spec.nodeName"], resource] += usage_of(manifest, resource)
        loads = {}
        for entry in self._nodes.collection.entries.values():
            node = complete(self._nodes, entry.load())
            for resource in _METRICS.values():
                stated = (node["metadata"].get("annotations") or {}).get(f"sandbox/{resource}-load")
                have = _amount(((node.get("status") or {}).get("capacity") or {}).get(resource, "0"))
                percent = 100 * used[entry.name, resource] / have if have else 0.0
                loads[entry.name, resource] = percent if stated is None else _amount(stated)
        return loads


def usage_of(pod: Object, resource: str) -> float:
    """What a running pod uses, in cores or bytes."""
    stated = (pod["metadata"].get("annotations") or {}).get(f"sandbox/{resource}-usage")
    if stated is not None:
        return _amount(stated)
    containers = pod["spec"].get("containers") or ()
    return sum(_amount(((c.get("resources") or {}).get("requests") or {}).get(resource, "0")) for c in containers)


def _amount(text: str) -> float:
    """An amount that users write; 0 if it is none."""
    try:
        return float(quantity.parse(text))
    except quantity.QuantityError:
        return 0.0
