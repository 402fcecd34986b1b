"""Native gangs of Kubernetes 1.37 with the real kubectl: trees of groups, Jobs with spec.scheduling, explain."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.cluster import cluster, until
from tests.e2e.test_native_gangs import CLASSES, CONF, NODE, Site, member
from volcano_py.api.kinds import COMPOSITE_PODGROUP, PODGROUP
from volcano_py.api.native_groups import ANNOTATION
from volcano_py.api.resource_types import NATIVE_PODGROUP_BETA
from volcano_py.cli.explain_answer import answer
from volcano_py.cli.explain_facts import LEASE, Missing, read_facts
from volcano_py.webhooks.pods import mutate_pod

pytestmark = pytest.mark.slow
"""Each starts a cluster; the rules of trees have quick tests (`tests/scheduler/pods`, `tests/scheduler/profiles`)."""

COMPOSITES = "compositepodgroups.scheduling.k8s.io"
GROUPS = "podgroups.scheduling.k8s.io"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    conf = tmp_path / "scheduler.conf"
    conf.write_text(CONF)
    flags = (f"--scheduler-conf={conf}",)
    gates = "AllAlpha=true"
    async with cluster(tmp_path, scheduler=flags, feature_gates=gates, kubernetes_version="1.37") as (sandbox, client):
        yield Site(sandbox, client, tmp_path)


def document(kind: str, name: str, **spec: Any) -> str:
    version = "v1alpha3" if kind == "CompositePodGroup" else "v1beta1"
    reference = {"workloadName": "w", "templateName": "t"}
    spec = {"workloadRef": reference, **spec}
    made = {"apiVersion": f"scheduling.k8s.io/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return yaml.safe_dump(made)


def tree(most: int = 2) -> list[str]:
    """A root with the groups a and b of two pods each, of which `most` must hold."""
    child = {"parentCompositePodGroupName": "root", "schedulingPolicy": {"gang": {"minCount": 2}}}
    root = document("CompositePodGroup", "root", schedulingPolicy={"gang": {"minGroupCount": most}})
    return [root, document("PodGroup", "a", **child), document("PodGroup", "b", **child)]


async def scheduled(site: Site, kind: str, name: str, condition: str) -> None:
    rt = COMPOSITE_PODGROUP if kind == COMPOSITES else NATIVE_PODGROUP_BETA

    async def says() -> bool:
        found = {group["metadata"]["name"]: group for group in await site.client.list(rt, "default")}
        rows = found.get(name, {}).get("status", {}).get("conditions") or ()
        return any(condition in f"{row['type']}={row['status']} {row.get('message', '')}" for row in rows)

    await until(says, f"{kind} {name} has no condition {condition}")
    path = "jsonpath={.status.conditions[*].type}={.status.conditions[*].status}"
    assert condition.startswith(await site.run("get", kind, name, "-o", path))


async def test_a_tree_waits_as_a_whole_says_why_and_starts_as_a_whole(site: Site) -> None:
    await site.apply(*tree(), *(member(of, i) for of in "ab" for i in range(2)))
    await scheduled(site, GROUPS, "a", "PodGroupInitiallyScheduled=False Group b does not fit at the same time as")
    await scheduled(site, COMPOSITES, "root", "CompositePodGroupInitiallyScheduled=False")
    assert await site.nodes("a") == await site.nodes("b") == ["", ""]
    for kind, of in (("compositepodgroup.scheduling.k8s.io", "root"), ("podgroup", "a")):
        facts = await read_facts(site.client, kind, of, "default", time.time(), "volcano", LEASE)
        explained = answer(facts, "volcano", False)
        assert explained.blockers[0].code == "GroupDoesNotFit"
        assert [(row.name, row.counts) for row in explained.groups] == [
            ("root", "0 of 2 groups"),
            ("a", "0 of 2 pods"),
            ("b", "0 of 2 pods"),
        ]
    with pytest.raises(Missing, match="PodGroup none does not exist in namespace default"):
        await read_facts(site.client, "podgroup", "none", "default", time.time(), "volcano", LEASE)
    for name in ("more-0", "more-1"):
        await site.apply(NODE.replace("added", name))
    await scheduled(site, COMPOSITES, "root", "CompositePodGroupInitiallyScheduled=True")
    assert all(await site.nodes("a")) and all(await site.nodes("b"))
    assert await site.client.list(PODGROUP, "default") == [], "a PodGroup of Volcano was made for native groups"


async def test_pods_wait_for_a_parent_that_does_not_exist(site: Site) -> None:
    root, *groups = tree(1)
    await site.apply(*groups, *(member("a", i, cpu="1") for i in range(2)))

    async def says() -> bool:
        return await site.reason("a-0") == "waiting for compositepodgroup.scheduling.k8s.io/root, which does not exist"

    await until(says, "the pod does not name its missing parent")
    await site.apply(root)
    await scheduled(site, GROUPS, "a", "PodGroupInitiallyScheduled=True")


async def test_a_job_with_scheduling_is_a_gang_and_its_pods_have_one_group(site: Site) -> None:
    await site.apply(JOB)

    async def waits() -> bool:
        found = await site.client.list(NATIVE_PODGROUP_BETA, "default")
        conditions = [c for group in found for c in group.get("status", {}).get("conditions", ())]
        return [(c["type"], c["status"]) for c in conditions] == [("PodGroupInitiallyScheduled", "False")]

    await until(waits, "the group of the Job is not reported as unschedulable")
    assert "gang" in await site.run("get", "workloads.scheduling.k8s.io", "-o", "yaml")
    await site.run("patch", "job", "train", "--type=merge", "-p", LESS)

    async def bound() -> bool:
        return sum(map(bool, await site.nodes("train"))) == 2

    await until(bound, "the pods are not bound when the minimum is lower")
    assert await site.client.list(PODGROUP, "default") == [], "the pods have two groups"


async def test_a_tree_evicts_a_group_with_disruption_mode_all(site: Site) -> None:
    whole = {"schedulingPolicy": {"gang": {"minCount": 1}}, "disruptionMode": {"all": {}}}
    await site.apply(CLASSES, document("PodGroup", "old", **whole), *(member("old", i) for i in range(2)))
    await scheduled(site, GROUPS, "old", "PodGroupInitiallyScheduled=True")
    policy = {"gang": {"minGroupCount": 1}}
    root = document("CompositePodGroup", "root", schedulingPolicy=policy, priorityClassName="high")
    child = {"parentCompositePodGroupName": "root", "schedulingPolicy": {"gang": {"minCount": 1}}}
    await site.apply(root, document("PodGroup", "new", **child), member("new", 0, priority_class="high"))
    await scheduled(site, COMPOSITES, "root", "CompositePodGroupInitiallyScheduled=True")

    async def gone() -> bool:
        return await site.nodes("old") == []

    await until(gone, "a member of the preempted group is left")


@pytest.mark.parametrize(
    ("field", "version", "words"),
    [
        ("compositepodgroup.spec", "v1alpha3", ["schedulingPolicy", "parentCompositePodGroupName", "workloadRef"]),
        ("podgroup.spec.schedulingPolicy", "v1beta1", ["gang", "basic"]),
        ("workload.spec", "v1beta1", ["podGroupTemplates", "controllerRef"]),
    ],
)
async def test_kubectl_explains_the_kinds(site: Site, field: str, version: str, words: list[str]) -> None:
    found = await site.run("explain", field, f"--api-version=scheduling.k8s.io/{version}")
    assert f"VERSION:    {version}" in found and all(word in found for word in words)


JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 3
  scheduling: {schedulingPolicy: {gang: {minCount: 3}}}
  template:
    metadata: {labels: {group: train}}
    spec:
      schedulerName: volcano
      restartPolicy: Never
      containers: [{name: c, image: busybox, command: [sleep, "3600"], resources: {requests: {cpu: 2, memory: 64Mi}}}]
"""
LESS = '{"spec": {"scheduling": {"schedulingPolicy": {"gang": {"minCount": 2}}}}}'


