"""What `volcano-py migrate check` finds, each difference in a cluster that has only it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from volcano_py import __version__
from volcano_py.api.kinds import VOLCANO
from volcano_py.migrate.facts import Facts
from volcano_py.migrate.findings import findings
from volcano_py.migrate.image import DEFAULT_IMAGE
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
        ({"CustomResourceDefinition": CRDS[1:]}, "note", "1 CRD is not installed"),
        ({"Job": [{**JOB, "spec": {"plugins": {"ssh": []}}}]}, "changes", "1 Job uses the plugin ssh"),
        (
            {"ValidatingWebhookConfiguration": [{"metadata": {"name": "volcano-admission-service-nodes-validate"}}]},
            "blocks",
            "for a path that volcano_py does not have",
        ),
        ({"Queue": [{"metadata": {"name": "q"}, "spec": {"parent": "p"}}]}, "changes", "1 queue has a parent"),
        (
            {"JobFlow": [{"metadata": {"name": "f"}, "spec": {"flows": [{"patch": {}}]}}]},
            "changes",
            "1 JobFlow has",
        ),
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


def test_arguments_that_moved_to_another_plugin() -> None:
    text = PARITY.replace("{name: gang}", "{name: predicates, arguments: {predicate.GPUSharingEnable: true, x: 1}}")
    moved, unknown = findings(Facts("v1.34.0", {"CustomResourceDefinition": CRDS, **conf(text)}), REGISTRY)
    assert (moved.weight, unknown.weight) == ("changes", "note")
    assert "predicate.GPUSharingEnable is ignored: the plugin deviceshare shares GPUs" in moved.what
    assert moved.remedy == "add it with the argument deviceshare.GPUSharingEnable: true"
    assert "argument x is unknown and ignored" in unknown.what and unknown.remedy.startswith("valid values are ")


def having(*names: str, images: int = 1) -> dict[str, Any]:
    listed = [{"names": list(names)}, *({"names": [f"other-{i}"]} for i in range(images - 1))]
    return {"metadata": {"name": "n"}, "status": {"images": listed}}


MINE = f"volcano-py/volcano-py:{__version__}"


@pytest.mark.parametrize(
    ("nodes", "image", "weight", "text"),
    [
        ([having(f"docker.io/{MINE}")], MINE, "", ""),
        ([having(f"localhost/{MINE}")], MINE, "", ""),
        ([having("other:1"), having("other:1")], MINE, "blocks", "is on none of the 2 nodes, and names no registry"),
        ([having(MINE), having("other:1")], MINE, "blocks", "is on 1 of 2 nodes, and names no registry"),
        ([having("other:1")], f"reg.example/{MINE}", "note", "is not on the node; the others pull it"),
        ([having("other:1", images=50)], MINE, "note", "is not on the node"),
        ([], MINE, "", ""),
    ],
)
def test_the_image_is_looked_for(nodes: list[dict[str, Any]], image: str, weight: str, text: str) -> None:
    facts = Facts("v1.34.0", {"CustomResourceDefinition": CRDS, "Node": nodes})
    found = [(f.weight, f.what) for f in findings(facts, REGISTRY, image)]
    assert [each for each, _ in found] == ([weight] if weight else [])
    assert all(text in what and image in what for _, what in found)


def test_the_image_is_that_of_the_chart() -> None:
    root = Path(__file__).parents[2] / "charts" / "volcano"
    values = yaml.safe_load((root / "values.yaml").read_text())["image"]
    version = yaml.safe_load((root / "Chart.yaml").read_text())["appVersion"]
    assert f"{values['repository']}:{version}" == DEFAULT_IMAGE
