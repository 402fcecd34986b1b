"""fragmentation: the loss against a plain computation of its definition, on random nodes."""

from __future__ import annotations

import random

import pytest

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.plugins.fragmentation import Fragmentation
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

GPU, CARD = "x.com/parts", 100
CONF = configuration(
    {"plugins": [["gang"], ["predicates", {"fragmentation": {"gpu": GPU, "card": CARD, "weight": 1}}]]}
)


def loss(cpu: float, memory: float, gpu: float, shapes: list[tuple[int, int, int]]) -> float:
    """By definition, in cards: what each pod cannot use of the free cards, as the mean."""
    cards = [CARD] * int(gpu // CARD) + [gpu % CARD]
    lost = 0.0
    for cpu_of, memory_of, gpu_of in shapes:
        whole = sum(card == CARD for card in cards)
        enough = whole >= gpu_of // CARD if gpu_of >= CARD else any(card >= gpu_of for card in cards)
        if cpu < cpu_of or memory < memory_of or not enough:
            lost += sum(cards)
        else:
            lost += sum(card for card in cards if card < min(gpu_of, CARD))
    return lost / len(shapes) / CARD


@pytest.mark.parametrize("seed", range(30))
def test_the_score_is_the_loss_before_minus_the_loss_after(seed: int) -> None:
    rng = random.Random(seed)
    kinds = [(rng.randint(1, 4), rng.randint(1, 4), rng.choice((20, 50, 100, 200))) for _ in range(3)]
    nodes = {
        f"n{i}": {"cpu": rng.randint(4, 12), "memory": rng.randint(4, 12), GPU: CARD * rng.randint(1, 4)}
        for i in range(6)
    }
    jobs = {
        f"j{i}": {"phase": "Inqueue", "each": {"cpu": kind[0], "memory": kind[1], GPU: kind[2]}}
        for i, kind in enumerate(rng.choices(kinds, k=5))
    }
    report = run_once(
        Simulation(manifests({"nodes": nodes, "jobs": jobs})).cluster,
        load(CONF, REGISTRY.actions),
        0.0,
        assume=False,
    )
    session = report.session
    shapes = [(each["cpu"], each["memory"], each[GPU]) for job in jobs.values() if (each := job["each"])]
    [score] = [s for _, s in session.rules.enabled_scores() if s.name == "fragmentation"]
    task = next(iter(session.jobs["default/j0"].tasks.values()))
    mine = shapes[0]
    rows = [session.table.rows[name] for name in ("cpu", "memory", GPU)]
    units = (1000.0, 1.0, 1000.0)
    scores = score.score(task, session.numbers)
    for node, name in enumerate(session.table.names):
        free = [float(session.numbers.idle[row, node]) / unit for row, unit in zip(rows, units, strict=True)]
        if any(have < need for have, need in zip(free, mine, strict=True)):
            continue
        after = [have - need for have, need in zip(free, mine, strict=True)]
        expected = 10 * (loss(*free, shapes) - loss(*after, shapes))
        assert scores[node] == pytest.approx(expected), name
        assert score.score_node(task, node) == scores[node]


def test_bad_arguments_are_warnings() -> None:
    plugin = Fragmentation({"weight": -1, "card": 0})
    assert [w.partition(" argument ")[2] for w in plugin.warnings] == [
        "weight is -1, and must be from 0 to 1000000; 10 is used",
        "card is 0, and must be at least 1; 1 is used",
    ]


def test_a_resource_that_no_node_has_is_a_warning() -> None:
    cluster = Simulation(manifests({"nodes": {"n1": {"cpu": 4}}, "jobs": {"j": {"each": {GPU: 1}}}})).cluster
    assert run_once(cluster, load(CONF, REGISTRY.actions), 0.0).warnings == [
        f"plugin fragmentation: argument gpu is {GPU}, which is a resource of no node; use the name that nodes have"
    ]
