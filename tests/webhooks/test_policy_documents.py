"""Admission policies in CEL say what the plain functions say: they reject nothing that those allow."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.webhooks.policies import BESIDE, RULES, changed, cronjob, denied, denied_beside, job, problems, queue, task
from volcano_py.webhooks.job_defaults import defaulted_job, mutate_job
from volcano_py.webhooks.lookup import QueueIndex
from volcano_py.webhooks.paths import PATHS, AdmissionContext, AdmissionRequest, evaluate

PATH, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
PARTED = {"totalPartitions": 2, "partitionSize": 2}
DENIED: list[tuple[str, Any, str]] = [
    ("/jobs/validate", job(tasks=[]), "No task specified"),
    ("/jobs/validate", job(task(minAvailable=3)), "'minAvailable' is greater than 'replicas' in task"),
    ("/jobs/validate", job(task(), task()), "duplicated task name"),
    ("/jobs/validate", job(task(name="a_b")), "RFC 1123"),
    ("/jobs/validate", job(name="a_b!"), "metadata.name"),
    ("/jobs/validate", job(minAvailable=3), "job 'minAvailable' should not be greater than total replicas"),
    ("/jobs/validate", job(task(replicas=3, partitionPolicy=PARTED)), "TotalPartitions*PartitionSize"),
    (
        "/jobs/validate",
        job(task(replicas=4, minAvailable=1, partitionPolicy=PARTED | {"minPartitions": 1})),
        "MinPartitions*PartitionSize",
    ),
    ("/jobs/validate", job(plugins={"nothing": []}), "unable to find job plugin"),
    ("/jobs/validate", job(networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}), "simultaneously"),
    ("/jobs/validate", job(policies=[{"event": "PodFailed", "exitCode": 1, "action": "AbortJob"}]), "simultaneously"),
    ("/jobs/validate", job(policies=[{"action": "AbortJob"}]), "either event and exitCode should be specified"),
    ("/jobs/validate", job(policies=[{"event": "PodRunning", "action": "AbortJob"}]), "invalid policy event"),
    ("/jobs/validate", job(policies=[{"event": "PodFailed", "action": "Dance"}]), "invalid policy action"),
    ("/jobs/validate", job(policies=[{"exitCode": 0, "action": "AbortJob"}]), "not a valid error code"),
    ("/jobs/validate", job(policies=[{"exitCode": 3, "action": "AbortJob"}] * 2), "duplicate exitCode"),
    (
        "/jobs/validate",
        job(policies=[{"event": "PodFailed", "action": "AbortJob"}, {"events": ["PodFailed"], "action": "AbortJob"}]),
        "duplicate event",
    ),
    (
        "/jobs/validate",
        job(policies=[{"event": "PodFailed", "action": "AbortJob"}, {"event": "*", "action": "AbortJob"}]),
        "if there's * here, no other policy should be here",
    ),
    ("/jobs/validate", job(volumes=[{"volumeClaimName": "a"}]), "mountPath is required"),
    ("/jobs/validate", job(volumes=[{"mountPath": "/a", "volumeClaimName": "a"}] * 2), "duplicated mountPath"),
    ("/jobs/validate", job(volumes=[{"mountPath": "/a"}]), "either VolumeClaim or VolumeClaimName"),
    ("/jobs/validate", job(volumes=[{"mountPath": "/a", "volumeClaimName": "A!"}]), "invalid VolumeClaimName"),
    (
        "/jobs/validate",
        job(task(policies=[{"event": "PodFailed", "exitCode": 1, "action": "AbortJob"}])),
        "tasks[].policies: must not specify event and exitCode simultaneously",
    ),
    ("/jobs/validate", job(task(policies=[{"action": "AbortJob"}])), "tasks[].policies: either event and exitCode"),
    (
        "/jobs/validate",
        job(task(policies=[{"event": "X", "action": "AbortJob"}])),
        "tasks[].policies: invalid policy e",
    ),
    (
        "/jobs/validate",
        job(task(policies=[{"event": "PodFailed", "action": "X"}])),
        "tasks[].policies: invalid policy a",
    ),
    ("/jobs/validate", job(task(policies=[{"exitCode": 0, "action": "AbortJob"}])), "tasks[].policies: 0 is not"),
    (
        "/jobs/validate",
        job(task(policies=[{"exitCode": 3, "action": "AbortJob"}] * 2)),
        "tasks[].policies: duplicate exi",
    ),
    (
        "/jobs/validate",
        job(task(policies=[{"event": "PodFailed", "action": "AbortJob"}] * 2)),
        "tasks[].policies: duplicate event",
    ),
    (
        "/jobs/validate",
        job(task(policies=[{"event": event, "action": "AbortJob"} for event in ("PodFailed", "*")])),
        "tasks[].policies: if there's * here",
    ),
    ("/jobs/validate", job(task(dependsOn={"name": ["nothing"]})), "directed acyclic"),
    ("/jobs/validate", job(plugins={"mpi": ["--master=m"]}), "mpi master task was not found"),
    ("/jobs/validate", job(task(name="a" * 60), name="train"), "no more than 63"),
    ("/jobs/validate", job(name="1st", plugins={"svc": []}), "the plugin svc creates a Service"),
    ("/jobs/validate", job(name="a.b", plugins={"pytorch": []}), "the plugin svc creates a Service"),
    ("/jobs/validate", job(task(name="t"), name="a" * 55, plugins={"ray": []}), "the plugin svc creates a Service"),
    ("/queues/validate", queue(name="q" * 64), "no more than 63 bytes"),
    ("/jobs/validate", job(task(template={"spec": {"containers": []}})), "containers: Required value"),
    ("/jobs/validate", job(task(template={"spec": {"containers": [{"name": "a"}]}})), "image: Required value"),
    (
        "/jobs/validate",
        job(task(template={"spec": {"containers": [{"name": "a", "image": "b"}] * 2}})),
        "Duplicate value: use unique container names",
    ),
    ("/jobs/validate", job(task(topologyPolicy="restricted")), "the cpu request isn't an integer"),
    ("/queues/validate", queue(capability={"example.com/gpu": "500m"}), "must be an integer"),
    ("/cronjobs/validate", cronjob(schedule=""), "schedule is required"),
    ("/cronjobs/validate", cronjob(schedule="TZ=UTC * * * * *"), "should not contain TZ"),
    ("/cronjobs/validate", cronjob(name="c" * 53), "no more than 52 characters"),
    ("/cronjobs/validate", cronjob(timeZone=""), "non-empty string"),
    ("/cronjobs/validate", cronjob(timeZone="LOCAL"), "timeZone can't be"),
    (
        "/hypernodes/validate",
        {"metadata": {"name": "h"}, "spec": {"members": [{"selector": {"regexMatch": {"pattern": "a(b"}}}]}},
        "member regexMatch pattern is invalid",
    ),
    ("/queues/validate", queue(capability={"cpu": "-1"}), "greater than or equal to 0"),
    ("/queues/validate", queue(guarantee={"resource": {"cpu": 1}}), "deserved must be >= guarantee"),
    ("/queues/validate", queue(deserved={"cpu": 3}, capability={"cpu": "2500m"}), "deserved must be <= capability"),
    ("/queues/validate", queue(state="Closing"), "queue state must be in"),
    ("/queues/validate", queue({PATH: "root/a", WEIGHTS: "1"}), "the same length"),
    ("/queues/validate", queue({PATH: "root/a", WEIGHTS: "1/-2"}), "larger than 0"),
    ("/queues/validate", queue(parent="q"), "itself as parent"),
    (
        "/podgroups/validate",
        {
            "metadata": {"name": "g"},
            "spec": job(networkTopology={})["spec"]
            | {
                "subGroupPolicy": [
                    {"name": "s", "networkTopology": {"highestTierAllowed": 1, "highestTierName": "rack"}}
                ]
            },
        },
        "simultaneously",
    ),
    ("/hypernodes/validate", {"metadata": {"name": "h"}, "spec": {"tier": 1}}, "member list must not be empty"),
    (
        "/jobflows/validate",
        {"metadata": {"name": "f"}, "spec": {"flows": [{"name": "a", "dependsOn": {"targets": ["b"]}}]}},
        "jobflow Flow is not DAG: vertex is not defined",
    ),
    (
        "/jobflows/validate",
        {"metadata": {"name": "f"}, "spec": {"flows": [{"name": "a", "dependsOn": {"targets": ["a"]}}]}},
        "depend on itself",
    ),
]


def pod(**budgets: str) -> dict[str, Any]:
    annotations = {f"volcano.sh/jdb-{key.replace('_', '-')}": value for key, value in budgets.items()}
    return {"metadata": {"name": "p", "annotations": annotations}, "spec": {"schedulerName": "volcano"}}


DENIED += [
    ("/pods/validate", pod(min_available="0"), "must be a positive integer"),
    ("/pods/validate", pod(min_available="100%"), "percentage which between 1% ~ 99%"),
    ("/pods/validate", pod(min_available="1", max_unavailable="1"), "keep one"),
]


VOLCANOS = (
    "No task specified",
    "'minAvailable' is greater than 'replicas' in task",
    "duplicated task name",
    "job 'minAvailable' should not be greater than total replicas",
    "either event and exitCode should be specified",
    "invalid policy action",
    "not a valid error code",
    "duplicate exitCode",
    "if there's * here, no other policy should be here",
    "duplicated mountPath",
    "either VolumeClaim or VolumeClaimName",
    "must be a positive integer",
    "percentage which between 1% ~ 99%",
)
"""Words that Volcano's own tests of admission look for, in the answers of either engine."""


