"""The counts of requests: by method and code, also without a response, added over processes, and as metrics."""

import pytest
from fake_api import PODS, pod, status
from prometheus_client import CollectorRegistry, generate_latest

from volcano_py.kube import Client, NotFound, Unreachable
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.request_counts import RequestCounts
from volcano_py.kube.request_metrics import RequestMetrics


@pytest.fixture
def counts():
    return RequestCounts()


def totals(counts):
    return {(c.method, c.code): sum(c.durations) for c in counts.series()}


@pytest.mark.parametrize("lean", [False, True], ids=["aiohttp", "lean"])
async def test_each_attempt_counts_with_its_code(api, counts, lean):
    api.fault("GET ", status(429, "TooManyRequests", headers={"Retry-After": "0"}))
    api.put("pods", pod("a"))
    async with Client(Credentials(server=api.url), lean=lean, requests=counts) as client:
        await client.get(PODS, "a", "default")
        with pytest.raises(NotFound):
            await client.get(PODS, "b", "default")
        await client.delete(PODS, "a", "default")
    assert totals(counts) == {("GET", "429"): 1, ("GET", "200"): 1, ("GET", "404"): 1, ("DELETE", "200"): 1}
    assert all(c.host in api.url and c.seconds > 0 for c in counts.series())


async def test_a_request_without_a_response_is_an_error(api, counts):
    async with Client(Credentials(server="http://127.0.0.1:1"), requests=counts) as client:
        with pytest.raises(Unreachable):
            await client.get(PODS, "a", "default")
        with pytest.raises(Unreachable):
            async with client.stream("/api/v1/pods"):
                pass
    assert totals(counts) == {("GET", "<error>"): 2}


async def test_a_watch_counts_once_when_it_begins(api, counts):
    api.put("pods", pod("a"))
    async with Client(Credentials(server=api.url), requests=counts) as client:
        async for _ in client.watch(PODS, resource_version="0", timeout_seconds=1):
            assert totals(counts) == {("GET", "200"): 1}
            break
        with pytest.raises(NotFound):
            async with client.stream("/no/such/path"):
                pass
    assert totals(counts) == {("GET", "200"): 1, ("GET", "404"): 1}


def test_counts_of_another_process_are_added(counts):
    theirs = RequestCounts()
    for seconds in (0.001, 0.3, 100.0):
        theirs.observe("h:1", "POST", 201, seconds)
    counts.observe("h:1", "POST", 201, 0.3)
    counts.add(theirs.take())
    assert theirs.series() == []
    (series,) = counts.series()
    assert series.durations == [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1]
    assert series.seconds == pytest.approx(100.601)


def test_the_metrics_have_the_names_of_client_go(counts):
    counts.observe("h:1", "POST", 201, 0.3)
    counts.observe("h:1", "POST", 409, 0.001)
    counts.observe("h:1", "GET", None, 8.0)
    registry = CollectorRegistry()
    registry.register(RequestMetrics(counts))
    lines = set(generate_latest(registry).decode().splitlines())
    name = "rest_client_request_duration_seconds"
    assert {
        'rest_client_requests_total{code="201",host="h:1",method="POST"} 1.0',
        'rest_client_requests_total{code="409",host="h:1",method="POST"} 1.0',
        'rest_client_requests_total{code="<error>",host="h:1",method="GET"} 1.0',
        name + '_bucket{host="h:1",le="0.005",verb="POST"} 1.0',
        name + '_bucket{host="h:1",le="0.5",verb="POST"} 2.0',
        name + '_bucket{host="h:1",le="+Inf",verb="POST"} 2.0',
        name + '_count{host="h:1",verb="POST"} 2.0',
        name + '_sum{host="h:1",verb="GET"} 8.0',
        name + '_bucket{host="h:1",le="8.0",verb="GET"} 1.0',
        name + '_bucket{host="h:1",le="4.0",verb="GET"} 0.0',
    } <= lines
