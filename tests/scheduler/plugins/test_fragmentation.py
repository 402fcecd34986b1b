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


def exact_loss(cpu: float, cards: list[float], shapes: list[tuple[int, int, int]]) -> float:
    """By definition, in MiB: what each pod cannot use of the free memory of the cards, as the mean."""
    lost = 0.0
    for cpu_of, count, memory in shapes:
        fits = cpu >= cpu_of and sum(card >= memory for card in cards) >= count
        lost += sum(card for card in cards if not fits or card < memory)
    return lost / len(shapes)


@pytest.mark.parametrize("seed", range(20))
def test_cards_that_deviceshare_assigns_are_exact(seed: int) -> None:
    """Pods run on cards, so equal sums of free memory differ by card; the first node is empty, so the task fits."""
    rng = random.Random(seed)
    kinds = [(rng.randint(1, 3), rng.choice((1, 1, 2)), rng.choice((200, 500, 1000))) for _ in range(3)]
    nodes, jobs, free = {}, {}, {}
    for n in range(5):
        cards = rng.randint(1, 3) if n else 2
        registered = ":".join(f"GPU-{n}{c},10,1000,NVIDIA-T4,true,hami-core" for c in range(cards)) + ":"
        nodes[f"n{n}"] = {
            "cpu": 12,
            "volcano.sh/vgpu-number": 10 * cards,
            "volcano.sh/vgpu-memory": 1000 * cards,
            "volcano.sh/vgpu-cores": 100 * cards,
            "annotations": {"volcano.sh/node-vgpu-register": registered},
        }
        free[f"n{n}"] = [12.0, *[1000.0] * cards]
        for c in range(cards):
            used = rng.choice((0, 200, 500, 1000)) if n else 0
            if used:
                limits = {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": used}
                holds = {"volcano.sh/vgpu-ids-new": f"GPU-{n}{c},NVIDIA,{used},0:"}
                jobs[f"r{n}{c}"] = {
                    "tasks": {"x": {"runsOn": f"n{n}", "cpu": 1, "limits": limits, "annotations": holds}}
                }
                free[f"n{n}"][0] -= 1
                free[f"n{n}"][1 + c] -= used
    shapes = [(1, 1, job["tasks"]["x"]["limits"]["volcano.sh/vgpu-memory"]) for job in jobs.values()]
    for j in range(4):
        cpu, count, memory = rng.choice(kinds)
        limits = {"volcano.sh/vgpu-number": count, "volcano.sh/vgpu-memory": memory}
        jobs[f"j{j}"] = {"phase": "Inqueue", "each": {"cpu": cpu, "limits": limits}}
        shapes.append((cpu, count, memory))
    conf = {"plugins": [
        ["gang"],
        ["predicates", {"fragmentation": {"gpu": "volcano.sh/vgpu-memory", "weight": 1}},
         {"deviceshare": {"deviceshare.VGPUEnable": True}}],
    ]}  # fmt: skip
    world = Simulation(manifests({"nodes": nodes, "jobs": jobs})).cluster
    session = run_once(world, load(configuration({"actions": "enqueue", **conf}), REGISTRY.actions), 0.0).session
    [score] = [s for _, s in session.rules.enabled_scores() if s.name == "fragmentation"]
    cpu, count, memory = shapes[-4]
    [task] = session.jobs["default/j0"].tasks.values()
    scores = score.score(task, session.numbers)
    compared = 0
    for node, name in enumerate(session.table.names):
        have, cards = free[name][0], free[name][1:]
        fullest = sorted((card, c) for c, card in enumerate(cards) if card >= memory)[:count]
        if have < cpu or len(fullest) < count:
            continue
        after = list(cards)
        for _, c in fullest:
            after[c] -= memory
        largest = max(memory for _, _, memory in shapes)
        expected = 10 * (exact_loss(have, cards, shapes) - exact_loss(have - cpu, after, shapes)) / largest
        assert scores[node] == pytest.approx(expected), name
        assert score.score_node(task, node) == scores[node]
        compared += 1
    assert compared, "the pod fits no node"


def test_a_pod_takes_of_a_pool_what_it_requests() -> None:
    """One and a half cards of two leave half of one, which a pod of a half can use."""
    jobs = {name: {"phase": "Inqueue", "each": {"cpu": 1, GPU: parts}} for name, parts in (("a", 150), ("b", 50))}
    world = Simulation(manifests({"nodes": {"n": {"cpu": 4, GPU: 2 * CARD}}, "jobs": jobs})).cluster
    session = run_once(world, load(CONF, REGISTRY.actions), 0.0, assume=False).session
    [score] = [s for _, s in session.rules.enabled_scores() if s.name == "fragmentation"]
    [task] = session.jobs["default/a"].tasks.values()
    free = session.numbers.idle[session.table.rows[GPU]]
    free[0] = 2 * CARD * 1000.0
    session.numbers.idle[session.table.rows["cpu"]][0] = 4000.0
    # before, both can use everything; after it, half a card is free, and lost to `a` alone
    assert score.score(task, session.numbers)[0] == pytest.approx(10 * (0.0 - 0.5 / 2))


def test_bad_arguments_are_warnings() -> None:
    plugin = Fragmentation({"weight": -1, "card": 0})
    assert [w.partition(" argument ")[2] for w in plugin.warnings] == [
        "weight is -1, and must be from 0 to 1000000; 10 is used",
        "card is 0, and must be at least 1; 1 is used",
    ]
