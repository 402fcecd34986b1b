"""Objects for the tests of controllers, as short as possible; their pods need no scheduler."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

APPS = "/apis/apps/v1/namespaces/default"
BATCH = "/apis/batch/v1/namespaces/default"


def template(app: str = "web", node: str = "node-0", **spec: Any) -> Object:
    container = {"name": "c", "image": "busybox:1", **spec.pop("container", {})}
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [container], **({"nodeName": node} if node else {}), **spec},
    }


def workload(kind: str, name: str, replicas: int, **spec: Any) -> Object:
    """A Deployment, ReplicaSet or StatefulSet."""
    labels = {"app": name}
    body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template(name), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": body}
