"""The chart's roles and the requests of its programs: none is forbidden, and no permission is superfluous.

Everything that a program can do is done once on a sandbox whose audit log shows the requests. A permission that no
request needs must have a row in `NOT_SHOWN`, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests import waiting
from tests.chart.cluster import NAMESPACE, Audited, Cluster, audited, cluster
from tests.chart.rendering import of_kind, rendered
from tests.chart.workloads import exercise
from volcano_py.sandbox.apiserver.auth.authorization import Access
from volcano_py.sandbox.apiserver.auth.rbac import Rbac
from volcano_py.sandbox.apiserver.registry.request import User

pytestmark = pytest.mark.slow

VALUES = Path(__file__).parent / "values" / "permissions.yaml"
COMPONENTS = ("scheduler", "controllers", "admission", "hypernode-controller")
ACCOUNTS = tuple(f"volcano-{component}" for component in COMPONENTS)

Permission = tuple[str, str, str, str]
"""Service account, API group, resource with subresource, verb."""

PUT_CREATES = "a PUT creates a deleted Lease, for which kube-apiserver also requires create"
OF_1_37 = "a kind of Kubernetes 1.37: tests/e2e/test_composite_groups.py"
NOT_SHOWN: dict[Permission, str] = {
    ("volcano-scheduler", "coordination.k8s.io", "leases", "create"): PUT_CREATES,
    ("volcano-controllers", "coordination.k8s.io", "leases", "create"): PUT_CREATES,
    ("volcano-hypernode-controller", "coordination.k8s.io", "leases", "create"): PUT_CREATES,
    ("volcano-scheduler", "", "events", "patch"): "an Event that repeats",
    ("volcano-controllers", "", "events", "patch"): "an Event that repeats",
    ("volcano-controllers", "", "pods", "get"): "a pod that another controller made has the name of a Job's pod",
    ("volcano-scheduler", "resource.k8s.io", "devicetaintrules", "list"): "v1beta2, which the sandbox does not serve",
    ("volcano-scheduler", "resource.k8s.io", "devicetaintrules", "watch"): "v1beta2, which the sandbox does not serve",
    ("volcano-scheduler", "scheduling.k8s.io", "compositepodgroups", "list"): OF_1_37,
    ("volcano-scheduler", "scheduling.k8s.io", "compositepodgroups", "watch"): OF_1_37,
    ("volcano-scheduler", "scheduling.k8s.io", "compositepodgroups/status", "patch"): OF_1_37,
    ("volcano-controllers", "scheduling.k8s.io", "compositepodgroups", "create"): OF_1_37,
    ("volcano-controllers", "scheduling.k8s.io", "podgroups", "create"): OF_1_37,
    ("volcano-controllers", "scheduling.k8s.io", "podgroups", "get"): OF_1_37,
    ("volcano-scheduler", "resource.k8s.io", "resourceclaims", "delete"): "a bind with an extended resource fails",
    ("volcano-hypernode-controller", "", "events", "patch"): "an Event that repeats",
    ("volcano-hypernode-controller", "", "events", "create"): "a mistake in the discovery's configuration",
    ("volcano-controllers", "batch.volcano.sh", "jobs/finalizers", "update"): "checked by an admission plugin only",
    ("volcano-controllers", "batch.volcano.sh", "cronjobs/finalizers", "update"): "checked by an admission plugin only",
    ("volcano-controllers", "flow.volcano.sh", "jobflows/finalizers", "update"): "checked by an admission plugin only",
    ("volcano-controllers", "apps", "deployments", "get"): "a pod whose controller is a Deployment",
    ("volcano-controllers", "jobset.x-k8s.io", "jobsets", "get"): "a kind of another project",
    ("volcano-controllers", "leaderworkerset.x-k8s.io", "leaderworkersets", "get"): "a kind of another project",
    ("volcano-controllers", "ray.io", "rayclusters", "get"): "a kind of another project",
    ("volcano-controllers", "ray.io", "rayjobs", "get"): "a kind of another project",
    ("volcano-controllers", "scheduling.volcano.sh", "podgroups", "get"): "a PodGroup that another controller made",
    ("volcano-controllers", "shard.volcano.sh", "nodeshards", "patch"): "a tenth of a shard's nodes changes",
}


@pytest.fixture
async def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    async with cluster(tmp_path, monkeypatch, feature_gates="AllAlpha=true") as made:
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


def needed(rbac: Rbac, requests: Iterable[Audited]) -> set[Permission]:
    """The permissions without which a request is forbidden: each is removed from its rule in turn."""
    seen = set(requests)
    seen |= {replace(one, verb="watch") for one in seen if one.verb == "list" and one.code != 403}
    by_permission: dict[Permission, list[Access]] = {}
    for one in seen:
        user = User(f"system:serviceaccount:{NAMESPACE}:{one.user}", ("system:authenticated",))
        resource, _, sub = one.resource.partition("/")
        access = Access(user, one.verb, one.group, "", resource, sub, one.namespace, one.name)
        for name in (one.name, *_names(rbac, user, access)):  # the log has no name for a list of one object
            if rbac.authorize(replace(access, name=name)):
                of_permission = by_permission.setdefault((one.user, one.group, one.resource, one.verb), [])
                of_permission.append(replace(access, name=name))
                break
    found = set()
    for permission, accesses in by_permission.items():
        _, group, resource, verb = permission
        for _, _, rules in rbac.bound:
            for rule in rules:
                if verb not in rule["verbs"] or group not in rule.get("apiGroups", ()):
                    continue
                if resource not in rule.get("resources", ()):
                    continue
                kept = rule["verbs"]
                rule["verbs"] = [one for one in kept if one != verb]
                if any(not rbac.authorize(access) for access in accesses):
                    found.add(permission)
                rule["verbs"] = kept
    return found


def _names(rbac: Rbac, user: User, access: Access) -> list[str]:
    """The names that the rules for a resource name."""
    rules = rbac.rules_for(user, access.namespace)
    return [
        name
        for rule in rules
        if access.resource in rule.get("resources", ())
        for name in rule.get("resourceNames") or ()
    ]


async def _stop(release: Cluster) -> None:
    """End the programs while they have their roles: a watch is in the audit log when it has ended."""
    for component in COMPONENTS:
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/volcano-{component}"
        await release.api.ok("PATCH", path, {"spec": {"replicas": 0}}, "application/merge-patch+json")

    async def ended() -> bool:
        return not (await release.api.ok("GET", f"/api/v1/namespaces/{NAMESPACE}/pods"))["items"]

    await waiting.until(ended, "the chart's pods have not ended")
    await asyncio.sleep(1)  # the audit log is written every 0.2 s


async def _forget_leases(release: Cluster) -> None:
    """Delete the Leases that the chart has made: the programs create them again."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    names = [lease["metadata"]["name"] for lease in (await release.api.ok("GET", path))["items"]]
    for name in names:
        await release.api.ok("DELETE", f"{path}/{name}")

    async def back() -> bool:
        found = {lease["metadata"]["name"] for lease in (await release.api.ok("GET", path))["items"]}
        return found == set(names)

    await waiting.until(back, f"the Leases {names} are not created again")


async def test_roles_and_requests_agree(release: Cluster) -> None:
    await release.install("-f", str(VALUES))
    await release.available(*COMPONENTS)
    await release.serving()
    await _forget_leases(release)
    await exercise(release)
    await _stop(release)
    requests = audited(release.folder / "audit.log", ACCOUNTS)
    forbidden = {(one.user, one.verb, one.resource, one.namespace) for one in requests if one.code == 403}
    assert not forbidden, "add these to the chart's roles"
    shown = used(requests)
    rbac = release.sandbox.api.extensions["rbac"]
    twice = shown & granted() - needed(rbac, requests)
    assert not twice, f"{sorted(twice)}: without the rule all requests are allowed: another rule grants it, too"
    superfluous = sorted(granted() - shown - NOT_SHOWN.keys())
    assert not superfluous, f"{superfluous}: no request needs these permissions: remove them from the roles"
    assert sorted(NOT_SHOWN.keys() - granted()) == [], "rows for permissions that the chart does not grant"
