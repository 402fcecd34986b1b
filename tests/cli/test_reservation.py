"""`vcctl reservation` on a sandbox, whose API server evaluates the rules of the CRD and of admission."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Vcctl
from volcano_py.api.kinds import CONFIGMAP, POD, PODGROUP
from volcano_py.cli.vcctl_reservation import manifest
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox

EMPTY: dict[str, Any] = {
    "name": "r",
    "start": "now",
    "end": "",
    "duration": "1h",
    "nodes": "",
    "node_selector": "",
    "node_count": None,
    "resources": "",
}


def test_flags_become_a_manifest() -> None:
    flags = {**EMPTY, "start": "+2h", "nodes": "a,b", "resources": "cpu=4,nvidia.com/gpu=8", "queues": ("q",)}
    spec = manifest(0.0, **flags, selectors=("exam=yes",))["spec"]
    assert spec == {
        "startTime": "1970-01-01T02:00:00Z",
        "duration": "1h",
        "nodes": ["a", "b"],
        "resources": {"cpu": "4", "nvidia.com/gpu": "8"},
        "owners": [{"queue": "q"}, {"labelSelector": {"matchLabels": {"exam": "yes"}}}],
    }


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"nodes": "a", "duration": ""}, "set either --duration or --end"),
        ({"nodes": "a", "end": "+3h"}, "set either --duration or --end"),
        ({}, "it names no node"),
        ({"nodes": "a", "start": "noon"}, "--start: invalid time 'noon'"),
        ({"nodes": "a", "start": "+noon"}, "--start: invalid duration 'noon'"),
        ({"node_selector": "rack"}, "--node-selector: 'rack' is not key=value"),
    ],
)
def test_bad_flags_are_named(flags: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        manifest(0.0, **{**EMPTY, **flags})


async def test_reservations_on_a_cluster(tmp_path: Path, vcctl: Vcctl, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Sandbox(nodes=1, path=tmp_path / "kubeconfig", components=()) as sandbox:
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        create = ("reservation", "create", "-n")
        code, out = await vcctl(*create, "class", "--duration", "2h", "--nodes", "node-0", "--queue", "course")
        assert (code, out.strip()) == (0, "Created Reservation: class")
        code, out = await vcctl("rsv", "list")
        assert code == 0 and "queue=course" in out and "+2h" in out and "<none>" in out
        code, out = await vcctl("reservation", "list", "-o", "wide")
        assert code == 0 and "Message" in out
        code, out = await vcctl("reservation", "describe", "-n", "class")
        assert code == 0 and yaml.safe_load(out)["spec"]["owners"] == [{"queue": "course"}]
        code, out = await vcctl(*create, "again", "--duration", "1h", "--nodes", "node-0", "--queue", "other")
        assert code != 0 and "node node-0 is reserved by Reservation class" in " ".join(out.split())
        code, out = await vcctl(*create, "maintenance", "--duration", "1h", "--nodes", "node-0", "-o", "name")
        assert code == 0 and "reservation.reservation.volcano.sh/maintenance" in out
        code, out = await vcctl("reservation", "delete", "-n", "class")
        assert (code, out.strip()) == (0, "Deleted Reservation: class")
        for spec, text in (
            ("{duration: 0s, nodes: [a]}", "duration must be above 0s"),
            ("{duration: 9000h, nodes: [a]}", "at most 366 days"),
            ("{duration: 1h}", "name nodes: set nodes, nodeSelector, nodeCount or resources"),
            ("{duration: 1h, endTime: '2099-01-01T01:00:00Z', nodes: [a]}", "set either duration or endTime"),
            ("{endTime: '2098-01-01T01:00:00Z', nodes: [a]}", "endTime must be after startTime"),
            ("{duration: 1h, nodes: [a], owners: [{}]}", "set queue, namespace, owner or labelSelector"),
            ("{duration: 1h, nodeCount: 0}", "nodeCount"),
        ):
            file = tmp_path / "r.yaml"
            body = {"startTime": "2099-01-01T00:00:00Z", **yaml.safe_load(spec)}
            head = {"apiVersion": "reservation.volcano.sh/v1alpha1", "kind": "Reservation", "metadata": {"name": "bad"}}
            file.write_text(yaml.safe_dump({**head, "spec": body}))
            code, out = await vcctl("reservation", "create", "-f", str(file))
            assert code != 0 and text in " ".join(out.split()), (spec, out)


async def test_a_job_that_a_reservation_delays_is_explained(
    tmp_path: Path, vcctl: Vcctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = (
        "actions: 'enqueue, allocate'\n"
        "tiers:\n- plugins: [{name: gang}, {name: predicates}, {name: advance-reservation}]\n"
    )
    async with (
        Sandbox(nodes=1, path=tmp_path / "kubeconfig", components=()) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        data = {"data": {"volcano-scheduler.conf": conf}}
        await client.patch(CONFIGMAP, "volcano-scheduler-configmap", data, "volcano-system")
        await client.create(PODGROUP, {"metadata": {"name": "g"}, "spec": {"minMember": 1}}, "default")
        pod = {
            "metadata": {"name": "g-0", "annotations": {"scheduling.k8s.io/group-name": "g"}},
            "spec": {"schedulerName": "volcano", "containers": [{"name": "main", "image": "busybox"}]},
        }
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
        await client.create(POD, pod, "default")
        code, _ = await vcctl("reservation", "create", "-n", "exam", "--duration", "2h", "--nodes", "node-0")
        assert code == 0
        _, out = await vcctl("explain", "podgroup", "g")
        words = " ".join(out.split())
        assert "kept by a Reservation into which the pod may run" in words, out
        assert "Reservation exam from 20" in words and "for no one" in words
