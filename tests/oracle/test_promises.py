"""The promises of docs/promises.md on random small clusters, and the oracle itself on clusters with known answers."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import date

import pytest

from tests.oracle.arrangements import fit, starts
from tests.oracle.description import Cluster, Gang, Node, Pod, Queue
from tests.oracle.entitlement import Shares, serve
from tests.oracle.families import CAPACITY, CONF, FAMILIES, PROPORTION, drawn
from tests.oracle.playing import play
from tests.oracle.verdicts import asks, judge

GPU = "example.com/gpu"
QUICK = 25
THOROUGH = int(os.environ.get("ORACLE_CASES", "300"))
SEED = int(os.environ.get("ORACLE_SEED", date.today().strftime("%Y%m%d")))
"""New clusters each day for the slow suite; set it to repeat a day."""


def check(family: str, seed: int, count: int) -> None:
    broken, questions = [], 0
    for number in range(count):
        cluster = drawn(family, seed, number)
        questions += asks(family, cluster)
        wrong = judge(family, play(cluster))
        broken += [f"{family} {seed} {number}: {name}: {text}" for name, text in wrong.items()]
    print(f"\n{family}: {count} clusters of seed {seed}, {questions} with a gang that could be served")
    assert broken == []
    assert questions >= count // 12, "too few clusters contain a gang that could be served"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_few_clusters(family: str) -> None:
    check(family, 1, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_many_clusters(family: str) -> None:
    check(family, SEED, THOROUGH)


@pytest.mark.parametrize(
    ("family", "off"),
    [
        ("capacity", "whole-gang-reclaim"),
        ("capacity in a tree", "whole-gang-reclaim"),
        ("proportion", "whole-gang-reclaim"),
        ("proportion", "whole-pod-shares"),
        ("fits", "what-fits-starts"),
        ("racks", "what-fits-starts"),
        ("sub-groups", "what-fits-starts"),
        ("devices", "what-fits-starts"),
        ("preempt", "whole-gangs"),
    ],
)
def test_the_oracle_finds_a_rule_that_is_turned_off(family: str, off: str) -> None:
    found = (judge(family, play(drawn(family, 1, number), deviations={off: False})) for number in range(400))
    assert any(found)


# ---- the oracle on clusters whose answers are evident -------------------------------------------------------------


def test_an_arrangement_that_no_order_of_sizes_finds() -> None:
    free = {"a": {"cpu": 6}, "b": {"cpu": 5}}
    assert fit([{"cpu": n} for n in (3, 3, 3, 2)], free)
    assert not fit([{"cpu": n} for n in (4, 4, 3)], free)


def two_queues(conf: str = CAPACITY, **lender: object) -> Cluster:
    """A lender with both GPUs, and an owner that deserves one of them and asks for it."""
    proportional = conf == PROPORTION
    queues = [
        Queue("lender", {} if proportional else {"cpu": 4, GPU: 1}),
        Queue("owner", {} if proportional else {"cpu": 4, GPU: 1}),
    ]
    for name, value in lender.items():
        setattr(queues[0], name, value)
    jobs = [Gang(f"l{i}", "lender", 1, [Pod(f"l{i}-0", {"cpu": 1, GPU: 1}, "n")], age=9 - i) for i in range(2)]
    wants = Gang("w", "owner", 1, [Pod("w-0", {"cpu": 1, GPU: 1})])
    text = CONF.format(actions="enqueue, allocate, reclaim, backfill", last=conf)
    return Cluster([Node("n", {"cpu": 8, GPU: 2})], queues, [*jobs, wants], text, proportional=proportional)


@pytest.mark.parametrize("conf", (CAPACITY, PROPORTION))
def test_an_owner_gets_its_gpu(conf: str) -> None:
    cluster = two_queues(conf)
    plan = serve(cluster, cluster.gang("w"))
    assert plan is not None and len(plan.pods) == 1
    played = play(cluster)
    assert played.evictions == 1 and played.last.gang("w").is_whole and played.at_rest


@pytest.mark.parametrize(
    "protected",
    (
        lambda c: setattr(c.queue("lender"), "reclaimable", False),
        lambda c: [setattr(p, "preemptable", False) for g in c.gangs for p in g.pods],
        lambda c: c.queue("lender").guarantee.update({GPU: 2}),
        lambda c: c.queue("owner").deserved.pop(GPU),
        lambda c: (c.queue("owner").capability.update({"cpu": 1}), c.gang("w").pods[0].request.update({"cpu": 2})),
        lambda c: c.gang("w").pods[0].request.update({GPU: 2}),
    ),
    ids=("reclaimable", "preemptable", "guarantee", "undeserved", "capability", "too-large"),
)
def test_nothing_is_evicted_for_it(protected: Callable[[Cluster], object]) -> None:
    cluster = two_queues()
    protected(cluster)
    plan = serve(cluster, cluster.gang("w"))
    assert plan is None
    assert play(cluster).evictions == 0


def test_shares_by_weight_are_divided_again() -> None:
    cluster = two_queues(PROPORTION)
    assert Shares(cluster).deserved["lender"][GPU] == 1
    cluster.gangs.pop()
    assert Shares(cluster).deserved["lender"][GPU] == 2, "what a queue does not request is left to the others"


def test_a_gang_starts_in_one_rack_only() -> None:
    nodes = [Node("a", {"cpu": 2}, "r0"), Node("b", {"cpu": 2}, "r1")]
    gang = Gang("g", "default", 2, [Pod(f"g-{i}", {"cpu": 2}) for i in range(2)], rack_only=True)
    cluster = Cluster(nodes, [Queue("default")], [gang], "")
    assert not starts(cluster, gang, cluster.free())
    nodes[1].rack = "r0"
    assert starts(cluster, gang, cluster.free())
