"""Where pods run and which are evicted. The cases are in scheduling.yaml, which explains their notation.

Each case has nodes of its own, so it needs a cluster whose nodes are simulated and that has no others: the sandbox, or
an API server with `volcano-py sandbox nodes`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.site import MARKS, Manifest, Site, node, table, task
from volcano_py.api.kinds import HYPERNODE, JOB, NODE, POD, PRIORITYCLASS
from volcano_py.sandbox.cluster import Sandbox

pytestmark = MARKS
TABLE = table(Path(__file__).with_name("scheduling.yaml"))
HOLD = {"key": "hold", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def cluster(cluster_without_nodes: Sandbox | None) -> Sandbox | None:
    """Each test has nodes of its own."""
    return cluster_without_nodes


class Case:
    """One row at work. Names of nodes, queues and priorities in the table get the namespace's name."""

    def __init__(self, at: Site, row: Manifest) -> None:
        self.at = at
        self.row = row
        self.conf: str = TABLE["conf"][row.get("conf", "default")]

    async def prepare(self) -> None:
        await self.at.configure(self.conf)
        for name, value in self.row["nodes"].items():
            have = value if isinstance(value, dict) else {"cpu": value}
            made = node(self.at.name(name), str(have["cpu"]), have.get("labels"))
            if have.get("taints"):
                made["spec"] = {"taints": [HOLD]}
            await self.at.create(made)
        for name, domain in (self.row.get("domains") or {}).items():
            kind = "Node" if "nodes" in domain else "HyperNode"
            members = [
                {"type": kind, "selector": {"exactMatch": {"name": self.at.name(member)}}}
                for member in domain.get("nodes") or domain["domains"]
            ]
            spec = {"tier": domain["tier"], "members": members}
            head = {"apiVersion": HYPERNODE.api_version, "kind": "HyperNode"}
            await self.at.create({**head, "metadata": {"name": self.at.name(name)}, "spec": spec})
        for name, value in (self.row.get("priorities") or {}).items():
            head = {"apiVersion": PRIORITYCLASS.api_version, "kind": "PriorityClass"}
            await self.at.create({**head, "metadata": {"name": self.at.name(name)}, "value": value})
        for name, spec in (self.row.get("queues") or {}).items():
            if "parent" in spec:
                spec = {**spec, "parent": self.at.name(spec["parent"])}
            await self.at.queue(name, **spec)

    async def submit(self, name: str, given: Manifest) -> None:
        rows = given.get("tasks") or {"main": given}
        tasks = [self._task(role, {**given, **row}) for role, row in rows.items()]
        spec: Manifest = {}
        if "priority" in given:
            spec["priorityClassName"] = self.at.name(given["priority"])
        if "queue" in given:
            spec["queue"] = self.at.name(given["queue"])
        if "topology" in given:
            spec["networkTopology"] = given["topology"]
        if given.get("restart"):
            spec["policies"] = [{"event": "PodEvicted", "action": "RestartPod"}]
        await self.at.job(self.at.shuffled(name), *tasks, min=given.get("min"), **spec)

    def _task(self, role: str, given: Manifest) -> Manifest:
        pod: Manifest = {key: given[key] for key in ("affinity", "tolerations") if key in given}
        if "node" in given:
            named = {"key": "metadata.name", "operator": "In", "values": [self.at.name(given["node"])]}
            required = {"nodeSelectorTerms": [{"matchFields": [named]}]}
            pod["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        if "gates" in given:
            pod["schedulingGates"] = [{"name": name} for name in given["gates"]]
        if "priority" in given:
            pod["priorityClassName"] = self.at.name(given["priority"])
        made = task(role, given["pods"], cpu=given.get("cpu", "1"), pod=pod, labels=given.get("labels"))
        template = made["template"]
        if "port" in given:
            template["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": given["port"]}]
        if given.get("preemptable"):
            template["metadata"]["annotations"]["volcano.sh/preemptable"] = "true"
        if "partition" in given:
            made["partitionPolicy"] = given["partition"]
        if "tasks" in given and "min" in given["tasks"].get(role, {}):
            made["minAvailable"] = given["tasks"][role]["min"]
        return made

    async def settled(self, counts: dict[str, int], *, least: bool = False) -> None:
        """Wait until the counts hold, and check that they still do after some cycles."""

        async def hold() -> bool:
            for jobs, count in counts.items():
                running = sum([await self.at.running(self.at.shuffled(job)) for job in jobs.split("+")])
                if running < count or (running > count and not least):
                    return False
            return True

        await self.at.until(hold, f"another number of pods runs than {counts}")
        await self.at.settle()
        found = {
            jobs: sum([await self.at.running(self.at.shuffled(job)) for job in jobs.split("+")]) for jobs in counts
        }
        assert (least and all(found[job] >= counts[job] for job in counts)) or found == counts

    def names(self, domains: list[list[str]]) -> list[set[str]]:
        return [{self.at.name(name) for name in domain} for domain in domains]


