"""Native groups of JobSets and LeaderWorkerSets: their shape, who creates them, and one group for each pod."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from volcano_py.api import gang, kinds
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.api.native_groups import ANNOTATION, native_group
from volcano_py.controllers.podgroup.native import groups_of
from volcano_py.controllers.podgroup.owners import JOBSET, LEADERWORKERSET
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE, NATIVE
from volcano_py.webhooks.pods import mutate_pod, requests_native_group

ASKS = {ANNOTATION: "true"}
Manifest = dict[str, Any]


def labels_of(part: str, number: int, name: str = "train") -> dict[str, str]:
    prefix = "jobset.sigs.k8s.io/"
    return {
        f"{prefix}jobset-name": name,
        f"{prefix}jobset-uid": "js-1",
        f"{prefix}replicatedjob-name": part,
        f"{prefix}job-index": str(number),
    }


def of_lws(number: int) -> dict[str, str]:
    prefix = "leaderworkerset.sigs.k8s.io/"
    return {f"{prefix}name": "serve", f"{prefix}group-index": str(number), f"{prefix}group-key": f"key{number}"}


def pod(labels: dict[str, str], annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    annotations = ASKS if annotations is None else annotations
    metadata = {"name": "p", "namespace": "default", "uid": "u", "labels": labels, "annotations": annotations}
    return {"metadata": metadata, "spec": {"schedulerName": "volcano", "containers": [], **spec}}


def replicated(name: str, replicas: int, parallelism: int, **more: Any) -> Manifest:
    template = {"spec": {"parallelism": parallelism, "completions": parallelism}}
    return {"name": name, "replicas": replicas, "template": template, **more}


def owner(kind: Any, name: str, **spec: Any) -> Manifest:
    annotations = {"scheduling.volcano.sh/queue-name": "research"}
    return {"metadata": {"name": name, "uid": "js-1", "annotations": annotations}, "spec": spec}


def made(labels: dict[str, str], of: Manifest, **spec: Any) -> dict[str, Manifest]:
    """The groups of a pod, by name."""
    found = from_manifest(Pod, pod(labels, **spec))
    group = native_group(labels, ASKS)
    assert group is not None
    return {create.obj["metadata"]["name"]: create.obj for create in groups_of(found, group, of)}


def test_a_jobset_is_a_tree_of_its_jobs() -> None:
    train = owner(JOBSET, "train", replicatedJobs=[replicated("driver", 1, 1), replicated("workers", 3, 4)])
    found = made(labels_of("workers", 2), train, priorityClassName="high")
    policies = {name: group["spec"]["schedulingPolicy"]["gang"] for name, group in found.items()}
    assert policies == {
        "train-groups": {"minGroupCount": 2},
        "train-workers-groups": {"minGroupCount": 3},
        "train-workers-2": {"minCount": 4},
    }
    parents = [group["spec"].get("parentCompositePodGroupName") for group in found.values()]
    assert parents == [None, "train-groups", "train-workers-groups"]
    for group in found.values():
        assert group["spec"]["priorityClassName"] == "high" and group["spec"]["workloadRef"]["workloadName"] == "train"
        assert group["metadata"]["labels"] == {"volcano.sh/queue-name": "research"}
        assert group["metadata"]["ownerReferences"][0]["uid"] == "js-1"


def test_jobs_that_start_later_are_not_required() -> None:
    later = replicated("late", 1, 1, dependsOn=[{"name": "driver", "status": "Ready"}])
    train = owner(JOBSET, "train", replicatedJobs=[replicated("driver", 1, 1), later])
    assert made(labels_of("late", 0), train)["train-groups"]["spec"]["schedulingPolicy"]["gang"] == {"minGroupCount": 1}
    order = owner(JOBSET, "train", replicatedJobs=[replicated("a", 1, 1), replicated("b", 1, 1)])
    order["spec"]["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    assert made(labels_of("b", 0), order)["train-groups"]["spec"]["schedulingPolicy"]["gang"] == {"minGroupCount": 1}


def test_replicas_of_a_leader_worker_set_are_gangs_below_a_basic_root() -> None:
    serve = owner(LEADERWORKERSET, "serve", replicas=2, leaderWorkerTemplate={"size": 3})
    found = made(of_lws(1), serve)
    assert found["serve-groups"]["spec"]["schedulingPolicy"] == {"basic": {}}
    assert found["serve-1"]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}


def test_the_session_takes_the_groups_as_one_job() -> None:
    train = owner(JOBSET, "train", replicatedJobs=[replicated("driver", 1, 1), replicated("workers", 2, 3)])
    cluster = Cluster(default_queue="default")
    for labels in (labels_of("driver", 0), labels_of("workers", 0), labels_of("workers", 1)):
        for manifest in made(labels, train).values():
            whole = manifest["kind"] == "PodGroup"
            kind, struct = (NATIVE, gang.PodGroup) if whole else (COMPOSITE, gang.CompositePodGroup)
            cluster.upsert(kind, msgspec.convert(manifest, struct))
    (job,) = cluster.jobs.values()
    assert (job.name, job.min_available, job.queue) == (f"{COMPOSITE}/train-groups", 1 + 2 * 3, "research")


# ---- one group for each pod ---------------------------------------------------------------------------------------


def test_admission_names_the_group_that_the_controller_creates() -> None:
    admitted = mutate_pod(pod(labels_of("workers", 2)))
    assert admitted["spec"]["schedulingGroup"] == {"podGroupName": "train-workers-2"}
    assert mutate_pod(pod(of_lws(1)))["spec"]["schedulingGroup"] == {"podGroupName": "serve-1"}


@pytest.mark.parametrize(
    "other",
    [
        pod(labels_of("workers", 2), annotations={}),
        pod({"app": "x"}),
        pod(labels_of("workers", 2), annotations={**ASKS, "scheduling.k8s.io/group-name": "mine"}),
        pod(labels_of("workers", 2), schedulingGroup={"podGroupName": "mine"}),
    ],
    ids=["does not ask", "of no known kind", "has a group of Volcano", "has a native group"],
)
def test_other_pods_keep_what_they_have(other: Manifest) -> None:
    assert not requests_native_group(other)
    assert mutate_pod(other)["spec"] == other["spec"]


async def test_the_controller_creates_the_groups_once_and_none_of_volcano(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(kinds.BY_KIND, (JOBSET.api_version, JOBSET.kind), JOBSET)
    monkeypatch.setitem(kinds.BY_PLURAL, (JOBSET.api_version, JOBSET.plural), JOBSET)
    spec = {"replicatedJobs": [replicated("workers", 2, 2)]}
    js = {"apiVersion": JOBSET.api_version, "kind": "JobSet", "metadata": {"name": "train"}, "spec": spec}
    world.api.put(js)
    for i in range(4):
        asking = mutate_pod(pod(labels_of("workers", i // 2)))
        asking["metadata"] |= {"name": f"p{i}", "uid": f"u{i}"}
        del asking["metadata"]["namespace"]
        world.api.put({"apiVersion": "v1", "kind": "Pod", **asking})
    await world.until(lambda: len(groups(world)) == 4)
    await world.quiet()
    assert groups(world) == ["train-groups", "train-workers-0", "train-workers-1", "train-workers-groups"]
    versions = {group["apiVersion"] for group in world.podgroups()}  # this API keeps both kinds of PodGroups together
    assert versions == {gang.V1BETA1}, "a pod has two groups"


def groups(world: Any) -> list[str]:
    found = [*world.api.all(kinds.COMPOSITE_PODGROUP), *world.podgroups()]
    return sorted(o["metadata"]["name"] for o in found)
