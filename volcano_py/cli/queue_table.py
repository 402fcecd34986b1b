"""The table of queues. Volcano: `vcctl queue list`.

The counts are those of the existing PodGroups, and of the single pods without one, which only `status` of a queue
contains: it is some seconds old.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.api.kinds import PODGROUP, QUEUE
from volcano_py.cli.columns import Table, amounts, widest
from volcano_py.cli.listing import Listing

Manifest = dict[str, Any]
Counts = dict[str, dict[str, int]]

_OPTIONAL = ("Unknown", "Completed")
_WIDE = ("Reclaimable", "Priority", "Guarantee", "Deserved", "Capability", "Allocated")
_PARENT = "Parent"
HEADER = ("Name", "Weight", "State", _PARENT, "Inqueue", "Pending", "Running", "Unknown", "Completed")
"""The columns of vcctl."""
SHORT = ("Name", "Weight", "State", "Inqueue", "Pending", "Running", "Unknown")
"""The columns of vqueues."""
_PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")


def listing(columns: tuple[str, ...], label_selector: str = "", name: str = "") -> Listing:
    """All queues, or the queue with this name, with these columns."""
    return Listing(
        QUEUE,
        lambda queues, groups, wide: queue_table(queues, count(groups, queues), columns, wide),
        label_selector=label_selector,
        choose=lambda queues: [q for q in queues if not name or q["metadata"]["name"] == name],
        beside=PODGROUP,
    )


def count(groups: Iterable[Manifest], queues: Iterable[Manifest]) -> Counts:
    """Number of PodGroups, and of pods that need none, by queue and phase."""
    counts: Counts = {}
    for group in groups:
        of_queue = counts.setdefault(group.get("spec", {}).get("queue", ""), {})
        phase = (group.get("status") or {}).get("phase", "")
        of_queue[phase] = of_queue.get(phase, 0) + 1
    for queue in queues:
        status, of_queue = queue.get("status") or {}, counts.setdefault(queue["metadata"]["name"], {})
        for phase in _PHASES:
            of_queue[phase] = max(of_queue.get(phase, 0), status.get(phase.lower()) or 0)
    return counts


def queue_table(queues: list[Manifest], counts: Counts, columns: tuple[str, ...] = HEADER, wide: bool = False) -> Table:
    """The table; `counts` as returned by `count`."""
    header, widths = [*columns], [25, *(8,) * (len(columns) - 1)]
    rows: list[list[object]] = []
    for q in queues:
        cells = _cells(q, counts.get(q["metadata"]["name"], {}))
        rows.append([cells[column] for column in columns])
    if wide:
        more = [_wide_cells(q) for q in queues]
        header += _WIDE
        # the columns of Volcano keep their width, but the last one must not touch the next column
        widths[-1] = max(widths[-1], len(columns[-1]) + 3)
        widths += [widest(name, [cells[i] for cells in more], 3) for i, name in enumerate(_WIDE)]
        rows = [[*row, *cells] for row, cells in zip(rows, more, strict=True)]
    return Table(header, rows, widths, () if wide else _OPTIONAL)


def _cells(q: Manifest, counts: dict[str, int]) -> dict[str, object]:
    spec = q.get("spec") or {}
    return {
        "Name": q["metadata"]["name"],
        "Weight": spec.get("weight", 0),
        "State": (q.get("status") or {}).get("state", ""),
        _PARENT: spec.get("parent", ""),
        **{phase: counts.get(phase, 0) for phase in _PHASES},
    }


def _wide_cells(q: Manifest) -> list[str]:
    spec = q.get("spec") or {}
    return [
        str(spec.get("reclaimable", True)).lower(),
        str(spec.get("priority", 0)),
        amounts((spec.get("guarantee") or {}).get("resource")),
        amounts(spec.get("deserved")),
        amounts(spec.get("capability")),
        amounts((q.get("status") or {}).get("allocated")),
    ]
