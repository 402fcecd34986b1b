"""The parts of the job controller by themselves: state table, policies, pods, PodGroup, events."""

import pytest

from tests.controllers.world import job, task, typed
from volcano_py.api import batch, bus
from volcano_py.api.batch import Job, JobSpec, JobStatus, Task, TaskState
from volcano_py.api.codec import from_manifest
from volcano_py.controllers.job.podgroup import min_resources
from volcano_py.controllers.job.pods import build_pod, stable_suffix
from volcano_py.controllers.job.request import Decision, Request, decide
from volcano_py.controllers.job.state import SOFT, TABLE, Operation, transition
from volcano_py.controllers.quota import total, usage

ALL_ACTIONS = (
    bus.SYNC_JOB,
    bus.ABORT_JOB,
    bus.RESTART_JOB,
    bus.RESTART_TASK,
    bus.RESTART_POD,
    bus.RESTART_PARTITION,
    bus.TERMINATE_JOB,
    bus.COMPLETE_JOB,
    bus.RESUME_JOB,
    bus.ENQUEUE_JOB,
    "Nonsense",
)


def after(phase, action, spec=None, **counters):
    """(phase, retries) after an action."""
    status = JobStatus(**counters)
    status.state.phase = phase
    rule = transition(phase, action).rule
    if rule is not None:
        before = (status.state.phase, status.retry_count)
        changed = rule(spec or JobSpec(min_available=2, tasks=[Task(name="a", replicas=3)]), status)
        assert changed or before == (status.state.phase, status.retry_count)
    return status.state.phase, status.retry_count


def test_every_phase_has_a_row_and_every_action_an_answer():
    assert set(TABLE) == set(batch.PHASES)
    for phase in ("", "Odd", *batch.PHASES):
        for action in ALL_ACTIONS:
            after(phase, action)


@pytest.mark.parametrize("phase", [batch.PENDING, batch.RUNNING])
def test_a_living_job_obeys(phase):
    assert after(phase, bus.ABORT_JOB) == (batch.ABORTING, 0)
    assert after(phase, bus.TERMINATE_JOB) == (batch.TERMINATING, 0)
    assert after(phase, bus.COMPLETE_JOB) == (batch.COMPLETING, 0)
    for action in (bus.RESTART_JOB, bus.RESTART_TASK, bus.RESTART_POD, bus.RESTART_PARTITION):
        assert after(phase, action) == (batch.RESTARTING, 1)
    assert transition(phase, bus.RESTART_JOB).retain == frozenset()
    assert transition(phase, bus.ABORT_JOB).retain == SOFT
    assert transition(phase, bus.RESTART_POD).operation is Operation.KILL_TARGET


@pytest.mark.parametrize("phase", [batch.COMPLETED, batch.FAILED, batch.TERMINATED])
def test_a_finished_job_stays_finished(phase):
    for action in ALL_ACTIONS:
        step = transition(phase, action)
        assert (step.operation, step.rule, step.retain) == (Operation.KILL, None, SOFT)


def test_stopping_waits_for_the_last_pod():
    for phase, then in (
        (batch.ABORTING, batch.ABORTED),
        (batch.COMPLETING, batch.COMPLETED),
        (batch.TERMINATING, batch.TERMINATED),
    ):
        for counter in ("terminating", "pending", "running"):
            assert after(phase, bus.SYNC_JOB, **{counter: 1})[0] == phase
        assert after(phase, bus.SYNC_JOB, succeeded=2, failed=1)[0] == then


def test_only_a_stopped_job_can_be_resumed():
    assert after(batch.ABORTED, bus.RESUME_JOB) == (batch.RESTARTING, 0), "it has not failed"
    assert after(batch.ABORTING, bus.RESUME_JOB) == (batch.RESTARTING, 0)
    assert after(batch.COMPLETING, bus.RESUME_JOB)[0] == batch.COMPLETED


def test_restarting():
    assert after(batch.RESTARTING, bus.SYNC_JOB, min_available=2, terminating=2)[0] == batch.RESTARTING
    assert after(batch.RESTARTING, bus.SYNC_JOB, min_available=2, terminating=1)[0] == batch.PENDING
    assert after(batch.RESTARTING, bus.ABORT_JOB, min_available=2, retry_count=3) == (batch.FAILED, 3)


def running(spec_fields=None, counts=None, **counters):
    tasks = [Task(name="a", replicas=2, min_available=2), Task(name="b", replicas=1, min_available=1)]
    spec = JobSpec(**({"min_available": 3, "tasks": tasks} | (spec_fields or {})))
    task_counts = {name: TaskState(phase={"Succeeded": number}) for name, number in (counts or {}).items()}
    return after(batch.RUNNING, bus.SYNC_JOB, spec, task_status_count=task_counts, **counters)[0]


def test_running():
    assert running(running=3) == batch.RUNNING
    assert running(succeeded=3, counts={"a": 2, "b": 1}) == batch.COMPLETED
    assert running(succeeded=2, failed=1, counts={"a": 1, "b": 1}) == batch.FAILED
    assert running({"min_available": 2}, succeeded=2, failed=1, counts={"a": 1, "b": 1}) == batch.COMPLETED
    assert running({"min_available": 2}, succeeded=1, failed=2) == batch.FAILED
    assert running({"min_success": 1}, succeeded=1, running=2) == batch.COMPLETED
    assert running({"min_success": 3, "min_available": 1}, succeeded=2, failed=1) == batch.FAILED
    assert running({"min_available": 2}, pending=2, running=1) == batch.PENDING
    assert running({"tasks": []}) == batch.RUNNING


