"""Admission of Jobs: defaults on creation, what is denied, and what may change."""

import copy

import pytest

from volcano_py.webhooks.job_defaults import defaulted_job, mutate_job
from volcano_py.webhooks.job_plugins import argument
from volcano_py.webhooks.jobs import validate_job_create, validate_job_update
from volcano_py.webhooks.lookup import QueueIndex


def queue(name, state="Open", **spec):
    return {"metadata": {"name": name}, "spec": spec, "status": {"state": state} if state else {}}


QUEUES = QueueIndex(
    [
        queue("root"),
        queue("default"),
        queue("team"),
        queue("team-a", parent="team"),
        queue("shut", "Closed"),
        queue("new", ""),
        queue("q" * 64),
    ]
)


def task(name="work", replicas=2, **fields):
    template = {"spec": {"containers": [{"name": "main", "image": "busybox:1"}]}}
    return {"name": name, "replicas": replicas, "template": template} | fields


def job(*tasks, name="train", **spec):
    return {
        "metadata": {"name": name, "namespace": "lab"},
        "spec": {"queue": "default", "minAvailable": 1, "tasks": list(tasks) or [task()]} | spec,
    }


def with_pod(**fields):
    spec = {"containers": [{"name": "main", "image": "busybox:1"}]} | fields
    return job(task(template={"spec": spec}))


def container(**fields):
    return with_pod(containers=[{"name": "main", "image": "busybox:1"} | fields])


def test_defaults():
    before = {"spec": {"tasks": [{"replicas": 3}, {"name": "b", "replicas": 2, "minAvailable": 1, "maxRetry": 5}]}}
    kept = copy.deepcopy(before)
    spec = defaulted_job(before, "other")["spec"]
    assert before == kept
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"]) == ("default", "other", 3)
    assert [(t["name"], t["minAvailable"], t["maxRetry"]) for t in spec["tasks"]] == [
        ("default0", 3, 3),
        ("b", 1, 5),
    ]
    assert spec["minAvailable"] == 4
    assert "plugins" not in spec
    assert defaulted_job({"spec": spec})["spec"] == spec


def test_defaults_follow_partitions_and_host_network():
    partitions = {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3}
    template = {"spec": {"hostNetwork": True, "containers": []}}
    mutated = defaulted_job(job(task(replicas=8, partitionPolicy=partitions, template=template), minAvailable=0))
    assert mutated["spec"]["tasks"][0]["minAvailable"] == 6
    assert mutated["spec"]["minAvailable"] == 6
    assert mutated["spec"]["tasks"][0]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"


def test_an_update_gets_the_defaults_that_it_lacks():
    stored = mutate_job(job(task(replicas=2)) | {"metadata": {"name": "train"}}, "other")
    written = {"metadata": {"name": "train"}, "spec": {"tasks": [task(replicas=4)]}}
    updated = mutate_job(written, "volcano", stored)["spec"]
    assert (updated["schedulerName"], updated["queue"], updated["minAvailable"]) == ("other", "default", 4)
    given_up = written | {"spec": written["spec"] | {"minAvailable": 0}}
    assert mutate_job(given_up, "volcano", stored)["spec"]["minAvailable"] == 0
    assert mutate_job(given_up)["spec"]["minAvailable"] == 4, "in a new Job 0 is no value, as in Volcano"


@pytest.mark.parametrize("text", ["{", "[]", '{"spec": 3}', '{"spec": {}}'])
def test_a_default_minimum_follows_only_by_the_clients_record(text):
    stored = mutate_job(job(task(replicas=2), minAvailable=0) | {"metadata": {"name": "train"}})
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": text}
    new = {
        "metadata": {"name": "train", "annotations": annotations},
        "spec": stored["spec"] | {"tasks": [task(replicas=4)]},
    }
    assert mutate_job(new, "volcano", stored)["spec"]["minAvailable"] == (4 if text == '{"spec": {}}' else 2)


@pytest.mark.parametrize(
    ("plugins", "added"),
    [({"mpi": ["--x"]}, {"svc", "ssh"}), ({"ray": []}, {"svc"}), ({"env": []}, set()), ({}, set())],
)
def test_plugins_bring_what_they_need(plugins, added):
    given = mutate_job(job(plugins=plugins))["spec"]["plugins"]
    assert set(given) == set(plugins) | added
    assert all(given[name] == plugins[name] for name in plugins)


