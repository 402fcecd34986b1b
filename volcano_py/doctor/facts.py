"""What the doctor reads from a cluster: objects of the installation, rights, the server's time. Only reads, and reviews
of rights, which store nothing."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

from volcano_py.api.kinds import (
    CONFIGMAP,
    CUSTOMRESOURCEDEFINITION,
    DEPLOYMENT,
    HYPERNODE,
    LEASE,
    MUTATINGWEBHOOKCONFIGURATION,
    NODE,
    POD,
    PODGROUP,
    QUEUE,
    SERVICE,
    VALIDATINGWEBHOOKCONFIGURATION,
    VOLCANO,
    ResourceType,
)
from volcano_py.api.meta import parse_time
from volcano_py.kube import definitions
from volcano_py.kube.client import Client
from volcano_py.kube.errors import ApiError, KubeError, NotFound

Manifest = dict[str, Any]
SANDBOX = "volcano-py-sandbox"
"""The gitCommit in the version of the sandbox's API server."""
NODE_LEASES = "kube-node-lease"
Right = tuple[str, str, str]
"""Verb, API group, and resource with its subresource."""

OWN_RIGHTS: tuple[Right, ...] = (
    ("create", "batch.volcano.sh", "jobs"),
    ("list", "batch.volcano.sh", "jobs"),
    ("list", "scheduling.volcano.sh", "queues"),
    ("list", "scheduling.volcano.sh", "podgroups"),
    ("list", "", "pods"),
    ("get", "", "pods/log"),
    ("list", "", "nodes"),
)
"""What `vcctl`, `vcctl explain` and the Python client need."""
PROGRAM_RIGHTS: dict[str, tuple[Right, ...]] = {
    "scheduler": (
        ("create", "", "pods/binding"),
        ("patch", "", "pods/status"),
        ("list", "", "nodes"),
        ("list", "scheduling.volcano.sh", "podgroups"),
        ("update", "coordination.k8s.io", "leases"),
    ),
    "controller-manager": (
        ("create", "", "pods"),
        ("delete", "", "pods"),
        ("list", "batch.volcano.sh", "jobs"),
        ("create", "scheduling.volcano.sh", "podgroups"),
        ("update", "coordination.k8s.io", "leases"),
    ),
}
"""What programs of the installation cannot do without."""


@dataclass
class Facts:
    """`objects`: by kind. `older`: missing parts of CRDs. `denied`: rights of the user. `denied_programs`: rights by
    program and service account. `skew`: seconds that this machine is ahead of the API server."""

    namespace: str = "volcano-system"
    version: str = ""
    sandbox: bool = False
    skew: float | None = None
    now: float = 0.0
    """The time of the API server."""
    objects: dict[str, list[Manifest]] = field(default_factory=dict)
    leases: list[Manifest] = field(default_factory=list)
    node_leases: list[Manifest] = field(default_factory=list)
    older: dict[str, list[str]] = field(default_factory=dict)
    denied: list[Right] = field(default_factory=list)
    denied_programs: dict[tuple[str, str], list[Right]] = field(default_factory=dict)
    user: str = ""
    unread: list[str] = field(default_factory=list)

    def of(self, rt: ResourceType) -> list[Manifest]:
        return self.objects.get(rt.kind, [])

    def read(self, rt: ResourceType) -> bool:
        """Whether a kind could be read."""
        return rt.kind in self.objects


async def gather(client: Client, namespace: str) -> Facts:
    """Read all facts. Raises KubeError if the API server cannot be reached or does not accept the user."""
    version = json.loads(await client.raw("GET", "/version"))
    facts = Facts(namespace, version.get("gitVersion", ""), version.get("gitCommit") == SANDBOX, now=time.time())
    await _clock(client, facts)
    everywhere = (
        CUSTOMRESOURCEDEFINITION,
        NODE,
        POD,
        QUEUE,
        PODGROUP,
        HYPERNODE,
        MUTATINGWEBHOOKCONFIGURATION,
        VALIDATINGWEBHOOKCONFIGURATION,
    )
    inside = (DEPLOYMENT, CONFIGMAP, SERVICE)
    for rt, where in [*((rt, None) for rt in everywhere), *((rt, namespace) for rt in inside)]:
        found = await _list(client, rt, where, facts)
        if found is not None:
            facts.objects[rt.kind] = found
    facts.leases = await _list(client, LEASE, namespace, facts) or []
    facts.node_leases = await _list(client, LEASE, NODE_LEASES, facts) or []
    facts.older = await definitions.missing_parts(client, VOLCANO)
    facts.denied = [right for right in OWN_RIGHTS if not await _allowed(client, right, facts)]
    for deployment in facts.of(DEPLOYMENT):
        for program in programs_of(deployment):
            account = deployment["spec"]["template"]["spec"].get("serviceAccountName") or "default"
            user = f"system:serviceaccount:{namespace}:{account}"
            rights = PROGRAM_RIGHTS.get(program, ())
            denied = [right for right in rights if not await _allowed(client, right, facts, user)]
            if denied:
                facts.denied_programs[(program, account)] = denied
    return facts


def programs_of(deployment: Manifest) -> list[str]:
    """Which programs of volcano_py a Deployment runs: `scheduler`, `controller-manager`, …"""
    found = []
    for container in deployment["spec"]["template"]["spec"].get("containers") or ():
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        known = ("scheduler", "controller-manager", "webhook-manager", "hypernode-controller")
        found += [word for word in words if word in known][:1]
    return found


async def _list(client: Client, rt: ResourceType, namespace: str | None, facts: Facts) -> Any:
    try:
        return [dict(found) for found in await client.list(rt, namespace)]
    except NotFound:
        return []  # its CRD is not installed
    except ApiError as error:
        if error.status == 401:
            raise
        facts.unread.append(f"{rt.plural}: {error}")
        return None


async def _clock(client: Client, facts: Facts) -> None:
    """The time of the API server, in whole seconds, and the name of the user: from a SelfSubjectReview."""
    body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).encode()
    begun = time.time()
    try:
        answer = json.loads(
            await client.raw("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=body, retries=0)
        )
    except ApiError as error:
        facts.unread.append(f"selfsubjectreviews: {error}")
        return
    ended = time.time()
    facts.user = str(((answer.get("status") or {}).get("userInfo") or {}).get("username", ""))
    stamp = (answer.get("metadata") or {}).get("creationTimestamp")
    if not stamp:
        return
    served = parse_time(str(stamp))
    # the stamp has no fraction: the server's time was within [served, served + 1)
    if begun > served + 1:
        facts.skew = begun - served - 1
    elif ended < served:
        facts.skew = ended - served
    else:
        facts.skew = 0.0
    facts.now = begun - facts.skew


async def _allowed(client: Client, right: Right, facts: Facts, user: str = "") -> bool:
    """Whether the user, or another one, has a right; True if that cannot be found out."""
    verb, group, resource = right
    plural, _, subresource = resource.partition("/")
    kind = "SubjectAccessReview" if user else "SelfSubjectAccessReview"
    attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
    if user and plural == "leases":
        attributes["namespace"] = facts.namespace
    spec: Manifest = {"resourceAttributes": attributes}
    if user:
        _, _, namespace, _ = user.split(":")
        spec |= {"user": user, "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]}
    body = json.dumps({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}).encode()
    try:
        answer = json.loads(await client.raw("POST", f"/apis/authorization.k8s.io/v1/{kind.lower()}s", body=body))
    except KubeError as error:
        text = f"{kind.lower()}s: {error}"
        facts.unread += [text] if text not in facts.unread else []
        return True
    return bool((answer.get("status") or {}).get("allowed", True))
