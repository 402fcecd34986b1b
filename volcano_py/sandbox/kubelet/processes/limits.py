"""A container's resource limits as limits of a process. Kubernetes: the cgroups of a container.

Memory limits the process's data (RLIMIT_DATA: allocated, not merely mapped memory): an allocation beyond it fails, in
each process separately. CPU limits the cores that it may run on, rounded up; with a deadline also its processor time
(RLIMIT_CPU): the product of cores and seconds.
"""

from __future__ import annotations

import math
import os
from itertools import count
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery.quantity import parse

Object = dict[str, Any]

_turn = count()


def available() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def process_limits(pod: Object, container: Object) -> dict[str, Any]:
    """The limits that the supervisor sets before it starts a container."""
    limits = (container.get("resources") or {}).get("limits") or {}
    out: dict[str, Any] = {}
    if "memory" in limits:
        out["data"] = max(math.ceil(parse(str(limits["memory"]))), 1)
    if "cpu" in limits:
        cpu = parse(str(limits["cpu"]))
        ours = available()
        wanted = max(math.ceil(cpu), 1)
        if wanted < len(ours):
            first = next(_turn) * wanted
            out["cores"] = [ours[(first + step) % len(ours)] for step in range(wanted)]
        deadline = pod["spec"].get("activeDeadlineSeconds")
        if deadline:
            out["cpu"] = max(math.ceil(cpu * deadline), 1)
    return out
