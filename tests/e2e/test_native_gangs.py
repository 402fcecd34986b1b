"""Native gangs with the real kubectl: PodGroups of scheduling.k8s.io/v1alpha2 and pods with spec.schedulingGroup."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import waiting
from tests.e2e.cluster import cluster, kubectl, log_of, until
from volcano_py.api.kinds import POD, PODGROUP
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.scheduler.model.jobs.group_names import NATIVE
from volcano_py.simulate.capture import capture

GATES = "AllAlpha=true"
GROUPS = "podgroups.scheduling.k8s.io"
CONF = """\
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


class Site:
    """A cluster of two nodes with 2 CPUs each, and what the test asks of it with kubectl."""

    def __init__(self, sandbox: Sandbox, client: Client, folder: Path) -> None:
        self.sandbox = sandbox
        self.client = client
        self._folder = folder

    async def run(self, *arguments: str, stdin: str = "") -> str:
        code, out, errors = await kubectl(self.sandbox, self._folder, *arguments, stdin=stdin)
        assert code == 0, errors
        return out

    async def apply(self, *documents: str) -> None:
        await self.run("apply", "-f", "-", stdin="---\n".join(documents))

    async def waits_for(self, group: str, condition: str) -> None:
        await self.run("wait", f"{GROUPS}/{group}", f"--for=condition={condition}", waiting.KUBECTL)

    async def nodes(self, group: str) -> list[str]:
        """The nodes of a group's pods, "" for one that is not bound."""
        pods = await self.client.list(POD, "default", label_selector=f"group={group}")
        return [pod["spec"].get("nodeName", "") for pod in pods]

    async def reason(self, pod: str) -> str:
        """The messages of a pod's conditions."""
        found = await self.client.get(POD, pod, "default")
        return " ".join(row.get("message", "") for row in found.get("status", {}).get("conditions") or ())


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    conf = tmp_path / "scheduler.conf"
    conf.write_text(CONF)
    flags = (f"--scheduler-conf={conf}",)
    async with cluster(tmp_path, scheduler=flags, feature_gates=GATES) as (sandbox, client):
        yield Site(sandbox, client, tmp_path)


def group(name: str, min_count: int, **spec: str) -> str:
    """A PodGroup; the values of `spec` are YAML."""
    rest = "".join(f"  {field}: {value}\n" for field, value in spec.items())
    return f"""\
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {{name: {name}}}
spec:
  schedulingPolicy: {{gang: {{minCount: {min_count}}}}}
{rest}"""


def member(of: str, number: int, cpu: str = "2", priority_class: str = '""') -> str:
    return f"""\
apiVersion: v1
kind: Pod
metadata: {{name: {of}-{number}, labels: {{group: {of}}}}}
spec:
  schedulerName: volcano
  restartPolicy: Never
  priorityClassName: {priority_class}
  terminationGracePeriodSeconds: 0
  schedulingGroup: {{podGroupName: {of}}}
  containers:
  - {{name: c, image: busybox, command: [sleep, "3600"], resources: {{requests: {{cpu: {cpu}, memory: 64Mi}}}}}}
"""


