"""What waits for what: tasks of a Job (`dependsOn.name`) and flows of a JobFlow (`dependsOn.targets`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter


def order(waits: Mapping[str, Sequence[str]]) -> list[str]:
    """The names so that each comes after those it waits for; those for which that cannot be are left out.

    A name waits in vain also for an unknown one, and for one that it lists twice; both are mistakes.
    """
    done: dict[str, None] = {}
    while True:
        ready = [
            name
            for name, needs in waits.items()
            if name not in done and all(need in done for need in needs) and len(set(needs)) == len(needs)
        ]
        if not ready:
            return list(done)
        done.update(dict.fromkeys(ready))


def check_graph(edges: Mapping[str, Sequence[str]]) -> str:
    """What keeps the graph from being acyclic: a name that is none of its own, or a circle. Empty if it is acyclic."""
    for name, targets in edges.items():
        for target in targets:
            if target not in edges:
                return f"vertex is not defined: {target}, on which {name} depends"
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return f"{' waits for '.join(reversed(circle))}"
    return ""