ALLOWED = [
    job(),
    job(task(minAvailable=0, replicas=0), minAvailable=0),
    job(task("a"), task("b", dependsOn={"name": ["a"]})),
    job(
        policies=[
            {"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"},
            {"exitCode": 3, "action": "X"},
        ]
    ),
    job(task("launcher"), plugins={"mpi": ["--master=launcher"], "ssh": [], "svc": []}),
    job(volumes=[{"mountPath": "/a", "volumeClaimName": "pvc"}, {"mountPath": "/b", "volumeClaim": {}}]),
    job(queue="team-a"),
    container(resources={"requests": {"cpu": "500m"}, "limits": {"cpu": 1, "nvidia.com/gpu": 2}}),
    job(
        task(
            replicas=4,
            minAvailable=2,
            partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1},
        )
    ),
]


def test_names_that_only_services_cannot_have_are_allowed_without_svc():
    assert validate_job_create(job(name="2024.run"), QUEUES) == []
    assert validate_job_create(job(name="run-2024", plugins={"svc": []}), QUEUES) == []


@pytest.mark.parametrize("allowed", ALLOWED)
def test_allowed(allowed):
    assert validate_job_create(allowed, QUEUES) == []


DENIED = [
    (job(tasks=[]), "No task specified"),
    (job(plugins={"mpi": []}), "no task is named 'master'"),
    (job(networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}), "simultaneously"),
    (job(task(minAvailable=3)), "'minAvailable' is greater than 'replicas' in task: work"),
    (job(task(), task()), "duplicated task name work"),
    (job(minAvailable=3), "should not be greater than total replicas"),
    (job(plugins={"nope": []}), "unable to find job plugin: nope"),
    (job(name="x" * 60), "create pod with name"),
    (job(name="2024.run", plugins={"svc": []}), "Service '2024.run', whose name is invalid"),
    (job(name="2024", plugins={"tensorflow": []}), "begin with a letter"),
    (job(name="x" * 55, plugins={"ray": []}), "must be no more than 63 characters"),
    (job(task("t" * 20, replicas=101), name="x" * 39, plugins={"svc": []}), "shorten the name of the job or the task"),
    (job(queue="q" * 64), "volcano.sh/queue-name"),
    (job(name="a_b!"), "create job with name a_b!"),
    (job(task("A")), "spec.task[0].metadata.name"),
    (job(queue="nowhere"), "queue 'nowhere' not found"),
    (job(queue="shut"), "status is `Closed`"),
    (job(queue="new"), "status is ``"),
    (job(queue="root"), "root queue"),
    (job(queue="team"), "has 1 child queues"),
    (job(task("a", dependsOn={"name": ["b"]}), task("b", dependsOn={"name": ["a"]})), "dependsOn of a, b"),
    (job(task("a", dependsOn={"name": ["a"]})), "directed acyclic graph"),
    (job(task("a", dependsOn={"name": ["ghost"]})), "directed acyclic graph"),
    (job(task("a"), task("b", dependsOn={"name": ["a", "a"]})), "directed acyclic graph"),
    (job(policies=[{"event": "PodFailed", "exitCode": 1}]), "event and exitCode simultaneously"),
    (job(policies=[{"action": "RestartJob"}]), "either event and exitCode should be specified"),
    (job(policies=[{"event": "OutOfSync", "action": "RestartJob"}]), "invalid policy event"),
    (job(policies=[{"event": "PodFailed", "action": "SyncJob"}]), "invalid policy action"),
    (job(policies=[{"event": "PodFailed", "action": "AbortJob"}] * 2), "duplicate event PodFailed"),
    (job(policies=[{"exitCode": 0, "action": "AbortJob"}]), "0 is not a valid error code"),
    (job(policies=[{"exitCode": 2, "action": "AbortJob"}] * 2), "duplicate exitCode 2"),
    (job(policies=[{"events": ["*", "PodFailed"], "action": "AbortJob"}]), "if there's * here, no other policy"),
    (job(task(policies=[{"event": "x", "action": "AbortJob"}])), "spec.tasks[0].policies"),
    (job(volumes=[{"volumeClaimName": "a"}]), "mountPath is required"),
    (job(volumes=[{"mountPath": "/a", "volumeClaimName": "a"}] * 2), "duplicated mountPath: /a"),
    (job(volumes=[{"mountPath": "/a"}]), "either VolumeClaim or VolumeClaimName"),
    (job(volumes=[{"mountPath": "/a", "volumeClaimName": "a", "volumeClaim": {}}]), "keep one"),
    (job(volumes=[{"mountPath": "/a", "volumeClaimName": "A_"}]), "invalid VolumeClaimName A_"),
    (job(task(partitionPolicy={"totalPartitions": 2, "partitionSize": 2})), "TotalPartitions*PartitionSize"),
    (job(task(replicas=0, partitionPolicy={}), minAvailable=0), "'TotalPartitions' must be"),
    (job(task(partitionPolicy={"totalPartitions": 0, "partitionSize": 2})), "'TotalPartitions' must be"),
    (job(task(topologyPolicy="restricted")), "the cpu request isn't an integer"),
    (with_pod(containers=[]), "spec.task[0].template.spec.containers: Required value"),
    (with_pod(restartPolicy="Sometimes"), "restartPolicy: Unsupported value"),
    (with_pod(nodeSelector={"bad key": "v"}), "nodeSelector: Invalid value"),
    (with_pod(tolerations=[{"operator": "Equal"}]), "must be Exists when `key` is empty"),
    (with_pod(initContainers=[{"name": "main", "image": "i"}]), "Duplicate value: 'main'"),
    (with_pod(resources={"requests": {"cpu": 1}}, containers=[
        {"name": "c", "image": "i", "resources": {"limits": {"cpu": "2"}}}]), "aggregate container requests"),
    (container(image=""), "image: Required value"),
    (container(name="Main"), "containers[0].name: Invalid value"),
    (container(ports=[{"containerPort": 70000}]), "between 1 and 65535"),
    (container(env=[{"name": "A=B"}]), "must not contain '='"),
    (container(volumeMounts=[{"name": "v", "mountPath": "/v"}]), "the pod has no volume with this name"),
    (container(resources={"requests": {"cpu": "two"}}), "is not a quantity"),
    (container(resources={"requests": {"cpu": 2}, "limits": {"cpu": 1}}), "less than or equal to cpu limit"),
    (container(resources={"requests": {"nvidia.com/gpu": 1}}), "a limit must be set"),
    (container(resources={"limits": {"nvidia.com/gpu": "500m"}}), "must be an integer"),
]  # fmt: skip


