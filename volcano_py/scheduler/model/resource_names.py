"""Names of resources, and which of them are counted per node. Kubernetes: the scheduler's IsScalarResourceName."""

from __future__ import annotations

import re
from functools import lru_cache

from volcano_py.api import names

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
EPHEMERAL_STORAGE = "ephemeral-storage"
NVIDIA_GPU = "nvidia.com/gpu"
ATTACHABLE_PREFIX = "attachable-volumes-"


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_EXTENDED = re.compile(rf"({_LABEL}(?:\.{_LABEL})*)/(?:[A-Za-z0-9][-A-Za-z0-9_.]{{0,61}})?[A-Za-z0-9]", re.ASCII)
_PART_OF_CHIP = re.compile(r"huawei\.com/Ascend\w+-(?:memory|core)", re.ASCII)
_LONGEST_DOMAIN = 253 - len("requests.")
"""The prefix of a resource in a quota; the name must be valid with the prefix, too."""


@lru_cache(maxsize=4096)
def is_scalar_name(name: str) -> bool:
    """Whether kube-scheduler counts this name as a scalar resource (extended, hugepages, native, volumes).

    The percentage of a card's memory, and the memory and cores of Ascend chips, are not amounts of a node: the plugin
    deviceshare evaluates them, and they are not compared with capacity.
    """
    if name == names.VGPU_MEMORY_PERCENTAGE or _PART_OF_CHIP.fullmatch(name):
        return False
    if "/" in name and "kubernetes.io/" not in name:
        qualified = _EXTENDED.fullmatch(name)
        return qualified is not None and len(qualified[1]) <= _LONGEST_DOMAIN and not name.startswith("requests.")
    return name.startswith(("hugepages-", ATTACHABLE_PREFIX)) or "kubernetes.io/" in name
