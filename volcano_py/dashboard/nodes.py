"""The pages of nodes as data: a heat map of all nodes per resource, by HyperNode, and one node with its pods."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from volcano_py.api.topology import HyperNode
from volcano_py.cli import queue_tree
from volcano_py.cli.queue_tree_table import text
from volcano_py.cli.top_facts import NodeRow, node_rows, resources_of
from volcano_py.dashboard.job_page import PodRow, pod_row
from volcano_py.scheduler.model.nodes.hyper_nodes import HyperNodes, build

Manifest = dict[str, Any]
MOST_CELLS = 2000
"""Nodes that the heat map shows; the text filter reaches the others."""
_ZERO = Fraction(0)


class Cell(NamedTuple):
    """A node in the heat map. `share`: what its pods request of the resource, of what it has; None: unknown."""

    name: str
    state: str
    pods: int | None
    held: str
    has: str
    share: float | None


class Domain(NamedTuple):
    """Nodes that are shown together: those of a HyperNode without HyperNodes below; `path`: it and those above."""

    path: tuple[str, ...]
    tier: int
    share: float | None
    cells: tuple[Cell, ...]


class HeatMap(NamedTuple):
    """All nodes. `hidden`: nodes beyond MOST_CELLS; `problems`: of HyperNodes."""

    resource: str
    resources: tuple[str, ...]
    domains: tuple[Domain, ...]
    ready: int
    nodes: int
    hidden: int
    problems: tuple[str, ...]


class NodePage(NamedTuple):
    """One node: resource, held, allocatable and share; and its pods, None if they may not be listed."""

    name: str
    state: str
    domain: tuple[str, ...]
    amounts: tuple[tuple[str, str, str, float | None], ...]
    pods: tuple[tuple[str, PodRow], ...] | None


class NodeTable(NamedTuple):
    """What both pages are made of."""

    rows: dict[str, NodeRow]
    forest: HyperNodes
    resources: tuple[str, ...]


def node_table(
    nodes: Iterable[Manifest], pods: Iterable[Manifest] | None, hyper_nodes: Iterable[HyperNode]
) -> NodeTable:
    """The table of some nodes. `pods`: None: they may not be listed."""
    nodes = list(nodes)
    holding = None
    if pods is not None:
        holding = [{"nodeName": p["holder"], "held": p["held"]} for p in pods if p["holder"]]
    rows = {row.name: row for row in node_rows(nodes, holding)}
    forest = build(hyper_nodes, {n["metadata"]["name"]: n["metadata"]["labels"] for n in nodes})
    total: queue_tree.Amounts = {}
    for row in rows.values():
        queue_tree.add(total, row.allocatable)
    return NodeTable(rows, forest, tuple(resources_of(total)))


def heat_map(table: NodeTable, resource: str = "", contains: str = "") -> HeatMap:
    """The heat map of a resource (the first one by default), of the nodes whose names contain a text."""
    resource = resource if resource in table.resources else next(iter(table.resources), "cpu")
    wanted = [name for name in sorted(table.rows) if contains.lower() in name.lower()]
    shown = set(wanted[:MOST_CELLS])
    domains: list[Domain] = []
    placed: set[str] = set()
    leaves = [info for info in table.forest.infos.values() if not info.children]
    for info in sorted(leaves, key=lambda info: _path(table.forest, info.name)):
        members = sorted((shown & info.nodes) - placed)
        placed.update(members)
        if members:
            domains.append(_domain(_path(table.forest, info.name), info.tier, members, table, resource))
    rest = [name for name in wanted if name in shown and name not in placed]
    if rest:
        domains.append(_domain((), 0, rest, table, resource))
    ready = sum(1 for name in wanted if table.rows[name].state == "Ready")
    return HeatMap(
        resource,
        table.resources,
        tuple(domains),
        ready,
        len(wanted),
        len(wanted) - len(shown),
        tuple(f"HyperNode {name}: {problem}" for name, problem in sorted(table.forest.problems.items())),
    )


def node_page(table: NodeTable, name: str, pods: Iterable[Manifest] | None) -> NodePage | None:
    """The page of a node; None if it does not exist."""
    row = table.rows.get(name)
    if row is None:
        return None
    leaf = [info for info in table.forest.infos.values() if not info.children and name in info.nodes]
    mine = None
    if pods is not None:
        here = [(p["metadata"]["namespace"], pod_row(p)) for p in pods if p["holder"] == name]
        mine = tuple(sorted(here, key=lambda pair: (pair[0], pair[1].name)))
    shown = (
        (r, "" if row.used is None else text(row.used.get(r, _ZERO), r), text(row.allocatable[r], r), _share(row, r))
        for r in table.resources
        if r in row.allocatable
    )
    domain = _path(table.forest, leaf[0].name) if leaf else ()
    return NodePage(name, row.state, domain, tuple(shown), mine)


def _path(forest: HyperNodes, name: str) -> tuple[str, ...]:
    found: list[str] = []
    while name and name not in found:
        found.insert(0, name)
        name = forest.infos[name].parent if name in forest.infos else ""
    return tuple(found)


def _domain(path: tuple[str, ...], tier: int, names: list[str], table: NodeTable, resource: str) -> Domain:
    cells = tuple(_cell(table.rows[name], resource) for name in names)
    has = sum((table.rows[name].allocatable.get(resource, _ZERO) for name in names), _ZERO)
    held: Fraction | None = _ZERO
    for name in names:
        used = table.rows[name].used
        held = None if used is None or held is None else held + used.get(resource, _ZERO)
    return Domain(path, tier, float(held / has) if held is not None and has else None, cells)


def _cell(row: NodeRow, resource: str) -> Cell:
    held = "" if row.used is None else text(row.used.get(resource, _ZERO), resource)
    has = text(row.allocatable.get(resource, _ZERO), resource)
    return Cell(row.name, row.state, row.pods, held, has, _share(row, resource))


def _share(row: NodeRow, resource: str) -> float | None:
    """What pods hold of a node's resource, from 0 to 1; None: unknown, or it has none."""
    has = row.allocatable.get(resource, _ZERO)
    if row.used is None or not has:
        return None
    return float(row.used.get(resource, _ZERO) / has)