POLICIES = job(
    task(policies=[{"event": "PodEvicted", "action": "RestartTask"}]),
    policies=[
        {"event": "PodPending", "action": "AbortJob", "timeout": "5s"},
        {"events": ["PodFailed", "PodEvicted"], "action": "RestartJob", "timeout": "1m"},
        {"exitCode": 7, "action": "TerminateJob"},
    ],
)


@pytest.mark.parametrize(
    ("request_", "decision"),
    [
        (Request(action="Any"), Decision("Any")),
        (Request("OutOfSync"), Decision("SyncJob")),
        (Request("PodRunning"), Decision("SyncJob")),
        (Request("PodEvicted"), Decision("RestartJob", 60)),
        (Request("PodEvicted", task="work"), Decision("RestartTask")),
        (Request("PodEvicted", task="other"), Decision("RestartJob", 60)),
        (Request("PodEvicted", task="work", job_uid="another"), Decision("SyncJob")),
        (Request("PodEvicted", task="work", job_version=1), Decision("SyncJob")),
        (Request("PodEvicted", task="work", job_version=2), Decision("RestartTask")),
        (Request("PodPending"), Decision("AbortJob", 5)),
        (Request("TaskFailed"), Decision("SyncJob")),
        (Request("", exit_code=7), Decision("TerminateJob")),
        (Request("PodFailed", exit_code=7), Decision("RestartJob", 60)),
    ],
)
def test_policies(request_, decision):
    one = from_manifest(Job, POLICIES)
    one.metadata.uid, one.status.version = "uid", 2
    assert decide(one, request_) == decision


def test_any_event_leaves_pending_pods_alone():
    one = from_manifest(Job, job(policies=[{"event": "*", "action": "AbortJob"}]))
    assert decide(one, Request("PodPending")).action == "SyncJob"
    assert decide(one, Request("TaskFailed")).action == "AbortJob"


def test_a_pod_carries_what_the_scheduler_needs():
    partitions = {"totalPartitions": 2, "partitionSize": 2}
    manifest = job(
        task(replicas=4, partitionPolicy=partitions, topologyPolicy="restricted"),
        priorityClassName="high",
        volumes=[{"mountPath": "/d", "volumeClaimName": "data"}, {"mountPath": "/e", "volumeClaimName": "data"}],
    )
    manifest["metadata"]["annotations"] = {"volcano.sh/preemptable": "true", "mine": "x"}
    one = typed(manifest)
    one.status.version, one.status.retry_count = 3, 1
    pod = build_pod(one, one.spec.tasks[0], 3)
    annotations, labels = pod["metadata"]["annotations"], pod["metadata"]["labels"]
    assert pod["metadata"]["name"] == "train-work-3"
    assert labels["volcano.sh/partition-id"] == "1"
    assert labels["volcano.sh/job-namespace"] == "lab"
    assert annotations["volcano.sh/template-uid"] == "train-work"
    assert annotations["volcano.sh/job-version"] == "3"
    assert annotations["volcano.sh/job-retry-count"] == "1"
    assert annotations["volcano.sh/numa-topology-policy"] == "restricted"
    assert annotations["volcano.sh/preemptable"] == "true"
    assert "mine" not in annotations
    assert pod["spec"]["priorityClassName"] == "high"
    assert [mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]] == ["/d"]
    assert "volumes" not in one.spec.tasks[0].template["spec"], "the template is not touched"


def test_suffixes_are_stable_and_differ():
    assert stable_suffix("a", "b") == stable_suffix("a", "b") != stable_suffix("ab", "")
    assert len(stable_suffix("x")) == 12


def test_min_resources_takes_the_gang_in_order_of_priority():
    def sized(name, replicas, minimum, cpu, priority=""):
        spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
        if priority:
            spec["priorityClassName"] = priority
        return Task(name=name, replicas=replicas, min_available=minimum, template={"spec": spec})

    low, high = sized("low", 4, 1, "1"), sized("high", 4, 2, "100m", "high")
    one = Job(spec=JobSpec(min_available=5, tasks=[low, high]))
    assert min_resources(one, {"high": 10})["cpu"] == "1400m"  # 2 high + 1 low, then 2 more high
    one.spec.min_available = 2
    assert min_resources(one, {"high": 10})["cpu"] == "200m"
    assert min_resources(one, {})["cpu"] == "2"


def test_usage_counts_init_containers_sidecars_and_overhead():
    def container(cpu, **fields):
        return {"resources": {"requests": {"cpu": cpu}}} | fields

    spec = {
        "containers": [container("1")],
        "initContainers": [container("500m", restartPolicy="Always"), container("3")],
        "overhead": {"cpu": "250m"},
    }
    assert total([(usage(spec), 2)])["requests.cpu"] == "7500m"
    spec["resources"] = {"requests": {"cpu": "2"}}
    assert total([(usage(spec), 1)])["cpu"] == "2250m"