@pytest.mark.parametrize(("path", "obj", "words"), DENIED)
def test_both_reject(path: str, obj: Any, words: str) -> None:
    """Whoever looks for Volcano's words finds them in both answers."""
    assert any(words in message for message in denied(path, obj)), denied(path, obj)
    if words in VOLCANOS:
        assert any(words in message for message in problems(path, obj)), problems(path, obj)
    assert problems(path, obj)


def test_changes_and_deletions() -> None:
    old = job()
    assert denied("/jobs/validate", job(task(), task(name="b")), old) == [
        "spec.tasks: job updates may not add or remove tasks"
    ]
    assert len(denied("/jobs/validate", job(queue="other"), old)) == 1
    assert denied("/jobs/validate", job(task(replicas=9), minAvailable=9), old) == []
    assert denied("/queues/validate", None, queue(name="default"), "DELETE")
    assert denied("/queues/validate", None, queue(name="mine"), "DELETE") == []


def test_defaults_are_no_change() -> None:
    """Objects that Volcano, or admission, has filled with defaults, and what their authors wrote."""
    written = {"replicas": 3, "template": {"spec": {"hostNetwork": True, "containers": [{"name": "m", "image": "i"}]}}}
    bare = {"metadata": {"name": "j"}, "spec": {"tasks": [{"name": "t"} | written], "plugins": {"mpi": []}}}
    for stored in (defaulted_job(bare), mutate_job(bare)):
        for old, new in ((stored, bare), (bare, stored)):
            assert problems("/jobs/validate", new, old) == [], (old, new)
            assert denied("/jobs/validate", new, old) == [], (old, new)
        changed = {"queue": "other", "maxRetry": 7, "schedulerName": "other", "plugins": {"mpi": [], "env": []}}
        for field, value in changed.items():
            other = bare | {"spec": bare["spec"] | {field: value}}
            assert problems("/jobs/validate", other, stored), field
            assert denied("/jobs/validate", other, stored), field


