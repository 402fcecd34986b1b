"""What a job writes when it is killed, synchronized or restarted, and which events it follows."""

import pytest

from tests.controllers.world import job, task, typed
from volcano_py.api import batch, bus
from volcano_py.api.batch import Job, JobSpec, PartitionPolicy, Task, TaskState
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.api.scheduling import PodGroup, Queue
from volcano_py.controllers.instructions import Create, Delete, Patch, Together, UpdateStatus
from volcano_py.controllers.job import events
from volcano_py.controllers.job.backoff import EvictionBackoff
from volcano_py.controllers.job.kill import Target, kill
from volcano_py.controllers.job.observed import Observed, Unready, task_of, with_task_defaults
from volcano_py.controllers.job.podgroup import keep_podgroup
from volcano_py.controllers.job.pods import build_pod
from volcano_py.controllers.job.reconcile import reconcile
from volcano_py.controllers.job.request import Decision, Request
from volcano_py.controllers.job.state import SOFT, transition
from volcano_py.controllers.job.sync import sync
from volcano_py.webhooks.identifiers import dns_label


def among(*pods):
    """The pods of a task in a phase."""
    return lambda task, phase: [pod for pod in pods if task_of(pod) == task and pod.status.phase == phase]


def made_pod(index=0, phase="Running", task_name="work", uid="", **metadata):
    annotations = {
        "volcano.sh/job-name": "train",
        "volcano.sh/job-version": "0",
        "volcano.sh/task-spec": task_name,
    } | metadata.pop("annotations", {})
    name = f"train-{task_name}-{index}"
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "uid-1"}
    return from_manifest(
        Pod,
        {
            "metadata": {
                "name": name,
                "namespace": "lab",
                "uid": uid or name,
                "annotations": annotations,
                "ownerReferences": [owner | {"controller": True}],
            }
            | metadata,
            "status": {"phase": phase},
        },
    )


def flat(instructions):
    for instruction in instructions:
        yield from instruction.instructions if isinstance(instruction, Together) else (instruction,)


def observed(manifest, *pods, phase="Running", group="Running", **fields):
    one = typed(manifest)
    one.status.state.phase = phase
    podgroup = from_manifest(PodGroup, {"metadata": {"name": "g", "namespace": "lab", "uid": "g"}})
    podgroup.status.phase = group
    from volcano_py.api.scheduling import Queue

    return Observed(job=one, pods=list(pods), podgroup=podgroup, queue=Queue(), now=1000.0, **fields)


def test_ended_pods_are_marked_before_they_are_deleted():
    pods = [made_pod(0), made_pod(1, annotations={"volcano.sh/controller-out-of-sync": "true"})]
    done = list(flat(kill(observed(job(), *pods), frozenset(), transition("Running", "AbortJob").rule)))
    assert [type(one) for one in done] == [UpdateStatus, Patch, Delete, Delete, Delete]
    assert done[1].name == "train-work-0"
    assert {one.uid for one in done[2:4]} == {"train-work-0", "train-work-1"}
    assert done[0].status["terminating"] == 2
    assert done[0].status["version"] == 1


def test_a_kill_counts_what_it_keeps():
    pods = [made_pod(0, "Succeeded"), made_pod(1, "Running")]
    done = list(flat(kill(observed(job(), *pods), SOFT, transition("Running", "AbortJob").rule)))
    status = next(one for one in done if isinstance(one, UpdateStatus)).status
    assert (status["succeeded"], status["terminating"]) == (1, 1)


def test_a_kill_of_a_part_leaves_the_rest_and_the_group():
    pods = [made_pod(0), made_pod(1), made_pod(0, task_name="aux")]
    seen = observed(job(task(), task("aux", 1)), *pods)
    rule = transition("Running", "RestartTask").rule
    done = list(flat(kill(seen, frozenset(), rule, Target(task="work"))))
    assert {one.name for one in done if isinstance(one, Delete)} == {"train-work-0", "train-work-1"}
    status = next(one for one in done if isinstance(one, UpdateStatus)).status
    assert (status["running"], status["terminating"], status["retryCount"]) == (1, 2, 1)
    assert "version" not in status


def test_the_last_try_keeps_failed_pods():
    seen = observed(job(maxRetry=1), made_pod(0, "Failed"), made_pod(1, "Running"))
    done = list(flat(kill(seen, frozenset(), transition("Running", "RestartJob").rule)))
    assert [one.name for one in done if isinstance(one, Delete)] == ["train-work-1", "g"]


