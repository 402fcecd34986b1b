"""Random small clusters, one kind of question for each family. A seed and a number give the same cluster again."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.oracle.description import CARD, Amounts, Cluster, Gang, Node, Pod, Queue, take

GPU = "example.com/gpu"
ACTIONS = "enqueue, allocate, reclaim, backfill"
CONF = """actions: "{actions}"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
{last}"""
OWNERS = ("Job", "ReplicaSet", "StatefulSet", "JobSet", "LeaderWorkerSet", "RayCluster")
CAPACITY = "  - name: capacity\n"
TREE = "  - name: capacity\n    enableHierarchy: true\n"
PROPORTION = "  - name: proportion\n"


def _nodes(rng: Random, resources: list[str], most: int = 3) -> list[Node]:
    sizes = {"cpu": (2, 4, 6, 8), "memory": (4, 8, 12), GPU: (0, 1, 2, 4)}
    nodes = []
    for i in range(rng.randint(1, most)):
        nodes.append(Node(f"n{i}", {r: rng.choice(sizes[r]) for r in resources}))
    if all(not n.capacity.get(GPU, 1) for n in nodes):
        nodes[0].capacity[GPU] = rng.choice((1, 2, 3))
    return nodes


def _request(rng: Random, resources: list[str]) -> Amounts:
    sizes = {"cpu": (1, 1, 2, 3), "memory": (1, 2, 4), GPU: (0, 1, 1, 2)}
    found = {r: rng.choice(sizes[r]) for r in resources}
    return {r: a for r, a in found.items() if a} or {resources[0]: 1}


def _resources(rng: Random) -> list[str]:
    return rng.choice((["cpu"], ["cpu", GPU], ["cpu", GPU], ["cpu", "memory"], ["cpu", "memory", GPU]))


def _split(rng: Random, amount: int, parts: int) -> list[int]:
    cuts = sorted(rng.randint(0, amount) for _ in range(parts - 1))
    return [b - a for a, b in zip([0, *cuts], [*cuts, amount], strict=True)]


def _jobs(
    rng: Random, nodes: list[Node], queues: list[str], resources: list[str], running: int, pending: int
) -> list[Gang]:
    """Running jobs that fill the nodes, most of them in one queue, and pending ones."""
    free = {n.name: dict(n.capacity) for n in nodes}
    gangs: list[Gang] = []
    heavy = rng.choice(queues)
    for i in range(rng.randint(1, running)):
        queue = heavy if rng.random() < 0.7 else rng.choice(queues)
        request = _request(rng, resources)
        pods: list[Pod] = []
        for j in range(rng.choice((1, 1, 2, 2, 3))):
            fitting = [n for n, a in free.items() if all(a.get(r, 0) >= v for r, v in request.items())]
            if not fitting:
                break
            node = rng.choice(fitting)
            take(free[node], request)
            pods.append(Pod(f"r{i}-{j}", dict(request), node, preemptable=rng.random() > 0.06))
        if pods:
            gangs.append(Gang(f"r{i}", queue, rng.randint(1, len(pods)), pods, age=60 - i))
    for i in range(rng.randint(1, pending)):
        others = [q for q in queues if q != heavy] or queues
        queue = rng.choice(others) if rng.random() < 0.85 else heavy
        size = rng.choice((1, 1, 1, 2, 2, 3))
        same = _request(rng, resources)
        pods = [Pod(f"p{i}-{j}", dict(same) if rng.random() < 0.8 else _request(rng, resources)) for j in range(size)]
        gangs.append(Gang(f"p{i}", queue, rng.randint(1, size), pods, age=30 - i))
    return gangs


def _flat_queues(rng: Random, nodes: list[Node], resources: list[str]) -> list[Queue]:
    names = [f"q{i}" for i in range(rng.choice((2, 2, 3)))]
    queues = [Queue(name, reclaimable=rng.random() > 0.08) for name in names]
    for r in resources:
        if rng.random() < 0.12:
            continue
        total = sum(n.capacity.get(r, 0) for n in nodes)
        parts = [total // len(names)] * len(names) if rng.random() < 0.5 else _split(rng, total, len(names))
        for q, part in zip(queues, parts, strict=True):
            if part:
                q.deserved[r] = part
            if rng.random() < 0.1 and part:
                q.guarantee[r] = rng.randint(1, part)
            if rng.random() < 0.1:
                q.capability[r] = max(part, rng.randint(1, max(total, 1)))
    return queues


def capacity_flat(rng: Random) -> Cluster:
    resources = _resources(rng)
    nodes = _nodes(rng, resources)
    queues = _flat_queues(rng, nodes, resources)
    gangs = _jobs(rng, nodes, [q.name for q in queues], resources, 4, 2)
    return Cluster(nodes, queues, gangs, CONF.format(actions=ACTIONS, last=CAPACITY))


def capacity_tree(rng: Random) -> Cluster:
    resources = _resources(rng)
    nodes = _nodes(rng, resources)
    parents = [Queue(f"h{i}", parent="root") for i in range(2)]
    leaves = [Queue(f"l{i}{j}", parent=p.name, reclaimable=rng.random() > 0.05) for i, p in enumerate(parents)
              for j in range(rng.choice((1, 2)))]  # fmt: skip
    set_parents = rng.random() < 0.7
    for r in resources:
        total = sum(n.capacity.get(r, 0) for n in nodes)
        parts = [total // 2] * 2 if rng.random() < 0.5 else _split(rng, total, 2)
        for p, part in zip(parents, parts, strict=True):
            mine = [q for q in leaves if q.parent == p.name]
            for q, piece in zip(mine, _split(rng, part, len(mine)), strict=True):
                if piece:
                    q.deserved[r] = piece
            if part and set_parents:
                p.deserved[r] = part
    queues = [Queue("root"), *parents, *leaves]
    gangs = _jobs(rng, nodes, [q.name for q in leaves], resources, 4, 2)
    return Cluster(nodes, queues, gangs, CONF.format(actions=ACTIONS, last=TREE), tree=True)


def proportion(rng: Random) -> Cluster:
    resources = _resources(rng)
    nodes = _nodes(rng, resources)
    names = [f"q{i}" for i in range(rng.choice((2, 2, 3)))]
    queues = [Queue(n, weight=rng.choice((1, 1, 1, 2, 3)), reclaimable=rng.random() > 0.06) for n in names]
    gangs = _jobs(rng, nodes, names, resources, 4, 2)
    return Cluster(nodes, queues, gangs, CONF.format(actions=ACTIONS, last=PROPORTION), proportional=True)


def fits(rng: Random) -> Cluster:
    """One queue, free capacity in pieces, gangs of pods with several sizes."""
    resources = rng.choice((["cpu"], ["cpu"], ["cpu", GPU], ["cpu", "memory"]))
    nodes = [Node(f"n{i}", {r: rng.randint(2, 8) for r in resources}) for i in range(rng.randint(2, 4))]
    gangs = []
    for i in range(rng.choice((1, 1, 2))):
        pods = [
            Pod(f"p{i}-{j}", {r: rng.randint(1, 5) for r in resources}, role=rng.choice(("a", "b")))
            for j in range(rng.randint(2, 5))
        ]
        roles = {r: rng.randint(0, n) for r in ("a", "b") if (n := sum(p.role == r for p in pods))}
        with_roles = rng.random() < 0.4
        minimum = sum(roles.values()) if with_roles else rng.randint(max(1, len(pods) - 1), len(pods))
        if minimum:
            gangs.append(Gang(f"p{i}", "default", minimum, pods, role_minimums=roles if with_roles else {}, age=30 - i))
    conf = CONF.format(actions="enqueue, allocate, backfill", last="  - name: nodeorder\n  - name: binpack\n")
    return Cluster(nodes, [Queue("default")], gangs, conf)


def racks(rng: Random) -> Cluster:
    """Gangs that have to be in one rack."""
    nodes = [Node(f"n{i}", {"cpu": rng.randint(2, 8)}, rack=f"rack{i % 2}") for i in range(rng.randint(3, 5))]
    gangs = []
    for i in range(rng.choice((1, 1, 2))):
        pods = [Pod(f"p{i}-{j}", {"cpu": rng.randint(1, 5)}) for j in range(rng.randint(2, 4))]
        gangs.append(Gang(f"p{i}", "default", len(pods), pods, rack_only=rng.random() < 0.9, age=30 - i))
    conf = CONF.format(
        actions="enqueue, allocate, backfill", last="  - name: nodeorder\n  - name: network-topology-aware\n"
    )
    return Cluster(nodes, [Queue("default")], gangs, conf)


def preempt(rng: Random) -> Cluster:
    """One queue; gangs of higher priority arrive. The tiers switch gang's part off in half of the clusters."""
    resources = rng.choice((["cpu"], ["cpu", GPU]))
    nodes = _nodes(rng, resources)
    gangs = _jobs(rng, nodes, ["default"], resources, 4, 2)
    for gang in gangs:
        gang.priority = rng.choice((1, 2)) if gang.running() else rng.choice((1, 3, 5))
    conf = CONF.format(actions="enqueue, allocate, preempt, backfill", last="  - name: nodeorder\n")
    if rng.random() < 0.5:
        conf = conf.replace("  - name: gang\n", "  - name: gang\n    enablePreemptable: false\n")
    return Cluster(nodes, [Queue("default")], gangs, conf)


