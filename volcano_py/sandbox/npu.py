"""Ascend 310P chips without hardware: what their nodes announce, and what pods use of them. Device plugin and templates
of MindCluster.

`vnpu=2:310P` in a shape is a node with two chips of 8 AI cores and 7 AI CPUs. Pods use whole chips or parts by
template, according to the annotation `huawei.com/npu-core`. The agent that reports chips and creates parts is
`controllers.resource.npu_device_plugin`.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

Object = dict[str, Any]

CORES, CPUS = 8, 7
"""AI cores and AI CPUs of a chip."""
GROUPS = 4
"""The groups of AI cores in a chip; a part has a group of its own, two of one AI core share one."""
RESOURCE = ASSIGNED = "huawei.com/npu-core"
DEVICES, REAL = "huawei.com/Ascend310P", "huawei.com/AscendReal"
LABELS = {
    "accelerator": "huawei-Ascend310P",
    "servertype": f"Ascend310P-{CORES}",
    "node.kubernetes.io/npu.chip.name": "310P3",
}
UNHEALTHY = "sandbox/unhealthy-chips"
"""The annotation of a node with the numbers of its unhealthy chips, such as `0,2`."""
TEMPLATES = {
    "vir01": (1, 1),
    "vir02": (2, 2),
    "vir02_1c": (2, 1),
    "vir04": (4, 4),
    "vir04_3c": (4, 3),
    "vir04_3c_ndvpp": (4, 3),
    "vir04_4c_dvpp": (4, 4),
}
"""AI cores and AI CPUs of a part."""


class Use(NamedTuple):
    """What a pod uses: whole chips, or a part of one."""

    chips: tuple[int, ...]
    template: str = ""


def announced(chips: int) -> tuple[dict[str, str], dict[str, str]]:
    """Capacity and annotations of a node."""
    infos = {f"Ascend310P-{i}": {"IP": "", "SuperDeviceID": 0} for i in range(chips)}
    return {RESOURCE: str(chips * CORES)}, {"baseDeviceInfos": json.dumps(infos)}


def chips_of(node: Object) -> list[int]:
    """The chips of a node; empty: it has none."""
    if (node["metadata"].get("labels") or {}).get("accelerator") != LABELS["accelerator"]:
        return []
    infos = read_map((node["metadata"].get("annotations") or {}).get("baseDeviceInfos"))
    numbers = [name.rpartition("-")[2] for name in infos]
    return [int(number) for number in numbers if number.isdecimal()]


def read_map(text: str | None) -> Object:
    """The JSON object in an annotation, which users can change; empty if it is none."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def unhealthy(node: Object) -> list[int]:
    """The unhealthy chips of a node."""
    text = (node["metadata"].get("annotations") or {}).get(UNHEALTHY) or ""
    return [int(part) for part in text.split(",") if part.strip().isdecimal()]


def use_of(pod: Object) -> Use | None:
    """What a pod uses, from its annotation; None: nothing."""
    text = (pod["metadata"].get("annotations") or {}).get(ASSIGNED) or ""
    chip, _, template = text.partition("-")
    if template:
        return Use((int(chip),), template) if chip.isdecimal() else None
    chips = tuple(int(part) for part in text.split(",") if part.isdecimal())
    return Use(chips) if chips else None


def conflict(pod: Object, node: Object, others: list[Object]) -> str:
    """Why the chips of a pod are not available beside other pods; "": they are, or it has none."""
    mine = use_of(pod)
    if mine is None:
        return ""
    if mine.template and mine.template not in TEMPLATES:
        return f"{mine.template} is no template of Ascend 310P"
    uses = [mine, *(use for other in others if (use := use_of(other)) is not None)]
    for chip in mine.chips:
        if chip not in chips_of(node) or chip in unhealthy(node):
            return f"chip Ascend310P-{chip} is not usable on the node"
        parts = [TEMPLATES.get(use.template, (CORES, CPUS)) for use in uses if chip in use.chips]
        if sum(cores for cores, _ in parts) > CORES or sum(cpus for _, cpus in parts) > CPUS:
            return f"chip Ascend310P-{chip} is assigned more than once"
    return ""


def real_device(use: Use, number: int, others: list[str]) -> str:
    """The names of the devices that are created for a pod. `others`: those of the chip's other pods; `number`: of a
    part, unique on the node."""
    if not use.template:
        return ",".join(f"Ascend310P-{chip}" for chip in use.chips)
    cores, cpus = TEMPLATES[use.template]
    shared = use.template == "vir01"
    taken = [(int(name.rpartition("_")[2]), name.startswith("Ascend310P-1c.")) for name in others if "_" in name]
    users = {group: [single for g, single in taken if g == group] for group in range(GROUPS)}
    half_free = [g for g, singles in users.items() if shared and singles == [True]]
    free = [g for g, singles in users.items() if not singles]
    group = next(iter(half_free + free), 0)
    return f"Ascend310P-{cores}c.{cpus}cpu-{100 + number}-{use.chips[0]}_{group}"
