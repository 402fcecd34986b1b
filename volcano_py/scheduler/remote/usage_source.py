"""Measuring the load of nodes, with Prometheus, the custom metrics API, or Elasticsearch. Volcano: metrics/source.

Measurements run concurrently with the cycles, at the interval of the configuration's section `metrics`. A node whose
response is late, too large or invalid keeps its last measurement until that is too old.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp
import orjson

from volcano_py.api import quantity
from volcano_py.api.duration import parse_duration
from volcano_py.api.meta import parse_time
from volcano_py.kube import Client, KubeError
from volcano_py.scheduler.model.nodes.node_usage import PERIOD, NodeUsage
from volcano_py.scheduler.remote.http import CallError, CallTimeoutError, call, decoded

log = logging.getLogger(__name__)

PROMETHEUS, ADAPTER, ELASTICSEARCH = "prometheus", "prometheus_adaptor", "elasticsearch"
_INTERVAL, _LEAST = 30.0, 1.0
"""Seconds between two measurements: the default and the minimum."""
_TIMEOUT = 10.0
"""Timeout of one call in seconds."""
_AT_ONCE = 16
"""Concurrent calls."""
_CPU = (
    "avg_over_time((100 - (avg by (instance) "
    '(irate(node_cpu_seconds_total{{mode="idle",instance="{node}"}}[5m])) * 100))[{period}:30s])'
)
_MEMORY = (
    '100*avg_over_time(((1-node_memory_MemAvailable_bytes{{instance="{node}"}}'
    '/node_memory_MemTotal_bytes{{instance="{node}"}}))[{period}:30s])'
)

Settings = Mapping[str, str]
Usages = dict[str, NodeUsage]


class UsageSource:
    """`settings`: the current section `metrics`; `nodes`: the names of all nodes; `put` receives the measurements."""

    def __init__(
        self,
        client: Client,
        settings: Callable[[], Settings],
        nodes: Callable[[], list[str]],
        put: Callable[[Usages], None],
    ) -> None:
        self._client = client
        self._settings = settings
        self._nodes = nodes
        self._put = put
        self._problem = ""

    async def run(self) -> None:
        """Measure until cancelled."""
        async with aiohttp.ClientSession() as session:
            while True:
                settings = self._settings()
                if settings.get("type"):
                    await self._measure(session, settings)
                await asyncio.sleep(interval_of(settings) if settings.get("type") else _LEAST)

    async def _measure(self, session: aiohttp.ClientSession, settings: Settings) -> None:
        try:
            found, problem = await measure(session, self._client, settings, self._nodes())
        except CallError as e:
            found, problem = {}, str(e)
        if problem and problem != self._problem:
            log.warning("metrics of type %s: %s", settings["type"], problem)
        self._problem = problem
        if found:
            self._put(found)


async def measure(
    session: aiohttp.ClientSession, client: Client, settings: Settings, nodes: list[str]
) -> tuple[Usages, str]:
    """The measurements of a source, and its first problem. Raises CallError if the settings are invalid."""
    kind = settings["type"]
    if kind == ADAPTER:
        return await _adapter(client, set(nodes)), ""
    if kind not in (PROMETHEUS, ELASTICSEARCH):
        raise CallError(f"the type is unknown; use {PROMETHEUS}, {ADAPTER} or {ELASTICSEARCH}")
    if not settings.get("address", "").startswith(("http://", "https://")):
        raise CallError("metrics.address must begin with http:// or https://")
    one = _prometheus if kind == PROMETHEUS else _elasticsearch
    return await _each(nodes, lambda node: one(session, settings, node))


async def _each(nodes: list[str], call_one: Callable[[str], Awaitable[NodeUsage | None]]) -> tuple[Usages, str]:
    """Measure every node; after the first call without any response, no further calls are started."""
    slots, problems = asyncio.Semaphore(_AT_ONCE), list[CallError]()
    found: Usages = {}

    async def one(node: str) -> None:
        async with slots:
            if any(isinstance(p, CallTimeoutError) for p in problems):
                return
            try:
                usage = await call_one(node)
            except CallError as e:
                problems.append(e)
            else:
                if usage is not None:
                    found[node] = usage

    await asyncio.gather(*map(one, nodes))
    return found, str(problems[0]) if problems else ""


# ---- Prometheus ---------------------------------------------------------------------------------------------------


async def _prometheus(session: aiohttp.ClientSession, settings: Settings, node: str) -> NodeUsage | None:
    values = []
    for query in (_CPU, _MEMORY):
        text = query.format(node=node.replace("\\", "\\\\").replace('"', '\\"'), period=PERIOD)
        url = settings["address"].rstrip("/") + "/api/v1/query"
        body = await call(session, "GET", url, _TIMEOUT, params={"query": text}, verify=_verify(settings))
        values.append(_first_value(decoded(body), node))
    cpu, memory = values
    return None if cpu is None or memory is None else NodeUsage(time.time(), cpu, memory)


def _first_value(answer: Any, node: str) -> float | None:
    """The value of the first row; None if the node has no data. Raises CallError."""
    try:
        rows = answer["data"]["result"]
        return percent(float(rows[0]["value"][1]), node) if rows else None
    except (KeyError, TypeError, IndexError, ValueError):
        raise CallError(f"Node {node}: the response is not an instant vector of Prometheus") from None


# ---- custom metrics API -------------------------------------------------------------------------------------------


async def _adapter(client: Client, nodes: set[str]) -> Usages:
    cpu = await _custom_metric(client, "node_cpu_usage_avg")
    memory = await _custom_metric(client, "node_memory_usage_avg")
    return {
        node: NodeUsage(cpu[node][0], cpu[node][1], memory[node][1]) for node in nodes if node in cpu and node in memory
    }


async def _custom_metric(client: Client, metric: str) -> dict[str, tuple[float, float]]:
    """Time and percent by node. Raises CallError."""
    last: Exception | None = None
    for version in ("v1beta2", "v1beta1"):
        path = f"/apis/custom.metrics.k8s.io/{version}/nodes/*/{metric}"
        try:
            async with asyncio.timeout(_TIMEOUT):
                return _custom_values(decoded(await client.raw("GET", path, retries=0)))
        except (KubeError, OSError, TimeoutError) as e:
            last = e
    raise CallError(f"the custom metrics API has no {metric}: {last}")


def _custom_values(answer: Any) -> dict[str, tuple[float, float]]:
    found = {}
    try:
        for item in answer["items"]:
            node = item["describedObject"]["name"]
            found[node] = (parse_time(item["timestamp"]), percent(float(quantity.parse(item["value"])) * 100, node))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CallError("the response is not a list of metric values") from None
    return found


# ---- Elasticsearch ------------------------------------------------------------------------------------------------


async def _elasticsearch(session: aiohttp.ClientSession, settings: Settings, node: str) -> NodeUsage | None:
    index = settings.get("elasticsearch.index") or "metricbeat-*"
    field = settings.get("elasticsearch.hostnameFieldName") or "host.hostname"
    user, password = settings.get("elasticsearch.username", ""), settings.get("elasticsearch.password", "")
    query = {
        "size": 0,
        "query": {
            "bool": {
                "must": [{"range": {"@timestamp": {"gte": f"now-{PERIOD}", "lt": "now"}}}, {"term": {field: node}}]
            }
        },
        "aggs": {
            "cpu": {"avg": {"field": "host.cpu.usage"}},
            "mem": {"avg": {"field": "system.memory.actual.used.pct"}},
        },
    }
    body = await call(
        session,
        "POST",
        f"{settings['address'].rstrip('/')}/{index}/_search",
        _TIMEOUT,
        data=orjson.dumps(query),
        auth=aiohttp.BasicAuth(user, password) if user else None,
        verify=_verify(settings),
    )
    try:
        values = [decoded(body)["aggregations"][name]["value"] for name in ("cpu", "mem")]
    except (KeyError, TypeError):
        raise CallError(f"Node {node}: the response has no aggregations cpu and mem") from None
    if any(value is None for value in values):
        return None
    if not all(isinstance(value, int | float) for value in values):
        raise CallError(f"Node {node}: an average is not a number")
    cpu, memory = (percent(float(value) * 100, node) for value in values)
    return NodeUsage(time.time(), cpu, memory)


# ---- common -------------------------------------------------------------------------------------------------------


def percent(value: float, node: str) -> float:
    """A value as a percentage; slightly negative values are 0. Raises CallError for others."""
    if not math.isfinite(value) or not -100 <= value <= 101:
        raise CallError(f"Node {node}: {value:g} is not a percentage")
    return max(0.0, value)


def interval_of(settings: Settings) -> float:
    """Seconds between two measurements."""
    try:
        return max(_LEAST, parse_duration(settings.get("interval", "")) or _INTERVAL)
    except ValueError:
        return _INTERVAL


def _verify(settings: Settings) -> bool:
    return settings.get("tls.insecureSkipVerify") != "true"
