"""References of environment variables and volumes: fields of the pod, resources of its containers, other objects.

Kubernetes: the kubelet's fieldpath package.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery.quantity import parse

Object = dict[str, Any]
Lookup = Callable[[str, str, str], Object | None]  # collection, namespace, name

_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


def field(pod: Object, path: str) -> str:
    """The value of a fieldRef; an empty text for a missing field."""
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    keyed = _KEYED.fullmatch(path)
    if keyed:
        return str((meta.get(keyed[1]) or {}).get(keyed[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        rows = meta.get(path.partition(".")[2]) or {}
        return "\n".join(f"{key}={json.dumps(rows[key])}" for key in sorted(rows))
    if path in ("status.podIPs", "status.hostIPs"):
        return ",".join(row["ip"] for row in status.get(path.partition(".")[2]) or [])
    if path == "spec.serviceAccountName":
        return str(spec.get("serviceAccountName") or "default")
    head, _, key = path.partition(".")
    return str({"metadata": meta, "spec": spec, "status": status}.get(head, {}).get(key, ""))


def resource(pod: Object, container: Object, reference: Object, allocatable: Object) -> str:
    """The value of a resourceFieldRef in units of its divisor, rounded up; without a limit, the node's capacity."""
    name = reference.get("containerName")
    if name:
        everyone = [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or [])]
        container = next((one for one in everyone if one["name"] == name), container)
    kind, _, resource_name = reference["resource"].partition(".")
    rows = (container.get("resources") or {}).get(kind) or {}
    amount = rows.get(resource_name)
    if amount is None:
        amount = allocatable.get(resource_name, "0") if kind == "limits" else "0"
    divisor = parse(str(reference.get("divisor") or "1")) or 1
    return str(math.ceil(parse(str(amount)) / divisor))


def data(kind: str, obj: Object) -> dict[str, bytes]:
    """The keys of a ConfigMap or Secret."""
    if kind == "secrets":
        return {key: base64.b64decode(value or "") for key, value in (obj.get("data") or {}).items()}
    out = {key: str(value).encode() for key, value in (obj.get("data") or {}).items()}
    out |= {key: base64.b64decode(value or "") for key, value in (obj.get("binaryData") or {}).items()}
    return out
