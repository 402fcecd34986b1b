"""ResourceQuotas and LimitRanges."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.sandbox.clients import CONFIGMAPS, PODS, Http, pod
from volcano_py.sandbox.apiserver.admission.limits import pod_total

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
RANGES = "/api/v1/namespaces/default/limitranges"


def using(name: str, **requests: str) -> dict[str, Any]:
    """A pod with requests that runs until it is deleted."""
    body = pod(name)
    body["spec"]["containers"][0]["resources"] = {"requests": requests}
    return body


async def counted(api: Http, **used: str) -> None:
    """Wait until the quota's status says so."""
    seen: dict[str, str] = {}
    for _ in range(100):
        seen = (await api.ok("GET", f"{QUOTAS}/q"))["status"].get("used") or {}
        if {key: seen.get(key) for key in used} == used:
            return
        await asyncio.sleep(0.03)
    raise AssertionError(seen)


def quota(**hard: str) -> dict[str, Any]:
    return {"metadata": {"name": "q"}, "spec": {"hard": hard}}


async def test_a_quota_counts_existing_objects_and_denies_more(api: Http) -> None:
    await api.ok("POST", PODS, using("old", cpu="250m"))
    await api.ok("POST", QUOTAS, quota(pods="2", cpu="1", **{"count/configmaps": "3"}))
    await counted(api, pods="1", cpu="250m")
    status, answer = await api.call("POST", PODS, using("big", cpu="800m"))
    assert status == 403
    assert answer["message"] == (
        'pods "big" is forbidden: exceeded quota: q, requested: cpu=800m, used: cpu=250m, limited: cpu=1'
    )
    status, answer = await api.call("POST", PODS, pod("plain"))
    assert status == 403 and "failed quota: q: must specify cpu for: c" in answer["message"]
    await api.ok("POST", PODS, using("fits", cpu="500m"))
    await counted(api, pods="2", cpu="750m")
    status, answer = await api.call("POST", PODS, using("one-more", cpu="1m"))
    assert status == 403 and "requested: pods=1, used: pods=2, limited: pods=2" in answer["message"]


async def test_what_is_deleted_is_free_again(api: Http) -> None:
    await api.ok("POST", QUOTAS, quota(pods="1"))
    await counted(api, pods="0")
    await api.ok("POST", PODS, pod("a"))
    assert (await api.call("POST", PODS, pod("b")))[0] == 403
    await api.ok("DELETE", f"{PODS}/a?gracePeriodSeconds=0")
    await counted(api, pods="0")
    await api.ok("POST", PODS, pod("b"))


async def test_a_dry_run_is_checked_but_not_counted(api: Http) -> None:
    await api.ok("POST", QUOTAS, quota(**{"count/configmaps": "1"}))
    await counted(api, **{"count/configmaps": "0"})
    await api.ok("POST", CONFIGMAPS + "?dryRun=All", {"metadata": {"name": "a"}})
    await api.ok("POST", CONFIGMAPS, {"metadata": {"name": "a"}})
    status, _ = await api.call("POST", CONFIGMAPS + "?dryRun=All", {"metadata": {"name": "b"}})
    assert status == 403


async def test_scopes_choose_the_pods(api: Http) -> None:
    body = quota(pods="1")
    body["spec"]["scopes"] = ["BestEffort"]
    await api.ok("POST", QUOTAS, body)
    await counted(api, pods="0")
    await api.ok("POST", PODS, pod("a"))
    await api.ok("POST", PODS, using("b", cpu="1"))
    assert (await api.call("POST", PODS, pod("c")))[0] == 403
    await counted(api, pods="1")


async def test_limit_ranges_fill_in_and_deny(api: Http) -> None:
    limit = {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "1"}}
    await api.ok("POST", RANGES, {"metadata": {"name": "l"}, "spec": {"limits": [limit]}})
    made = await api.ok("POST", PODS, pod("a"))
    assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}}
    assert made["status"]["qosClass"] == "Burstable"
    said = made["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
    assert said == "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    big = pod("b")
    big["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "3"}}
    status, answer = await api.call("POST", PODS, big)
    assert status == 403 and "maximum cpu usage per Container is 1, but limit is 3" in answer["message"]


async def test_a_contradictory_limit_range_is_invalid(api: Http) -> None:
    limit = {"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}
    status, answer = await api.call("POST", RANGES, {"metadata": {"name": "l"}, "spec": {"limits": [limit]}})
    assert status == 422
    assert "spec.limits[0].min[cpu]" in [cause["field"] for cause in answer["details"]["causes"]]


def resources(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": "x", "resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    ("first", "main", "total"),
    [
        ([], ["1", "500m"], "1500m"),
        ([resources("4")], ["1"], "4"),
        ([resources("1", restartPolicy="Always"), resources("2")], ["1"], "3"),
        ([resources("2"), resources("1", restartPolicy="Always")], ["2"], "3"),
    ],
)
def test_a_pod_needs_the_most_that_runs_at_once(first: list[Any], main: list[str], total: str) -> None:
    spec = {"initContainers": first, "containers": [resources(cpu) for cpu in main]}
    assert pod_total(spec, "requests") == {"cpu": total}
