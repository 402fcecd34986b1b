"""Whether pods fit on nodes in any arrangement, by trying all of them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.description import Amounts, Cluster, Gang, Pod


def fit(requests: Sequence[Amounts], free: dict[str, Amounts]) -> bool:
    """Whether all requests fit on the nodes together."""
    order = sorted(requests, key=lambda r: -max(r.values(), default=0))
    nodes = [dict(amounts) for amounts in free.values()]
    seen: set[tuple[int, tuple[tuple[tuple[str, int], ...], ...]]] = set()

    def place(i: int) -> bool:
        if i == len(order):
            return True
        state = (i, tuple(tuple(sorted(n.items())) for n in nodes))
        if state in seen:
            return False
        seen.add(state)
        tried: list[Amounts] = []
        for node in nodes:
            if node in tried or any(node.get(name, 0) < amount for name, amount in order[i].items()):
                continue
            tried.append(dict(node))
            for name, amount in order[i].items():
                node[name] -= amount
            if place(i + 1):
                return True
            for name, amount in order[i].items():
                node[name] += amount
        return False

    return place(0)


def missing(gang: Gang) -> list[list[Pod]]:
    """All choices of pending pods that complete the minimum of a gang, smallest sets only."""
    found: list[list[Pod]] = []
    pending = gang.pending()
    for mask in range(1 << len(pending)):
        chosen = [p for i, p in enumerate(pending) if mask >> i & 1]
        if gang.holds_minimum([*gang.running(), *chosen]):
            found.append(chosen)
    least = min((len(c) for c in found), default=0)
    distinct = {
        tuple(sorted((tuple(sorted(p.request.items())), p.role) for p in c)): c for c in found if len(c) == least
    }
    return list(distinct.values())


def starts(cluster: Cluster, gang: Gang, free: dict[str, Amounts]) -> bool:
    """Whether the minimum of a gang fits the free amounts."""
    return any(starts_with(cluster, gang, chosen, free) for chosen in missing(gang))


def starts_with(cluster: Cluster, gang: Gang, chosen: list[Pod], free: dict[str, Amounts], only: str = "") -> bool:
    """Whether these pending pods of a gang fit the free amounts; `only`: as if they requested this resource alone."""
    racks: list[set[str]] = [{n.name for n in cluster.nodes}]
    if gang.rack_only:
        names = {n.rack for n in cluster.nodes} - {""}
        racks = [{n.name for n in cluster.nodes if n.rack == rack} for rack in sorted(names)]
        used = {pod.node for pod in gang.running()}
        racks = [rack for rack in racks if used <= rack]
    requests = [{name: a for name, a in pod.request.items() if a and (not only or name == only)} for pod in chosen]
    return any(fit(requests, {n: amounts for n, amounts in free.items() if n in rack}) for rack in racks)
