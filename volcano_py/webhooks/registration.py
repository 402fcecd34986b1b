"""Webhook configurations: address, rules and CA bundle of each webhook. Volcano: chart, webhook manager.

The chart creates one object per path; the webhook manager writes the CA bundle to them. With `--register` it also
creates the objects, for clusters without the chart.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from volcano_py.api.kinds import MUTATINGWEBHOOKCONFIGURATION, VALIDATINGWEBHOOKCONFIGURATION, ResourceType
from volcano_py.kube.client import Client
from volcano_py.kube.errors import NotFound
from volcano_py.webhooks.paths import PATHS, Path

log = logging.getLogger(__name__)

PREFIX = "volcano-admission-service"
TIMEOUT_SECONDS = 10
MANAGER = "volcano-admission"
SYSTEM_NAMESPACE = "kube-system"
VERBS_TO_REGISTER = ("create", "list", "patch")
"""Verbs that `register` needs on both kinds; applying an object that does not exist needs `create`."""
VERBS_TO_INJECT = ("get", "patch")
"""Verbs that `inject` needs on both kinds."""


@dataclass(frozen=True, slots=True)
class Where:
    """The address of the webhook server: a URL, or a Service."""

    url: str = ""
    namespace: str = ""
    service: str = ""

    def client_config(self, path: str) -> dict[str, Any]:
        if self.url:
            return {"url": self.url.rstrip("/") + path}
        return {"service": {"namespace": self.namespace, "name": self.service, "path": path, "port": 443}}

    def exempt_namespaces(self) -> list[str]:
        """Namespaces that the webhooks skip: with `failurePolicy: Fail` the manager's own pods could not be created."""
        return sorted({SYSTEM_NAMESPACE, self.namespace or SYSTEM_NAMESPACE})


def configuration_name(path: Path) -> str:
    return PREFIX + path.path.replace("/", "-")


def configuration_type(path: Path) -> ResourceType:
    return MUTATINGWEBHOOKCONFIGURATION if path.mutates else VALIDATINGWEBHOOKCONFIGURATION


def rule(path: Path) -> dict[str, Any]:
    """The requests that the API server sends to a path."""
    return {
        "apiGroups": [path.rt.group],
        "apiVersions": [path.rt.version],
        "resources": [path.rt.plural],
        "operations": list(path.operations),
        "scope": "*",
    }


def configuration(path: Path, where: Where, bundle: bytes) -> dict[str, Any]:
    """The webhook configuration of one path, as the chart creates it."""
    rt = configuration_type(path)
    webhook = {
        "name": f"{path.webhook}.volcano.sh",
        "admissionReviewVersions": ["v1"],
        "clientConfig": where.client_config(path.path) | {"caBundle": base64.b64encode(bundle).decode()},
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": where.exempt_namespaces()}
            ]
        },
        "objectSelector": {},
        "rules": [rule(path)],
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": TIMEOUT_SECONDS,
    }
    if path.every_namespace:
        del webhook["namespaceSelector"]
    if path.mutates:
        webhook["reinvocationPolicy"] = "Never"
    return {
        "apiVersion": rt.api_version,
        "kind": rt.kind,
        "metadata": {"name": configuration_name(path)},
        "webhooks": [webhook],
    }


async def register(client: Client, paths: Sequence[str], where: Where, bundle: bytes) -> None:
    """Create the webhook configurations of all paths, and update those that differ. Raises KubeError."""
    known: dict[tuple[ResourceType, str], dict[str, Any]] = {}
    for rt in dict.fromkeys(configuration_type(PATHS[name]) for name in paths):
        known |= {(rt, found["metadata"]["name"]): found for found in await client.list(rt)}
    for name in paths:
        path = PATHS[name]
        rt, object_name, wanted = configuration_type(path), configuration_name(path), configuration(path, where, bundle)
        found = known.get((rt, object_name))
        if found is None or not has(found["webhooks"], wanted["webhooks"]):
            await client.patch(rt, object_name, wanted, patch_type="apply", field_manager=MANAGER, force=True)


def has(found: Any, wanted: Any) -> bool:
    """Whether an object has all values that are wanted; it may have more fields, which the API server has added."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(name in found and has(found[name], value) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(map(has, found, wanted))
    return bool(found == wanted)


async def inject(client: Client, paths: Sequence[str], bundle: bytes) -> list[str]:
    """Write the CA bundle to existing webhook configurations. Returns the names of those that do not exist."""
    missing = []
    text = base64.b64encode(bundle).decode()
    for name in paths:
        path = PATHS[name]
        rt, object_name = configuration_type(path), configuration_name(path)
        try:
            found = await client.get(rt, object_name)
        except NotFound:
            missing.append(object_name)
            continue
        patch = [
            operation
            for index, webhook in enumerate(found.get("webhooks") or ())
            if (webhook.get("clientConfig") or {}).get("caBundle") != text
            for operation in (
                # the list may have changed since the read
                {"op": "test", "path": f"/webhooks/{index}/name", "value": webhook["name"]},
                {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": text},
            )
        ]
        if patch:
            await client.patch(rt, object_name, patch, patch_type="json")
            log.info("updated the CA bundle of %s", object_name)
    return missing
