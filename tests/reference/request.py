"""Requests and limits of pods. Volcano: GetPodResourceRequest, GetPodResourceLimit; kube-scheduler: PodRequests."""

from __future__ import annotations

from typing import Any

from tests.reference.resource import Resource, parse

NON_ZERO_CPU = 100.0
NON_ZERO_MEMORY = 200.0 * 1024 * 1024
"""The default request of a container without cpu or memory in kube-scheduler's LeastAllocated."""
_POD_LEVEL = ("cpu", "memory")


def pod_request(pod: dict[str, Any]) -> Resource:
    """Volcano's request: with one of `pods`."""
    r = _containers(pod, non_zero=False)
    r.add_scalar("pods", 1.0)
    _pod_level(pod, r)
    if pod["spec"].get("overhead"):
        r.add(parse(pod["spec"]["overhead"]))
    return r


def kube_request(pod: dict[str, Any], non_zero: bool) -> Resource:
    """kube-scheduler's request, as summed up in its NodeInfo."""
    r = _containers(pod, non_zero)
    _pod_level(pod, r)
    if pod["spec"].get("overhead"):
        r.add(parse(pod["spec"]["overhead"]))
    return r


def pod_limit(pod: dict[str, Any]) -> Resource:
    """Volcano's limit: like the request, but the overhead is only added to resources that have a limit."""
    r = Resource()
    status = pod.get("status") or {}
    for container in pod["spec"].get("containers") or []:
        r.add(_limit(container, pod, status.get("containerStatuses")))
    sidecars = Resource()
    peak = Resource()
    for container in pod["spec"].get("initContainers") or []:
        if container.get("restartPolicy") == "Always":
            limit = _limit(container, pod, status.get("initContainerStatuses"))
            r.add(limit)
            sidecars.add(limit)
            peak.set_max(sidecars)
        else:
            peak.set_max(_limit(container, pod, None).add(sidecars))
    r.set_max(peak)
    own = (pod["spec"].get("resources") or {}).get("limits") or {}
    r.cpu = parse(own).cpu if "cpu" in own else r.cpu
    r.memory = parse(own).memory if "memory" in own else r.memory
    overhead = parse(pod["spec"].get("overhead"))
    r.cpu += overhead.cpu if r.cpu else 0.0
    r.memory += overhead.memory if r.memory else 0.0
    return r


def _limit(container: dict[str, Any], pod: dict[str, Any], statuses: list[dict[str, Any]] | None) -> Resource:
    r = parse((container.get("resources") or {}).get("limits"))
    status = next((s for s in statuses or [] if s["name"] == container.get("name")), {})
    if status.get("resources") is not None:
        given = parse(status["resources"].get("limits"))
        if _cannot_be_resized(pod):
            return given
        r.set_max(given)
    return r


def _containers(pod: dict[str, Any], non_zero: bool) -> Resource:
    status = pod.get("status") or {}
    r = Resource()
    for container in pod["spec"].get("containers") or []:
        r.add(_container(container, non_zero, pod, status.get("containerStatuses")))
    sidecars = Resource()
    peak = Resource()
    for container in pod["spec"].get("initContainers") or []:
        is_sidecar = container.get("restartPolicy") == "Always"
        q = _container(container, non_zero, pod, status.get("initContainerStatuses") if is_sidecar else None)
        if is_sidecar:
            r.add(q)
            sidecars.add(q)
            now = sidecars.clone()
        else:
            now = q.clone().add(sidecars)
        peak.set_max(now)
    r.set_max(peak)
    return r


def _container(
    container: dict[str, Any], non_zero: bool, pod: dict[str, Any], statuses: list[dict[str, Any]] | None
) -> Resource:
    sources = [(container.get("resources") or {}).get("requests") or {}]
    status = next((s for s in statuses or [] if s["name"] == container.get("name")), {})
    if status.get("resources") is not None:  # with a resize: the larger of the requested and the allocated resources
        given = [status["resources"].get("requests") or {}, status.get("allocatedResources") or {}]
        sources = given if _cannot_be_resized(pod) else [*sources, *given]
    r = Resource()
    for requests in sources:
        r.set_max(parse(requests))
    if non_zero and not any("cpu" in requests for requests in sources):
        r.cpu = NON_ZERO_CPU
    if non_zero and not any("memory" in requests for requests in sources):
        r.memory = NON_ZERO_MEMORY
    return r


def _cannot_be_resized(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(c["type"] == "PodResizePending" and c.get("reason") == "Infeasible" for c in conditions)


def _pod_level(pod: dict[str, Any], r: Resource) -> None:
    wanted = (pod["spec"].get("resources") or {}).get("requests") or {}
    known = {k: v for k, v in wanted.items() if k in _POD_LEVEL or k.startswith("hugepages-")}
    amounts = parse(known)
    if "cpu" in known:
        r.cpu = amounts.cpu
    if "memory" in known:
        r.memory = amounts.memory
    for name, amount in (amounts.scalars or {}).items():
        if r.scalars is None:
            r.scalars = {}
        r.scalars[name] = amount
