"""What a pod requests. Volcano: GetPodResourceRequest, GetPodResourceWithoutInitContainers; kube-scheduler: non-zero
requests."""

from __future__ import annotations

from volcano_py.api import quantity
from volcano_py.api.core import Container, ContainerStatus, Pod, ResourceList
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.model.resource_names import CPU, MEMORY, PODS

DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024
"""What kube-scheduler's least/most-allocated scoring counts for a container that requests nothing."""


def pod_request(pod: Pod) -> Resource:
    """The pod's request with init containers, sidecars, pod-level resources and overhead, and one of `pods`.

    Raises ValueError with the container, the resource and the value for invalid quantities.
    """
    spec = pod.spec
    regular = _statuses(pod.status.container_statuses)
    total = Resource()
    for c in spec.containers or ():
        total.add(_container_request(c, regular.get(c.name), pod))
    sidecars, peak = Resource(), Resource()
    inits = _statuses(pod.status.init_container_statuses)
    for c in spec.init_containers or ():
        if c.restart_policy == "Always":
            q = _container_request(c, inits.get(c.name), pod)
            total.add(q)
            sidecars.add(q)
            peak.set_max(sidecars)
        else:
            peak.set_max(_container_request(c, None, pod).add(sidecars))
    total.set_max(peak)
    total.add_scalar(PODS, 1.0)
    _pod_level(pod, total)
    if spec.overhead:
        total.add(_parse(spec.overhead, "spec.overhead"))
    return total


def pod_request_without_init(pod: Pod) -> Resource:
    """The regular containers alone, pod-level resources and overhead; no `pods`."""
    total = Resource()
    regular = _statuses(pod.status.container_statuses)
    for c in pod.spec.containers or ():
        total.add(_container_request(c, regular.get(c.name), pod))
    _pod_level(pod, total)
    if pod.spec.overhead:
        total.add(_parse(pod.spec.overhead, "spec.overhead"))
    return total


def pod_limit(pod: Pod) -> Resource:
    """The pod's limits, combined as requests are; overhead counts only where there is a limit. No `pods`."""
    total, sidecars, peak = Resource(), Resource(), Resource()
    for c in pod.spec.containers or ():
        total.add(_limits(c))
    for c in pod.spec.init_containers or ():
        mine = _limits(c)
        if c.restart_policy == "Always":
            total.add(mine)
            sidecars.add(mine)
            peak.set_max(sidecars)
        else:
            peak.set_max(mine.add(sidecars))
    total.set_max(peak)
    if pod.spec.overhead:
        for name, amount in _parse(pod.spec.overhead, "spec.overhead").as_dict().items():
            if total[name] > 0:
                total[name] = total[name] + amount
    return total


def _limits(c: Container) -> Resource:
    return _parse(c.resources.limits, f"container {c.name!r}: resources.limits")


def non_zero_request(pod: Pod) -> tuple[int, int]:
    """(milli-cpu, memory bytes) with kube-scheduler's defaults for containers that request none."""
    cpu = memory = 0
    regular, inits = _statuses(pod.status.container_statuses), _statuses(pod.status.init_container_statuses)
    for c in pod.spec.containers or ():
        one = _non_zero(c, regular.get(c.name), pod)
        cpu, memory = cpu + one[0], memory + one[1]
    side_cpu = side_memory = peak_cpu = peak_memory = 0
    for c in pod.spec.init_containers or ():
        c_cpu, c_memory = _non_zero(c, inits.get(c.name) if c.restart_policy == "Always" else None, pod)
        if c.restart_policy == "Always":
            cpu, memory = cpu + c_cpu, memory + c_memory
            side_cpu, side_memory = side_cpu + c_cpu, side_memory + c_memory
            c_cpu, c_memory = side_cpu, side_memory
        else:
            c_cpu, c_memory = c_cpu + side_cpu, c_memory + side_memory
        peak_cpu, peak_memory = max(peak_cpu, c_cpu), max(peak_memory, c_memory)
    cpu, memory = max(cpu, peak_cpu), max(memory, peak_memory)
    level = (pod.spec.resources.requests if pod.spec.resources else None) or {}
    if CPU in level:
        cpu = quantity.milli_value(level[CPU])
    if MEMORY in level:
        memory = quantity.value(level[MEMORY])
    overhead = pod.spec.overhead or {}
    return (
        cpu + quantity.milli_value(overhead.get(CPU, 0)),
        memory + quantity.value(overhead.get(MEMORY, 0)),
    )


def _non_zero(c: Container, status: ContainerStatus | None, pod: Pod) -> tuple[int, int]:
    requests = c.resources.requests or {}
    if status is not None and status.resources is not None:
        counted = _container_request(c, status, pod)
        named = {*requests} if not _resize_infeasible(pod) else set()
        named.update(status.resources.requests or (), status.allocated_resources or ())
        return (
            int(counted[CPU]) if CPU in named else DEFAULT_MILLI_CPU,
            int(counted[MEMORY]) if MEMORY in named else DEFAULT_MEMORY,
        )
    return (
        quantity.milli_value(requests[CPU]) if CPU in requests else DEFAULT_MILLI_CPU,
        quantity.value(requests[MEMORY]) if MEMORY in requests else DEFAULT_MEMORY,
    )


def _statuses(statuses: list[ContainerStatus] | None) -> dict[str, ContainerStatus]:
    return {s.name: s for s in statuses or () if s.resources or s.allocated_resources}


def _container_request(c: Container, status: ContainerStatus | None, pod: Pod) -> Resource:
    requests = _parse(c.resources.requests, f"container {c.name!r}: resources.requests")
    if status is None or status.resources is None:
        return requests
    # A resize in progress counts with the larger amount; an infeasible one does not count at all.
    actual = _parse(status.resources.requests, f"container {c.name!r}: status.resources.requests")
    allocated = _parse(status.allocated_resources, f"container {c.name!r}: status.allocatedResources")
    if not _resize_infeasible(pod):
        actual = requests.set_max(actual)
    return actual.set_max(allocated)


def _resize_infeasible(pod: Pod) -> bool:
    return any(c.type == "PodResizePending" and c.reason == "Infeasible" for c in pod.status.conditions or ())


def _pod_level(pod: Pod, total: Resource) -> None:
    if pod.spec.resources and pod.spec.resources.requests:
        level = _parse(pod.spec.resources.requests, "spec.resources.requests")
        for name in pod.spec.resources.requests:
            if name in (CPU, MEMORY) or name.startswith("hugepages-"):
                total[name] = level[name]


def _parse(amounts: ResourceList | None, where: str) -> Resource:
    try:
        r = Resource.parse(amounts)
    except ValueError as e:
        raise ValueError(f"{where}.{e}") from None
    for name, amount in r.as_dict().items():
        if amount < 0:
            raise ValueError(f"{where}.{name}: {(amounts or {}).get(name)} is negative; use 0 or more")
    return r
