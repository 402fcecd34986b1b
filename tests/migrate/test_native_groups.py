"""What `volcano-py migrate check` finds about groups of scheduling.k8s.io, and what it reads for that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from volcano_py.api.kinds import NATIVE_PODGROUP, NATIVE_PODGROUP_BETA, POD
from volcano_py.api.names import GROUP_NAME
from volcano_py.kube.client import Client
from volcano_py.migrate.native_groups import NativeFacts, native_findings, read_native
from volcano_py.sandbox.cluster import Sandbox

META = {"name": "g", "namespace": "lab"}


def pod(name: str = "g-0", scheduler: str = "volcano", annotated: bool = False, node: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "lab", "annotations": {GROUP_NAME: "podgroup-1"} if annotated else {}}
    spec = {"schedulerName": scheduler, "nodeName": node, "schedulingGroup": {"podGroupName": "g"}}
    return {"metadata": metadata, "spec": {**spec, "containers": [{"name": "c", "image": "x"}]}}


def found(**facts: Any) -> list[tuple[str, str]]:
    return [(weight, what) for weight, what, _ in native_findings(NativeFacts(**facts))]


@pytest.mark.parametrize(
    ("facts", "weight", "words"),
    [
        (
            {"version": "v1alpha2", "groups": [{}, {}], "workloads": [{}]},
            "note",
            "2 PodGroups and 1 Workload of scheduling.k8s.io/v1alpha2 exist",
        ),
        ({"version": "v1alpha2", "workloads": [{}]}, "note", "1 Workload of scheduling.k8s.io/v1alpha2"),
        ({"version": "v1beta1", "groups": [{}], "pods": [pod()]}, "changes", "1 pod of schedulerName volcano names a"),
        ({"version": "v1alpha3", "composites": [{}, {}]}, "changes", "2 CompositePodGroups exist"),
    ],
)
def test_each_difference_is_one_finding(facts: dict[str, Any], weight: str, words: str) -> None:
    [(how, what)] = found(**facts)
    assert how == weight and words in what


def test_pending_pods_with_two_groups_block_and_running_ones_do_not() -> None:
    pods = [pod(f"g-{i}", annotated=True) for i in range(5)] + [pod("old", annotated=True, node="n1")]
    (blocks,) = [what for weight, what in found(version="v1alpha2", pods=pods) if weight == "blocks"]
    assert "5 pending pods (lab/g-0, lab/g-1, lab/g-2 and 2 more) name a PodGroup" in blocks


@pytest.mark.parametrize(
    "facts",
    [{}, {"version": "v1beta1", "groups": [{}]}, {"version": "v1beta1", "pods": [pod(scheduler="default-scheduler")]}],
)
def test_groups_of_other_schedulers_are_no_difference(facts: dict[str, Any]) -> None:
    assert found(**facts) == []


@pytest.mark.parametrize(("version", "kind"), [("1.36", NATIVE_PODGROUP), ("1.37", NATIVE_PODGROUP_BETA)])
async def test_groups_are_read_in_the_version_of_the_cluster(tmp_path: Path, version: str, kind: Any) -> None:
    gates = {"feature_gates": "AllAlpha=true", "kubernetes_version": version}
    async with (
        Sandbox(0, path=tmp_path / "kubeconfig", controllers=None, hollow=False, **gates) as sandbox,  # type: ignore[arg-type]
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        spec = {"schedulingPolicy": {"gang": {"minCount": 1}}}
        await client.create(kind, {"metadata": {"name": "g", "namespace": "default"}, "spec": spec})
        await client.create(POD, pod() | {"metadata": {"name": "g-0", "namespace": "default"}})
        unread: list[str] = []
        facts = await read_native(client, unread)
    assert (facts.version, len(facts.groups), len(facts.pods), unread) == (kind.version, 1, 1, [])


async def test_a_cluster_without_these_kinds_has_no_finding(tmp_path: Path) -> None:
    async with (
        Sandbox(0, path=tmp_path / "kubeconfig", controllers=None, hollow=False) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        unread: list[str] = []
        facts = await read_native(client, unread)
    assert (facts, unread) == (NativeFacts(), [])
