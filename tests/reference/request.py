"""What a pod asks for. Volcano: GetPodResourceRequest; kube-scheduler: PodRequests with and without defaults."""

from __future__ import annotations

from typing import Any

from tests.reference.resource import Resource, parse

NON_ZERO_CPU = 100.0
NON_ZERO_MEMORY = 200.0 * 1024 * 1024
"""What a container that does not ask for cpu or memory counts in kube-scheduler's LeastAllocated."""
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
    """kube-scheduler's request, as its NodeInfo sums it up."""
    r = _containers(pod, non_zero)
    _pod_level(pod, r)
    if pod["spec"].get("overhead"):
        r.add(parse(pod["spec"]["overhead"]))
    return r


def _containers(pod: dict[str, Any], non_zero: bool) -> Resource:
    r = Resource()
    for container in pod["spec"].get("containers") or []:
        r.add(_container(container, non_zero))
    sidecars = Resource()
    peak = Resource()
    for container in pod["spec"].get("initContainers") or []:
        q = _container(container, non_zero)
        if container.get("restartPolicy") == "Always":
            r.add(q)
            sidecars.add(q)
            now = sidecars.clone()
        else:
            now = q.clone().add(sidecars)
        peak.set_max(now)
    r.set_max(peak)
    return r


def _container(container: dict[str, Any], non_zero: bool) -> Resource:
    requests = (container.get("resources") or {}).get("requests") or {}
    r = parse(requests)
    if non_zero and "cpu" not in requests:
        r.cpu = NON_ZERO_CPU
    if non_zero and "memory" not in requests:
        r.memory = NON_ZERO_MEMORY
    return r


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
