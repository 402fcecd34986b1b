"""The manifests of docs/guides, as they stand, on a sandbox with stand-ins for the operators."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from tests import waiting
from tests.guides import operators
from tests.guides.operators import STAND_INS, Manifest
from volcano_py.api import kinds
from volcano_py.api.kinds import CONFIGMAP, CUSTOMRESOURCEDEFINITION, JOB, NODE, POD, PODGROUP
from volcano_py.api.resource_types import ResourceType
from volcano_py.kube.client import Client
from volcano_py.kube.errors import NotFound
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.shapes import manifest as node_manifest
from volcano_py.sandbox.shapes import parse

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
KINDS = {
    ("kubeflow.org/v1", "PyTorchJob"): "pytorchjobs",
    ("kubeflow.org/v2beta1", "MPIJob"): "mpijobs",
    ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"): "trainingruntimes",
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): "trainjobs",
    ("ray.io/v1", "RayCluster"): "rayclusters",
    ("sparkoperator.k8s.io/v1beta2", "SparkApplication"): "sparkapplications",
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): "jobsets",
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): "leaderworkersets",
    ("argoproj.io/v1alpha1", "Workflow"): "workflows",
}
OTHERS = {
    ("batch/v1", "Job"): ResourceType("batch", "v1", "jobs", "Job"),
    ("v1", "Pod"): POD,
    ("v1", "ConfigMap"): CONFIGMAP,
    ("scheduling.volcano.sh/v1beta1", "PodGroup"): PODGROUP,
    ("batch.volcano.sh/v1alpha1", "Job"): JOB,
    ("scheduling.volcano.sh/v1beta1", "Queue"): kinds.QUEUE,
}
NAMESPACE = ResourceType("", "v1", "namespaces", "Namespace", namespaced=False)
OF_VOLCANO = ("Job", "ConfigMap")


def type_of(manifest: Manifest) -> ResourceType:
    key = (manifest["apiVersion"], manifest["kind"])
    if key in OTHERS:
        return OTHERS[key]
    group, _, version = key[0].partition("/")
    return ResourceType(group, version, KINDS[key], key[1])


def definition(group: str, versions: list[str], plural: str, kind: str) -> Manifest:
    """An open CRD: it accepts any object, as the page about the guides states."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {"name": version, "served": True, "storage": number == 0, "schema": schema}
                for number, version in enumerate(versions)
            ],
        },
    }


