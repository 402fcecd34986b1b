"""What is read of a cluster to find out what would differ. Only reads; a kind that is missing or forbidden is noted."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from volcano_py.api.kinds import (
    CONFIGMAP,
    CUSTOMRESOURCEDEFINITION,
    DAEMONSET,
    DEPLOYMENT,
    HYPERNODE,
    JOB,
    JOBFLOW,
    MUTATINGWEBHOOKCONFIGURATION,
    NODE,
    PODGROUP,
    QUEUE,
    VALIDATINGWEBHOOKCONFIGURATION,
    ResourceType,
)
from volcano_py.kube.client import Client
from volcano_py.kube.errors import ApiError, NotFound

Manifest = dict[str, Any]


@dataclass
class Facts:
    """Manifests by kind. `version` is the API server's, such as v1.32.4."""

    version: str = ""
    objects: dict[str, list[Manifest]] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    """What could not be read, and why."""

    def of(self, rt: ResourceType) -> list[Manifest]:
        return self.objects.get(rt.kind, [])


async def gather(client: Client, namespace: str) -> Facts:
    """Read everything. `namespace` is that of Volcano's installation. Raises KubeError when the server is away."""
    facts = Facts(json.loads(await client.raw("GET", "/version"))["gitVersion"])
    cluster = (
        QUEUE,
        JOB,
        PODGROUP,
        JOBFLOW,
        HYPERNODE,
        NODE,
        CUSTOMRESOURCEDEFINITION,
        MUTATINGWEBHOOKCONFIGURATION,
        VALIDATINGWEBHOOKCONFIGURATION,
    )
    for rt, where in [*((rt, None) for rt in cluster), *((rt, namespace) for rt in (DEPLOYMENT, DAEMONSET, CONFIGMAP))]:
        try:
            facts.objects[rt.kind] = [dict(found) for found in await client.list(rt, where)]
        except NotFound:
            facts.objects[rt.kind] = []  # its CRD is not installed
        except ApiError as error:
            facts.unread.append(f"{rt.plural}: {error}")
    return facts
