"""Whether pods fit on nodes in any arrangement, by trying all of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tests.oracle.description import CARD, Amounts, Cluster, Gang, Pod


def fit(requests: Sequence[Amounts], free: dict[str, Amounts], cards: dict[str, list[int]] | None = None) -> bool:
    """Whether all requests fit on the nodes together. `cards`: the free memory of each card of a node."""
    order = sorted(requests, key=lambda r: -max(r.values(), default=0))
    nodes = [(dict(amounts), list((cards or {}).get(name, ()))) for name, amounts in free.items()]
    seen: set[tuple[int, str]] = set()

    def place(i: int) -> bool:
        if i == len(order):
            return True
        state = (i, repr([(sorted(amounts.items()), of) for amounts, of in nodes]))
        if state in seen:
            return False
        seen.add(state)
        tried: list[str] = []
        memory = order[i].get(CARD, 0)
        for amounts, of in nodes:
            if repr((amounts, of)) in tried or any(amounts.get(n, 0) < a for n, a in order[i].items()):
                continue
            tried.append(repr((amounts, of)))
            for name, amount in order[i].items():
                amounts[name] -= amount
            if memory == 0 and place(i + 1):
                return True
            for card in (n for n, left in enumerate(of) if memory and left >= memory):
                of[card] -= memory
                if place(i + 1):
                    return True
                of[card] += memory
            for name, amount in order[i].items():
                amounts[name] += amount
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
    if gang.rack_only or gang.sub_groups_in_racks:
        names = {n.rack for n in cluster.nodes} - {""}
        racks = [{n.name for n in cluster.nodes if n.rack == rack} for rack in sorted(names)]
    if gang.sub_groups_in_racks:
        return _sub_groups_fit(chosen, free, racks)
    if gang.rack_only:
        used = {pod.node for pod in gang.running()}
        racks = [rack for rack in racks if used <= rack]
    requests = [{name: a for name, a in pod.request.items() if a and (not only or name == only)} for pod in chosen]
    cards = {n.name: [n.capacity[CARD] // n.cards] * n.cards for n in cluster.nodes if n.cards}
    return any(fit(requests, {n: amounts for n, amounts in free.items() if n in rack}, cards) for rack in racks)


def _sub_groups_fit(chosen: list[Pod], free: dict[str, Amounts], racks: list[set[str]]) -> bool:
    """Whether the sub-groups of pending pods fit, each in one rack."""
    roles = sorted({pod.role for pod in chosen})
    for places in product(range(len(racks)), repeat=len(roles)):
        of = dict(zip(roles, places, strict=True))
        parts = [[pod.request for pod in chosen if of[pod.role] == i] for i in range(len(racks))]
        inside = [{n: amounts for n, amounts in free.items() if n in rack} for rack in racks]
        if all(fit(part, nodes) for part, nodes in zip(parts, inside, strict=True)):
            return True
    return False
