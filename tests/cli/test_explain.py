"""vcctl explain: what it answers from what it may read, and how it ends."""

from __future__ import annotations

import asyncio
import io
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from tests.cli.conftest import Vcctl
from tests.e2e.cluster import bound, cluster, job, until
from volcano_py.api.kinds import JOB, PODGROUP, ROLE, ROLEBINDING
from volcano_py.api.meta import OwnerReference
from volcano_py.api.scheduling import PodGroupCondition
from volcano_py.cli import explain_facts
from volcano_py.cli.explain_answer import Answer, Blocker, answer, timeline
from volcano_py.cli.explain_facts import Facts
from volcano_py.cli.explain_print import show
from volcano_py.kube.client import Client
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.scheduler.explain.table import SCHEDULER_NOT_RUNNING
from volcano_py.simulate.complete import complete
from volcano_py.simulate.manifests import as_struct
from volcano_py.simulate.snapshot import NAMESPACE, OBJECT, Snapshot, Unread, summary
from volcano_py.testing.table import configuration, manifests

SCENARIO: dict[str, Any] = {
    "nodes": {"n1": {"cpu": 4}},
    "jobs": {
        "old": {"phase": "Running", "each": {"cpu": 3, "runsOn": "n1"}},
        "g": {"phase": "Inqueue", "min": 2, "pods": 2, "each": {"cpu": 2}},
    },
    "conf": {"plugins": [["priority", "gang"], ["predicates", "nodeorder"]]},
}
NOW = 1_800_000_000.0
DELETED = {"name": "g", "deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": ["a.b/c"]}