def sub_groups(rng: Random) -> Cluster:
    """Gangs of sub-groups, most of which have to be in one rack each."""
    nodes = [Node(f"n{i}", {"cpu": rng.randint(2, 8)}, rack=f"rack{i % 2}") for i in range(rng.randint(2, 5))]
    gangs = []
    for i in range(rng.choice((1, 1, 2))):
        size, parts = rng.choice((1, 2, 2, 3)), rng.choice((1, 2, 2, 3))
        same = [{"cpu": rng.randint(1, 4)} for _ in range(parts)]
        pods = [
            Pod(
                f"p{i}-{part}-{j}",
                dict(same[part]) if rng.random() < 0.6 else {"cpu": rng.randint(1, 4)},
                role=f"s{part}",
            )
            for part in range(parts)
            for j in range(size)
        ]
        in_racks = rng.random() < 0.8
        gangs.append(Gang(f"p{i}", "default", len(pods), pods, age=30 - i, sub_groups_in_racks=in_racks))
    conf = CONF.format(
        actions="enqueue, allocate, backfill", last="  - name: nodeorder\n  - name: network-topology-aware\n"
    )
    return Cluster(nodes, [Queue("default")], gangs, conf)


def devices(rng: Random) -> Cluster:
    """Pods with a part of a card's memory. One gang, as the cards that its pods get are not part of its description."""
    nodes = []
    for i in range(rng.randint(1, 3)):
        cards, memory = rng.choice((1, 2, 2, 3)), rng.choice((4, 8))
        nodes.append(Node(f"n{i}", {"cpu": rng.randint(2, 8), CARD: cards * memory}, cards=cards))
    count = rng.randint(1, 5)
    pods = [
        Pod(f"p0-{j}", {"cpu": rng.randint(1, 3), **({CARD: rng.randint(1, 6)} if rng.random() < 0.85 else {})})
        for j in range(count)
    ]
    gang = Gang("p0", "default", rng.randint(max(1, count - 1), count), pods)
    last = "  - name: nodeorder\n  - name: deviceshare\n    arguments: {deviceshare.GPUSharingEnable: true}\n"
    return Cluster(nodes, [Queue("default")], [gang], CONF.format(actions="enqueue, allocate, backfill", last=last))