def test_a_kill_of_a_finished_job_that_has_nothing_left_writes_nothing():
    seen = observed(job(), made_pod(0, "Succeeded"), phase="Completed")
    status = seen.job.status
    status.succeeded, status.min_available = 1, 2
    status.task_status_count = {"work": TaskState(phase={"Succeeded": 1})}
    seen.podgroup = None
    assert kill(seen, SOFT, None) == []


def test_pods_marked_by_an_interrupted_kill_are_ended():
    pods = [made_pod(0), made_pod(1, annotations={"volcano.sh/controller-out-of-sync": "true"})]
    done = list(flat(sync(observed(job(), *pods), None)))
    assert [one.name for one in done if isinstance(one, Delete)] == ["train-work-1"]
    assert not any(isinstance(one, Create) for one in done)


def test_a_job_that_fails_after_an_interrupted_kill_gets_no_pods():
    """The kill of the last restart ended a pod, but not the PodGroup: a new pod would be created and ended at once."""
    seen = observed(job(maxRetry=2), made_pod(0, "Failed"), phase="Restarting")
    seen.job.status.retry_count, seen.job.status.version = 2, 2
    done = list(flat(sync(seen, transition("Restarting", "SyncJob").rule)))
    assert not any(isinstance(one, Create) for one in done)
    assert [one.status["state"]["phase"] for one in done if isinstance(one, UpdateStatus)] == ["Failed"]


def test_a_terminating_pod_is_not_replaced_before_it_is_gone():
    pods = [made_pod(0), made_pod(1, deletionTimestamp="2026-01-01T00:00:00Z")]
    done = list(flat(sync(observed(job(), *pods), None)))
    assert not any(isinstance(one, Create | Delete) for one in done)


def test_a_job_on_its_way_out_is_left_alone():
    seen = observed(job(), made_pod(0))
    seen.job.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    assert sync(seen, None) == []
    assert kill(seen, frozenset(), None) == []


@pytest.mark.parametrize("name", ["train", "a" * 59, "train.v1"])
def test_volumes_have_names_that_volumes_may_have(name):
    one = typed(job(name=name, volumes=[{"mountPath": "/data", "volumeClaimName": "data"}]))
    spec = build_pod(one, one.spec.tasks[0], 0)["spec"]
    (volume,), (mount,) = spec["volumes"], spec["containers"][0]["volumeMounts"]
    assert volume["name"] == mount["name"]
    assert dns_label(volume["name"]) == ""
    assert volume["name"].startswith("train-" if name == "train" else "volume-")


def test_only_differences_of_the_podgroup_are_patched():
    seen = observed(job())
    created = keep_podgroup(Observed(job=seen.job))[0]
    assert isinstance(created, Create)
    seen.podgroup = from_manifest(PodGroup, created.obj)
    assert keep_podgroup(seen) == []
    seen.podgroup.spec.min_resources["cpu"] = "2000m"
    assert keep_podgroup(seen) == [], "the same amount, written differently"
    seen.podgroup.spec.min_resources["gone"] = "1"
    seen.podgroup.spec.min_member = 1
    assert keep_podgroup(seen)[0].body["spec"]["minMember"] == 2
    assert keep_podgroup(seen)[0].body["spec"]["minResources"]["gone"] is None


def test_events_of_pods():
    one = typed(job())
    running, failed = made_pod(0), made_pod(0, "Failed")
    assert events.job_key(running) == "lab/train"
    assert events.pod_added(made_pod(0, "Pending"), one, among()).event == "PodPending"
    assert events.pod_added(running, one, among()).event == "PodRunning", "it pends no more"
    assert events.pod_added(failed, one, among()).event == "PodFailed"
    assert events.pod_updated(running, failed, one, among(failed)).event == "PodFailed"
    assert events.pod_updated(failed, failed, one, among(failed)).event == "OutOfSync"
    assert events.pod_deleted(running).event == "PodEvicted"
    marked = made_pod(0, annotations={"volcano.sh/controller-out-of-sync": "true"})
    assert events.pod_deleted(marked).event == "OutOfSync"
    assert events.pod_updated(running, marked, one, among()).event == "OutOfSync"