def case(row: Manifest) -> Any:
    marks = [pytest.mark.xfail(reason=row["fails"], strict=False)] if "fails" in row else []
    return pytest.param(row, id=row["name"], marks=marks)


@pytest.mark.parametrize("row", [case(row) for row in TABLE["cases"]])
async def test_scheduling(at: Site, row: Manifest) -> None:
    await play(Case(at, row))


async def play(run: Case) -> None:
    """Go through the steps of a row, and check what it expects."""
    at, row = run.at, run.row
    await run.prepare()
    for name, given in (row.get("run") or {}).items():
        await run.submit(name, given)
        count = sum(part["pods"] for part in (given.get("tasks") or {"main": given}).values())
        await at.runs(at.shuffled(name), count)
    for name, given in (row.get("submit") or {}).items():
        await run.submit(name, given)
    if "submit" in row or "expect" in row:
        await run.settled(row.get("least") or row.get("sums") or row["expect"], least="least" in row)
    for job in row.get("unschedulable") or ():
        await at.waits(at.shuffled(job))
    await _where(run, row)
    if "then" in row:
        before = {job: await at.nodes_of(at.shuffled(job)) for job in row["then"]}
        await _change(at, row)
        await run.settled(row["then"])
        for job, domains in (row.get("same-domain") or {}).items():
            [domain] = [domain for domain in run.names(domains) if set(before[job]) <= domain]
            assert set(await at.nodes_of(at.shuffled(job))) <= domain


async def _where(case: Case, row: Manifest) -> None:
    """Check the nodes of jobs, tasks and partitions."""
    at = case.at
    for job, names in (row.get("on") or {}).items():
        assert set(await at.nodes_of(at.shuffled(job))) <= set(map(at.name, names))
    for job, names in (row.get("each") or {}).items():
        assert await at.nodes_of(at.shuffled(job)) == sorted(map(at.name, names))
    for job, domains in (row.get("within") or {}).items():
        nodes = set(await at.nodes_of(at.shuffled(job)))
        others = {name: await at.nodes_of(at.shuffled(name)) for name in row.get("run") or {}}
        assert any(nodes <= domain for domain in case.names(domains)), others
    for job, domains in (row.get("partitions") or {}).items():
        for partition, nodes in (await _partitions(at, at.shuffled(job))).items():
            assert any(nodes <= domain for domain in case.names(domains)), (partition, nodes)
    for job in row.get("one-partition") or ():
        running = await at.pods(at.shuffled(job), "Running")
        assert len({pod["metadata"]["labels"]["volcano.sh/partition-id"] for pod in running}) == 1
    for job, counts in (row.get("tasks") or {}).items():
        running = [
            pod["metadata"]["annotations"]["volcano.sh/task-spec"] for pod in await at.pods(at.shuffled(job), "Running")
        ]
        assert {role: running.count(role) for role in counts} == counts


async def _partitions(at: Site, job: str) -> dict[Any, set[str]]:
    """The nodes of each partition of a Job."""
    found: dict[Any, set[str]] = {}
    for pod in await at.pods(job):
        labels = pod["metadata"]["labels"]
        found.setdefault(labels["volcano.sh/partition-id"], set()).add(pod["spec"]["nodeName"])
    return found


async def _change(at: Site, row: Manifest) -> None:
    """What the test does between `expect` and `then`."""
    for name in row.get("untaint") or ():
        await at.patch(NODE, at.name(name), {"spec": {"taints": None}})
    for job in row.get("delete") or ():
        await at.delete(JOB, at.shuffled(job))
    for job in row.get("kill") or ():
        [first, *_] = await at.pods(at.shuffled(job))
        await at.delete(POD, first["metadata"]["name"], grace_period_seconds=0)