NODE = """\
apiVersion: v1
kind: Node
metadata: {name: added}
status: {allocatable: {cpu: "2", memory: 8Gi, pods: "110"}, capacity: {cpu: "2", memory: 8Gi, pods: "110"}}
"""
VOLCANO_GROUP = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: other}
spec: {minMember: 1}
"""
CLASSES = """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 100
"""


async def test_a_gang_waits_for_capacity_and_late_members_join_it(site: Site) -> None:
    await site.apply(group("train", 3), *(member("train", i) for i in range(3)))
    await site.waits_for("train", "PodGroupScheduled=false")
    assert await site.nodes("train") == ["", "", ""]
    described = await site.run("get", GROUPS, "train", "-o", "yaml")
    assert "reason: Unschedulable" in described and " lacks" in described
    await site.run("create", "-f", "-", stdin=VOLCANO_GROUP)
    captured = await capture(site.client, 0.0)
    names = {kind: [group.metadata.name for group in captured.of(kind)] for kind in (NATIVE, "PodGroup")}
    assert names == {NATIVE: ["train"], "PodGroup": ["other"]}
    await site.run("delete", "podgroups.scheduling.volcano.sh", "other")
    row = (await site.run("get", GROUPS, "--no-headers")).split()
    assert row[:4] == ["train", "Gang", "<none>", "Unschedulable"]
    pod = await site.run("get", "pod", "train-0", "-o", "yaml")
    assert "reason: Unschedulable" in pod and "type: PodScheduled" in pod
    events = await site.run("get", "events", "--field-selector", "involvedObject.kind=PodGroup", "-o", "yaml")
    assert "apiVersion: scheduling.k8s.io/v1alpha2" in events

    await site.apply(NODE)
    await site.waits_for("train", "PodGroupScheduled")
    assert len(set(await site.nodes("train"))) == 3

    await site.apply(member("train", 3, cpu="0"))

    async def joined() -> bool:
        return all(await site.nodes("train"))

    await until(joined, "the late member is not bound")
    assert await site.client.list(PODGROUP, "default") == [], "a PodGroup of Volcano was made for native gangs"


async def test_members_wait_for_the_group_and_for_each_other(site: Site) -> None:
    await site.apply(member("late", 0))

    async def says() -> bool:
        return "podgroup.scheduling.k8s.io/late, which does not exist" in await site.reason("late-0")

    await until(says, "the pod's condition does not name the missing group")
    await site.apply(group("late", 2))
    await site.waits_for("late", "PodGroupScheduled=false")
    assert await site.nodes("late") == [""]
    await site.apply(member("late", 1))
    await site.waits_for("late", "PodGroupScheduled")


async def test_a_gang_with_a_topology_key_stays_within_one_domain(site: Site) -> None:
    for node, zone in (("node-0", "a"), ("node-1", "b")):
        await site.run("label", "node", node, f"zone={zone}")
    await site.apply(NODE)
    await site.run("label", "node", "added", "zone=b")
    topology = "{topology: [{key: zone}]}"
    await site.apply(group("near", 2, schedulingConstraints=topology), *(member("near", i) for i in range(2)))
    await site.waits_for("near", "PodGroupScheduled")
    assert sorted(await site.nodes("near")) == ["added", "node-1"]
    await site.apply(group("large", 3, schedulingConstraints=topology), *(member("large", i, "1") for i in range(3)))
    await site.waits_for("large", "PodGroupScheduled=false")
    assert "No domain of the node label zone" in await site.run("get", GROUPS, "large", "-o", "yaml")


async def test_a_group_with_disruption_mode_pod_group_is_preempted_as_a_whole(site: Site) -> None:
    await site.apply(CLASSES, group("old", 2, disruptionMode="PodGroup"), *(member("old", i) for i in range(2)))
    await site.waits_for("old", "PodGroupScheduled")
    await site.apply(group("new", 1, priorityClassName="high"), member("new", 0, priority_class="high"))
    await site.waits_for("old", "DisruptionTarget")
    await site.waits_for("new", "PodGroupScheduled")
    assert "reason: PreemptionByScheduler" in await site.run("get", GROUPS, "old", "-o", "yaml")

    async def gone() -> bool:
        return await site.nodes("old") == []

    await until(gone, "a member of the preempted group is left")


async def test_without_the_feature_gate_there_are_no_native_gangs(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (sandbox, client):
        site = Site(sandbox, client, tmp_path)
        code, _, errors = await kubectl(sandbox, tmp_path, "get", GROUPS)
        assert code == 1 and "the server doesn't have a resource type" in errors
        await site.apply(member("alone", 0, cpu="1"))
        assert not await site.run("get", "pod", "alone-0", "-o", "jsonpath={.spec.schedulingGroup}")

        async def placed() -> bool:
            return all(await site.nodes("alone"))

        await until(placed, "the pod is not bound")
        assert log_of(sandbox, "scheduler").count("--runtime-config=scheduling.k8s.io/v1alpha2=true") == 1
