"""Devices of the sandbox: what shapes announce, and kubelets that fail pods whose devices others have."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.sandbox.kubelet.devices import conflict, has_devices, unlock
from volcano_py.sandbox.shapes import manifest, parse
from volcano_py.scheduler.plugins.deviceshare.vgpu_annotations import read_cards

IDS, INDEX = "volcano.sh/vgpu-ids-new", "volcano.sh/gpu-index"


def pod(name: str, annotations: dict[str, str], **limits: int) -> dict[str, Any]:
    resources = {f"volcano.sh/{key.replace('_', '-')}": str(value) for key, value in limits.items()}
    return {
        "metadata": {"name": name, "uid": name, "annotations": annotations},
        "spec": {"containers": [{"resources": {"limits": resources}}]},
    }


def test_a_shape_announces_cards_that_the_scheduler_reads() -> None:
    node = manifest("n0", parse("cpu=4,vgpu=2:A100:40Gi"))
    cards = read_cards(node["metadata"]["annotations"]["volcano.sh/node-vgpu-register"])
    assert cards is not None
    assert [(c.uuid, c.number, c.memory, c.type, c.mode) for c in cards] == [
        (f"GPU-n0-{i}", 10, 40960, "NVIDIA-A100", "hami-core") for i in range(2)
    ]
    assert node["status"]["capacity"]["volcano.sh/vgpu-memory"] == "81920"


@pytest.mark.parametrize(
    "text", ["vgpu=8", "vgpu=0:A100:80Gi", "vgpu=8:A100:lots", "vgpu=8:A100:80Gi:split", "gpu-share=4"]
)
def test_a_bad_shape_states_the_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"write (vgpu|gpu-share)="):
        parse(text)


@pytest.mark.parametrize(
    ("shape", "running", "new", "words"),
    [
        (
            "vgpu=1:A100:40Gi",
            {IDS: "GPU-n-0,NVIDIA,30000,0:"},
            {IDS: "GPU-n-0,NVIDIA,20000,0:"},
            "assigned more than once",
        ),
        (
            "vgpu=1:A100:40Gi",
            {IDS: "GPU-n-0,NVIDIA,1000,60:"},
            {IDS: "GPU-n-0,NVIDIA,1000,60:"},
            "assigned more than once",
        ),
        ("vgpu=1:A100:40Gi", {IDS: "GPU-n-0,NVIDIA,1000,60:"}, {IDS: "GPU-n-0,NVIDIA,1000,40:"}, ""),
        ("vgpu=1:A100:40Gi", {}, {IDS: "GPU-n-7,NVIDIA,1000,0:"}, "not on the node"),
        ("vgpu=1:A30:24Gi:mig", {IDS: "GPU-n-0[q-1],NVIDIA,1,0:"}, {IDS: "GPU-n-0[q-1],NVIDIA,1,0:"}, "another user"),
        ("vgpu=1:A30:24Gi:mig", {IDS: "GPU-n-0[q-1],NVIDIA,1,0:"}, {IDS: "GPU-n-0[q-2],NVIDIA,1,0:"}, ""),
    ],
)
def test_devices_that_are_given_away_twice(
    shape: str, running: dict[str, str], new: dict[str, str], words: str
) -> None:
    node = manifest("n", parse(f"cpu=4,{shape}"))
    found = conflict(pod("new", new), node, [pod("running", running)])
    assert words in found if words else found == ""


@pytest.mark.parametrize(
    ("memory", "number", "words"), [(9, 0, "assigned more than once"), (8, 0, ""), (0, 1, "assigned as a whole")]
)
def test_shared_cards(memory: int, number: int, words: str) -> None:
    node = manifest("n", parse("cpu=4,gpu-share=2:16"))
    running = pod("running", {INDEX: "0"}, gpu_memory=8)
    limits = {"gpu_memory": memory} if memory else {"gpu_number": number}
    found = conflict(pod("new", {INDEX: "0"}, **limits), node, [running])
    assert words in found if words else found == ""


def test_a_node_is_unlocked_when_the_pod_has_its_devices() -> None:
    node = manifest("n", parse("cpu=4,vgpu=1:A100:40Gi"))
    node["metadata"]["annotations"]["hamivgpu"] = "2026-01-01T00:00:00Z"
    plain, with_devices = pod("plain", {}), pod("p", {IDS: "GPU-n-0,NVIDIA,1,0:"})
    assert not has_devices(plain) and has_devices(with_devices)
    unlock(plain, node)
    assert "hamivgpu" in node["metadata"]["annotations"]
    unlock(with_devices, node)
    assert "hamivgpu" not in node["metadata"]["annotations"]
