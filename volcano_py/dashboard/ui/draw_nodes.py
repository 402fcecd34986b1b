"""Draws the heat map of nodes, and the page of one node."""

from __future__ import annotations

from volcano_py.cli.wrapping import counted
from volcano_py.dashboard.nodes import Cell, Domain, HeatMap, NodePage
from volcano_py.dashboard.ui.draw_job import pod_cells
from volcano_py.dashboard.ui.draw_queues import short
from volcano_py.dashboard.ui.markup import Child, Markup, badge, empty, joined, link, table, tag

_NAMED = 200
"""Nodes up to which cells have room for their names."""
_STEPS = 9
"""Colors of the scale, of cividis, which people with any color vision can order."""


def draw_heat(page: HeatMap) -> Markup:
    """The map: nodes by HyperNode, each with its share as color and as a number."""
    if not page.nodes:
        return empty("There are no nodes that match.")
    return joined(
        *(tag("p", text, class_="note", role="status") for text in page.problems),
        tag("p", f"{page.ready} of {page.nodes} nodes are ready. Requested {short(page.resource)}:", class_="muted"),
        _scale(),
        tag("div", *(_domain(d, len(page.domains), page.nodes <= _NAMED) for d in page.domains), class_="domains"),
        tag("p", f"{page.hidden} further nodes are not shown; filter by name.", class_="note") if page.hidden else None,
    )


def _scale() -> Markup:
    steps = [tag("i", class_=f"heat h{i}", aria_hidden="true") for i in range(_STEPS)]
    return tag("p", "0 % ", *steps, " 100 %", class_="scale", aria_label="dark: little is requested, light: much")


def _domain(domain: Domain, domains: int, named: bool) -> Markup:
    share = "" if domain.share is None else f"{domain.share:.0%}"
    head: list[Child] = [" / ".join(domain.path) if domain.path else "Nodes" if domains == 1 else "No HyperNode"]
    about = [counted(len(domain.cells), "node"), f"tier {domain.tier}" if domain.path else "", share]
    head.append(tag("span", " · ".join(part for part in about if part), class_="muted"))
    return tag(
        "section",
        tag("h3", *head),
        tag("div", *(_cell(c, named) for c in domain.cells), class_="cells named" if named else "cells"),
        class_="domain",
    )


def _cell(c: Cell, named: bool) -> Markup:
    number = "?" if c.share is None else f"{c.share:.0%}"
    spoken = f"{c.name}: {number}" + (f", {c.held} of {c.has}" if c.held else "")
    spoken += f", {c.pods} pods" if c.pods is not None else ""
    spoken += f", {c.state}" if c.state != "Ready" else ""
    classes = f"cell heat {heat(c.share)}" + (" down" if c.state != "Ready" else "")
    shown = number if c.state == "Ready" else f"! {number}"
    inner = link(joined(tag("small", c.name) if named else None, shown), "nodes", c.name)
    return tag("span", inner, class_=classes, title=spoken)


def heat(share: float | None) -> str:
    """The class of a share's color."""
    return "unknown" if share is None else f"h{min(_STEPS - 1, int(max(0.0, share) * _STEPS))}"


def draw_node(page: NodePage, now: float) -> Markup:
    """One node."""
    state = badge(page.state, "good" if page.state == "Ready" else "bad")
    bars = []
    for resource, held, has, share in page.amounts:
        width = 0.0 if share is None else min(1.0, share)
        spoken = f"{resource}: {held or 'unknown'} of {has}"
        bars.append(
            tag(
                "div",
                tag("span", short(resource), class_="resource", title=resource),
                tag(
                    "span",
                    tag("i", class_="held", style=f"width:{width:.2%}"),
                    class_="bar",
                    role="img",
                    aria_label=spoken,
                ),
                tag("span", tag("span", tag("b", held or "?"), f" of {has}"), class_="facts"),
                class_="measure",
            )
        )
    where = tag("p", "HyperNodes: " + " / ".join(page.domain), class_="muted") if page.domain else None
    return joined(tag("p", state), where, tag("div", *bars, class_="bars alone"), tag("h2", "Pods"), _pods(page, now))


def _pods(page: NodePage, now: float) -> Markup:
    if page.pods is None:
        return empty("You may not list pods.")
    if not page.pods:
        return empty("No pods run here.")
    rows: list[list[Child]] = []
    for namespace, pod in page.pods:
        name, phase, _, restarts, created, _ = pod_cells(pod, now)
        rows.append([namespace, name, phase, restarts, created])
    return table("Pods", ["Namespace", "Pod", "Phase", "Restarts", "Age"], rows, frozenset({3, 4}))
