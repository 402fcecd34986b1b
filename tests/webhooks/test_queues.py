"""Admission of Queues and PodGroups: queues must fit into their parents."""

import pytest

from volcano_py.webhooks.lookup import QueueIndex
from volcano_py.webhooks.podgroups import mutate_podgroup, validate_podgroup
from volcano_py.webhooks.queues import mutate_queue, validate_queue, validate_queue_delete


def queue(name, parent="", pods=0, state="Open", annotations=None, guarantee=None, **spec):
    if guarantee:
        spec["guarantee"] = {"resource": guarantee}
    if parent:
        spec["parent"] = parent
    status = {"state": state, "allocated": {"pods": pods}}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec, "status": status}


FULL = {"capability": {"cpu": 10}, "deserved": {"cpu": 8}, "guarantee": {"cpu": 4}}
QUEUES = QueueIndex(
    [
        queue("root"),
        queue("default"),
        queue("lab", **FULL),
        queue("lab-a", "lab", capability={"cpu": 6}, deserved={"cpu": 4}, guarantee={"cpu": 2}),
        queue("busy", pods=3),
        queue("l1"),
        queue("l2", "l1"),
        queue("l3", "l2"),
        queue("l4", "l3"),
        queue("l5", "l4"),
        queue("fair", annotations={"volcano.sh/hierarchy": "root/a/b", "volcano.sh/hierarchy-weights": "1/1/1"}),
    ]
)


def hierarchy(path, weights):
    return queue("n", annotations={"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights})


CREATED = [
    (queue("n"), None),
    (queue("n", "lab", capability={"cpu": 10}, deserved={"cpu": 4}, guarantee={"cpu": 2}), None),
    (queue("n", "l4"), None),
    (hierarchy("root/c", "1/2"), None),
    (queue("n", state=""), None),
    (queue("n", state="Closing"), "queue state must be in [Open Closed]"),
    (queue("n", "n"), "cannot use itself as parent"),
    (queue("n", "ghost"), "queue 'ghost' not found"),
    (queue("n", "busy"), "allocated Pods: 3"),
    (queue("n", "l5"), "maximum allowed depth of 5"),
    (queue("n", "lab", capability={"cpu": 11}), "exceeds its ancestor's capability=10"),
    (
        queue("n", "lab", deserved={"cpu": 5}),
        "children's deserved exceeds parent's deserved limit (cpu 9 > 8)",
    ),
    (queue("n", "lab", deserved={"cpu": 3}, guarantee={"cpu": 3}), "guarantee limit (cpu 5 > 4)"),
    (queue("n", "lab", deserved={"memory": "1Gi"}), "memory 1.07374e+09 > 0"),
    (queue("n", guarantee={"cpu": 1}), "deserved[cpu] must be >= guarantee[cpu]=1"),
    (queue("n", deserved={"cpu": 3}, capability={"cpu": 2}), "deserved[cpu] must be <= capability[cpu]=2"),
    (queue("n", capability={"cpu": "-1"}), "must be greater than or equal to 0"),
    (queue("n", capability={"nvidia.com/gpu": "1500m"}), "must be an integer"),
    (queue("n", capability={"cpu": "lots"}), "is not a quantity"),
    (hierarchy("root/c", "1"), "same length"),
    (hierarchy("root/c", ""), "same length"),
    (hierarchy("root/c", "1/x"), "invalid number"),
    (hierarchy("root/c", "1/0"), "larger than 0"),
    (hierarchy("root/a", "1/1"), "in the sub path of root/a/b of queue fair"),
]


@pytest.mark.parametrize(("new", "message"), CREATED)
def test_create(new, message):
    problems = validate_queue(new, QUEUES)
    if message is None:
        assert problems == []
    else:
        assert len(problems) == 1
        assert message in problems[0]


UPDATED = [
    ("lab", queue("lab", **FULL), None),
    ("lab", queue("lab", **FULL | {"capability": {"cpu": 6}, "deserved": {"cpu": 6}}), None),
    (
        "lab",
        queue("lab", **FULL | {"capability": {"cpu": 5}, "deserved": {"cpu": 5}}),
        "descendants' max capability=6",
    ),
    ("lab", queue("lab", **FULL | {"guarantee": {"cpu": 1}}), "sum of children's guarantee"),
    ("lab-a", queue("lab-a", "lab", deserved={"cpu": 8}), None),
    ("lab-a", queue("lab-a", "busy"), "allocated Pods: 3"),
    ("l1", queue("l1", "l2"), "would be a cycle"),
    ("root", queue("root", capability={"cpu": 1}), "cannot be modified"),
    ("root", queue("root", weight=2), None),
]


@pytest.mark.parametrize(("name", "new", "message"), UPDATED)
def test_update(name, new, message):
    problems = validate_queue(new, QUEUES, QUEUES.get(name))
    assert (problems == []) if message is None else any(message in problem for problem in problems), problems


def test_root_can_be_left_unprotected():
    new = queue("root", capability={"cpu": 1})
    assert validate_queue(new, QUEUES, QUEUES.get("root"), protect_root=False) == []


@pytest.mark.parametrize(
    ("name", "check", "message"),
    [
        ("default", False, "can not be deleted"),
        ("root", False, "can not be deleted"),
        ("ghost", False, "not found"),
        ("lab", False, "1 child queues: lab-a"),
        ("lab-a", False, None),
        ("busy", False, None),
        ("busy", True, "allocated Pods: 3"),
    ],
)
def test_delete(name, check, message):
    problems = validate_queue_delete(name, QUEUES, check_allocated_pods=check)
    assert (problems == []) if message is None else message in problems[0]


def test_queue_defaults():
    annotations = {"volcano.sh/hierarchy": "a/b", "volcano.sh/hierarchy-weights": "2/3"}
    mutated = mutate_queue({"metadata": {"name": "n", "annotations": annotations}})
    assert mutated["spec"] == {"reclaimable": True, "weight": 1}
    assert mutated["metadata"]["annotations"] == {
        "volcano.sh/hierarchy": "root/a/b",
        "volcano.sh/hierarchy-weights": "1/2/3",
    }
    assert annotations["volcano.sh/hierarchy"] == "a/b"
    assert mutate_queue(mutated) == mutated
    assert mutate_queue({"metadata": {}, "spec": {"reclaimable": False}})["spec"]["reclaimable"] is False


def test_index_follows_changes():
    index = QueueIndex([queue("a"), queue("b", "a")])
    index.put(queue("b"))
    assert index.children("a") == []
    assert [child["metadata"]["name"] for child in index.children("root")] == ["a", "b"]
    index.remove("b")
    assert index.get("b") is None


def test_podgroup_queue():
    assert validate_podgroup({"spec": {"queue": "lab"}}, QUEUES) == []  # an inner queue is allowed
    assert "not found" in validate_podgroup({"spec": {"queue": "ghost"}}, QUEUES)[0]
    closed = QueueIndex([queue("shut", state="Closed")])
    assert "`Closed`" in validate_podgroup({"spec": {"queue": "shut"}}, closed)[0]


def test_podgroup_tiers():
    both = {"highestTierAllowed": 1, "highestTierName": "rack"}
    policies = [{"name": "p", "networkTopology": both}]
    problems = validate_podgroup({"spec": {"networkTopology": both, "subGroupPolicy": policies}}, QUEUES)
    assert len(problems) == 2
    assert "'p'" in problems[1]


def test_podgroup_takes_the_namespace_queue():
    namespace = {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "lab"}}}
    assert mutate_podgroup({"spec": {"queue": "default"}}, namespace)["spec"]["queue"] == "lab"
    assert mutate_podgroup({"spec": {"queue": "busy"}}, namespace)["spec"]["queue"] == "busy"
    assert mutate_podgroup({"spec": {"queue": "default"}}, None)["spec"]["queue"] == "default"


