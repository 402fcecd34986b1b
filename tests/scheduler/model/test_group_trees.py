"""Trees of CompositePodGroups in the model: objects in any order, changes, and bad input."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import msgspec
import pytest

from volcano_py.api import core, gang
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE, NATIVE, reference, uid_of
from volcano_py.scheduler.model.plan import Bind, NativeGroupStatus

ROOT = f"default/{COMPOSITE}/root"


def pod_group(name: str, parent: str = "", least: int = 2, **spec: Any) -> tuple[str, gang.PodGroup]:
    fields: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": least}}, **spec}
    if parent:
        fields["parentCompositePodGroupName"] = parent
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return NATIVE, msgspec.convert({"apiVersion": gang.V1BETA1, "metadata": meta, "spec": fields}, gang.PodGroup)


def composite(name: str, parent: str = "", least: int = 1, **spec: Any) -> tuple[str, gang.CompositePodGroup]:
    fields: dict[str, Any] = {"schedulingPolicy": {"gang": {"minGroupCount": least}}, **spec}
    if parent:
        fields["parentCompositePodGroupName"] = parent
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return COMPOSITE, msgspec.convert({"metadata": meta, "spec": fields}, gang.CompositePodGroup)


def pod(name: str, group: str, node: str = "") -> tuple[str, core.Pod]:
    spec = {"schedulerName": "volcano", "schedulingGroup": {"podGroupName": group}, "containers": [{"name": "c"}]}
    document: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {**spec, "nodeName": node} if node else spec,
        "status": {"phase": "Running" if node else "Pending"},
    }
    return "Pod", msgspec.convert(document, core.Pod)


def model(*objects: tuple[str, Any]) -> Cluster:
    cluster = Cluster(shadow_schedulers=frozenset(("volcano",)), default_queue="default")
    for kind, obj in objects:
        cluster.upsert(kind, obj)
    return cluster


def shape(cluster: Cluster) -> dict[str, tuple[list[str], int, str]]:
    """By job: its pods, its minimum, and why it is none."""
    return {
        uid: (sorted(job.tasks), job.min_available, "")
        if job.pod_group is not None
        else (sorted(job.tasks), -1, cluster.native_groups.obstacle(uid))
        for uid, job in cluster.jobs.items()
    }


def test_the_pods_of_a_tree_are_one_job_in_whichever_order_the_objects_arrive() -> None:
    objects = [composite("root"), composite("left", "root"), pod_group("a", "left"), pod("a-0", "a"), pod("a-1", "a")]
    expected = {ROOT: (["default/a-0", "default/a-1"], 2, "")}
    for order in permutations(objects):
        assert shape(model(*order)) == expected, [obj.metadata.name for _, obj in order]


def test_a_bound_pod_stays_bound_when_its_job_changes() -> None:
    cluster = model(pod_group("a", "root"), pod("a-0", "a"), pod("a-1", "a", node="n1"))
    cluster.assume(Bind("default", "a-0", "uid-a-0", "n2", ROOT))
    cluster.upsert(*composite("root"))
    job = cluster.jobs[ROOT]
    assert {t.key: (t.status, t.node) for t in job.tasks.values()} == {
        "default/a-0": (st.BINDING, "n2"),
        "default/a-1": (st.RUNNING, "n1"),
    }
    assert job.counts[st.BINDING] == job.counts[st.RUNNING] == 1
    assert set(cluster.on_node) == {"n1", "n2"}


def test_the_minimum_of_a_tree_is_that_of_its_smallest_groups() -> None:
    cluster = model(
        composite("root", least=2),
        pod_group("a", "root", 5),
        pod_group("b", "root", 2),
        composite("c", "root", least=1),
        pod_group("d", "c", 4),
        pod_group("e", "c", 3),
    )
    assert cluster.jobs[ROOT].min_available == 2 + 3


def test_min_count_may_change_while_pods_run() -> None:
    cluster = model(composite("root"), pod_group("a", "root", 2), *(pod(f"a-{i}", "a", node="n1") for i in range(2)))
    for least in (4, 1):
        cluster.upsert(*pod_group("a", "root", least))
        assert cluster.jobs[ROOT].min_available == least and len(cluster.jobs[ROOT].tasks) == 2


def test_a_condition_that_was_sent_counts_as_written() -> None:
    cluster = model(composite("root"), pod_group("a", "root"))
    condition = {"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled", "message": ""}
    cluster.assume(NativeGroupStatus("default", "a", "uid-a", [condition], gang.V1BETA1))
    cluster.assume(NativeGroupStatus("default", "root", "uid-root", [condition], gang.V1ALPHA3, COMPOSITE))
    tree = cluster.jobs[ROOT].tree
    assert tree is not None
    assert [len(group.group.status.conditions or ()) for group in tree.all_groups()] == [1, 1]


# ---- bad input ----------------------------------------------------------------------------------------------------


def test_a_missing_parent() -> None:
    cluster = model(pod_group("a", "root"), pod("a-0", "a"))
    assert shape(cluster) == {ROOT: (["default/a-0"], -1, f"waiting for {COMPOSITE}/root, which does not exist")}


def test_a_missing_grandparent() -> None:
    cluster = model(composite("left", "root"), pod_group("a", "left"), pod("a-0", "a"))
    assert shape(cluster) == {ROOT: (["default/a-0"], -1, f"waiting for {COMPOSITE}/root, which does not exist")}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_parents_that_form_a_circle(size: int) -> None:
    names = [f"c{i}" for i in range(size)]
    circle = [composite(name, names[(i + 1) % size]) for i, name in enumerate(names)]
    cluster = model(pod_group("a", names[-1]), pod("a-0", "a"), *circle)
    ((uid, (pods, least, why)),) = shape(cluster).items()
    assert (uid, pods, least) == (uid_of(COMPOSITE, "default/c0"), ["default/a-0"], -1)
    assert "form a circle; correct parentCompositePodGroupName" in why and all(name in why for name in names)
    cluster.upsert(*composite(names[0]))
    assert cluster.jobs[uid].pod_group is not None and list(cluster.jobs[uid].tasks) == ["default/a-0"]


def test_a_tree_deeper_than_four_levels() -> None:
    four = [composite("root"), composite("b", "root"), composite("c", "b")]
    assert model(*four, pod_group("a", "c")).jobs[ROOT].pod_group is not None
    deep = model(*four, composite("d", "c"), pod_group("a", "d"), pod("a-0", "a"))
    assert deep.native_groups.obstacle(ROOT) == f"the groups below {COMPOSITE}/root have 5 levels; use at most 4"
    deep.remove(COMPOSITE, "default", "d")
    assert reference(deep.tasks["default/a-0"].job) == (COMPOSITE, "default/d")
    assert deep.jobs[ROOT].pod_group is not None


@pytest.mark.parametrize("from_the_root", [True, False])
def test_a_chain_of_thousands_of_groups_is_followed_only_so_far(from_the_root: bool) -> None:
    names = [f"c{i:04}" for i in range(1500)]
    chain = [composite(name, names[i - 1] if i else "") for i, name in enumerate(names)]
    groups = (*chain, pod_group("a", names[-1]))
    cluster = model(*(groups if from_the_root else reversed(groups)), pod("a-0", "a"))
    (uid,) = cluster.jobs
    assert cluster.jobs[uid].pod_group is None
    assert "more than 4 levels" in cluster.native_groups.obstacle(uid)


def test_an_invalid_policy_in_a_tree_names_the_group_and_the_field() -> None:
    cluster = model(composite("root"), pod_group("a", "root", least=0), pod("a-0", "a"))
    why = f"{NATIVE}/a: spec.schedulingPolicy.gang.minCount: 0; use 1 or more"
    assert shape(cluster) == {ROOT: (["default/a-0"], -1, why)}
    cluster.upsert(*pod_group("a", "root", least=1))
    assert shape(cluster) == {ROOT: (["default/a-0"], 1, "")}


def test_a_parent_that_is_deleted_under_its_pods() -> None:
    cluster = model(composite("root"), pod_group("a", "root"), pod("a-0", "a", node="n1"), pod("a-1", "a"))
    cluster.remove(COMPOSITE, "default", "root")
    pods = ["default/a-0", "default/a-1"]
    assert shape(cluster) == {ROOT: (pods, -1, f"waiting for {COMPOSITE}/root, which does not exist")}
    cluster.remove(NATIVE, "default", "a")
    why = f"waiting for {NATIVE}/a, which does not exist"
    assert shape(cluster) == {f"default/{NATIVE}/a": (pods, -1, why)}
    for name in pods:
        cluster.remove("Pod", *name.split("/"))
    assert cluster.jobs == {}


def test_a_pod_group_that_is_created_again_without_its_parent() -> None:
    cluster = model(composite("root"), pod_group("a", "root"), pod("a-0", "a"))
    cluster.upsert(*pod_group("a", least=1))
    assert cluster.jobs[f"default/{NATIVE}/a"].min_available == 1
    assert list(cluster.jobs[f"default/{NATIVE}/a"].tasks) == ["default/a-0"]
    assert cluster.jobs[ROOT].tasks == {}


def test_the_queue_of_a_tree_is_that_of_the_root_then_of_the_namespace() -> None:
    namespace = {"metadata": {"name": "default", "labels": {"volcano.sh/queue-name": "team"}}}
    cluster = model(composite("root"), pod_group("a", "root"))
    assert cluster.jobs[ROOT].queue == "default"
    cluster.upsert("Namespace", msgspec.convert(namespace, core.Namespace))
    assert cluster.jobs[ROOT].queue == "team"
