"""hypothesis strategies: what plugin deviceshare reads: the cards of nodes, and pods that request them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as s

from tests.reference import gpu_share, vgpu
from tests.strategies import Manifest, one_in

A100, V100 = "NVIDIA-A100-SXM4-40GB", "NVIDIA-Tesla V100-SXM2-16GB"
RULES = [{"app": "a"}, {"app": "b", "tier": "x"}]
MIG = {
    "group": "mixed",
    "geometries": [{"name": "2g.10gb", "memory": 10240, "count": 1}, {"name": "1g.5gb", "memory": 5120, "count": 3}],
}
WHOLE = {"group": "whole", "geometries": [{"name": "7g.40gb", "memory": 40960, "count": 1}]}


@s.composite
def with_devices(draw: s.DrawFn, case: Manifest) -> Manifest:
    """The case with plugin deviceshare for one kind of sharing, cards on most nodes, and groups that request them."""
    kind = draw(s.sampled_from(("memory", "number", "vgpu", "vgpu", "mig")))
    objects = case["objects"]
    for node in [o for o in objects if o["kind"] == "Node"]:
        if not one_in(draw, 6):
            draw(add_cards(node, kind))
    cards = {o["metadata"]["name"]: o for o in objects if o["kind"] == "Node"}
    for group in [o for o in objects if o["kind"] == "PodGroup"]:
        if one_in(draw, 4):
            continue
        wanted = draw(requests(kind))
        for pod in [p for p in objects if p["kind"] == "Pod" and _group_of(p) == group["metadata"]["name"]]:
            amounts = draw(requests(kind)) if one_in(draw, 8) else wanted
            annotations = draw(constraints(kind)) if kind in ("vgpu", "mig") else {}
            _request(pod, amounts, annotations)
            if one_in(draw, 10):
                spec = pod["spec"] = {k: v for k, v in pod["spec"].items() if k != "resources"}
                spec["containers"] = [*spec["containers"], {**spec["containers"][0], "name": "second"}]
            if pod["spec"].get("nodeName") in cards and not one_in(draw, 6):
                draw(assign(pod, cards[pod["spec"]["nodeName"]], kind))
    if kind == "mig":
        factor = draw(s.sampled_from((1, 1, 2)))
        known = [{"models": ["A100"], "allowedGeometries": [MIG, WHOLE]}]
        text = json.dumps({"nvidia": {"knownMigGeometries": known, "gpuMemoryFactor": factor}})
        meta = {"name": "volcano-vgpu-device-config", "namespace": "kube-system", "uid": "device-config"}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"device-config.yaml": text}}
        objects = [*objects, config]
    conf = json.loads(case["conf"])
    tiers = [tier for tier in conf["tiers"] if tier["plugins"]]
    if not any(p["name"] == "predicates" for tier in tiers for p in tier["plugins"]):
        tiers[-1]["plugins"].append({"name": "predicates"})  # in Volcano it allocates the devices
    plugins = draw(s.sampled_from(tiers))["plugins"]
    plugins.insert(draw(s.integers(0, len(plugins))), {"name": "deviceshare", "arguments": draw(arguments(kind))})
    return {**case, "objects": objects, "conf": json.dumps(conf)}


def _group_of(pod: Manifest) -> str:
    return str((pod["metadata"].get("annotations") or {}).get("scheduling.k8s.io/group-name", ""))


def _request(pod: Manifest, amounts: dict[str, str], annotations: dict[str, str]) -> None:
    """The first container requests the amounts. Pods share their containers, so these are replaced."""
    first, *others = pod["spec"]["containers"]
    resources = first.get("resources") or {}
    changed = {name: {**(resources.get(name) or {}), **amounts} for name in ("requests", "limits")}
    pod["spec"] = {**pod["spec"], "containers": [{**first, "resources": {**resources, **changed}}, *others]}
    meta = pod["metadata"]
    meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}


@s.composite
def add_cards(draw: s.DrawFn, node: Manifest, kind: str) -> None:
    count = draw(s.sampled_from((1, 2, 2, 4)))
    name = node["metadata"]["name"]
    annotations: dict[str, str] = {}
    if kind in ("memory", "number"):
        offered = {gpu_share.MEMORY: str(count * draw(s.sampled_from((8, 10, 16)))), gpu_share.NUMBER: str(count)}
        if one_in(draw, 5):
            annotations[gpu_share.UNHEALTHY] = draw(s.sampled_from(("0", "1", "0,1")))
    else:
        shares = draw(s.sampled_from((1, 2, 2, 4)))
        model, memory = (V100, 16384) if one_in(draw, 3) else (A100, 40960)
        mode = "mig" if kind == "mig" and not one_in(draw, 4) else "hami-core"
        records = [f"GPU-{name}-{i},{shares},{memory},{model},true,{mode}:" for i in range(count)]
        annotations[vgpu.REGISTER] = "".join(records)
        total = str(count * memory)
        offered = {vgpu.COUNT: str(count * shares), vgpu.MEMORY: total, vgpu.CORES: str(count * 100)}
    status, meta = node["status"], node["metadata"]
    status["capacity"] = {**status["allocatable"], **(status.get("capacity") or {}), **offered}
    status["allocatable"] = {**status["allocatable"], **offered}
    meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}


@s.composite
def requests(draw: s.DrawFn, kind: str) -> dict[str, str]:
    if kind == "memory":
        return {gpu_share.MEMORY: draw(s.sampled_from(("2", "4", "5", "8", "9", "16")))}
    if kind == "number":
        return {gpu_share.NUMBER: draw(s.sampled_from(("1", "1", "2", "3")))}
    found = {vgpu.COUNT: draw(s.sampled_from(("1", "1", "1", "2")))}
    if not one_in(draw, 4):
        found[vgpu.MEMORY] = draw(s.sampled_from(("4000", "5000", "8000", "10000", "16384")))
    if draw(s.booleans()):
        found[vgpu.CORES] = draw(s.sampled_from(("10", "30", "50", "60", "100")))
    return found


@s.composite
def constraints(draw: s.DrawFn, kind: str) -> dict[str, str]:
    found: dict[str, str] = {}
    if one_in(draw, 8):
        found["volcano.sh/vgpu-podgroup-policy"] = "spread"
    if one_in(draw, 8):
        name = draw(s.sampled_from(("nvidia.com/use-gputype", "nvidia.com/nouse-gputype")))
        found[name] = draw(s.sampled_from(("A100", "v100", "H100,V100")))
    if one_in(draw, 8):
        name = draw(s.sampled_from(("volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid")))
        found[name] = draw(s.sampled_from(("GPU-n0-0", "GPU-n1-0,GPU-n0-1")))
    if one_in(draw, 2 if kind == "mig" else 10):
        found["volcano.sh/vgpu-mode"] = draw(s.sampled_from(("mig", "mig", "hami-core")))
    return found


@s.composite
def assign(draw: s.DrawFn, pod: Manifest, node: Manifest, kind: str) -> None:
    """A running pod holds a card of its node, or what is left of one that has disappeared."""
    meta = pod["metadata"]
    name = node["metadata"]["name"]
    card = draw(s.sampled_from((0, 0, 1, 1, 2)))
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    if kind in ("memory", "number"):
        found = {gpu_share.INDEX: str(card)}
    else:
        memory = limits.get(vgpu.MEMORY, "16384")
        place = f"[mixed-{draw(s.integers(0, 3))}]" if kind == "mig" and draw(s.booleans()) else ""
        found = {vgpu.IDS: f"GPU-{name}-{card}{place},NVIDIA,{memory},{limits.get(vgpu.CORES, '0')}:"}
    meta["annotations"] = {**(meta.get("annotations") or {}), **found}


@s.composite
def arguments(draw: s.DrawFn, kind: str) -> Manifest:
    switches = {"memory": "GPUSharingEnable", "number": "GPUNumberEnable", "vgpu": "VGPUEnable", "mig": "VGPUEnable"}
    found: dict[str, Any] = {f"deviceshare.{switches[kind]}": True}
    if draw(s.booleans()):
        found["deviceshare.SchedulePolicy"] = draw(s.sampled_from(("binpack", "spread")))
        found["deviceshare.ScheduleWeight"] = draw(s.sampled_from((0, 1, 10, 10, -1)))
    if kind == "vgpu" and one_in(draw, 4):
        found["deviceshare.GPUExclusiveRules"] = RULES
    return found
