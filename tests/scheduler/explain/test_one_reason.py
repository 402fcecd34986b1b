"""The right reason comes first, and every text of one cycle states it."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.scheduler.framework.config import DEFAULT_TEXT, load
from volcano_py.scheduler.model.plan import Event, Operation, PodCondition, PodGroupStatus
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

DEFAULT = {"default": {"weight": 1}}
TREE = configuration(
    {"actions": "allocate", "plugins": [["gang"], ["predicates", {"capacity": {"enableHierarchy": True}}]]}
)


class Texts:
    """What one cycle writes about the job `g`."""

    def __init__(self, text: str = DEFAULT_TEXT, **cluster: Any) -> None:
        self.plan: list[Operation] = []
        simulation = Simulation(manifests({"queues": DEFAULT, **cluster}))
        run_once(simulation.cluster, load(text, REGISTRY.actions), simulation.now, emit=self.plan.extend)
        [status] = [o for o in self.plan if isinstance(o, PodGroupStatus) and o.name == "g"]
        self.conditions = {c["type"]: (c["reason"], c["message"]) for c in status.status["conditions"]}
        self.code, self.sentence = self.conditions["Waiting"]

    @property
    def others(self) -> list[str]:
        """The gang's condition, the Event and the conditions of pods that are unschedulable."""
        events = [o.message for o in self.plan if isinstance(o, Event) and o.name == "g" and o.type == "Warning"]
        pods = [o.message for o in self.plan if isinstance(o, PodCondition) and o.reason == "Unschedulable"]
        assert events
        return [self.conditions["Unschedulable"][1], *events, *pods]


def running(node: str, cpu: float, **more: Any) -> dict[str, Any]:
    return {"phase": "Running", "each": {"cpu": cpu, "runsOn": node}, **more}


def one(cpu: float, **more: Any) -> dict[str, Any]:
    return {"phase": "Inqueue", "each": {"cpu": cpu}, **more}


NODE = {"n1": {"cpu": 4}}
LEAF = {
    "t1": {"weight": 1, "parent": "root"},
    "l1": {"weight": 1, "parent": "t1"},
    "t2": {"weight": 1, "parent": "root", "deserved": {"cpu": 8}},
    "l2": {"weight": 1, "parent": "t2", "deserved": {"cpu": 8}},
}
CASES: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "the only queue is not to blame for a full node",
        {"nodes": NODE, "jobs": {"r": running("n1", 3), "g": one(2)}},
        "NodeResources",
        "1 of 1 node has too little cpu free: the pod requests 2, n1 comes closest with 1: 1 is missing.",
    ),
    (
        "nor is a queue of a tree whose root is the cluster",
        {
            "text": TREE,
            "nodes": {"n1": {"cpu": 8}},
            "queues": LEAF,
            "jobs": {"r": running("n1", 8, queue="l1"), "g": one(2, queue="l2")},
        },
        "NodeResources",
        "1 of 1 node has too little cpu free: the pod requests 2, n1 comes closest with 0: 2 is missing.",
    ),
    (
        "a queue that shares the cluster is the limit, with one number for what it deserves",
        {
            "nodes": NODE,
            "queues": {**DEFAULT, "q": {"weight": 1}},
            "jobs": {"a": running("n1", 2, queue="q"), "b": running("n1", 2), "g": one(1)},
        },
        "QueueShare",
        "Queue default deserves 2 cpu of 4 in the cluster: the job needs 1, the queue holds 2: 1 is missing.",
    ),
    (
        "too large for any node comes before a queue that is full",
        {
            "nodes": NODE,
            "queues": {**DEFAULT, "q": {"weight": 1}},
            "jobs": {"a": running("n1", 2, queue="q"), "b": running("n1", 2), "g": one(9)},
        },
        "NodeTooSmall",
        "1 of 1 node is too small even when empty: the pod requests 9 cpu, the largest of these has 4.",
    ),
    (
        "and before a cluster that admits no more jobs",
        {
            "nodes": NODE,
            "jobs": {"a": one(4, minResources={"cpu": 4}), "g": one(9, phase="Pending", minResources={"cpu": 9})},
        },
        "NodeTooSmall",
        "1 of 1 node is too small even when empty: the pod requests 9 cpu, the largest of these has 4.",
    ),
    (
        "and before nodes that are cordoned",
        {"nodes": {"n1": {"cpu": 4, "cordoned": True}, "n2": {"cpu": 2, "cordoned": True}}, "jobs": {"g": one(9)}},
        "NodeTooSmall",
        "2 of 2 nodes are too small even when empty: the pod requests 9 cpu, the largest of these has 4.",
    ),
    (
        "a selector that no node has comes before the queue",
        {
            "nodes": NODE,
            "jobs": {"r": running("n1", 4), "g": one(1, each={"cpu": 1, "spec": {"nodeSelector": {"gpu": "a100"}}})},
        },
        "NodeSelector",
        "1 of 1 node does not match the pod's selector or node affinity (gpu=a100).",
    ),
    (
        "overcommit is named with its factor, and the claimants are listed",
        {
            "nodes": NODE,
            "jobs": {
                "a": one(3, minResources={"cpu": 3}),
                "b": one(1, minResources={"cpu": 1}),
                "g": one(3, phase="Pending", minResources={"cpu": 3}),
            },
        },
        "EnqueueClusterFull",
        "The cluster admits no more jobs: the job requests 3 cpu, 4 of 4.8 (overcommit-factor 1.2 of 4) is held or "
        "claimed by default/a (3), default/b (1): 2.2 is missing.",
    ),
]