def test_a_name_that_pods_cannot_have_as_a_label_is_denied():
    """No pod can be created in such a queue."""
    long = {"metadata": {"name": "q" * 64}, "spec": {}}
    assert (
        "volcano.sh/queue-name, a value of which must be no more than 63 bytes" in validate_queue(long, QueueIndex())[0]
    )
    assert validate_queue(long | {"spec": {"weight": 2}}, QueueIndex([long]), long) == [], (
        "existing queues can be changed"
    )


HOUSE = queue("house", capability={"cpu": "8"})
ROOM = queue("room", "house", deserved={"cpu": "4"}, guarantee={"cpu": "2"})
ESTATE = queue("estate", deserved={"cpu": "4"}, guarantee={"cpu": "4"})


def test_an_unset_field_of_the_parent_limits_nothing():
    assert validate_queue(ROOM, QueueIndex([HOUSE])) == []
    assert validate_queue(HOUSE | {"spec": {"weight": 3}}, QueueIndex([HOUSE, ROOM]), HOUSE) == []
    assert validate_queue(queue("house", deserved={"cpu": "4"}), QueueIndex([HOUSE, ROOM]), HOUSE) == []
    [problem] = validate_queue(queue("house", deserved={"cpu": "3"}), QueueIndex([HOUSE, ROOM]), HOUSE)
    assert "queue house validation failed: sum of children's deserved exceeds" in problem


@pytest.mark.parametrize("field", ["deserved", "guarantee"])
def test_a_queue_without_the_field_counts_as_its_children(field):
    """Otherwise a queue without it in between would void the limit above."""
    amounts = {"deserved": {"cpu": "3"}} | ({"guarantee": {"cpu": "3"}} if field == "guarantee" else {})
    house = queue("house", "estate")
    one, other = queue("one", "house", **amounts), queue("other", "house", **amounts)
    exists = QueueIndex([ESTATE, house, one])
    messages = validate_queue(other, exists)
    assert any(f"queue estate validation failed: sum of children's {field} exceeds" in m for m in messages), messages
    assert validate_queue(queue("other", "house", deserved={"cpu": "1"}), exists) == []
    moved = validate_queue(queue("house", "estate"), QueueIndex([ESTATE, queue("house"), one, other]), queue("house"))
    assert any("parent queue estate validation failed" in message for message in moved)


def test_unset_queues_in_a_cycle_end_the_sum():
    looped = QueueIndex([queue("a", "b"), queue("b", "a")])
    assert validate_queue(queue("c", "a", deserved={"cpu": "1"}), looped) == []