def test_task_events():
    one = typed(job(task(replicas=2, maxRetry=2)))
    ended = [made_pod(0, "Succeeded"), made_pod(1, "Succeeded")]
    assert events.pod_updated(made_pod(1), ended[1], one, among(*ended)).event == "TaskCompleted"
    assert events.pod_updated(made_pod(1), ended[1], one, among(ended[1], made_pod(0))).event == "OutOfSync"
    assert events.pod_added(ended[1], one, among(*ended)).event == "TaskCompleted", "while no controller ran"
    assert events.pod_added(ended[1], None, among(*ended)).event == "OutOfSync", "reported when the job is seen"
    assert [request.event for request in events.job_added(one, among(*ended))] == ["OutOfSync", "TaskCompleted"]
    assert [request.event for request in events.job_added(one, among(ended[0]))] == ["OutOfSync"]
    crashing = made_pod(0)
    crashing.status.container_statuses = from_manifest(
        Pod, {"status": {"containerStatuses": [{"restartCount": 2}]}}
    ).status.container_statuses
    assert events.pod_updated(made_pod(0), crashing, one, among(crashing)).event == "TaskFailed"
    assert events.pod_updated(made_pod(0, "Pending"), crashing, one, among(crashing)).event == "PodRunning"


def test_events_of_podgroups():
    def group(phase, owner):
        reference = {"kind": "Job", "name": "train", "controller": True, "apiVersion": owner}
        metadata = {"name": "g", "namespace": "lab", "ownerReferences": [reference]}
        return from_manifest(PodGroup, {"metadata": metadata, "status": {"phase": phase}})

    broken, whole = (group(phase, "batch.volcano.sh/v1alpha1") for phase in ("Unknown", "Running"))
    assert events.podgroup_updated(whole, broken).event == "Unknown"
    assert events.podgroup_updated(broken, whole).event == ""
    assert events.podgroup_added(broken).event == "Unknown", "broken while no controller ran"
    assert events.podgroup_added(whole).event == "OutOfSync", "admitted while a watch was interrupted"
    assert events.podgroup_added(group("Pending", "batch.volcano.sh/v1alpha1")) is None
    assert events.podgroup_job(broken) == "lab/train"
    assert events.podgroup_job(group("Running", "batch/v1")) == "lab/g", "another kind of Job"


def test_pods_of_others_are_nobodys():
    stray = made_pod(0)
    stray.metadata.owner_references[0].api_version = "batch/v1"
    assert events.job_key(stray) is None
    assert events.job_key(made_pod(0, annotations={"volcano.sh/job-version": "x"})) is None


def test_a_job_of_more_pods_than_a_cluster_holds_is_denied_before_they_are_made():
    one = typed(job(task(replicas=2**31 - 1)))
    one.status.state.phase = batch.PENDING
    with pytest.raises(Unready, match=r"have 2147483647 pods.*reduce spec\.tasks\[\]\.replicas"):
        sync(Observed(one, queue=Queue(), podgroup=from_manifest(PodGroup, {"status": {"phase": "Inqueue"}})), None)


def test_an_eviction_differs_from_a_failure():
    def failed(**status):
        metadata = {"name": "train-work-0"}
        return from_manifest(Pod, {"metadata": metadata, "status": {"phase": "Failed"} | status})

    assert not events.was_evicted(failed(reason="OOMKilled"))
    assert events.was_evicted(failed(reason="Evicted"))
    assert events.was_evicted(failed(conditions=[{"type": "DisruptionTarget", "status": "True"}]))
    assert not events.was_evicted(failed(conditions=[{"type": "DisruptionTarget", "status": "False"}]))


def test_a_restart_after_an_eviction_leaves_nothing_behind_and_counts_nothing():
    """On the last try ended pods are kept to be looked at; an eviction is no try."""
    running = from_manifest(Job, job(maxRetry=1) | {"status": {"state": {"phase": "Running"}}})
    ended = from_manifest(Pod, {"metadata": {"name": "train-work-0", "uid": "u"}, "status": {"phase": "Succeeded"}})
    for counts, retries, deleted in ((True, 1, 0), (False, 0, 1)):
        seen = Observed(job=running, pods=[ended], queue=Queue())
        made = reconcile(seen, Request(), Decision(bus.RESTART_JOB, counts=counts))
        status = next(one.status for one in made if isinstance(one, UpdateStatus))
        assert status["state"]["phase"] == "Restarting"
        assert status.get("retryCount", 0) == retries
        inner = [one for group in made if isinstance(group, Together) for one in group.instructions]
        assert sum(isinstance(one, Delete) for one in inner) == deleted


