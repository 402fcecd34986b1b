"""The objects of a cluster that determine the differences. Only reads; missing or forbidden kinds are recorded."""

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
from volcano_py.migrate.native_groups import NativeFacts, read_native

Manifest = dict[str, Any]


@dataclass
class Facts:
    """Manifests by kind. `version` is the API server's, such as v1.32.4."""

    version: str = ""
    objects: dict[str, list[Manifest]] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    """Reads that failed, with the reason."""
    native: NativeFacts = field(default_factory=NativeFacts)

    def of(self, rt: ResourceType) -> list[Manifest]:
        return self.objects.get(rt.kind, [])


async def gather(client: Client, namespace: str) -> Facts:
    """Read all facts. `namespace`: that of the Volcano installation. Raises KubeError if the server is unreachable."""
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
    facts.native = await read_native(client, facts.unread)
    return facts
