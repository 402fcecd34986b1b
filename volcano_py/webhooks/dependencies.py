"""Dependency graphs: tasks of a Job (`dependsOn.name`) and flows of a JobFlow (`dependsOn.targets`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter


def order(waits: Mapping[str, Sequence[str]]) -> list[str]:
    """The names in topological order, without those whose dependencies can never be met.

    A dependency on an unknown name, or one that is listed twice, is never met: both are mistakes of the user.
    """
    place = {name: number for number, name in enumerate(waits)}
    open_needs: dict[str, int] = {}
    awaited_by: dict[str, list[str]] = {}
    for name, needs in waits.items():
        open_needs[name] = len(needs)  # a duplicate is counted twice, but met once
        for need in set(needs):
            awaited_by.setdefault(need, []).append(name)
    done: list[str] = []
    ready = [name for name, number in open_needs.items() if number == 0]
    while ready:
        done += ready
        following = []
        for name in ready:
            for waiting in awaited_by.get(name, ()):
                open_needs[waiting] -= 1
                if open_needs[waiting] == 0:
                    following.append(waiting)
        ready = sorted(following, key=place.__getitem__)
    return done


def check_graph(edges: Mapping[str, Sequence[str]]) -> str:
    """Why the graph is not acyclic: a dependency on an undefined name, or a cycle. Empty if it is acyclic."""
    for name, targets in edges.items():
        for target in targets:
            if target not in edges:
                return f"vertex is not defined: {target}, on which {name} depends"
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return f"{' depends on '.join(reversed(circle))}"
    return ""
