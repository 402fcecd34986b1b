"""`vcctl top` on a terminal, in its full width and height; plain tables for other outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from volcano_py.cli import columns, queue_tree
from volcano_py.cli.bars import bar, measured
from volcano_py.cli.queue_tree import Amounts, Branch, amounts
from volcano_py.cli.queue_tree_table import deserved, scale_of, text, walk
from volcano_py.cli.top_facts import Facts, JobRow, NodeRow, resources
from volcano_py.cli.wrapping import counted

Manifest = dict[str, Any]
_PHASES = {"Running": "green", "Completed": "cyan", "Pending": "yellow", "Inqueue": "yellow", "Unknown": "red"}
_STATES = {"Open": "green", "Ready": "green"}
_ZERO = Fraction(0)
_WIDE = 100
"""Minimum columns of the terminal to show the code of a reason before its message."""


def legend(blocks: bool) -> str:
    """The legend of a queue's bar."""
    held, inqueue, mark, kept = ("█", "▒", "┃", "▁") if blocks else ("#", "+", "|", "_")
    return f"{held} held  {inqueue} inqueue  {mark} deserved (~ by weight)  {kept} guaranteed  blank: beyond limit"


def check_resources(found: Facts, chosen: Sequence[str]) -> None:
    """Raises ValueError for a chosen resource that neither nodes nor queues have."""
    known = queue_tree.resources(found.trees) | found.total.keys()
    for resource in chosen:
        if known and resource not in known:
            raise ValueError(queue_tree.unknown(resource, known))


def view(
    found: Facts,
    sections: Sequence[str],
    chosen: Sequence[str],
    width: int,
    height: int | None,
    blocks: bool,
    head: str = "",
) -> RenderableType:
    """All sections for a terminal.

    `chosen`: the resources, empty for those of the nodes. `height`: lines of the terminal; None: show all rows.
    """
    shown = list(chosen) or resources(found)
    parts: list[RenderableType] = [Text(head, style="bold", no_wrap=True, overflow="ellipsis")] if head else []
    parts += [Text(f"note: {note}", style="dim") for note in found.notes]
    blocks_of = {
        "queues": lambda: _queues(found, shown, width, blocks),
        "jobs": lambda: _jobs(found.jobs, width),
        "nodes": lambda: _nodes(found.nodes, shown, width, blocks),
    }
    tables = [(name, *blocks_of[name]()) for name in sections]
    # Each section has a title, a header and an empty line; queues also have a legend.
    left = None if height is None else height - len(parts) - 3 * len(tables) - ("queues" in sections) - 1
    limits = fair([len(rows) for _, _, rows in tables], left)
    for number, ((name, table, rows), limit) in enumerate(zip(tables, limits, strict=True)):
        if number or parts:
            parts.append(Text())
        hidden = len(rows) - limit
        parts.append(_title(name, found, hidden))
        for row in rows[:limit]:
            table.add_row(*row)
        parts.append(table if rows else Text("none", style="dim"))
        if name == "queues":
            parts.append(Text(legend(blocks), style="dim", no_wrap=True, overflow="ellipsis"))
    return Group(*parts)