def facts(kind: str, name: str, scenario: dict[str, Any] = SCENARIO, **change: Any) -> Facts:
    """What would be read of a scenario."""
    objects, _ = complete(manifests(scenario), frozenset(("volcano",)), NOW)
    by_kind: dict[str, list[Any]] = {}
    for o in objects:
        by_kind.setdefault(o["kind"], []).append(as_struct(o))
    subject = {"metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}, **change}
    namespace = "" if kind == "queue" else "default"
    snapshot = Snapshot(NOW, by_kind, configuration(scenario["conf"]))
    return Facts(kind, name, namespace, subject, snapshot, group="" if kind == "queue" else "default/g")


def printed(found: Answer, width: int) -> str:
    out = io.StringIO()
    show(found, Console(file=out, width=width, highlight=False))
    return out.getvalue()


def test_a_podgroup_is_explained_with_what_helps() -> None:
    found = answer(facts("podgroup", "g"), "volcano", True)
    assert found.state == "pending"
    assert found.verdict.startswith("PodGroup default/g is pending: 1 of 1 node has too little cpu free")
    assert {h.kind for h in found.unblock} >= {"add-nodes", "wait-for-job", "free-capacity"}
    assert found.timeline[0].what == "podgroup g created"


@pytest.mark.parametrize("width", [80, 140])
def test_the_output_fits_the_terminal(width: int) -> None:
    text = printed(answer(facts("podgroup", "g"), "volcano", True), width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    for title in ("Blockers, in order", "What would unblock it", "Timeline"):
        assert title in text


def test_without_unblock_nothing_is_tried() -> None:
    assert answer(facts("podgroup", "g"), "volcano", False).unblock == []


def test_the_jobs_of_a_queue_are_explained() -> None:
    found = answer(facts("queue", "default", status={"state": "Open"}), "volcano", True)
    assert found.verdict == "Queue default is Open: 1 job runs, 1 waits."
    assert [(b.job, b.code) for b in found.blockers] == [("default/g", "NodeResources")]


def test_a_job_that_is_not_admitted_waits_in_its_queue_under_the_name_of_its_job() -> None:
    waiting = {
        **SCENARIO,
        "jobs": {**SCENARIO["jobs"], "new-1": {"phase": "Pending", "min": 9, "minResources": {"cpu": 9}}},
    }
    given = facts("queue", "default", waiting, status={"state": "Open"})
    for group in given.snapshot.of("PodGroup"):
        if group.metadata.name == "new-1":
            group.metadata.owner_references = [OwnerReference(kind="Job", name="new", uid="1", api_version="")]
    found = answer(given, "volcano", False)
    assert found.verdict == "Queue default is Open: 1 job runs, 2 wait."
    assert [b.job for b in found.blockers] == ["default/g", "default/new"]


def test_if_no_change_helps_the_remedies_are_listed() -> None:
    found = Answer("job a/b", "pending", "It waits.", [Blocker("ClaimProblem", "No claim.", {}, "Create it.")])
    assert "Create it." not in printed(found, 80), "nothing was tried"
    found.searched = True
    assert "No change that was tried" in printed(found, 80) and "Create it." in printed(found, 80)


@pytest.mark.parametrize("phase", ["Terminating", "Completed", "Aborted"])
def test_a_job_that_reached_its_limit_is_explained(phase: str) -> None:
    message = "the Job has run for 1h0m0s, its limit (annotation volcano.sh/max-run-time); the action is TerminateJob"
    state = {"phase": phase, "reason": "MaxRunTimeExceeded", "message": message}
    found = answer(facts("job", "g", status={"state": state}), "volcano", unblock=True)
    assert (found.state, found.verdict) == ("ended", f"Job default/g is {phase}: {message}.")


def test_a_completed_job_has_no_blocker_and_no_note_about_the_scheduler() -> None:
    given = facts("job", "g", status={"state": {"phase": "Completed"}})
    given.unknown_scheduler = "no Lease"
    found = answer(given, "volcano", True)
    assert (found.state, found.blockers, found.notes) == ("completed", [], [])
    assert answer(facts("podgroup", "g"), "volcano", False).notes == []
    given = facts("podgroup", "g")
    given.unknown_scheduler = "no Lease"
    assert answer(given, "volcano", False).notes == ["no Lease"]


def test_the_timeline_does_not_repeat_a_condition_as_an_event() -> None:
    given = facts("podgroup", "g")
    stamp = "2026-01-01T00:00:05Z"
    given.events = [
        {"reason": "Unschedulable", "message": "no node (NodeResources: too little)", "lastTimestamp": stamp},
        {"reason": "Waiting", "message": "no node", "lastTimestamp": "2026-01-01T00:00:05.123456Z"},
        {"reason": "Waiting", "message": "no node", "lastTimestamp": "2026-01-01T00:00:09Z"},
    ]
    texts = [m.what for m in answer(given, "volcano", False).timeline]
    assert texts[1:] == ["Unschedulable: no node (NodeResources: too little)", "Waiting: no node"]


def test_a_scheduler_that_is_down_is_the_first_blocker_and_the_rest_is_answered() -> None:
    read = facts("podgroup", "g")
    read.scheduler = SCHEDULER_NOT_RUNNING.because(lease="volcano-system/volcano", holder="a", seconds=90)
    found = answer(read, "volcano", True)
    assert [b.code for b in found.blockers[:2]] == ["SchedulerNotRunning", "NodeResources"]
    assert "renewed the Lease volcano-system/volcano 90 s ago" in found.verdict


def test_without_the_right_to_read_nodes_the_report_of_the_scheduler_is_the_answer() -> None:
    read = facts("podgroup", "g")
    read.snapshot.unread = (Unread("Node", "nodes is forbidden", forbidden=True),)
    group = read.snapshot.of("PodGroup")[0]
    assert group.metadata.name in ("g", "old")
    found = answer(read, "volcano", True)
    assert found.verdict == "The scheduler reports no reason for podgroup default/g; its phase is Inqueue."
    assert found.unblock == [] and "too little can be read to simulate a cycle" in found.notes[0]


def test_one_object_that_cannot_be_decoded_does_not_end_the_answer() -> None:
    read = facts("podgroup", "g")
    read.snapshot.unread = (Unread("Pod", "default/odd cannot be decoded and is left out", OBJECT),)
    assert [b.code for b in answer(read, "volcano", True).blockers] == ["NodeResources"]


def test_kinds_that_may_not_be_listed_are_one_sentence() -> None:
    unread = [Unread(kind, f"{kind} is forbidden", forbidden=True) for kind in ("Node", "Pod")]
    unread.append(Unread("Queue", "only those of namespace a; others are forbidden", NAMESPACE, True))
    unread.append(Unread("configuration", "key x is missing"))
    assert summary(unread) == [
        "no permission to list: Node, Pod",
        "only those of namespace a; others are forbidden: Queue",
        "configuration: key x is missing",
    ]


@pytest.mark.parametrize(
    ("kind", "change", "code", "words"),
    [
        ("job", {"spec": {"schedulerName": "other", "tasks": [{"replicas": 2}]}}, "WrongSchedulerName", "other"),
        ("pod", {"spec": {"schedulerName": "default-scheduler"}}, "WrongSchedulerName", "default-scheduler"),
        ("job", {"status": {"state": {"phase": "Aborted"}}}, "JobSuspended", "Job default/g is Aborted"),
    ],
)
def test_what_no_cycle_tries(kind: str, change: dict[str, Any], code: str, words: str) -> None:
    found = answer(facts(kind, "g", **change), "volcano", True)
    assert [b.code for b in found.blockers] == [code]
    assert words in found.verdict


def test_a_podgroup_whose_pods_belong_to_another_scheduler() -> None:
    read = facts("podgroup", "g")
    for pod in read.snapshot.of("Pod"):
        pod.spec.scheduler_name = "other"
    (blocker,) = answer(read, "volcano", True).blockers
    assert blocker.sentence == "spec.schedulerName of the pods (2) is other, so the scheduler volcano ignores them."


def test_a_gang_of_a_profile_is_explained_by_what_the_scheduler_has_reported() -> None:
    of_profile = {**SCENARIO, "jobs": {"g": {"min": 1, "pods": 2, "each": {"spec": {"schedulerName": "batch"}}}}}
    found = facts("podgroup", "g", of_profile)
    (group,) = found.snapshot.of("PodGroup")
    text = "0/1 nodes can run the pod: 1 is rejected by plugin MachineGroups of profile batch"
    condition = {"type": "Waiting", "status": "True", "reason": "NodeFilter", "message": text}
    group.status.conditions = [msgspec.convert(condition, PodGroupCondition)]
    explained = answer(found, "volcano", unblock=True)
    (blocker,) = explained.blockers
    assert (blocker.code, blocker.sentence) == ("NodeFilter", text)
    assert any("batch is a profile of the scheduler" in note for note in explained.notes)
    group.status.conditions = []
    assert [b.code for b in answer(found, "volcano", unblock=True).blockers] == ["WrongSchedulerName"]


@pytest.mark.parametrize(
    ("kind", "change", "state", "words"),
    [
        ("job", {"spec": {"schedulerName": "other"}, "status": {"running": 2}}, "running", "their scheduler is other"),
        ("pod", {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}, "running", "bound to node n1"),
        ("job", {"metadata": DELETED}, "deleting", "deleted at 2026-01-02T00:00:00Z, and is not scheduled; it exists"),
        ("podgroup", {"metadata": DELETED}, "deleting", "until its finalizers are removed: a.b/c."),
    ],
)
def test_what_does_not_wait(kind: str, change: dict[str, Any], state: str, words: str) -> None:
    read = facts(kind, "g", **change)
    read.scheduler = SCHEDULER_NOT_RUNNING.because(lease="a/b", holder="a", seconds=90) if state == "deleting" else None
    found = answer(read, "volcano", True)
    assert found.state == state and words in found.verdict and not found.blockers and not found.unblock


def test_an_object_that_cannot_be_used() -> None:
    scenario = {**SCENARIO, "jobs": {"g": {"phase": "Inqueue", "min": -2, "each": {"cpu": 2}}}}
    found = answer(facts("podgroup", "g", scenario), "volcano", True)
    assert [b.code for b in found.blockers] == ["ObjectQuarantined"]
    assert "spec.minMember" in found.verdict


def test_a_podgroup_that_the_controllers_have_not_made() -> None:
    read = facts("job", "late")
    read.group = "default/late-1"
    assert [b.code for b in answer(read, "volcano", True).blockers] == ["PodGroupMissing"]


def kubeconfig(path: Path, url: str, user: str) -> str:
    """A kubeconfig of a user of the sandbox."""
    cluster = {"name": "c", "cluster": {"server": url, "insecure-skip-tls-verify": True}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {"token": f"token-of-{user}"}}]
    path.write_text(json.dumps({"current-context": "c", "clusters": [cluster], "contexts": [context], "users": users}))
    return str(path)


async def test_exit_codes(tmp_path: Path, vcctl: Vcctl, monkeypatch: pytest.MonkeyPatch) -> None:
    users = {f"token-of-{name}": User(name, ("system:authenticated",)) for name in ("bob", "eve")}
    async with Sandbox(nodes=1, path=tmp_path / "kubeconfig", users=users, rbac=True) as sandbox:
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        code, out = await vcctl("explain", "job", "nothing")
        assert code == 1 and "Job nothing does not exist in namespace default, or was just deleted" in out
        assert out.count("\n") == 1
        code, out = await vcctl("explain", "queue", "default")
        assert code == 0 and "Lease" not in out, "the sandbox has one scheduler, without a Lease"
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(explain_facts, "SANDBOX", "another API server")
            code, out = await vcctl("explain", "queue", "default")
            assert code == 0 and "Lease volcano-system/volcano does not exist" in " ".join(out.split())
        code, out = await vcctl("explain", "node", "n1")
        assert code == 2 and out.count("\n") == 1
        async with Client.from_kubeconfig(sandbox.kubeconfig) as client:
            waits = {"type": "Waiting", "status": "True", "reason": "NodeResources", "message": "no cpu is free"}
            group = {"metadata": {"name": "g"}, "spec": {"minMember": 1}, "status": {"conditions": [waits]}}
            await client.create(PODGROUP, group, "default")
            rules = [{"apiGroups": [PODGROUP.group], "resources": ["podgroups"], "verbs": ["get", "list"]}]
            await client.create(ROLE, {"metadata": {"name": "r"}, "rules": rules}, "default")
            api = {"apiGroup": ROLE.group}
            binding = {
                "roleRef": {**api, "kind": "Role", "name": "r"},
                "subjects": [{**api, "kind": "User", "name": "bob"}],
            }
            await client.create(ROLEBINDING, {"metadata": {"name": "r"}, **binding}, "default")
            spec = {"holderIdentity": "gone", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
            api_version = "coordination.k8s.io/v1"
            lease = {"apiVersion": api_version, "kind": "Lease", "metadata": {"name": "volcano"}, "spec": spec}
            path = f"/apis/{api_version}/namespaces/volcano-system/leases"
            await client.raw("POST", path, body=json.dumps(lease).encode())
        code, out = await vcctl("explain", "podgroup", "g", "-o", "json")
        blockers = [blocker["code"] for blocker in json.loads(out)["blockers"]]
        assert code == 0 and blockers[0] == "SchedulerNotRunning"
        monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path / "bob", sandbox.url, "bob"))
        code, out = await vcctl("explain", "podgroup", "g", "-o", "json")
        found = json.loads(out)
        assert code == 0 and found["verdict"] == "The scheduler reports for podgroup default/g: no cpu is free"
        assert found["notes"][0].startswith("no permission to list: ") and len(found["notes"]) == 7
        command = next(n for n in found["notes"] if n.startswith("an administrator grants the rest with: "))
        assert "kubectl create clusterrole volcano-explain --verb=get,list --resource=" in command
        assert "nodes," in command and ",podgroups.scheduling.volcano.sh" in command
        assert command.endswith(
            "kubectl create clusterrolebinding volcano-explain --clusterrole=volcano-explain --user=bob"
        )
        monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path / "eve", sandbox.url, "eve"))
        code, out = await vcctl("explain", "podgroup", "g")
        assert code == 255 and 'User "eve" cannot get resource "podgroups"' in out and out.count("\n") == 1
    code, out = await vcctl("explain", "job", "nothing")
    assert code == 255 and out.startswith("Failed to explain job: ") and out.count("\n") == 1