@pytest.mark.parametrize(("about", "cluster", "code", "sentence"), CASES, ids=[c[0] for c in CASES])
def test_all_texts_state_the_first_reason(about: str, cluster: dict[str, Any], code: str, sentence: str) -> None:
    texts = Texts(**cluster)
    assert (texts.code, texts.sentence) == (code, sentence)
    volcanos = [t for t in texts.others if "nodes are unavailable: " in t]  # a pod that nodes reject keeps that text
    assert all(sentence in t for t in texts.others if t not in volcanos)
    assert not any("exceed its share" in t for t in texts.others)
    assert all(t.count(sentence) <= 1 for t in texts.others), "an Event states it once"


HOST = "kubernetes.io/hostname"
APP = {"labelSelector": {"matchLabels": {"app": "x"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SPREAD = {"topologyKey": HOST, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **APP}
NODES = {f"n{i}": {"cpu": 9} for i in range(3)}


@pytest.mark.parametrize(
    ("each", "code", "text"),
    [
        (
            {"spec": {"affinity": {"podAntiAffinity": {REQUIRED: [{**APP, "topologyKey": HOST}]}}}},
            "GangRejected",
            "3 of the 4 pods that the gang needs fit at the same time; g-3 is rejected on 3 of 3 nodes by "
            "anti-affinity to app=x per kubernetes.io/hostname.",
        ),
        ({"hostPorts": [80]}, "GangRejected", "g-3 is rejected on 3 of 3 nodes by host port 80."),
        (
            {"spec": {"affinity": {"podAffinity": {REQUIRED: [{**APP, "topologyKey": "rack"}]}}}},
            "PodAffinity",
            "affinity or anti-affinity to other pods (no node has the label rack).",
        ),
        (
            {"spec": {"topologySpreadConstraints": [{**SPREAD, "topologyKey": "rack"}]}},
            "PodTopologySpread",
            "the pod's topology spread constraints (no node has the label rack).",
        ),
    ],
)
def test_a_gang_that_a_rule_between_pods_rejects(each: dict[str, Any], code: str, text: str) -> None:
    job = {"min": 4, "pods": 4, "phase": "Inqueue", "each": {"cpu": 1, "labels": {"app": "x"}, **each}}
    texts = Texts(nodes=NODES, jobs={"g": job})
    assert texts.code == code and texts.sentence.endswith(text)
    assert "Insufficient" not in " ".join(texts.others)


def test_a_gang_that_lacks_capacity_still_says_so() -> None:
    anti = {"spec": {"affinity": {"podAntiAffinity": {REQUIRED: [{**APP, "topologyKey": HOST}]}}}}
    job = {"min": 2, "pods": 2, "phase": "Inqueue", "each": {"cpu": 8, "labels": {"app": "x"}, **anti}}
    full = {f"r{i}": running(f"n{i}", 8) for i in (1, 2)}
    assert Texts(nodes=NODES, jobs={**full, "g": job}).sentence == (
        "1 of the 2 pods that the gang needs fits at the same time; g-0 lacks cpu."
    )