def fair(counts: Sequence[int], left: int | None) -> list[int]:
    """The number of rows per section within `left`: rows that a section does not need go to the others."""
    if left is None:
        return list(counts)
    limits = [0] * len(counts)
    for number, place in enumerate(sorted(range(len(counts)), key=lambda i: counts[i])):
        limits[place] = min(counts[place], max(1, left // (len(counts) - number)))
        left -= limits[place]
    return limits


def _title(name: str, found: Facts, hidden: int) -> Text:
    title = Text(name.capitalize(), style="bold underline")
    if name == "jobs":
        waiting = sum(job.phase not in ("Running", "Completed") for job in found.jobs)
        title.append(f"  {len(found.jobs)}, {waiting} wait", style="not bold not underline dim")
    if hidden > 0:
        title.append(f"  {counted(hidden, 'row')} more", style="not bold not underline dim")
    return title


def _table(*names: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for name in names:
        table.add_column(name, no_wrap=True, overflow="ellipsis", justify="right" if name in right else "left")
    return table


def _queues(found: Facts, shown: Sequence[str], width: int, blocks: bool) -> tuple[Table, list[list[RenderableType]]]:
    numbers = ("HELD", "DESERVED", "GUARANTEE", "LIMIT")
    cells = [
        (b, before, number, r, _amounts(b, r))
        for b, first, further in walk(found.trees, blocks)
        for number, r in enumerate(shown)
        for before in [first + b.name if number == 0 else further.rstrip()]
    ]
    names = max([5, *(len(before) for _, before, *_ in cells)])
    fixed = sum(max([len(name), *(len(c[4][i]) for c in cells)]) + 1 for i, name in enumerate(numbers))
    fixed += max([8, *(len(r) for r in shown)]) + 1 + 8  # the resource; the jobs that run and wait
    # The bar gets the width that names leave, names get the width that the shortest bar leaves.
    frame = 0 if blocks else 2
    size = min(40, max(10, width - fixed - names - frame - 2))
    table = _table("QUEUE", "RESOURCE", "", *numbers, "RUN/WAIT", right=numbers)
    table.columns[2].min_width = size + frame
    table.columns[0].max_width = max(8, width - fixed - size - frame - 2)
    scale = {r: scale_of(found.trees, r, found.total) for r in shown}
    rows: list[list[RenderableType]] = []
    for b, before, number, r, values in cells:
        state = (b.queue.get("status") or {}).get("state", "")
        style = "" if number or state in ("Open", "") else "red"
        jobs = f"{b.groups['Running']}/{b.groups['Pending'] + b.groups['Inqueue']}" if number == 0 else ""
        rows.append([Text(before, style=style), r, _queue_bar(b, r, scale[r], size, blocks), *values, jobs])
    return table, rows


def _amounts(b: Branch, r: str) -> list[str]:
    """Held, deserved, guarantee and limit of a queue, as strings."""
    part, floor, limit = deserved(b, r), _guarantee(b).get(r), _limit(b).get(r)
    about = "" if r in b.deserved else "~"
    return [
        text(b.allocated.get(r, _ZERO), r),
        "-" if part is None else about + text(part, r),
        "-" if floor is None else text(floor, r),
        "-" if limit is None else text(limit, r),
    ]


def _queue_bar(b: Branch, r: str, scale: Fraction, size: int, blocks: bool) -> Text:
    held, part = b.allocated.get(r, _ZERO), deserved(b, r)
    drawn = measured(
        held, b.inqueue.get(r, _ZERO), part, scale, size, blocks, floor=_guarantee(b).get(r), limit=_limit(b).get(r)
    )
    return Text(drawn, style="yellow" if part is not None and held > part else "green")


def _guarantee(b: Branch) -> Amounts:
    return amounts(((b.queue.get("spec") or {}).get("guarantee") or {}).get("resource"))


def _limit(b: Branch) -> Amounts:
    return amounts((b.queue.get("spec") or {}).get("capability"))


def _jobs(jobs: list[JobRow], width: int) -> tuple[Table, list[list[RenderableType]]]:
    several = len({job.namespace for job in jobs}) > 1
    table = _table("JOB", "QUEUE", "PHASE", "RUN/MIN", "AGE", "WAITS FOR", right=("RUN/MIN", "AGE"))
    cells = [
        (
            f"{job.namespace}/{job.name}" if several else job.name,
            job.queue,
            job.phase,
            f"{job.running}/{job.least}",
            job.age,
        )
        for job in jobs
    ]
    most = (max(12, width // 4), max(8, width // 8), *(width,) * 3)
    for number, (column, limit) in enumerate(zip(table.columns, most, strict=False)):
        longest = max([len(str(column.header)), *(len(line[number]) for line in cells)])
        column.width = min(limit, longest)
    table.columns[-1].max_width = max(10, width - sum((column.width or 0) + 1 for column in table.columns[:-1]))
    rows: list[list[RenderableType]] = []
    for job, (name, queue, phase, running, old) in zip(jobs, cells, strict=True):
        why = Text(job.why)
        if job.code and width >= _WIDE:
            why = Text.assemble((job.code, "yellow"), ": ", job.why)
        rows.append([name, queue, Text(phase, style=_PHASES.get(phase, "")), running, old, why])
    return table, rows


def _nodes(
    nodes: list[NodeRow], shown: Sequence[str], width: int, blocks: bool
) -> tuple[Table, list[list[RenderableType]]]:
    texts = [[_share(node, r) for r in shown] for node in nodes]
    names = min(max([4, *(len(node.name) for node in nodes)]), max(12, width // 4))
    fixed = names + max([5, *(len(node.state) for node in nodes)]) + 4 + 3
    numbers = [max([len(r) - 8, *(len(line[i]) for line in texts)]) for i, r in enumerate(shown)]
    frame = 1 if blocks else 3
    fit = list(shown)
    while len(fit) > 1 and fixed + sum(n + 2 + 6 + frame for n in numbers[: len(fit)]) > width:
        fit.pop()
    left = width - fixed - sum(n + 2 + frame for n in numbers[: len(fit)])
    size = min(20, max(4, left // max(1, len(fit))))
    table = _table("NODE", "STATE", "PODS", *fit, right=("PODS",))
    table.columns[0].max_width = names
    rows: list[list[RenderableType]] = []
    for node, line in zip(nodes, texts, strict=True):
        pods = "-" if node.pods is None else str(node.pods)
        row: list[RenderableType] = [node.name, Text(node.state, style=_STATES.get(node.state, "red")), pods]
        for number, r in enumerate(fit):
            drawn = Text(bar(*_parts(node, r), size, blocks), style="green")
            drawn.append(f" {line[number]}", style="not green")
            row.append(drawn if node.allocatable.get(r) else Text("-", style="dim"))
        rows.append(row)
    return table, rows


def _parts(node: NodeRow, r: str) -> tuple[float, float]:
    return float((node.used or {}).get(r, _ZERO)), float(node.allocatable.get(r, _ZERO))


def _share(node: NodeRow, r: str) -> str:
    used = "?" if node.used is None else text(node.used.get(r, _ZERO), r)
    return f"{used}/{text(node.allocatable.get(r, _ZERO), r)}"


def plain(found: Facts, sections: Sequence[str], chosen: Sequence[str]) -> Iterator[columns.Table]:
    """A table per section, with all rows and without bars: for files and pipes."""
    shown = list(chosen) or resources(found)
    if "queues" in sections:
        rows: list[list[object]] = []
        for b, _, _ in walk(found.trees, blocks=False):
            state = (b.queue.get("status") or {}).get("state", "")
            rows += [
                [b.name, state, r, *_amounts(b, r), b.groups["Running"], b.groups["Pending"] + b.groups["Inqueue"]]
                for r in shown
            ]
        header = ("Queue", "State", "Resource", "Held", "Deserved", "Guarantee", "Limit", "Running", "Waiting")
        yield columns.fitted(header, rows, 2)
    if "jobs" in sections:
        jobs = [
            [j.namespace, j.name, j.queue, j.phase, j.running, j.least, j.age, j.code or "-", j.why or "-"]
            for j in found.jobs
        ]
        header = ("Namespace", "Job", "Queue", "Phase", "Running", "Min", "Age", "Reason", "Message")
        yield columns.fitted(header, jobs, 2)
    if "nodes" in sections:
        nodes = [
            [n.name, n.state, "-" if n.pods is None else n.pods, *(_share(n, r) for r in shown)] for n in found.nodes
        ]
        yield columns.fitted(("Node", "State", "Pods", *shown), nodes, 2)