async def test_a_job_of_a_live_cluster(tmp_path: Path, vcctl: Vcctl, monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(tmp_path, nodes=1, shape="cpu=4,memory=8Gi") as (sandbox, client):
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        await client.create(JOB, job("old", 1, "3", seconds=600))
        await until(lambda: bound(client, "old"), "old is not bound")
        await client.create(JOB, job("big", 1, "2", seconds=600))

        async def stated() -> bool:
            groups = await client.list(PODGROUP, "default")
            conditions = [c for g in groups.items for c in (g.get("status") or {}).get("conditions") or ()]
            return any(c["type"] == "Waiting" for c in conditions)

        await until(stated, "big has no condition Waiting")
        code, out = await vcctl("explain", "job", "big", "-o", "json")
        found = json.loads(out)
        assert code == 0 and found["state"] == "pending"
        assert found["blockers"][0]["code"] in ("EnqueueClusterFull", "EnqueueQueueLimit")
        assert "wait until job default/old has ended" in {h["text"] for h in found["unblock"]}


LISTED = tuple(Unread(kind, f"{kind} is forbidden", forbidden=True) for kind in ("Node", "PodGroup", "Queue"))


def test_a_user_who_may_read_only_jobs_and_pods_gets_the_reason_of_the_job() -> None:
    state = {"phase": "Pending", "reason": "FailedCreate", "message": "pods g-0 is forbidden: exceeded quota"}
    read = facts("job", "g", status={"state": state})
    read.snapshot.unread = LISTED
    read.snapshot.objects = {}
    found = answer(read, "volcano", True)
    assert found.verdict == "Job default/g reports: pods g-0 is forbidden: exceeded quota"
    assert [b.code for b in found.blockers] == ["FailedCreate"]


def test_or_the_reason_of_one_of_its_pods() -> None:
    read = facts("job", "g")
    read.snapshot.unread = LISTED
    read.snapshot.objects = {}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no cpu is free"}
    read.pods = [{"metadata": {"name": "g-0"}, "status": {"conditions": [condition]}}]
    assert answer(read, "volcano", True).verdict == "Job default/g reports: no cpu is free"


def test_what_every_job_is_for_a_moment_is_no_line_of_the_timeline() -> None:
    read = facts("podgroup", "g")
    texts = (
        "0/0 tasks in gang unschedulable: pod group is not ready, 2 minAvailable (PodsMissing)",
        "2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable",
    )
    read.events = [
        {"reason": "Unschedulable", "message": m, "lastTimestamp": f"2026-01-01T00:00:0{i}Z"}
        for i, m in enumerate(texts)
    ]
    assert len([m for m in timeline(read) if "0/0 tasks" in m.what]) == 1
    shown = [m.what for m in answer(read, "volcano", False).timeline]
    assert not any("0/0 tasks" in what for what in shown) and any("2/2 tasks" in what for what in shown)


def test_it_stays_while_pods_are_missing() -> None:
    scenario = {**SCENARIO, "jobs": {"g": {"phase": "Inqueue", "min": 3, "pods": 2, "each": {"cpu": 2}}}}
    read = facts("podgroup", "g", scenario)
    message = "0/0 tasks in gang unschedulable: pod group is not ready, 3 minAvailable"
    read.events = [{"reason": "Unschedulable", "message": message, "lastTimestamp": "2026-01-01T00:00:01Z"}]
    assert any("0/0 tasks" in m.what for m in answer(read, "volcano", False).timeline)


async def test_a_new_job_is_explained_with_its_podgroup(tmp_path: Path) -> None:
    """`vcctl explain` right after `vcctl job run`: the controllers are about to create the PodGroup."""
    async with (
        Sandbox(nodes=1, path=tmp_path / "kubeconfig", hollow=False, controllers=None) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        created = await client.create(JOB, job("new", 1, "1"), "default")
        name = f"new-{created['metadata']['uid']}"

        async def later() -> None:
            await asyncio.sleep(0.3)
            await client.create(PODGROUP, {"metadata": {"name": name}, "spec": {"minMember": 1}}, "default")

        async with asyncio.TaskGroup() as group:
            group.create_task(later())
            found = await explain_facts.read_facts(
                client, "job", "new", "default", time.time(), "volcano", explain_facts.LEASE
            )
        assert [one.metadata.name for one in found.snapshot.of("PodGroup")] == [name]
