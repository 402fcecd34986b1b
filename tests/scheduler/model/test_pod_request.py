"""What a pod requests: containers, init containers, sidecars, resizes, pod-level amounts."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.scheduler.model.jobs.pod_request import (
    DEFAULT_MEMORY,
    DEFAULT_MILLI_CPU,
    non_zero_request,
    pod_request,
    pod_request_without_init,
)
from volcano_py.scheduler.model.resource import Resource

Manifest = dict[str, Any]


def pod(spec: Manifest, **status: Any) -> Pod:
    made: Pod = from_manifest(Pod, {"metadata": {"name": "p", "namespace": "d"}, "spec": spec, "status": status})
    return made


def container(name: str, cpu: str, **more: Any) -> Manifest:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}


def cpu(spec: Manifest, **status: Any) -> float:
    return pod_request(pod(spec, **status)).milli_cpu


def test_containers_run_together_and_init_containers_one_after_the_other() -> None:
    inits = [container("i", "5"), container("j", "2")]
    assert cpu({"containers": [container("a", "1"), container("b", "2")]}) == 3000
    assert cpu({"containers": [container("a", "1")], "initContainers": inits}) == 5000
    assert pod_request_without_init(pod({"containers": [container("a", "1")], "initContainers": inits})) == Resource(
        1000
    )


def test_sidecars_count_for_later_init_containers() -> None:
    sidecar = container("s", "1", restartPolicy="Always")
    assert cpu({"containers": [container("a", "1")], "initContainers": [sidecar, container("i", "3")]}) == 4000
    assert cpu({"containers": [container("a", "1")], "initContainers": [container("i", "3"), sidecar]}) == 3000
    assert cpu({"containers": [container("a", "4")], "initContainers": [sidecar, container("i", "3")]}) == 5000


def test_pod_level_amounts_replace_the_sum_and_overhead_is_added() -> None:
    spec = {
        "containers": [container("a", "1")],
        "resources": {"requests": {"cpu": "3", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "1"}},
        "overhead": {"cpu": "500m"},
    }
    assert pod_request(pod(spec)) == Resource(3500, 0, {"pods": 1, "hugepages-2Mi": 4 * 2**20 * 1000})
    assert pod_request_without_init(pod(spec)) == Resource(3500, 0, {"hugepages-2Mi": 4 * 2**20 * 1000})


def test_a_resize_counts_with_the_larger_amount_unless_infeasible() -> None:
    def status(now: str, allocated: str) -> list[Manifest]:
        return [{"name": "a", "resources": {"requests": {"cpu": now}}, "allocatedResources": {"cpu": allocated}}]

    spec = {"containers": [container("a", "4")]}
    assert cpu(spec, containerStatuses=status("1", "2")) == 4000
    assert cpu(spec, containerStatuses=status("6", "2")) == 6000
    assert cpu(spec, containerStatuses=status("1", "7")) == 7000
    infeasible = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    assert cpu(spec, containerStatuses=status("1", "2"), conditions=infeasible) == 2000


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"containers": [container("a", "-1")]},
            "container 'a': resources.requests.cpu: -1 is negative; use 0 or more",
        ),
        ({"containers": [container("a", "x")]}, "container 'a': resources.requests.cpu"),
        ({"containers": [], "overhead": {"cpu": "-1"}}, "spec.overhead.cpu: -1 is negative"),
    ],
)
def test_errors_contain_the_invalid_amount(spec: Manifest, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        pod_request(pod(spec))


def test_containers_without_requests_count_with_defaults_for_scores() -> None:
    none = {"name": "a"}
    assert non_zero_request(pod({"containers": [none]})) == (DEFAULT_MILLI_CPU, DEFAULT_MEMORY)
    assert non_zero_request(pod({"containers": [container("a", "1"), none]})) == (1100, 2 * DEFAULT_MEMORY)


def test_init_containers_sidecars_and_overhead_count_for_scores_as_well() -> None:
    sidecar = container("s", "1", restartPolicy="Always")
    spec: Manifest = {"containers": [container("a", "1")], "initContainers": [sidecar, container("i", "3")]}
    assert non_zero_request(pod(spec)) == (4000, 2 * DEFAULT_MEMORY)
    spec |= {"resources": {"requests": {"cpu": "9", "memory": "1Ki"}}, "overhead": {"cpu": "1", "memory": "1Ki"}}
    assert non_zero_request(pod(spec)) == (10_000, 2048)