@pytest.mark.parametrize(("denied", "message"), DENIED, ids=[message for _, message in DENIED])
def test_denied_for_one_reason(denied, message):
    problems = validate_job_create(denied, QUEUES)
    assert any(message in problem for problem in problems), problems
    if "name" not in message and message != "'TotalPartitions' must be":
        assert len(problems) == 1, problems


def test_all_problems_are_reported_together():
    problems = validate_job_create(job(task(minAvailable=9), minAvailable=9, queue="nowhere"), QUEUES)
    assert len(problems) == 3


UPDATES = [
    ({}, None),
    ({"minAvailable": 2}, None),
    ({"priorityClassName": "high"}, None),
    ({"tasks": [task(replicas=5, minAvailable=4)]}, None),
    ({"ttlSecondsAfterFinished": None}, None),
    ({"minAvailable": 3}, "greater than total replicas"),
    ({"minAvailable": -1}, "must be >= 0"),
    ({"tasks": [task(replicas=-1)], "minAvailable": -1}, "'replicas' must be >= 0"),
    ({"tasks": [task(minAvailable=3)]}, "must be <= 'replicas'"),
    ({"tasks": [task(), task("more")]}, "may not add or remove tasks"),
    ({"tasks": [task("other")]}, "may not change fields other than"),
    ({"queue": "team-a"}, "may not change fields other than"),
    ({"plugins": {"svc": []}}, "may not change fields other than"),
    ({"ttlSecondsAfterFinished": 9}, "may not change fields other than"),
    ({"ttlSecondsAfterFinished": 0}, "spec.ttlSecondsAfterFinished changed"),
    ({"volumes": [], "policies": None, "runningEstimate": ""}, None),
    (with_pod(automountServiceAccountToken=False)["spec"], "spec.tasks[0].template changed"),
    (with_pod(hostNetwork=False)["spec"], None),
]


@pytest.mark.parametrize(("change", "message"), UPDATES)
def test_update(change, message):
    problems = validate_job_update(job(), job(**change))
    assert (problems == []) if message is None else any(message in problem for problem in problems)


def test_the_controller_may_fill_in_the_claim_name():
    old = job(volumes=[{"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}])
    new = copy.deepcopy(old)
    new["spec"]["volumes"][0]["volumeClaimName"] = "train-volume-x"
    assert validate_job_update(old, new) == []
    new["spec"]["volumes"][0]["mountPath"] = "/b"
    assert validate_job_update(old, new) != []


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ([], "m"),
        (["--master=a"], "a"),
        (["-master", "b"], "b"),
        (["--master=a", "--master=c"], "c"),
        (["x"], "m"),
    ],
)
def test_plugin_arguments(arguments, value):
    assert argument(arguments, "master", "m") == value
