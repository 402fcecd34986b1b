"""What `volcano-py migrate check` finds, each difference in a cluster that has only it."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.api.kinds import VOLCANO
from volcano_py.migrate.facts import Facts
from volcano_py.migrate.findings import findings
from volcano_py.scheduler.run_once import REGISTRY

PARITY = 'actions: "allocate"\ntiers: [{plugins: [{name: gang}]}]\ndeviations: parity\n'
CRDS = [{"metadata": {"name": f"{rt.plural}.{rt.group}"}} for rt in VOLCANO]


def workload(kind: str, image: str, *arguments: str) -> dict[str, list[Any]]:
    containers = [{"image": image, "args": list(arguments)}]
    return {kind: [{"metadata": {"name": "w"}, "spec": {"template": {"spec": {"containers": containers}}}}]}


def conf(text: str) -> dict[str, list[Any]]:
    return {
        "ConfigMap": [{"metadata": {"name": "volcano-scheduler-configmap"}, "data": {"volcano-scheduler.conf": text}}]
    }


def texts(version: str = "v1.34.0", **objects: Any) -> list[tuple[str, str]]:
    found = findings(Facts(version, {"CustomResourceDefinition": CRDS, **objects}), REGISTRY)
    return [(finding.weight, finding.what) for finding in found]


def test_a_cluster_that_would_behave_the_same() -> None:
    assert texts(**conf(PARITY)) == []


JOB = {"metadata": {"namespace": "lab", "name": "train"}, "spec": {"plugins": {"horovod": [], "svc": []}}}
HYPERNODE = {
    "metadata": {"name": "rack"},
    "spec": {"members": [{"selector": {"regexMatch": {"pattern": "node(?!-gpu)"}}}]},
}


@pytest.mark.parametrize(
    ("objects", "weight", "text"),
    [
        (conf(PARITY.replace("gang", "magic")), "blocks", "plugin magic does not exist"),
        (conf(PARITY.replace("allocate", "dance")), "blocks", 'failed to find Action "dance"'),
        (conf(PARITY.replace("deviations: parity", "")), "changes", "decisions differ where Volcano has a fault"),
        (workload("Deployment", "x/vc-scheduler:1", "--plugins-dir=/p"), "blocks", "compiled plugins (.so)"),
        (workload("Deployment", "x/vc-scheduler:1", "--leader-elect=false"), "note", "runs without the Lease"),
        (workload("Deployment", "x/vc-agent-scheduler:1"), "blocks", "w is the agent scheduler"),
        (workload("DaemonSet", "x/vc-agent:1"), "changes", "w is the node agent"),
        ({"Job": [JOB]}, "blocks", "job plugin horovod of lab/train does not exist"),
        ({"HyperNode": [HYPERNODE]}, "blocks", "is not RE2"),
        ({"Job": [{**JOB, "spec": {"plugins": {"ssh": []}}}]}, "changes", "1 Jobs use the plugin ssh"),
        ({"CustomResourceDefinition": CRDS[1:]}, "note", "1 CRDs are not installed"),
        (
            {"ValidatingWebhookConfiguration": [{"metadata": {"name": "volcano-admission-service-nodes-validate"}}]},
            "blocks",
            "for a path that volcano_py does not have",
        ),
        ({"Queue": [{"metadata": {"name": "q"}, "spec": {"parent": "p"}}]}, "changes", "1 queues have a parent"),
        ({"JobFlow": [{"metadata": {"name": "f"}, "spec": {"flows": [{"patch": {}}]}}]}, "changes", "1 JobFlows"),
    ],
)
def test_differences(objects: dict[str, list[Any]], weight: str, text: str) -> None:
    [(found, what)] = texts(**objects)
    assert found == weight and text in what


def test_an_old_api_server() -> None:
    [(weight, what)] = texts("v1.29.3")
    assert (weight, what) == ("blocks", "the API server is v1.29.3")


def test_what_cannot_be_read_is_named() -> None:
    facts = Facts("v1.34.0", {"CustomResourceDefinition": CRDS}, ["queues: forbidden"])
    [finding] = findings(facts, REGISTRY)
    assert finding.what == "not read: queues: forbidden"
