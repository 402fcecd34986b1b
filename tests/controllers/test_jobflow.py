"""JobFlows: order, probes, patches, and what users get wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.controllers.small_api import Denied
from tests.controllers.world import World, job, task
from volcano_py.api import kinds
from volcano_py.api.batch import Job
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.api.flow import JobFlow, JobTemplate
from volcano_py.controllers.instructions import Again, Create, Delete, Emit, Instruction, Together, UpdateStatus
from volcano_py.controllers.jobflow import prober
from volcano_py.controllers.jobflow.members import make_job
from volcano_py.controllers.jobflow.merge import merge_spec
from volcano_py.controllers.jobflow.probes import Question
from volcano_py.controllers.jobflow.reconcile import Observed, questions, reconcile

Manifest = dict[str, Any]
NOW = 1_800_000_000.0


def template(name: str, **spec: Any) -> Manifest:
    plain = job(**spec)["spec"]
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {"name": name, "namespace": "lab"},
        "spec": plain,
    }


def flow(*entries: Manifest, name: str = "f", phase: str = "", **spec: Any) -> Manifest:
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": name, "namespace": "lab", "uid": "flow-uid"},
        "spec": {"flows": list(entries), **spec},
        "status": {"state": {"phase": phase}} if phase else {},
    }


def entry(name: str, *targets: str, probe: Manifest | None = None, **fields: Any) -> Manifest:
    depends = {"targets": list(targets)} | ({"probe": probe} if probe else {})
    return {"name": name, **({"dependsOn": depends} if targets else {}), **fields}


class Bench:
    """A flow, its templates and jobs, without a server."""

    def __init__(self, manifest: Manifest, **templates: Manifest) -> None:
        self.flow = from_manifest(JobFlow, manifest)
        self.seen = Observed(self.flow, NOW)
        names = [one.name for one in self.flow.spec.flows or ()]
        self.seen.templates = {name: from_manifest(JobTemplate, templates.get(name, template(name))) for name in names}
        self.jobs: dict[str, Job] = {}
        self.seen.jobs = self.jobs

    def step(self) -> list[Instruction]:
        """Reconcile once, and execute the instructions."""
        made = reconcile(self.seen)
        for one in flat(made):
            if isinstance(one, Create):
                created = from_manifest(Job, one.obj)
                created.metadata.uid = f"uid-{created.metadata.name}"
                created.metadata.creation_timestamp = "2026-01-01T00:00:00Z"
                self.jobs[created.metadata.name] = created
            elif isinstance(one, UpdateStatus):
                self.flow.status = from_manifest(JobFlow, {"status": one.status}).status
            elif isinstance(one, Delete):
                del self.jobs[one.name]
        return made

    def set(self, name: str, phase: str, **pods: int) -> None:
        status = self.jobs[f"f-{name}"].status
        status.state.phase = phase
        if pods:
            counts = {"work": {"phase": pods}}
            counted = from_manifest(Job, {"status": {"taskStatusCount": counts}})
            status.task_status_count = counted.status.task_status_count

    @property
    def phase(self) -> str:
        return self.flow.status.state.phase


def flat(instructions: list[Instruction]) -> list[Any]:
    return [one for each in instructions for one in (each.instructions if isinstance(each, Together) else [each])]


def warnings(instructions: list[Instruction]) -> list[str]:
    return [f"{one.reason}: {one.message}" for one in instructions if isinstance(one, Emit)]


def test_jobs_follow_their_targets() -> None:
    bench = Bench(flow(entry("a"), entry("b", "a"), entry("c", "a", "b")))
    bench.step()
    assert set(bench.jobs) == {"f-a"} and bench.phase == "Pending"
    bench.set("a", "Running")
    bench.step()
    assert set(bench.jobs) == {"f-a"} and bench.phase == "Running"
    bench.set("a", "Completed")
    bench.step()
    assert set(bench.jobs) == {"f-a", "f-b"}
    bench.set("b", "Completed")
    bench.step()
    bench.set("c", "Completed")
    bench.step()
    assert bench.phase == "Succeed"
    assert bench.flow.status.completed_jobs == ["f-a", "f-b", "f-c"]
    history = (bench.flow.status.job_status_list or [])[0].running_histories or []
    assert [one.state for one in history] == ["Running", "Completed"]


def test_a_change_of_phase_is_followed_up_at_once() -> None:
    """A flow of one quick job is completed when it is first looked at, and nothing happens afterwards."""
    bench = Bench(flow(entry("a")))
    bench.step()
    bench.set("a", "Completed")
    assert Again(0) in bench.step() and bench.phase == "Running"
    assert Again(0) in bench.step() and bench.phase == "Succeed"
    assert bench.step() == []


def test_a_failed_member_fails_the_flow_for_good() -> None:
    bench = Bench(flow(entry("a"), entry("b", "a")))
    bench.step()
    bench.set("a", "Failed")
    bench.step()
    assert bench.phase == "Failed"
    bench.jobs.clear()
    assert bench.step() == []


def test_delete_policy_removes_the_jobs_after_success_only() -> None:
    bench = Bench(flow(entry("a"), jobRetainPolicy="delete"))
    bench.step()
    bench.set("a", "Completed")
    while bench.step():
        pass
    assert bench.phase == "Succeed" and not bench.jobs


def test_a_deleted_member_is_made_again_but_not_after_the_end() -> None:
    bench = Bench(flow(entry("a"), entry("b")))
    bench.step()
    bench.set("a", "Completed")
    bench.step()
    del bench.jobs["f-a"]
    bench.step()
    assert "f-a" in bench.jobs
    bench.set("a", "Completed")
    bench.set("b", "Completed")
    bench.step()
    assert bench.phase == "Succeed"
    bench.jobs.clear()
    assert bench.step() == []


def test_a_member_that_expired_stays_done() -> None:
    """Its time to live is over: to run it again, and again, is not requested."""
    quick = template("a", ttlSecondsAfterFinished=0)
    bench = Bench(flow(entry("a"), entry("b", "a")), a=quick)
    bench.step()
    bench.set("a", "Completed")
    bench.step()
    del bench.jobs["f-a"]
    bench.step()
    assert set(bench.jobs) == {"f-b"} and bench.flow.status.completed_jobs == ["f-a"]
    bench.set("b", "Completed")
    bench.step()
    assert bench.phase == "Succeed"
    assert [one.name for one in bench.flow.status.job_status_list or ()] == ["f-a", "f-b"]


def test_two_entries_of_one_name_are_one_job() -> None:
    bench = Bench(flow(entry("a"), entry("a")))
    bench.step()
    bench.set("a", "Completed")
    bench.step()
    bench.step()
    assert bench.phase == "Succeed"


# ---- probes


def running(replicas: int = 2, probe: Manifest | None = None, **counts: int) -> Bench:
    """Flow a ← b, with a running."""
    one = template("a", tasks=[task(replicas=replicas)], minAvailable=replicas)
    bench = Bench(flow(entry("a"), entry("b", "a", probe=probe)), a=one)
    bench.step()
    bench.set("a", "Running", **counts)
    return bench


def pods(*phases: str, address: str = "127.0.0.1", name: str = "work") -> list[Pod]:
    return [
        from_manifest(
            Pod,
            {
                "metadata": {"name": f"p{number}", "annotations": {"volcano.sh/task-spec": name}},
                "status": {"phase": phase, "podIP": address},
            },
        )
        for number, phase in enumerate(phases)
    ]


@pytest.mark.parametrize(
    ("counts", "due"),
    [
        ({"Running": 2}, True),
        ({"Running": 1, "Succeeded": 1}, True),
        ({"Running": 1, "Pending": 1}, False),
        ({}, False),
    ],
)
def test_a_task_has_to_reach_its_phase(counts: dict[str, int], due: bool) -> None:
    probe = {"taskStatusList": [{"taskName": "work", "phase": "Running"}]}
    bench = running(probe=probe, **counts)
    made = bench.step()
    assert ("f-b" in bench.jobs) == due
    if not due:
        bench.step()
        assert not due and any(isinstance(one, Again) and one.seconds > 0 for one in bench.step()), made


def test_a_completed_target_will_do_for_any_probe() -> None:
    bench = running(probe={"httpGetList": [{"taskName": "work", "path": "/ready", "port": 80}]})
    bench.step()
    assert "f-b" not in bench.jobs
    bench.set("a", "Completed")
    bench.step()
    assert "f-b" in bench.jobs


def test_all_checks_have_to_hold() -> None:
    probe = {
        "taskStatusList": [{"taskName": "work", "phase": "Running"}],
        "tcpSocketList": [{"taskName": "work", "port": 80}],
    }
    bench = running(probe=probe, Running=2)
    bench.seen.pods = {"f-a": pods("Running", "Running")}
    probes = questions(bench.seen)
    assert probes == {Question("127.0.0.1", 80)}
    bench.step()
    assert "f-b" not in bench.jobs
    bench.seen.answers = dict.fromkeys(probes, True)
    bench.step()
    assert "f-b" in bench.jobs


def test_pods_are_probed_only_when_enough_of_them_run() -> None:
    bench = running(probe={"tcpSocketList": [{"taskName": "work", "port": 80}]})
    bench.seen.pods = {"f-a": pods("Running", "Pending")}
    assert not questions(bench.seen)


def test_targets_that_the_probe_does_not_name_have_to_complete() -> None:
    probe = {"taskStatusList": [{"taskName": "work", "phase": "Running"}]}
    other = template("x", tasks=[task("other", 1)], minAvailable=1)
    bench = Bench(flow(entry("a"), entry("x"), entry("b", "a", "x", probe=probe)), x=other)
    bench.step()
    bench.set("a", "Running", Running=2)
    bench.set("x", "Running", Running=1)
    bench.step()
    assert "f-b" not in bench.jobs
    bench.set("x", "Completed")
    bench.step()
    assert "f-b" in bench.jobs


async def test_pods_are_probed_over_http_and_tcp() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        good = head.startswith(b"GET /ready?x=1 ") and b"X-Key: v" in head
        writer.write(b"HTTP/1.1 %d x\r\nContent-Length: 0\r\n\r\n" % (204 if good else 503))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        probes = [
            Question("127.0.0.1", port, "/ready?x=1", ("X-Key", "v")),
            Question("127.0.0.1", port, "/other"),
            Question("127.0.0.1", port),
        ]
        assert await prober.ask(probes) == {probes[0]: True, probes[1]: False, probes[2]: True}
    closed = Question("127.0.0.1", port)
    assert await prober.ask([closed]) == {closed: False}


# ---- patches


def test_a_patch_changes_what_it_names_and_nothing_else() -> None:
    entry_b = entry(
        "b",
        patch={
            "jobSpec": {
                "queue": "default",  # the server fills in these two
                "maxRetry": 3,
                "priorityClassName": "high",
                "tasks": [
                    {
                        "name": "work",
                        "replicas": 0,
                        "template": {
                            "spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "2"}]}]},
                        },
                    },
                    {"name": "more", "replicas": 1},
                ],
            }
        },
    )
    env = [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "B", "value": "1"}]
    own = task(replicas=3)
    own["template"]["spec"]["containers"][0]["env"] = env
    base = from_manifest(JobTemplate, template("b", tasks=[own], queue="gold", maxRetry=7, minAvailable=3))
    made_from = from_manifest(JobFlow, flow(entry_b))
    spec = make_job(made_from, (made_from.spec.flows or [])[0], base)["spec"]
    assert (spec["queue"], spec["maxRetry"], spec["priorityClassName"], spec["minAvailable"]) == ("gold", 7, "high", 3)
    work, more = spec["tasks"]
    assert work["replicas"] == 0 and more == {"name": "more", "replicas": 1}
    container = work["template"]["spec"]["containers"][0]
    assert container["image"] == "busybox:1"
    assert container["env"] == [{"name": "A", "value": "2"}, {"name": "B", "value": "1"}]
    assert (base.spec.tasks or [])[0].replicas == 3


def test_lists_without_names_are_replaced_and_null_removes() -> None:
    old = [{"event": "PodEvicted", "action": "RestartJob"}]
    spec = {"plugins": {"svc": [], "env": []}, "policies": old, "volumes": []}
    patch = {"plugins": {"svc": None, "ssh": ["--port=22"]}, "policies": [{"event": "*", "action": "AbortJob"}]}
    assert merge_spec(spec, patch) == {
        "plugins": {"env": [], "ssh": ["--port=22"]},
        "policies": [{"event": "*", "action": "AbortJob"}],
        "volumes": [],
    }


# ---- mistakes


def test_unsatisfiable_entries_are_reported() -> None:
    bench = Bench(flow(entry("a", "missing")))
    assert "contains 'missing', which is not a flow" in warnings(bench.step())[0]
    bench = Bench(flow(entry("a")))
    bench.seen.templates = {}
    assert "JobTemplate lab/a does not exist" in warnings(bench.step())[0]
    bench = running(probe={"taskStatusList": [{"taskName": "wrok", "phase": "Running"}]})
    assert "no target has a task 'wrok'; they have work" in warnings(bench.step())[0]
    bench = running(probe={"taskStatusList": [{"taskName": "work", "phase": "Done"}]})
    assert "'Done' is not a pod phase" in warnings(bench.step())[0]


def test_a_foreign_job_is_in_the_way_and_left_alone() -> None:
    bench = Bench(flow(entry("a"), jobRetainPolicy="delete"))
    stranger = from_manifest(Job, job(name="f-a"))
    stranger.status.state.phase = "Completed"
    bench.jobs["f-a"] = stranger
    assert "job f-a is not controlled by" in warnings(bench.step())[0]
    assert bench.phase == "Pending"


# ---- with a server


async def test_a_flow_from_start_to_end(world: World) -> None:
    world.api.put(flow(entry("a"), entry("b", "a"), name="pipe"))
    await world.until(lambda: world.events("MissingJobTemplate"))
    world.api.put(template("a"))
    world.api.put(template("b", tasks=[task(replicas=1)], minAvailable=1))
    await world.until(lambda: world.job("pipe-a"))
    await world.until(world.podgroups)
    world.admit()
    await world.until(lambda: len(world.pods()) == 2)
    world.run_pods("Succeeded")
    await world.until(lambda: world.phase("pipe-a") == "Completed")
    await world.until(lambda: world.job("pipe-b"))
    await world.until(lambda: any(group["metadata"]["name"].startswith("pipe-b") for group in world.podgroups()))
    world.admit()
    await world.until(lambda: "pipe-b-work-0" in world.pods())
    world.run_pods("Succeeded")
    await world.until(lambda: state(world, "pipe") == "Succeed")
    made_from = world.api.get(kinds.JOBTEMPLATE, "a")
    assert made_from is not None and made_from["status"]["jobDependsOnList"] == ["pipe-a"]
    world.api.delete(kinds.JOB, "pipe-a")
    await world.until(lambda: not (world.api.get(kinds.JOBTEMPLATE, "a") or {})["status"])
    await world.quiet()
    assert not world.job("pipe-a")


async def test_one_denied_job_does_not_hold_up_the_others(world: World) -> None:
    def deny(method: str, path: str) -> Denied | None:
        wrong = method == "POST" and path.endswith("/jobs") and not world.job("pipe-b")
        return Denied(400, "BadRequest", "no such queue") if wrong else None

    for name in ("a", "b"):
        world.api.put(template(name))
    world.api.denial_of = deny
    world.api.put(flow(entry("a"), entry("b"), name="pipe"))
    await world.until(lambda: world.events("FailedCreate"))
    world.api.denial_of = lambda method, path: None
    await world.until(lambda: world.job("pipe-a") and world.job("pipe-b"))
    assert "no such queue" in world.events("FailedCreate")[0]


async def test_a_template_that_was_corrected_is_tried_at_once(world: World) -> None:
    def deny(method: str, path: str) -> Denied | None:
        broken = (world.api.get(kinds.JOBTEMPLATE, "a") or {})["spec"]["queue"] == "nowhere"
        return Denied(400, "BadRequest", "no such queue") if broken and path.endswith("/jobs") else None

    world.api.put(template("a", queue="nowhere"))
    world.api.denial_of = deny
    await world.kill()
    world.options.max_requeue_num = 1
    await world.start()
    world.api.put(flow(entry("a"), name="pipe"))
    await world.until(lambda: world.events("SyncJobFlow"))
    await world.quiet()
    assert not world.job("pipe-a")
    world.api.change(kinds.JOBTEMPLATE, "a", {"spec": {"queue": "default"}})
    await world.until(lambda: world.job("pipe-a"))


def state(world: World, name: str) -> str:
    found = world.api.get(kinds.JOBFLOW, name) or {}
    return str((found.get("status") or {}).get("state", {}).get("phase", ""))


async def test_a_flow_without_its_template_is_not_written(world: World) -> None:
    """A client that creates a flow and updates it at once got a conflict with a status that said nothing."""
    world.api.put(flow(entry("a"), entry("b", "a")))
    await world.until(lambda: world.events("MissingJobTemplate"))
    await world.quiet()
    assert not [one for one in world.api.writes if "jobflows" in one]
    world.api.put(template("a"))
    await world.until(lambda: world.job("f-a"))
    await world.until(lambda: world.api.get(kinds.JOBFLOW, "f")["status"]["state"]["phase"] == "Pending")