def test_restarts_after_evictions_keep_twice_the_distance_each_time():
    backoff = EvictionBackoff()
    assert backoff.delay("a", 1000.0) == 0.0
    waits = []
    now = 1000.0
    for _ in range(12):
        backoff.restarted("a", now)
        waits.append(backoff.delay("a", now))
        now += waits[-1]
    assert waits[:4] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == 300.0
    assert backoff.delay("b", now) == 0.0
    assert backoff.delay("a", now + 700.0) == 0.0
    backoff.restarted("a", now + 700.0)
    assert backoff.delay("a", now + 700.0) == 1.0
    backoff.drop("a")
    assert backoff.delay("a", now + 700.0) == 0.0


def test_a_restart_that_was_broken_off_goes_on():
    """The status was written, and then the controller died: the old pods are still there."""

    def pod(name, phase, version):
        annotations = {"volcano.sh/task-spec": "work", "volcano.sh/job-version": str(version)}
        return from_manifest(
            Pod, {"metadata": {"name": name, "uid": name, "annotations": annotations}, "status": {"phase": phase}}
        )

    def ended(conditions, retries=1, max_retry=3):
        status = {"state": {"phase": "Restarting"}, "version": 1, "retryCount": retries}
        status["conditions"] = [{"status": phase} for phase in conditions]
        one = from_manifest(Job, job(task(replicas=4), maxRetry=max_retry) | {"status": status})
        pods = [pod("a", "Running", 0), pod("b", "Failed", 0), pod("c", "Running", 1), pod("d", "Succeeded", 0)]
        made = sync(Observed(job=one, pods=pods, queue=Queue()), None)
        status = next(one.status for one in made if isinstance(one, UpdateStatus))
        inner = [one for group in made if isinstance(group, Together) for one in group.instructions]
        names = sorted(one.name for one in inner if isinstance(one, Delete))
        assert status["terminating"] == len(names)
        return names

    assert ended(["Running", "Restarting"]) == ["a", "b", "d"]
    assert ended(["Running", "Aborting", "Aborted", "Restarting"]) == ["a"]
    assert ended(["Running", "Restarting"], retries=3) == ["a"]


def test_a_kill_is_written_down_before_it_is_done():
    one = from_manifest(Job, job(plugins={"svc": []}) | {"status": {"state": {"phase": "Running"}}})
    one.status.controlled_resources = {"plugin-svc": "svc"}
    pod = from_manifest(Pod, {"metadata": {"name": "train-work-0", "uid": "u"}, "status": {"phase": "Running"}})
    seen = Observed(job=one, pods=[pod], podgroup=PodGroup(), queue=Queue())
    order = [type(step).__name__ for step in kill(seen, frozenset(), transition("Running", bus.RESTART_JOB).rule)]
    assert order == ["Delete", "Delete", "Delete", "UpdateStatus", "Together", "Together", "Delete"]
    part = kill(seen, frozenset(), transition("Running", bus.RESTART_POD).rule, Target(task="work", pod="train-work-0"))
    assert [type(step).__name__ for step in part] == ["Together", "UpdateStatus", "Together"]


def test_what_plugins_make_is_noted_before_it_is_made_and_while_it_is_recreated():
    new = from_manifest(Job, job(plugins={"svc": [], "env": []}))
    first = sync(Observed(job=new, queue=Queue()), None)
    noted = {"plugin-env": "env", "plugin-svc": "svc"}
    assert [one.status["controlledResources"] for one in first if isinstance(one, UpdateStatus)] == [noted]
    new.status.state.phase, new.status.controlled_resources = "Running", dict(noted)
    for action, left in ((bus.RESTART_JOB, noted), (bus.ABORT_JOB, None)):
        made = kill(Observed(job=new, queue=Queue()), frozenset(), transition("Running", action).rule)
        status = next(one.status for one in made if isinstance(one, UpdateStatus))
        assert status.get("controlledResources") == left
        assert sum(isinstance(one, Delete) for one in made) == 3


def test_tasks_without_a_stored_minimum_have_their_default():
    """Admission does not store it; a task that others depend on would count as ready at once."""
    partitions = PartitionPolicy(total_partitions=3, partition_size=2, min_partitions=2)
    tasks = [Task("a", replicas=3), Task("b", replicas=6, partition_policy=partitions), Task("c", 4, 1)]
    filled = with_task_defaults(Job(spec=JobSpec(tasks=tasks)))
    assert [task.min_available for task in filled.spec.tasks] == [3, 4, 1]