OPEN = {"metadata": {"name": "open"}, "spec": {}, "status": {"state": "Open"}}
PARENT = queue(name="parent", capability={"cpu": 8}, deserved={"cpu": 4}, guarantee={"resource": {"cpu": 4}})
CHILD = queue(name="child", parent="parent", capability={"cpu": 6}, deserved={"cpu": 4})
BESIDE_QUEUES: list[tuple[str, list[Any], Any, Any, str, str]] = [
    ("/jobs/validate", [queue(name="closed", state="Closed")], job(queue="closed"), None, "", "with state `Open`"),
    ("/jobs/validate", [queue(name="new")], job(queue="new"), None, "", "with state `Open`"),
    ("/jobs/validate", [CHILD], job(queue="parent"), None, "", "leaf queue"),
    ("/podgroups/validate", [queue(name="q", state="Closed")], {"spec": {"queue": "q"}}, None, "", "with state `Open`"),
    ("/queues/validate", [queue({PATH: "root/a/b"}, name="b")], queue({PATH: "root/a"}), None, "", "sub path"),
    ("/queues/validate", [CHILD], None, PARENT, "DELETE", "has child queues"),
    ("/queues/validate", [CHILD], queue(name="parent", parent="child"), PARENT, "", "would be a cycle"),
    ("/queues/validate", [PARENT], queue(parent="parent", capability={"cpu": 9}), None, "", "exceeds its ancestor's"),
    (
        "/queues/validate",
        [PARENT],
        queue(parent="parent", guarantee={"resource": {"cpu": 5}}, deserved={"cpu": 4}),
        None,
        "",
        "guarantee exceeds parent's guarantee",
    ),
    ("/queues/validate", [PARENT], queue(parent="parent", deserved={"gpu": 1}), None, "", "exceeds parent's deserved"),
    (
        "/queues/validate",
        [CHILD],
        queue(name="parent", capability={"cpu": 5}),
        PARENT,
        "",
        "descendants' max capability",
    ),
    ("/queues/validate", [CHILD], queue(name="parent", deserved={"cpu": 3}), PARENT, "", "exceeds this queue's"),
]


