"""The pod behind a Service: there is no service network, so the API server calls the pod itself.

Kubernetes: kube-proxy, and the service resolver of kube-apiserver.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.registry.api import Api

Object = dict[str, Any]


def endpoint(api: Api, namespace: str, name: str, port: int) -> tuple[str, int]:
    """Address and port of the first running pod of a Service. LookupError contains what is missing."""
    entry = api.resource("", "services").collection.get(namespace, name)
    if entry is None:
        raise LookupError(f'service "{name}" not found')
    spec = entry.load()["spec"]
    row = next((row for row in spec.get("ports") or () if row["port"] == port), None)
    selector = spec.get("selector") or {}
    if row is None or not selector:
        raise LookupError(f'no service port {port} found for service "{name}"')
    for pod in (found.load() for found in api.resource("", "pods").collection.select(namespace)):
        labels = pod["metadata"].get("labels") or {}
        status = pod.get("status") or {}
        if status.get("phase") == "Running" and selector.items() <= labels.items() and status.get("podIP"):
            number = _number(row.get("targetPort", port), pod)
            if number:
                return status["podIP"], number
    raise LookupError(f'no endpoints available for service "{name}"')


def _number(target: int | str, pod: Object) -> int:
    """A target port as a number; 0 for a name that no container of the pod has."""
    if isinstance(target, int):
        return target
    ports = (port for container in pod["spec"]["containers"] for port in container.get("ports") or ())
    return next((port["containerPort"] for port in ports if port.get("name") == target), 0)
