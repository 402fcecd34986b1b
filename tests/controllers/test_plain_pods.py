"""PodGroups of pods that no Job made."""

import pytest

from volcano_py.api import kinds
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.controllers.podgroup.reconcile import build_podgroup


def pod(name="web-0", owner=None, annotations=None, **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    metadata = {"name": name, "annotations": annotations or {}}
    if owner:
        reference = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
        metadata["ownerReferences"] = [{"apiVersion": owner["apiVersion"], "kind": owner["kind"]} | reference]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"schedulerName": "volcano", "containers": [container]} | spec,
    }


def group_of(world, name):
    return world.pods()[name]["metadata"]["annotations"].get("scheduling.k8s.io/group-name")


async def test_a_bare_pod_gets_a_group_of_its_own(world):
    world.api.put(pod(priorityClassName="high", annotations={"scheduling.volcano.sh/queue-name": "default"}))
    world.api.put(pod("other", schedulerName="default-scheduler"))
    world.api.put(pod("grouped", annotations={"scheduling.k8s.io/group-name": "mine"}))
    group = (await world.until(world.podgroups))[0]
    uid = world.pods()["web-0"]["metadata"]["uid"]
    assert group["metadata"]["name"] == f"podgroup-{uid}"
    assert group["metadata"]["ownerReferences"][0]["uid"] == uid
    assert group["spec"]["minMember"] == 1
    assert group["spec"]["queue"] == "default"
    assert group["spec"]["priorityClassName"] == "high"
    assert group["spec"]["minResources"]["requests.cpu"] == "500m"
    assert group["status"] == {"phase": "Pending"}
    await world.until(lambda: group_of(world, "web-0") == f"podgroup-{uid}")
    await world.quiet()
    assert len(world.podgroups()) == 1
    assert group_of(world, "grouped") == "mine"


async def test_replicas_share_a_group_that_follows_their_owner(world):
    replicaset = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "annotations": {"scheduling.volcano.sh/group-min-member": "2"}},
        "spec": {"replicas": 2},
    }
    owner = world.api.put(replicaset)
    for name in ("web-0", "web-1"):
        world.api.put(pod(name, owner))
    await world.until(lambda: group_of(world, "web-0") and group_of(world, "web-0") == group_of(world, "web-1"))
    await world.quiet()
    assert [group["spec"]["minMember"] for group in world.podgroups()] == [2]
    assert world.podgroups()[0]["spec"]["minResources"]["requests.cpu"] == "1"

    world.api.change(kinds.PODGROUP, group_of(world, "web-0"), {"metadata": {"annotations": {"mine": "x"}}})
    changed = {"metadata": {"annotations": {"scheduling.volcano.sh/group-min-member": "1"}}}
    world.api.change(kinds.REPLICASET, "web", changed)
    await world.until(lambda: world.podgroups()[0]["spec"]["minMember"] == 1)
    assert world.podgroups()[0]["metadata"]["annotations"]["mine"] == "x", "what others wrote stays"

    world.api.change(kinds.REPLICASET, "web", {"spec": {"replicas": 0}})
    await world.until(lambda: world.podgroups() == [])


async def test_the_group_of_a_statefulset_follows_its_newest_revision(world):
    """A pod below the partition of its update strategy is recreated from the former template."""

    def member(name, revision, cpu):
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        made = pod(name, owner, containers=[container])
        made["metadata"]["labels"] = {"controller-revision-hash": revision}
        made["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        return made

    def minimums():
        return [group["spec"]["minResources"]["requests.cpu"] for group in world.podgroups()]

    statefulset = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {"replicas": 2},
        "status": {"updateRevision": "new"},
    }
    owner = world.api.put(statefulset)
    world.api.put(member("db-1", "new", "2"))
    await world.until(lambda: minimums() == ["2"])
    world.api.clock += 60
    world.api.put(member("db-0", "old", "1"))
    await world.until(lambda: group_of(world, "db-0"))
    world.api.change(kinds.STATEFULSET, "db", {"spec": {"replicas": 3}})
    await world.quiet()
    assert minimums() == ["2"]
    world.api.put(member("db-2", "newest", "3"))
    world.api.change(kinds.STATEFULSET, "db", {"status": {"updateRevision": "newest"}})
    await world.until(lambda: minimums() == ["3"])