def manifests(page: str) -> list[Manifest]:
    """The manifests of a page."""
    text = (GUIDES / f"{page}.md").read_text()
    blocks = re.findall(r"^<!-- guide -->\n```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [document for block in blocks for document in yaml.safe_load_all(block)]


class Site:
    """A cluster in which each guide has a namespace."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.namespace = ""

    async def enter(self, namespace: str) -> None:
        self.namespace = namespace
        await self.client.create(NAMESPACE, {"metadata": {"name": namespace}})

    async def create(self, *found: Manifest) -> list[Manifest]:
        made = []
        for one in found:
            rt = type_of(one)
            where = one["metadata"].get("namespace") or self.namespace
            created = await self.client.create(rt, one, where)
            made.append({"apiVersion": one["apiVersion"], "kind": one["kind"], **created})
        return made

    async def pods(self) -> list[Manifest]:
        return list(await self.client.list(POD, self.namespace))

    async def groups(self) -> dict[str, tuple[int, str]]:
        """minMember and queue of the PodGroups, by name."""
        found = await self.client.list(PODGROUP, self.namespace)
        return {g["metadata"]["name"]: (g["spec"]["minMember"], g["spec"]["queue"]) for g in found}

    async def run(self, names: set[str]) -> None:
        """Wait until exactly these pods run."""

        async def running() -> bool:
            found = await self.pods()
            return names == {p["metadata"]["name"] for p in found if p["status"].get("phase") == "Running"}

        await waiting.until(running, f"not all of {sorted(names)} run")

    async def count(self, number: int) -> None:
        """Wait until this number of pods runs."""

        async def running() -> bool:
            return sum(p["status"].get("phase") == "Running" for p in await self.pods()) == number

        await waiting.until(running, f"not {number} pods run")

    async def wait_as_a_whole(self, owner: Manifest, make: Callable[[Manifest], list[Manifest]]) -> None:
        """A gang that does not fit: the reason is reported, and no pod has a node. It is deleted afterwards."""
        namespace = self.namespace
        await self.enter(f"{namespace}-{owner['kind'].lower()}-wide")
        owner["metadata"].pop("namespace", None)
        [created] = await self.create(owner)
        await self.create(*make(created))

        async def reported() -> bool:
            groups = await self.client.list(PODGROUP, self.namespace)
            texts = [c for g in groups for c in (g.get("status") or {}).get("conditions") or ()]
            return any(c["type"] in ("Waiting", "Unschedulable") and c["status"] == "True" for c in texts)

        await waiting.until(reported, "no reason is reported")
        assert not [p["metadata"]["name"] for p in await self.pods() if p["spec"].get("nodeName")]
        await self.client.delete(NAMESPACE, self.namespace)
        for one in await self.client.list(PODGROUP, self.namespace):
            with suppress(NotFound):
                await self.client.delete(PODGROUP, one["metadata"]["name"], self.namespace)
        self.namespace = namespace

    async def leave(self) -> None:
        """Delete what holds capacity."""
        for rt in (PODGROUP, JOB, OTHERS["batch/v1", "Job"], POD):
            for one in await self.client.list(rt, self.namespace):
                with suppress(NotFound):  # a controller was faster
                    await self.client.delete(rt, one["metadata"]["name"], self.namespace, grace_period_seconds=0)

        async def gone() -> bool:
            return not await self.pods()

        await waiting.until(gone, "pods are left")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("guides")
    by_name: dict[tuple[str, str, str], list[str]] = {}
    for (api_version, kind), plural in KINDS.items():
        group, _, version = api_version.partition("/")
        by_name.setdefault((group, plural, kind), []).append(version)
    definitions = [
        {"kind": CUSTOMRESOURCEDEFINITION.kind, **definition(group, versions, plural, kind)}
        for (group, plural, kind), versions in by_name.items()
    ]
    async with (
        Sandbox(
            3,
            node_shapes=[parse("cpu=4,memory=16Gi")],
            components=("scheduler", "controller-manager"),
            path=folder / "kubeconfig",
            logs=folder / "logs",
            crds=definitions,
        ) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        waiting.observe(sandbox)

        async def ready() -> bool:
            status = (await client.get(kinds.QUEUE, "default")).get("status") or {}
            return status.get("state") == "Open" and "allocated" in status

        await waiting.until(ready, "the default queue is not open")
        yield Site(client)


pytestmark = pytest.mark.asyncio(loop_scope="module")


def widened(owner: Manifest, *path: str | int) -> Manifest:
    """The same object with forty replicas in a place."""
    found: Any = deepcopy(owner)
    at = found["spec"]
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = 40
    policy = (found["spec"].get("runPolicy") or {}).get("schedulingPolicy") or {}
    policy.pop("minAvailable", None)
    return found


async def test_kubeflow(site: Site) -> None:
    await site.enter("kubeflow")
    job, runtime, train = manifests("kubeflow")
    [created] = await site.create(job)
    await site.create(*STAND_INS["PyTorchJob"](created))
    await site.run({"mnist-master-0", "mnist-worker-0", "mnist-worker-1"})
    assert await site.groups() == {"mnist": (3, "default")}
    await site.leave()
    made = await site.create(runtime, train)
    await site.create(*operators.trainer(made[1], made[0]))
    await site.run({f"finetune-node-0-{n}" for n in range(3)})
    assert await site.groups() == {"finetune": (3, "default")}
    await site.leave()
    await site.wait_as_a_whole(widened(job, "pytorchReplicaSpecs", "Worker", "replicas"), STAND_INS["PyTorchJob"])


async def test_mpi(site: Site) -> None:
    await site.enter("mpi")
    job, late = manifests("mpi")
    [created] = await site.create(job)
    await site.create(*STAND_INS["MPIJob"](created))
    await site.run({"pi-worker-0", "pi-worker-1", "pi-launcher"})
    assert await site.groups() == {"pi": (3, "default")}
    await site.leave()
    [created] = await site.create(late)
    await site.create(*STAND_INS["MPIJob"](created))
    await site.run({"pi-late-worker-0", "pi-late-worker-1"})
    launcher = created["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    await site.create(operators.pod(created, "pi-late-launcher", launcher, "pi-late"))
    await site.run({"pi-late-worker-0", "pi-late-worker-1", "pi-late-launcher"})
    await site.leave()
    await site.wait_as_a_whole(widened(job, "mpiReplicaSpecs", "Worker", "replicas"), STAND_INS["MPIJob"])


async def test_kuberay(site: Site) -> None:
    await site.enter("kuberay")
    [cluster] = manifests("kuberay")
    names = {"ray-head", *(f"ray-workers-worker-{n}" for n in range(3))}
    [created] = await site.create(cluster)
    await site.create(*STAND_INS["RayCluster"](created))
    await site.run(names)
    assert await site.groups() == {"ray-ray-pg": (4, "default")}
    await site.leave()
    # without the operator's integration
    plain = deepcopy(cluster)
    plain["metadata"] = {"name": "ray-2", "annotations": {"scheduling.volcano.sh/queue-name": "default"}}
    for group in (plain["spec"]["headGroupSpec"], *plain["spec"]["workerGroupSpecs"]):
        group["template"]["spec"]["schedulerName"] = "volcano"
    [created] = await site.create(plain)
    await site.create(*STAND_INS["RayCluster"](created))
    await site.run({name.replace("ray-", "ray-2-", 1) for name in names})
    assert list((await site.groups()).values()) == [(4, "default")]
    await site.leave()
    await site.wait_as_a_whole(widened(cluster, "workerGroupSpecs", 0, "replicas"), STAND_INS["RayCluster"])


async def test_spark(site: Site) -> None:
    await site.enter("spark")
    [app] = manifests("spark")
    [created] = await site.create(app)
    await site.create(*STAND_INS["SparkApplication"](created))
    await site.run({"spark-pi-driver"})
    await site.create(*operators.executors(created))
    await site.run({"spark-pi-driver", "spark-pi-exec-1", "spark-pi-exec-2"})
    assert await site.groups() == {"spark-spark-pi-pg": (1, "default")}
    await site.leave()
    # the driver does not start if the executors would have no place
    await site.wait_as_a_whole(widened(app, "executor", "instances"), STAND_INS["SparkApplication"])


async def test_jobset_and_leader_worker_set(site: Site) -> None:
    await site.enter("jobset")
    found, lws = manifests("jobset")
    [created] = await site.create(found)
    await site.create(*STAND_INS["JobSet"](created))
    await site.count(5)
    assert list((await site.groups()).values()) == [(5, "default")]
    await site.leave()
    [created] = await site.create(lws)
    await site.create(*STAND_INS["LeaderWorkerSet"](created))
    await site.run({"serve-0", "serve-0-1", "serve-0-2", "serve-1", "serve-1-1", "serve-1-2"})
    assert sorted((await site.groups()).values()) == [(3, "default")] * 2
    await site.leave()
    await site.wait_as_a_whole(widened(lws, "leaderWorkerTemplate", "size"), STAND_INS["LeaderWorkerSet"])


async def test_argo(site: Site) -> None:
    await site.enter("argo")
    [workflow] = manifests("argo")
    [created] = await site.create(workflow)
    await site.create(*operators.argo_resource(created, "train"))

    async def completed() -> bool:
        job = await site.client.get(JOB, "train", site.namespace)
        return ((job.get("status") or {}).get("state") or {}).get("phase") == "Completed"

    # the condition that the template names
    [template] = [one for one in workflow["spec"]["templates"] if one["name"] == "train"]
    assert template["resource"]["successCondition"] == "status.state.phase = Completed"
    await waiting.until(completed, "the Job is not Completed")
    await site.create(*operators.argo_pod(created, "report"))

    async def succeeded() -> bool:
        found = await site.client.get(POD, "train-and-report-report", site.namespace)
        return found["status"].get("phase") == "Succeeded"

    await waiting.until(succeeded, "the report does not run")
    assert not [name for name in await site.groups() if name.startswith("podgroup-")], "a pod alone needs no PodGroup"
    await site.leave()


async def test_kueue(site: Site) -> None:
    await site.enter("kueue")
    [job] = manifests("kueue")
    rt = OTHERS["batch/v1", "Job"]
    await site.create(job)
    assert not await site.pods(), "a suspended Job has no pods"
    await site.client.patch(rt, "admitted", {"spec": {"suspend": False}}, site.namespace)  # what Kueue does
    await site.count(3)
    assert list((await site.groups()).values()) == [(3, "default")]
    await site.leave()


async def test_gitops(site: Site) -> None:
    """Applied again while a Job runs and when it has ended, nothing changes: the cluster has what Git has."""
    await site.enter("gitops")
    found = manifests("gitops")

    async def apply(manifest: Manifest) -> Manifest:
        rt = type_of(manifest)
        where = site.namespace if rt.namespaced else None
        name = manifest["metadata"]["name"]
        return await site.client.patch(rt, name, manifest, where, "apply", field_manager="argocd-controller")

    async def in_sync() -> None:
        for manifest in found:
            rt = type_of(manifest)
            before = await site.client.get(rt, manifest["metadata"]["name"], site.namespace if rt.namespaced else None)
            assert differences(manifest["spec"], before["spec"]) == []
            after = await apply(manifest)
            assert after["spec"] == before["spec"]
            assert after["metadata"].get("generation") == before["metadata"].get("generation")

    for manifest in found:
        await apply(manifest)
    await site.count(2)
    await in_sync()

    async def completed() -> bool:
        job = await site.client.get(JOB, "nightly", site.namespace)
        return bool(job["status"]["state"]["phase"] == "Completed")

    await waiting.until(completed, "the Job is not Completed")
    await in_sync()
    owned = [o["metadata"] for rt in (POD, PODGROUP) for o in await site.client.list(rt, site.namespace)]
    assert owned and all(metadata.get("ownerReferences") for metadata in owned)
    await site.leave()


def differences(wanted: Any, live: Any, path: str = "spec") -> list[str]:
    """Where the cluster has another value than Git; fields that Git leaves out do not count."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return [d for key in wanted for d in differences(wanted[key], live.get(key), f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        return [d for i, one in enumerate(wanted) for d in differences(one, live[i], f"{path}[{i}]")]
    return [] if wanted == live or str(wanted) == live else [f"{path}: {wanted!r} is {live!r}"]


async def test_autoscalers(site: Site) -> None:
    """The last one: it changes the scheduler's configuration, and adds nodes."""
    await site.enter("autoscalers")
    configuration, job = manifests("autoscalers")
    metadata = configuration["metadata"]
    await site.client.patch(CONFIGMAP, metadata["name"], {"data": configuration["data"]}, metadata["namespace"])
    await site.create(job)

    async def pending() -> list[Manifest]:
        found = await site.pods()
        reasons = Counter(
            c.get("reason")
            for p in found
            for c in p["status"].get("conditions") or ()
            if c["type"] == "PodScheduled" and c["status"] == "False"
        )
        return found if reasons == {"Schedulable": 12, "Unschedulable": 18} else []

    text = "the pods have not the conditions of the page"
    assert not any(p["spec"].get("nodeName") for p in await waiting.until(pending, text))
    for number in range(5):  # what an autoscaler does for 18 cpu
        await site.client.create(NODE, node_manifest(f"added-{number}", parse("cpu=4,memory=16Gi")))
    await site.count(30)


async def test_every_guide_has_a_test_and_is_listed() -> None:
    pages = {path.stem for path in GUIDES.glob("*.md")} - {"README"}
    own = [name.removeprefix("test_") for name in globals() if name.startswith("test_")]
    tests = {name.removesuffix("_and_leader_worker_set") for name in own}
    assert pages <= tests
    listed = set(re.findall(r"\((\w+)\.md\)", (GUIDES / "README.md").read_text()))
    assert listed == pages