def by_controllers(rng: Random) -> Cluster:
    """Gangs of owners, for which the controller creates the PodGroups."""
    nodes = [Node(f"n{i}", {"cpu": rng.randint(2, 6)}) for i in range(rng.randint(1, 3))]
    gangs = []
    for i in range(rng.choice((1, 2, 2, 3))):
        kind, count = rng.choice(OWNERS), rng.choice((1, 2, 3, 3, 4))
        minimum = count if kind == "LeaderWorkerSet" else rng.randint(1, count)
        request = {"cpu": rng.randint(1, 3)}
        pods = [Pod(f"p{i}-{j}", dict(request)) for j in range(count)]
        gangs.append(Gang(f"p{i}", "default", minimum, pods, age=30 - i, owner=kind))
    conf = CONF.format(actions="enqueue, allocate, backfill", last="  - name: nodeorder\n")
    return Cluster(nodes, [Queue("default")], gangs, conf)


FAMILIES: dict[str, Callable[[Random], Cluster]] = {
    "capacity": capacity_flat,
    "capacity in a tree": capacity_tree,
    "proportion": proportion,
    "fits": fits,
    "racks": racks,
    "preempt": preempt,
    "sub-groups": sub_groups,
    "devices": devices,
    "groups by controllers": by_controllers,
}


def drawn(family: str, seed: int, number: int) -> Cluster:
    return FAMILIES[family](Random(f"{family} {seed} {number}"))
