"""A cluster that looks as one where the chart is installed and works, and what the doctor finds there."""

from __future__ import annotations

import base64
import datetime
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from volcano_py import __version__
from volcano_py.api.kinds import (
    DEPLOYMENT,
    LEASE,
    POD,
    SERVICE,
    VALIDATINGWEBHOOKCONFIGURATION,
    ResourceType,
)
from volcano_py.api.resource_types import SERVICEACCOUNT
from volcano_py.doctor import facts as reading
from volcano_py.doctor.facts import gather
from volcano_py.doctor.finding import Finding
from volcano_py.doctor.installation import installation_findings
from volcano_py.doctor.objects import object_findings
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox

Manifest = dict[str, Any]
NAMESPACE = "volcano-system"
CLUSTER_ROLES = ResourceType("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = ResourceType(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
WEBHOOK = "volcano-admission-service-jobs-validate"


def ca(days: float) -> str:
    """A CA bundle that ends after some days."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - datetime.timedelta(days=400))
    signed = made.not_valid_after(now + datetime.timedelta(days=days)).sign(key, hashes.SHA256())
    from cryptography.hazmat.primitives.serialization import Encoding

    return base64.b64encode(signed.public_bytes(Encoding.PEM)).decode()


def deployment(name: str, program: str, image: str = f"r.example/volcano-py:{__version__}") -> Manifest:
    labels = {"app": name}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": name,
                    "containers": [{"name": "main", "image": image, "args": [program, "--leader-elect=true"]}],
                },
            },
        },
    }


def controllers(tag: str) -> Any:
    """The spec of the controllers' Deployment with another tag."""
    return deployment("volcano-controllers", "controller-manager", f"r.example/volcano-py:{tag}")["spec"]


def lease(name: str) -> Manifest:
    spec = {"holderIdentity": "pod-1", "leaseDurationSeconds": 15, "renewTime": now()}
    return {"metadata": {"name": name}, "spec": spec}


def now(seconds: float = 0.0) -> str:
    moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def ready(node: str) -> Manifest:
    have = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    conditions = [{"type": "Ready", "status": "True"}]
    return {"metadata": {"name": node}, "status": {"allocatable": have, "capacity": have, "conditions": conditions}}


@asynccontextmanager
async def healthy(folder: Path) -> AsyncIterator[tuple[Sandbox, Client]]:
    """A cluster that looks as one where the chart is installed and works."""
    async with (
        Sandbox(
            [ready("node-0"), ready("node-1")], path=folder / "kubeconfig", hollow=False, controllers=None
        ) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        for name, program in (
            ("volcano-scheduler", "scheduler"),
            ("volcano-controllers", "controller-manager"),
            ("volcano-admission", "webhook-manager"),
        ):
            await client.create(DEPLOYMENT, deployment(name, program), NAMESPACE)
            await client.patch(DEPLOYMENT, name, {"status": READY}, NAMESPACE, subresource="status")
            await client.create(SERVICEACCOUNT, {"metadata": {"name": name}}, NAMESPACE)
            rights = reading.PROGRAM_RIGHTS.get(program, ())
            rules = [{"apiGroups": [g], "resources": [r], "verbs": [v]} for v, g, r in rights]
            await client.create(CLUSTER_ROLES, {"metadata": {"name": name}, "rules": rules})
            await client.create(BINDINGS, binding(name))
        for name in ("volcano", "vc-controller-manager"):
            await client.create(LEASE, lease(name), NAMESPACE)
        await client.create(
            SERVICE,
            {
                "metadata": {"name": "volcano-admission-service"},
                "spec": {"selector": {"app": "volcano-admission"}, "ports": [{"port": 443}]},
            },
            NAMESPACE,
        )
        await client.create(POD, pod("admission-1", {"app": "volcano-admission"}), NAMESPACE)
        await client.patch(POD, "admission-1", {"status": POD_READY}, NAMESPACE, subresource="status")
        service = {"namespace": NAMESPACE, "name": "volcano-admission-service", "path": "/jobs/validate"}
        rule = {"apiGroups": ["x.example"], "apiVersions": ["v1"], "resources": ["x"], "operations": ["CREATE"]}
        webhook = {
            "name": "validatejob.volcano.sh",
            "clientConfig": {"service": service, "caBundle": ca(300)},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        await client.create(VALIDATINGWEBHOOKCONFIGURATION, {"metadata": {"name": WEBHOOK}, "webhooks": [webhook]})
        yield sandbox, client


READY = {"replicas": 1, "readyReplicas": 1}
POD_READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def binding(name: str) -> Manifest:
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
    }


def pod(name: str, labels: dict[str, str] | None = None, scheduler: str = "default-scheduler") -> Manifest:
    annotations = {"scheduling.k8s.io/group-name": "g"} if scheduler != "default-scheduler" else {}
    return {
        "metadata": {"name": name, "labels": labels or {}, "annotations": annotations},
        "spec": {"schedulerName": scheduler, "containers": [{"name": "main", "image": "i"}]},
    }


async def examined(client: Client) -> list[Finding]:
    found = await gather(client, NAMESPACE)
    found.sandbox = False  # its API server is that of the sandbox, the installation is not
    assert not found.unread
    return [*installation_findings(found), *object_findings(found)]
