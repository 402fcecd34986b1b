"""The metrics of vGPUs after a session."""

from __future__ import annotations

from volcano_py.scheduler.plugins.deviceshare.ledger import DeviceBooks
from volcano_py.scheduler.runtime.metrics import Metrics
from volcano_py.testing import Cluster

TIERS = [["gang"], ["predicates", {"deviceshare": {"deviceshare.VGPUEnable": True}}]]


def test_each_card_and_each_of_its_pods_has_a_series() -> None:
    cluster = Cluster()
    cluster.add(
        {
            "kind": "Node",
            "metadata": {
                "name": "n",
                "annotations": {"volcano.sh/node-vgpu-register": "GPU-a,10,16384,NVIDIA-A100,true,hami-core:"},
            },
            "status": {
                "allocatable": {
                    "cpu": "4",
                    "memory": "8Gi",
                    "pods": "110",
                    "volcano.sh/vgpu-number": "10",
                    "volcano.sh/vgpu-memory": "16384",
                    "volcano.sh/vgpu-cores": "100",
                }
            },
        }
    )
    limits = {"volcano.sh/vgpu-memory": "4000", "volcano.sh/vgpu-cores": "30"}
    container = {"name": "main", "image": "busybox", "resources": {"limits": limits, "requests": limits}}
    cluster.add_job("g", spec={"containers": [container]})
    assert cluster.schedule(tiers=TIERS).bound == {"g-0": "n"}
    cluster.schedule(tiers=TIERS)
    text = Metrics(lambda: cluster._simulation.cluster.keep(DeviceBooks)).expose().decode()
    card = 'NodeName="n",devID="GPU-a"'
    for name, value in (
        ("shared_number", 1),
        ("allocated_memory", 4000),
        ("allocated_cores", 30),
        ("memory_limit", 16384),
    ):
        assert f"volcano_vgpu_device_{name}{{{card}}} {value}.0" in text
    for what, value in (("memory", 4000), ("core", 30)):
        name = f"volcano_vgpu_device_{what}_allocation_for_a_certain_pod"
        assert f'{name}{{{card},podName="g-0"}} {value}.0' in text
