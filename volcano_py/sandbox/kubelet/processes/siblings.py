"""Which host names belong to pods of the same headless Service, so that words like `main.py` are not replaced."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from volcano_py.sandbox.kubelet.processes.references import Lookup

Object = dict[str, Any]

HOSTS_SUFFIX = ".host"  # keys of the ConfigMap that Volcano's svc plugin mounts, a host of a task in each line
BATCH_JOB = "batch.kubernetes.io/job-name"


def is_sibling(pod: Object, lookup: Lookup) -> Callable[[str], bool]:
    """Whether a host name is, or will be, that of a pod with this pod's subdomain.

    There are three sources: the svc plugin's ConfigMap; the existing pods; and an indexed Job's name.
    """
    namespace, subdomain = pod["metadata"]["namespace"], pod["spec"]["subdomain"]
    listed = set(_listed(pod, lookup))
    job = (pod["metadata"].get("labels") or {}).get(BATCH_JOB)
    indexed = re.compile(rf"{re.escape(job)}-\d+") if job else None

    def check(host: str) -> bool:
        if f"{host}.{subdomain}" in listed or (indexed is not None and indexed.fullmatch(host)):
            return True
        other = lookup("pods", namespace, host)
        return other is not None and other["spec"].get("subdomain") == subdomain

    return check


def _listed(pod: Object, lookup: Lookup) -> list[str]:
    out: list[str] = []
    for volume in pod["spec"].get("volumes") or []:
        name = (volume.get("configMap") or {}).get("name")
        found = lookup("configmaps", pod["metadata"]["namespace"], name) if name else None
        for key, value in ((found or {}).get("data") or {}).items():
            if key.endswith(HOSTS_SUFFIX):
                out += value.split()
    return out
