"""The chart's roles and the requests of its programs: none is forbidden, and no permission is superfluous.

Everything that a program can do is done once on a sandbox whose audit log shows the requests. A permission that no
request needs must have a row in `NOT_SHOWN`, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from tests import waiting
from tests.chart.cluster import NAMESPACE, Audited, Cluster, audited, cluster
from tests.chart.rendering import of_kind, rendered
from tests.chart.workloads import exercise

pytestmark = pytest.mark.slow

VALUES = Path(__file__).parent / "values" / "permissions.yaml"
COMPONENTS = ("scheduler", "controllers", "admission", "hypernode-controller")
ACCOUNTS = tuple(f"volcano-{component}" for component in COMPONENTS)

Permission = tuple[str, str, str, str]
"""Service account, API group, resource with subresource, verb."""

WATCH, CHANGE = ("list", "watch"), ("get", "patch")
VOLUMES_AND_DEVICES = (
    *(("resource.k8s.io", kind) for kind in ("deviceclasses", "devicetaintrules", "resourceclaims", "resourceslices")),
    *(("storage.k8s.io", kind) for kind in ("csidrivers", "csistoragecapacities", "volumeattachments")),
)

NOT_SHOWN: dict[Permission, str] = {
    ("volcano-scheduler", "coordination.k8s.io", "leases", "create"): "the chart's Lease was deleted",
    ("volcano-controllers", "coordination.k8s.io", "leases", "create"): "the chart's Lease was deleted",
    ("volcano-hypernode-controller", "coordination.k8s.io", "leases", "create"): "the chart's Lease was deleted",
    ("volcano-scheduler", "", "events", "patch"): "an Event that repeats",
    ("volcano-controllers", "", "events", "patch"): "an Event that repeats",
    ("volcano-hypernode-controller", "", "events", "patch"): "an Event that repeats",
    ("volcano-hypernode-controller", "", "events", "create"): "a mistake in the discovery's configuration",
    ("volcano-controllers", "batch.volcano.sh", "jobs/finalizers", "update"): "checked by an admission plugin only",
    ("volcano-controllers", "batch.volcano.sh", "cronjobs/finalizers", "update"): "checked by an admission plugin only",
    ("volcano-controllers", "flow.volcano.sh", "jobflows/finalizers", "update"): "checked by an admission plugin only",
    ("volcano-controllers", "apps", "deployments", "get"): "a pod whose controller is a Deployment",
    ("volcano-controllers", "scheduling.volcano.sh", "podgroups", "get"): "a PodGroup that another controller made",
    ("volcano-controllers", "", "pods", "get"): "a pod that another controller made has the name of a Job's pod",
    ("volcano-controllers", "shard.volcano.sh", "nodeshards", "patch"): "a tenth of a shard's nodes changes",
    **dict.fromkeys(
        [
            ("volcano-scheduler", "", "nodes", "get"),
            ("volcano-scheduler", "", "nodes", "patch"),
            ("volcano-scheduler", "", "configmaps", "get"),
            ("volcano-scheduler", "custom.metrics.k8s.io", "nodes/node_cpu_usage_avg", "get"),
            ("volcano-scheduler", "custom.metrics.k8s.io", "nodes/node_memory_usage_avg", "get"),
        ],
        "the plugins deviceshare and usage, which are not configured",
    ),
    **dict.fromkeys(
        [
            *(
                ("volcano-scheduler", "", f"persistentvolume{kind}", verb)
                for kind in ("s", "claims")
                for verb in CHANGE
            ),
            *(("volcano-scheduler", "resource.k8s.io", "resourceclaims", verb) for verb in CHANGE),
            ("volcano-scheduler", "resource.k8s.io", "resourceclaims/status", "patch"),
            *(("volcano-scheduler", group, kind, verb) for group, kind in VOLUMES_AND_DEVICES for verb in WATCH),
        ],
        "volumes and devices, which the sandbox's pods do not have",
    ),
}


@pytest.fixture
async def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    async with cluster(tmp_path, monkeypatch) as made:
        yield made


def granted() -> set[Permission]:
    """The permissions in the chart's roles, by the service account that a role is for."""
    found = set()
    for role in of_kind(rendered(VALUES), "Role", "ClusterRole"):
        name = role["metadata"]["name"]
        account = next((account for account in ACCOUNTS if name.startswith(account)), None)
        if account is None:
            continue
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    found |= {(account, group, resource, verb) for verb in rule["verbs"]}
    return found


def used(requests: Iterable[Audited]) -> set[Permission]:
    """The permissions that requests needed. Every list is that of an informer, and a watch follows it."""
    found = {(one.user, one.group, one.resource, one.verb) for one in requests if one.code != 403}
    return found | {(user, group, resource, "watch") for user, group, resource, verb in found if verb == "list"}


async def _stop(release: Cluster) -> None:
    """End the programs while they have their roles: a watch is in the audit log when it has ended."""
    for component in COMPONENTS:
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/volcano-{component}"
        await release.api.ok("PATCH", path, {"spec": {"replicas": 0}}, "application/merge-patch+json")

    async def ended() -> bool:
        return not (await release.api.ok("GET", f"/api/v1/namespaces/{NAMESPACE}/pods"))["items"]

    await waiting.until(ended, "the chart's pods have not ended")
    await asyncio.sleep(1)  # the audit log is written every 0.2 s


async def test_roles_and_requests_agree(release: Cluster) -> None:
    await release.install("-f", str(VALUES))
    await release.available(*COMPONENTS)
    await release.serving()
    await exercise(release)
    await _stop(release)
    requests = audited(release.folder / "audit.log", ACCOUNTS)
    forbidden = {(one.user, one.verb, one.resource, one.namespace) for one in requests if one.code == 403}
    assert not forbidden, "add these to the chart's roles"
    shown = used(requests)
    superfluous = sorted(granted() - shown - NOT_SHOWN.keys())
    assert not superfluous, f"{superfluous}: no request needs these permissions: remove them from the roles"
    assert sorted(NOT_SHOWN.keys() - granted()) == [], "rows for permissions that the chart does not grant"