JOBSETS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: jobsets.jobset.x-k8s.io}
spec:
  group: jobset.x-k8s.io
  scope: Namespaced
  names: {plural: jobsets, singular: jobset, kind: JobSet, listKind: JobSetList}
  versions:
  - name: v1alpha2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
JOBSET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
  - {name: workers, replicas: 2, template: {spec: {parallelism: 1, completions: 1}}}
"""


def of_jobset(number: int) -> str:
    """A pod of the JobSet, as its controller and the Job controller create it, and as admission changes it."""
    labels = {"jobset-name": "train", "jobset-uid": "u", "replicatedjob-name": "workers", "job-index": str(number)}
    pod = yaml.safe_load(member("train", number))
    pod["metadata"]["labels"] |= {f"jobset.sigs.k8s.io/{key}": value for key, value in labels.items()}
    pod["metadata"]["annotations"] = {ANNOTATION: "true"}
    del pod["spec"]["schedulingGroup"]
    return yaml.safe_dump(mutate_pod(pod))


async def test_the_jobs_of_a_jobset_are_a_tree_that_the_controllers_create(site: Site) -> None:
    await site.apply(JOBSETS)
    await site.run("wait", "crd/jobsets.jobset.x-k8s.io", "--for=condition=Established")
    await site.apply(JOBSET)
    await site.apply(of_jobset(0))
    await scheduled(site, COMPOSITES, "train-groups", "CompositePodGroupInitiallyScheduled=False")
    found = await site.run("get", COMPOSITES, "train-groups", "-o", "yaml")
    assert "train-workers-groups needs 2 of its child groups, 1 has enough pods" in " ".join(found.split())
    assert await site.nodes("train") == [""]
    await site.apply(of_jobset(1))
    await scheduled(site, COMPOSITES, "train-groups", "CompositePodGroupInitiallyScheduled=True")
    assert all(await site.nodes("train"))
    assert await site.client.list(PODGROUP, "default") == [], "a pod has two groups"
