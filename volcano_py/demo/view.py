"""The output of the demo: queues, jobs and nodes while it runs, and a summary at the end."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from volcano_py.api.kinds import NODE, POD
from volcano_py.api.quantity import milli_value
from volcano_py.demo.story import Story
from volcano_py.demo.watcher import Watcher, cpu_of
from volcano_py.demo.why import Why
from volcano_py.sandbox.volcano import has_dashboard

_COLOURS = {"Running": "green", "Completed": "cyan", "Pending": "yellow", "Inqueue": "yellow"}


def bar(part: float, whole: float, width: int = 20) -> Text:
    """A bar of block characters, followed by its numbers."""
    full = 0 if whole <= 0 else min(width, round(width * part / whole))
    text = Text("█" * full, style="green")
    text.append("░" * (width - full), style="dim")
    text.append(f" {part:g}/{whole:g}")
    return text


def live(story: Story, watcher: Watcher, description: str, why: Why | None) -> RenderableType:
    """The current state. `why`: why a job waits or waited."""
    return Group(
        Text(f"{watcher.now:5.1f} s   {description}", style="bold"),
        Text(),
        _queues(story, watcher),
        Text(),
        _jobs(story, watcher),
        Text(),
        _nodes(watcher),
        *([Text(), *(Text(line, style="yellow") for line in why.lines())] if why is not None else []),
    )


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _queues(story: Story, watcher: Watcher) -> Table:
    table = _table("QUEUE", "WEIGHT", "CPU HELD BY RUNNING PODS")
    owner = {s.name: s.job["spec"]["queue"] for s in story.steps}
    held: dict[str, int] = {}
    for p in watcher.objects(POD):
        job = (p["metadata"].get("labels") or {}).get("volcano.sh/job-name", "")
        if job in owner and p["spec"].get("nodeName") and p["status"].get("phase") in ("Pending", "Running"):
            held[owner[job]] = held.get(owner[job], 0) + cpu_of(p)
    total = story.nodes * story.cpus
    for q in story.queues:
        name = q["metadata"]["name"]
        table.add_row(name, str(q["spec"]["weight"]), bar(held.get(name, 0) / 1000, total))
    return table


def _jobs(story: Story, watcher: Watcher) -> Table:
    table = _table("JOB", "QUEUE", "PHASE", "PODS BOUND", "")
    for step in story.steps:
        history = watcher.histories.get(step.name)
        if history is None:
            table.add_row(Text(step.name, style="dim"), "", Text("not submitted", style="dim"), "", "")
            continue
        pods = watcher.pods(step.name)
        placed = sum(1 for p in pods if p["spec"].get("nodeName"))
        waits = "" if history.first_bound or history.phase == "-" else "waits until all pods fit"
        table.add_row(
            step.name,
            step.job["spec"]["queue"],
            Text(history.phase, style=_COLOURS.get(history.phase, "")),
            bar(placed, step.members),
            Text(waits, style="yellow"),
        )
    return table


def _nodes(watcher: Watcher) -> Table:
    table = _table("NODE", "CPU IN USE")
    used = watcher.used()
    for node in sorted(watcher.objects(NODE), key=lambda n: str(n["metadata"]["name"])):
        name = node["metadata"]["name"]
        have = milli_value(node["status"]["allocatable"]["cpu"]) / 1000
        table.add_row(name, bar(used.get(name, 0) / 1000, have))
    return table


def summary(story: Story, watcher: Watcher, keep: str | None, dashboard: str, why: Why | None) -> RenderableType:
    """The results, their duration, why a job waited, and three commands to try next. `dashboard`: its address, or an
    empty string."""
    table = _table("JOB", "QUEUE", "PODS", "WAITED", "BOUND IN", "RAN", "NODES", "RESULT")
    for step in story.steps:
        h = watcher.histories[step.name]
        nodes = {p["spec"].get("nodeName") for p in watcher.pods(step.name)} - {None}
        table.add_row(
            step.name,
            step.job["spec"]["queue"],
            str(step.members),
            _seconds(h.first_bound, h.submitted),
            _seconds(h.last_bound, h.first_bound),
            _seconds(h.ended, h.first_bound),
            str(len(nodes)),
            Text(h.phase, style=_COLOURS.get(h.phase, "red")),
        )
    pods = sum(s.members for s in story.steps)
    spread = max((h.last_bound or 0.0) - (h.first_bound or 0.0) for h in watcher.histories.values())
    lines: list[Any] = [
        table,
        Text(),
        Text(f"{pods} pods of {len(story.steps)} jobs in {watcher.now:.1f} s."),
        Text(f"Every gang was bound as a whole, at most {spread:.2f} s from first to last."),
    ]
    if why is not None:
        lines += [Text(), *(Text(line) for line in why.lines()), Text("vcctl explain answers this for any job.")]
    if keep:
        lines += [
            Text(),
            Text("The cluster is still running. Try next:", style="bold"),
            Text(f"  export KUBECONFIG={keep}"),
            Text("  vcctl job run -N mine -r 40 -m 40 -R cpu=1 -L cpu=1   a gang that does not fit"),
            Text("  vcctl explain job mine                                why it waits, and what would help"),
            Text("  vcctl top                                             queues, jobs and nodes, live"),
            Text("volcano-py sandbox down --kubeconfig $KUBECONFIG stops it."),
        ]
    else:
        lines += [
            Text(),
            Text("Try next:", style="bold"),
            Text("  volcano-py demo --keep   the same, and keep the cluster for jobs of your own"),
            Text("  volcano-py sandbox up    a cluster for kubectl, vcctl and the Python client"),
            Text("  volcano-py doctor        check this machine and your cluster"),
            Text("In a checkout the programs are in .venv/bin; the README has a five-minute tour."),
        ]
    if not has_dashboard():
        lines.append(Text("  make dashboard                   the demo and its cluster in the browser"))
    elif keep and dashboard:
        lines.append(Text(f"  {dashboard}  the dashboard"))
    return Panel(Group(*lines), title="Summary", title_align="left", padding=(1, 2))


def _seconds(end: float | None, start: float | None) -> str:
    return "-" if end is None or start is None else f"{max(0.0, end - start):.1f} s"