def test_annotations_are_inherited_and_overridden():
    manifest = pod(annotations={"volcano.sh/preemptable": "false", "volcano.sh/jdb-max-unavailable": "1"})
    owners = [{"volcano.sh/preemptable": "true", "volcano.sh/sla-waiting-time": "1h", "other": "x"}]
    made = build_podgroup(from_manifest(Pod, manifest), owners)
    assert made["metadata"]["annotations"] == {
        "volcano.sh/preemptable": "false",
        "volcano.sh/sla-waiting-time": "1h",
        "volcano.sh/jdb-max-unavailable": "1",
    }
    assert "queue" not in made["spec"]


def test_topology_from_annotations():
    def topology(**annotations):
        keyed = {f"volcano.sh/network-topology-{key}": value for key, value in annotations.items()}
        return build_podgroup(from_manifest(Pod, pod(annotations=keyed)), [])["spec"].get("networkTopology")

    assert topology() is None
    assert topology(mode="SOFT") == {"mode": "soft"}
    assert topology(**{"mode": "odd", "highest-tier": "2"}) == {"highestTierAllowed": 2}
    assert topology(**{"highest-tier": "x"}) == {}


def test_a_nonsensical_minimum_counts_as_one():
    for text in ("-1", "many", "", "2147483648"):
        made = build_podgroup(from_manifest(Pod, pod()), [{"scheduling.volcano.sh/group-min-member": text}])
        assert made["spec"]["minMember"] == 1


QUEUE, LEAST = "scheduling.volcano.sh/queue-name", "scheduling.volcano.sh/group-min-member"


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "DaemonSet", "Job"])
async def test_the_queue_of_an_owner_reaches_the_group(world, kind):
    """A Deployment's annotations are copied to its ReplicaSets; only those of the pod template had an effect."""
    group = "batch/v1" if kind == "Job" else "apps/v1"
    owner = world.api.put(
        {"apiVersion": group, "kind": kind, "metadata": {"name": "o", "annotations": {QUEUE: "team"}}}
    )
    world.api.put(pod("a", owner))
    [made] = await world.until(world.podgroups)
    assert made["spec"]["queue"] == "team"


def test_the_queue_of_a_pod_comes_before_that_of_its_owner():
    one = from_manifest(Pod, pod(annotations={QUEUE: "mine"}))
    assert build_podgroup(one, [{QUEUE: "team"}])["spec"]["queue"] == "mine"
    assert build_podgroup(from_manifest(Pod, pod()), [{}, {QUEUE: "team"}])["spec"]["queue"] == "team"


@pytest.mark.parametrize(
    ("kind", "spec", "least"),
    [
        ("ReplicaSet", {"replicas": 1}, 1),
        ("ReplicaSet", {"replicas": 5}, 3),
        ("StatefulSet", {"replicas": 3}, 1),
        ("StatefulSet", {"replicas": 2, "podManagementPolicy": "Parallel"}, 2),
        ("Job", {"parallelism": 2, "completions": 6}, 2),
        ("Job", {"parallelism": 6, "completions": 6}, 3),
        ("Job", {}, 1),
    ],
)
async def test_a_minimum_is_within_what_its_owner_creates(world, kind, spec, least):
    group = "batch/v1" if kind == "Job" else "apps/v1"
    metadata = {"name": "o", "annotations": {LEAST: "3"}}
    owner = world.api.put({"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec})
    world.api.put(pod("a", owner))
    [made] = await world.until(world.podgroups)
    assert made["spec"]["minMember"] == least


async def test_a_rolling_update_with_a_minimum_goes_on(world):
    """The new ReplicaSet has one pod, and gets the next one when it runs: a gang of three never started."""
    metadata = {"name": "new", "annotations": {LEAST: "3"}}
    owner = world.api.put(
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": {"replicas": 1}}
    )

    def minimums():
        return [group["spec"]["minMember"] for group in world.podgroups()]

    for replicas in (1, 2, 3):
        world.api.change(kinds.REPLICASET, "new", {"spec": {"replicas": replicas}})
        world.api.put(pod(f"new-{replicas}", owner))
        await world.until(lambda expected=[replicas]: minimums() == expected)