@pytest.mark.parametrize(("path", "others", "obj", "old", "operation", "words"), BESIDE_QUEUES)
def test_rules_beside_other_queues(
    path: str, others: list[Any], obj: Any, old: Any, operation: str, words: str
) -> None:
    assert any(words in message for message in denied_beside(path, others, obj, old, operation))


def test_every_rule_beside_other_queues_has_rejected_something() -> None:
    messages = {message for *given, _ in BESIDE_QUEUES for message in denied_beside(*given)}
    of_queues = [rules for path, rules in BESIDE.items() if path != "/reservations/validate"]
    assert messages == {rule.message for rules in of_queues for rule in rules}


def test_what_fits_beside_other_queues() -> None:
    assert denied_beside("/jobs/validate", [OPEN, CHILD, PARENT], job(queue="open")) == []
    fits = queue(parent="parent", capability={"cpu": 8}, deserved={"cpu": 4}, guarantee={"resource": {"cpu": 4}})
    assert denied_beside("/queues/validate", [OPEN, CHILD, PARENT], fits) == []
    assert denied_beside("/queues/validate", [CHILD, PARENT], PARENT | {"status": {"state": "Open"}}, PARENT) == []
    bare = {"metadata": {"name": "parent"}, "spec": {}}
    assert denied_beside("/queues/validate", [CHILD], bare | {"spec": {"capability": {}}}, bare) == []


amounts_ = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "2", "3", 4]), max_size=2)
related = st.fixed_dictionaries(
    {},
    optional={
        "parent": st.sampled_from(["root", "a", "b", "q"]),
        "capability": amounts_,
        "deserved": amounts_,
        "guarantee": st.fixed_dictionaries({"resource": amounts_}),
    },
)


@given(related, related, related, st.booleans())
def test_no_queue_is_denied_beside_others_that_the_functions_allow(one: Any, a: Any, b: Any, exists: bool) -> None:
    others = [{"metadata": {"name": name}, "spec": spec} for name, spec in (("a", a), ("b", b))]
    obj = {"metadata": {"name": "q"}, "spec": one}
    old = {"metadata": {"name": "q"}, "spec": {}} if exists else None
    around = AdmissionContext(queues=QueueIndex([*others, *([old] if old else [])]))
    verdict = evaluate(PATHS["/queues/validate"], AdmissionRequest("UPDATE" if old else "CREATE", obj, old), around)
    if not verdict.problems:
        assert denied_beside("/queues/validate", others, obj, old) == []


