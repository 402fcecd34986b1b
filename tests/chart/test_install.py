"""A release from install to uninstall: RBAC is enforced, and the programs of the chart run as processes of its pods."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import waiting
from tests.chart.cluster import NAMESPACE, Cluster, HelmFailed, Manifest, cluster
from tests.e2e.cluster import job

pytestmark = pytest.mark.slow

SCHEDULER_CONF = f"/api/v1/namespaces/{NAMESPACE}/configmaps/volcano-scheduler-configmap"
LEFT = {"events", "queues", "customresourcedefinitions", "leases/kube-node-lease"}
"""What may differ after an uninstall: Events, and the CRDs, which are kept with what they hold."""


@pytest.fixture
async def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    async with cluster(tmp_path, monkeypatch) as made:
        yield made


async def run_job(at: Cluster, name: str) -> None:
    """A Job of two pods completes."""
    await at.api.ok("POST", "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs", job(name, 2, "1", seconds=0))

    async def completed() -> bool:
        found = await at.api.ok("GET", f"/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/{name}")
        return bool(found.get("status", {}).get("state", {}).get("phase") == "Completed")

    await waiting.until(completed, f"Job {name} is not Completed")


async def edit(at: Cluster, text: str) -> None:
    """What `kubectl edit` does: an update of the whole object by another field manager."""
    found = await at.api.ok("GET", SCHEDULER_CONF)
    found["data"]["volcano-scheduler.conf"] = text
    await at.api.ok("PUT", SCHEDULER_CONF + "?fieldManager=kubectl-edit", found)


async def root_certificates(at: Cluster) -> bool:
    """Whether Kubernetes' controllers have made what each namespace has."""
    names = [row["metadata"]["name"] for row in (await at.api.ok("GET", "/api/v1/namespaces"))["items"]]
    found = [await at.api.call("GET", f"/api/v1/namespaces/{name}/configmaps/kube-root-ca.crt") for name in names]
    accounts = [await at.api.call("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default") for name in names]
    return all(status == 200 for status, _ in found + accounts)


def objects(at: Cluster) -> set[str]:
    """Every object, by resource, namespace and name."""
    found = set()
    for resource, items in at.sandbox.api.store.collections.items():
        plural = resource.partition(".")[0]
        found |= {
            f"{plural} {entry.key}" for entry in items.select() if not {plural, f"{plural}/{entry.namespace}"} & LEFT
        }
    return found


async def test_a_release_from_install_to_uninstall(release: Cluster) -> None:
    await waiting.until(lambda: root_certificates(release), "the namespaces are not complete")
    before = objects(release)
    await release.install()
    await release.available("scheduler", "controllers", "admission")
    await release.serving()
    await run_job(release, "first")
    assert "Succeeded" in await release.helm("test", "volcano")

    await release.upgrade("--set", "custom.scheduler_replicas=2,custom.admission_replicas=2")
    await release.available("scheduler", "controllers", "admission")
    await release.serving()
    await run_job(release, "second")

    await release.helm("rollback", "volcano", "1")
    await release.available("scheduler", "controllers", "admission")
    await release.serving()
    await run_job(release, "third")

    await release.api.ok("DELETE", "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs")
    await release.helm("uninstall", "volcano", "--wait", waiting.KUBECTL)

    async def clean() -> bool:
        return objects(release) == before

    try:
        await waiting.until(clean, "the uninstall leaves something behind")
    except AssertionError as error:
        raise AssertionError(f"{error}\nleft: {sorted(objects(release) ^ before)}") from None


async def test_an_edited_configuration_survives_an_upgrade(release: Cluster) -> None:
    """helm 4 applies on the server, where a field that kubectl edit has taken over would be a conflict."""
    await release.install("--set", "custom.admission_enable=false")
    mine = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}]\n'
    await edit(release, mine)
    notes = await release.upgrade("--set", "custom.admission_enable=false,custom.scheduler_log_level=4")
    assert "volcano-scheduler-configmap was edited in the cluster and keeps its content" in notes
    assert (await release.api.ok("GET", SCHEDULER_CONF))["data"]["volcano-scheduler.conf"] == mine
    overwrite = ("--set", "custom.admission_enable=false,custom.keep_edited_config=false")
    with pytest.raises(HelmFailed, match="conflict"):
        await release.upgrade(*overwrite)
    await release.upgrade(*overwrite, "--force-conflicts")
    assert "binpack" in (await release.api.ok("GET", SCHEDULER_CONF))["data"]["volcano-scheduler.conf"]


async def test_secrets_and_leases_that_others_made_are_left_alone(release: Cluster) -> None:
    """Volcano's hook makes the Secret, and its programs their Leases; helm cannot adopt them."""
    secret: Manifest = {"metadata": {"name": "volcano-admission-secret"}, "data": {"tls.crt": "eA=="}}
    await release.api.ok("POST", f"/api/v1/namespaces/{NAMESPACE}/secrets", secret)
    lease: Manifest = {"metadata": {"name": "vc-controller-manager"}, "spec": {"holderIdentity": ""}}
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    await release.api.ok("POST", leases, lease)
    await release.install()
    await release.available("scheduler", "controllers", "admission")
    await release.serving()
    await release.helm("uninstall", "volcano", "--wait", waiting.KUBECTL)
    await release.api.ok("GET", f"{leases}/vc-controller-manager")
    kept = await release.api.ok("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/volcano-admission-secret")
    assert "ca.key" in kept["data"]


async def test_profiles_run_with_permissions_for_the_kinds_of_their_plugins(release: Cluster) -> None:
    """The example gang-permit: its plugin reads a kind of its own, and writes its status."""
    example = Path(__file__).parents[2] / "examples" / "gang-permit"
    for path in (example / "crd.yaml", *sorted((example / "gang").glob("*.yaml"))):
        await release.apply(path)
    values = {
        "scheduler_profiles_config": (example / "scheduler.conf").read_text(),
        "scheduler_extra_rules": [
            {"apiGroups": ["scheduling.x-k8s.io"], "resources": ["podgroups"], "verbs": ["list", "watch"]},
            {"apiGroups": ["scheduling.x-k8s.io"], "resources": ["podgroups/status"], "verbs": ["patch"]},
        ],
        "admission_enable": False,
    }
    file = release.folder / "values.yaml"
    file.write_text(json.dumps({"custom": values}))
    await release.install("-f", str(file))
    await release.available("scheduler", "controllers")
    group = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/training"

    async def scheduled() -> bool:
        found = await release.api.ok("GET", group)
        return bool((found.get("status") or {}).get("phase") == "Scheduled")

    await waiting.until(scheduled, "the status of the group is not written")
    pods = await release.api.ok("GET", "/api/v1/namespaces/default/pods")
    assert all(pod["spec"].get("nodeName") for pod in pods["items"]) and len(pods["items"]) == 3
