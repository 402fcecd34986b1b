"""The promises, applied to a played cluster. A verdict is None or one sentence about what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.oracle.arrangements import starts
from tests.oracle.description import Cluster
from tests.oracle.entitlement import price, serve
from tests.oracle.playing import Played


def entitled_are_served(played: Played) -> str | None:
    for gang in played.last.gangs:
        if gang.is_whole:
            continue
        plan = serve(played.last, gang)
        if plan is not None:
            return f"gang {gang.name} of queue {gang.queue} waits, although it fits without {list(plan.pods)}"
    return None


def what_fits_starts(played: Played) -> str | None:
    """At rest, no gang waits that fits what is free."""
    free = played.last.free()
    for gang in played.last.gangs:
        if not gang.is_whole and starts(played.last, gang, free):
            return f"gang {gang.name} waits, although it fits"
    return None


def no_gang_is_destroyed(played: Played) -> str | None:
    """Evictions take from a whole gang what is above its minimum, or all of it."""
    for step in played.steps:
        for gang in step.before.gangs:
            lost = [p for p in gang.running() if p.name in step.evicted]
            rest = [p for p in gang.running() if p.name not in step.evicted]
            if lost and rest and gang.is_whole and not gang.holds_minimum(rest):
                return f"gang {gang.name} keeps {len(rest)} of the {gang.minimum} pods that it requires"
    return None


def gangs_are_whole(played: Played) -> str | None:
    for step in played.steps:
        for gang in step.before.gangs:
            now = [p for p in gang.pods if (p.node or p.name in step.bound) and p.name not in step.evicted]
            if any(p.name in step.bound for p in gang.pods) and not gang.holds_minimum(now):
                return f"gang {gang.name} is bound in part"
    return None


def comes_to_rest(played: Played) -> str | None:
    if played.at_rest:
        return None
    most = Counter(name for step in played.steps for name in step.evicted).most_common(1)
    return f"no rest after {len(played.steps)} cycles with decisions; evicted most often: {most}"


def nothing_is_overfull(played: Played) -> str | None:
    for name, amounts in played.last.free().items():
        if any(a < 0 for a in amounts.values()):
            return f"node {name} is overfull"
    return None


def racks_hold(played: Played) -> str | None:
    """A gang that has to be in one rack is in one."""
    rack_of = {node.name: node.rack for node in played.last.nodes}
    for gang in played.last.gangs:
        racks = {rack_of[pod.node] for pod in gang.running()}
        if gang.rack_only and len(racks) > 1:
            return f"gang {gang.name} is spread over {sorted(racks)}"
        for role in {pod.role for pod in gang.running()} if gang.sub_groups_in_racks else ():
            racks = {rack_of[pod.node] for pod in gang.running() if pod.role == role}
            if len(racks) > 1:
                return f"sub-group {role} of gang {gang.name} is spread over {sorted(racks)}"
    return None


def nothing_faults(played: Played) -> str | None:
    return played.faults[0] if played.faults else None


def no_eviction_for_nothing(played: Played) -> str | None:
    """A cycle evicts only if a gang that did not fit starts afterwards."""
    if not played.evictions:
        return None
    first = played.steps[0].before
    waiting = {g.name for g in first.gangs if not g.is_whole or g.pending()}
    started = {g.name for g in played.last.gangs if len(g.running()) > len(first.gang(g.name).running())}
    return None if waiting & started else "pods were evicted and nothing started"


def evictions_are_cheap(played: Played) -> str | None:
    """Where one gang waits, no plan is cheaper than the evictions of a cycle: first by what lenders are left with below
    what they deserve, then by the number of pods. Evictions are for an entitled gang."""
    for step in played.steps:
        waiting = [g for g in step.before.gangs if not g.is_whole]
        if not step.evicted or step.bound or len(waiting) != 1:
            continue
        best = serve(step.before, waiting[0])
        if best is None or not best.pods:
            return f"{step.evicted} were evicted for {waiting[0].name}, which is not entitled or needs no eviction"
        found = price(step.before, waiting[0], set(step.evicted))
        if found > best.cost:
            return f"{step.evicted} were evicted, but {list(best.pods)} are enough"
    return None


GENERAL: list[Callable[[Played], str | None]] = [
    comes_to_rest, no_gang_is_destroyed, gangs_are_whole, nothing_is_overfull, nothing_faults,
    no_eviction_for_nothing, what_fits_starts, racks_hold,
]  # fmt: skip
OF_FAMILY: dict[str, list[Callable[[Played], str | None]]] = {
    "capacity": [entitled_are_served, evictions_are_cheap, *(g for g in GENERAL if g is not what_fits_starts)],
    "capacity in a tree": [
        entitled_are_served,
        evictions_are_cheap,
        *(g for g in GENERAL if g is not what_fits_starts),
    ],
    "proportion": [entitled_are_served, evictions_are_cheap, *(g for g in GENERAL if g is not what_fits_starts)],
    "fits": GENERAL,
    "racks": GENERAL,
    "preempt": GENERAL,
    "sub-groups": GENERAL,
    "devices": GENERAL,
    "groups by controllers": GENERAL,
}


def judge(family: str, played: Played) -> dict[str, str]:
    """The verdicts of a family that are not kept, by name."""
    found = {verdict.__name__: verdict(played) for verdict in OF_FAMILY[family]}
    return {name: text for name, text in found.items() if text is not None}


def asks(family: str, cluster: Cluster) -> bool:
    """Whether the cluster asks the family's question: a gang waits that could be served."""
    pending = [g for g in cluster.gangs if not g.is_whole]
    if family in ("capacity", "capacity in a tree", "proportion"):
        return any((plan := serve(cluster, g)) is not None and plan.pods for g in pending)
    return any(starts(cluster, g, cluster.free()) for g in pending)
