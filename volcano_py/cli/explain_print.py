"""Prints the answer of `vcctl explain` to a terminal, at its full width."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from volcano_py.cli.explain_answer import Answer
from volcano_py.scheduler.explain.groups.group_rows import GroupRow

_MOST_MOMENTS = 12


def show(answer: Answer, console: Console) -> None:
    """Print verdict, blockers, timeline, changes that unblock the object, and notes."""
    console.print(Text(answer.verdict, style="bold"))
    if answer.blockers:
        of_jobs = any(b.job for b in answer.blockers)
        table = _table("#", *(["JOB"] if of_jobs else []), "REASON", "WHY")
        for number, b in enumerate(answer.blockers, 1):
            style = "" if of_jobs or number > 1 else "yellow"
            table.add_row(str(number), *([b.job] if of_jobs else []), Text(b.code, style=style), b.sentence)
        _section(console, "Waiting jobs" if of_jobs else "Blockers, in order", table)
    if answer.groups:
        _section(console, "Groups", _groups(answer.groups))
    if answer.unblock:
        table = _table("", "CHANGE")
        for help_ in answer.unblock:
            table.add_row("•", help_.text)
        _section(console, "What would unblock it (each was tried in a simulated cycle)", table)
    elif answer.searched and answer.blockers:
        console.print()
        console.print(Text("What would unblock it", style="bold underline"))
        console.print("No change that was tried in a simulated cycle lets it start. Remedies of the blockers:")
        table = _table("#", "REMEDY")
        for number, b in enumerate(answer.blockers, 1):
            table.add_row(str(number), b.remedy)
        console.print(table)
    if answer.timeline:
        table = _table("TIME", "WHAT")
        for moment in answer.timeline[-_MOST_MOMENTS:]:
            table.add_row(moment.time[:19] + "Z" if len(moment.time) > 20 else moment.time, moment.what)
        _section(console, "Timeline", table)
    for note in answer.notes:
        console.print(Text(f"note: {note}", style="dim"))


def _groups(rows: list[GroupRow]) -> Table:
    """The tree, with the label value of the nodes of each group that has a topology key."""
    keys = any(row.topology_key for row in rows)
    table = _table("GROUP", "HAS NODES", "STATE", *(["DOMAIN"] if keys else []))
    for row in rows:
        name = f"{'  ' * max(row.depth - 1, 0)}{'└ ' if row.depth else ''}{row.name}"
        domain = f"{row.topology_key}={row.domain}" if row.domain else row.topology_key
        style = {"incomplete": "yellow", "placed": "green"}.get(row.state, "")
        table.add_row(name, row.counts, Text(row.state, style=style), *([domain] if keys else []))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in columns:
        table.add_column(name, overflow="fold", no_wrap=name in ("#", "", "TIME", "REASON"))
    return table


def _section(console: Console, title: str, table: Table) -> None:
    console.print()
    console.print(Text(title, style="bold underline"))
    console.print(table)