def test_every_rule_has_rejected_something() -> None:
    """Includes rules for numbers that the CRDs already reject."""
    negative = [
        job(task(replicas=-1), minAvailable=0),
        job(task(minAvailable=-1)),
        job(minAvailable=-1),
        job(maxRetry=-1),
        job(ttlSecondsAfterFinished=-1),
        job(queue="root"),
        job(task(template={"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "-1"}}}]}})),
    ]
    messages = {message for path, obj, _ in DENIED for message in denied(path, obj)}
    messages |= {message for obj in negative for message in denied("/jobs/validate", obj)}
    messages |= set(denied("/jobs/validate", job(task(), task(name="b")), job()))
    messages |= set(denied("/jobs/validate", job(queue="other"), job()))
    messages |= set(denied("/queues/validate", None, queue(name="default"), "DELETE"))
    messages |= set(denied("/jobs/validate", changed("containers", "image", "x"), job()))
    messages |= set(denied("/jobs/validate", changed("hostNetwork", True), job()))
    messages |= set(denied("/jobs/validate", job(task(maxRetry=7)), job()))
    root = queue(name="root")
    messages |= set(denied("/queues/validate", queue(name="root", capability={"cpu": 1}), root))
    assert messages == {rule.message for rules in RULES.values() for rule in rules}


numbers = st.integers(-1, 4)
texts = st.sampled_from(["", "a", "work", "A!", "default"])
quantities = st.sampled_from(["1", "2", "500m", "1Gi", 3])
amounts = st.dictionaries(st.sampled_from(["cpu", "memory"]), quantities)
topologies = st.fixed_dictionaries({}, optional={"highestTierAllowed": numbers, "highestTierName": texts})
policies = st.lists(
    st.fixed_dictionaries(
        {"action": st.sampled_from(["AbortJob", "RestartPartition", "Dance"])},
        optional={
            "event": st.sampled_from(["", "PodFailed", "*", "PodRunning"]),
            "events": st.lists(st.sampled_from(["PodFailed", "PodEvicted"]), max_size=2),
            "exitCode": st.integers(0, 2),
        },
    ),
    max_size=3,
)
tasks = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["a", "b", "c.d"]), "replicas": numbers, "template": st.just(task()["template"])},
        optional={
            "minAvailable": numbers,
            "partitionPolicy": st.fixed_dictionaries(
                {"totalPartitions": numbers, "partitionSize": numbers},
                optional={"minPartitions": numbers, "networkTopology": topologies},
            ),
        },
    ),
    max_size=3,
)
jobs = st.fixed_dictionaries(
    {"queue": st.just("default"), "tasks": tasks},
    optional={
        "minAvailable": numbers,
        "policies": policies,
        "networkTopology": topologies,
        "volumes": st.lists(
            st.fixed_dictionaries(
                {}, optional={"mountPath": texts, "volumeClaimName": texts, "volumeClaim": st.just({})}
            ),
            max_size=2,
        ),
    },
)
queues = st.fixed_dictionaries(
    {},
    optional={
        "capability": amounts,
        "deserved": amounts,
        "guarantee": st.fixed_dictionaries({"resource": amounts}),
        "parent": st.sampled_from(["", "root"]),
    },
)
names_ = st.sampled_from(["a", "b"])
flows = st.lists(
    st.fixed_dictionaries(
        {"name": names_}, optional={"dependsOn": st.fixed_dictionaries({"targets": st.lists(names_, max_size=2)})}
    ),
    max_size=3,
)
budgets = st.dictionaries(
    st.sampled_from(["min_available", "max_unavailable"]), st.sampled_from(["1", "0", "10%", "100%", "x", "99%"])
)


def the_crd_rejects(spec: dict[str, Any]) -> bool:
    """What never reaches either of them: numbers below zero, and task names that are no labels."""
    if any(spec.get(key, 0) < 0 for key in ("minAvailable", "maxRetry")):
        return True
    for one in spec["tasks"]:
        if "." in one["name"] or one["replicas"] < 0 or one.get("minAvailable", 0) < 0:
            return True
        if any(value < 0 for value in (one.get("partitionPolicy") or {}).values() if isinstance(value, int)):
            return True
    return False


@settings(max_examples=400)
@given(jobs)
def test_no_job_is_rejected_that_the_functions_allow(spec: dict[str, Any]) -> None:
    assume(not the_crd_rejects(spec))
    obj = {"metadata": {"name": "train"}, "spec": spec}
    if not problems("/jobs/validate", copy.deepcopy(obj)):
        assert denied("/jobs/validate", obj) == []


@given(queues, st.sampled_from(["", "Open", "Closed", "Closing"]))
def test_queues_get_the_same_result(spec: dict[str, Any], state: str) -> None:
    obj = {"metadata": {"name": "q"}, "spec": spec, "status": {"state": state}}
    assert bool(problems("/queues/validate", obj)) == bool(denied("/queues/validate", obj))


@given(budgets, st.sampled_from(["volcano", "other"]))
def test_pods_get_the_same_result(given_: dict[str, str], scheduler: str) -> None:
    obj = pod(**given_)
    obj["spec"]["schedulerName"] = scheduler
    assert bool(problems("/pods/validate", obj)) == bool(denied("/pods/validate", obj))


@given(flows)
def test_no_flow_is_rejected_that_the_functions_allow(given_: list[dict[str, Any]]) -> None:
    assume(len({flow["name"] for flow in given_}) == len(given_))  # of two of one name the functions see the last
    obj = {"metadata": {"name": "f"}, "spec": {"flows": given_}}
    if not problems("/jobflows/validate", obj):
        assert denied("/jobflows/validate", obj) == []
