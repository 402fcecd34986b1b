"""The templates by which MindCluster divides an Ascend 310P chip, and the template that a pod requests. Volcano:
ascend310p/vnpu/utils.go, GetPodResource.
"""

from __future__ import annotations

from typing import NamedTuple

from volcano_py.api import names
from volcano_py.api.core import Container, Pod
from volcano_py.scheduler.plugins.deviceshare.device_type import limit

JOB_KIND = "ascend-310P"
YES, NO, NULL = "yes", "no", "null"
"""Whether a vNPU has the video units (DVPP) of its chip: all of them, none, or a share."""
LOW, HIGH = "low", "high"


class Amount(NamedTuple):
    """AI cores, AI CPUs and video units."""

    cores: int
    cpus: int
    dvpp: str = NULL


TEMPLATES = {
    "vir01": Amount(1, 1),
    "vir02": Amount(2, 2),
    "vir02_1c": Amount(2, 1),
    "vir04": Amount(4, 4),
    "vir04_3c": Amount(4, 3),
    "vir04_3c_ndvpp": Amount(4, 3, NO),
    "vir04_4c_dvpp": Amount(4, 4, YES),
}
DOWNGRADES = {"vir02": "vir02_1c", "vir04": "vir04_3c"}
"""The template with fewer AI CPUs that a pod gets where its own does not fit."""
CPUS_OF_CHIP = {8: 7, 10: 7}
"""The AI CPUs of a chip, by its AI cores."""


class VnpuDemand(NamedTuple):
    """The demand of a pod. `template`: if the cores are not those of whole chips; "": no template has them. `error`:
    why the request is invalid."""

    cores: int
    template: str = ""
    error: str = ""


def demand_of(pod: Pod) -> VnpuDemand | None:
    """The demand of a pod; None: it does not request Ascend 310P cores of MindCluster."""
    labels = pod.metadata.labels or {}
    containers = pod.spec.containers or ()
    if labels.get(names.NPU_JOB_KIND) != JOB_KIND:
        return None
    if all(limit(c.resources.limits, names.NPU_CORE) is None for c in containers):
        return None
    cores = next((n for c in containers if (n := _cores(c))), 0)
    if cores <= 0:
        return None
    dvpp = labels.get(names.NPU_DVPP, NULL)
    if dvpp not in (YES, NO, NULL):
        return VnpuDemand(cores, error=f"label {names.NPU_DVPP} is {dvpp!r}; use yes, no or null")
    return VnpuDemand(cores, template_of(cores, labels.get(names.NPU_LEVEL) == HIGH, dvpp))


def _cores(c: Container) -> int:
    requested = limit(c.resources.requests, names.NPU_CORE)
    return requested if requested is not None else limit(c.resources.limits, names.NPU_CORE) or 0


def template_of(cores: int, high: bool, dvpp: str) -> str:
    """The template for a number of cores; "" if there is none. Video units and the level matter for 4 cores, the level
    for 2."""
    if cores == 1:
        return "vir01"
    if cores == 2:
        return "vir02" if high else "vir02_1c"
    if cores != 4:
        return ""
    if dvpp == NULL:
        return "vir04" if high else "vir04_3c"
    return "vir04_4c_dvpp" if dvpp == YES else "vir04_3c_ndvpp"
