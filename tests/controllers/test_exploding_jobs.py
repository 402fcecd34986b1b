"""Jobs from which much would follow: what one user submits does not end the controllers of all."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from tests.controllers.world import job
from volcano_py.api.batch import Job
from volcano_py.api.codec import from_manifest
from volcano_py.api.scheduling import PodGroup, Queue
from volcano_py.controllers.executor import AT_ONCE, Executor
from volcano_py.controllers.instructions import Create, Together
from volcano_py.controllers.job.observed import Observed, Unready
from volcano_py.controllers.job.pod_creates import PodCreates
from volcano_py.controllers.job.reconcile import reconcile
from volcano_py.controllers.job.request import Request, decide
from volcano_py.kube.errors import Invalid

MIB = 1 << 20


def large(replicas: int, *, environment: int = 0, names: int = 1, plugins: dict[str, Any] | None = None) -> Job:
    """A Job that may create its pods."""
    variables = [{"name": f"V{i}", "value": "x" * environment} for i in range(names)] if environment else []
    container = {"name": "main", "image": "busybox", "env": variables}
    task = {
        "name": "worker",
        "replicas": replicas,
        "minAvailable": 1,
        "template": {"spec": {"containers": [container]}},
    }
    found = from_manifest(Job, job(task, plugins=plugins or {}))
    found.metadata.uid = "uid-1"
    found.status.state.phase = "Pending"
    return found


def creations(one: Job) -> PodCreates:
    """The pods that a sync creates."""
    group = from_manifest(PodGroup, {"metadata": {"name": "g", "namespace": "lab", "uid": "g"}})
    group.status.phase = "Inqueue"
    seen = Observed(job=one, pods=[], podgroup=group, queue=Queue(), now=1000.0)
    made = reconcile(seen, Request(), decide(one, Request()))
    (together,) = (step for step in made if isinstance(step, Together))
    assert isinstance(together.instructions, PodCreates)
    return together.instructions


def test_the_pods_of_a_large_job_are_not_all_in_memory() -> None:
    """At once they would need 100 GiB."""
    one = large(100_000, environment=100_000, names=10)
    tracemalloc.start()
    try:
        found = creations(one)
        names = {create.obj["metadata"]["name"] for create in found[99_990:]}
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found) == 100_000 and len(names) == 10
    assert peak < 64 * MIB


@pytest.mark.parametrize("plugin", ["tensorflow", "mpi"])
def test_a_variable_that_no_container_can_have(plugin: str) -> None:
    """Each of 20,000 pods would list all of them."""
    if plugin == "mpi":
        one = large(20_000, plugins={"mpi": ["--master=worker", "--worker=worker"]})
    else:
        one = large(20_000, plugins={"tensorflow": []})
    with pytest.raises(Unready, match=r"characters in each pod; Linux starts no container .*: use fewer replicas"):
        creations(one)
    one.spec.tasks[0].replicas = 1000  # type: ignore[index]
    assert len(creations(one)) == 1000


class _Rejecting:
    """An API server that rejects all pods, or those with an odd number."""

    def __init__(self, odd_only: bool) -> None:
        self.requests = 0
        self._odd_only = odd_only

    async def create(self, rt: Any, obj: dict[str, Any]) -> dict[str, Any]:
        self.requests += 1
        if self._odd_only and int(obj["metadata"]["name"].rpartition("-")[2]) % 2 == 0:
            return obj
        raise Invalid(422, "Invalid", "the pod is too large")


@pytest.mark.parametrize(("odd_only", "requests"), [(False, 2 * AT_ONCE), (True, 1000)])
async def test_if_the_first_pods_are_rejected_the_others_are_not_tried(odd_only: bool, requests: int) -> None:
    api = _Rejecting(odd_only)
    one = large(1000)
    executor = Executor(api)  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        await executor.carry_out([Together(creations(one))], one)
    assert AT_ONCE <= api.requests <= requests
    assert odd_only == (api.requests == 1000)


async def test_a_plugin_that_fails_for_a_later_pod_is_reported_after_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = large(10)
    found = creations(one)
    made = found._made

    def fails(task: Any, index: int) -> Create:
        if index == 5:
            raise Unready("PluginError", "index 5")
        return made(task, index)

    monkeypatch.setattr(found, "_made", fails)
    api = _Rejecting(True)
    with pytest.raises(Invalid):
        await Executor(api).carry_out([Together(found)], one)  # type: ignore[arg-type]
    assert api.requests == 5
