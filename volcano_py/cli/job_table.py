"""The table of jobs. Volcano: `vcctl job list`, with the same columns; -o wide adds some."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from volcano_py.api import names
from volcano_py.api.kinds import JOB
from volcano_py.api.meta import format_time, parse_time
from volcano_py.cli.columns import Table, age, widest
from volcano_py.cli.listing import Listing
from volcano_py.cli.selection import split

Manifest = dict[str, Any]
_HEADER = (
    "Name",
    "Creation",
    "Phase",
    "JobType",
    "Replicas",
    "Min",
    "Pending",
    "Running",
    "Succeeded",
    "Failed",
    "Unknown",
    "RetryCount",
)
_WIDTHS = (15, 12, 12, 12, 6, 10, 10, 12, 10, 12, 10)
_OPTIONAL = ("JobType", "RetryCount", "Unknown", "Creation", "Replicas", "Failed", "Succeeded")
_WIDE = ("Queue", "Scheduler", "PriorityClass", "Age")


def listing(
    namespace: str | None,
    selector: str,
    label_selector: str,
    keep: Callable[[Manifest], bool],
) -> Listing:
    """The jobs of a namespace (None: all) that match the options of a list command, and `keep`."""
    part, labels = split(selector, label_selector)
    return Listing(
        JOB,
        lambda jobs, _, wide: job_table(jobs, namespace is None, wide),
        namespace,
        labels,
        choose=lambda jobs: [j for j in jobs if part in j["metadata"]["name"] and keep(j)],
    )


def job_table(jobs: list[Manifest], namespaces: bool, wide: bool = False) -> Table:
    """The table; `namespaces`: with a namespace column."""
    header = [*_HEADER]
    rows = [job_row(j) for j in jobs]
    widths = [widest("Name", [j["metadata"]["name"] for j in jobs], 3), *_WIDTHS]
    if namespaces:
        found = [j["metadata"].get("namespace", "") for j in jobs]
        header, widths = ["Namespace", *header], [widest("Namespace", found, 3), *widths]
        rows = [[namespace, *row] for namespace, row in zip(found, rows, strict=True)]
    if wide:
        more, names_of = [_wide_cells(j) for j in jobs], [*_WIDE]
        ends = [expected_end(j) for j in jobs]
        if any(ends):
            names_of.append("ExpectedEnd")
            more = [[*cells, end or "<none>"] for cells, end in zip(more, ends, strict=True)]
        header += names_of
        widths[-1] += 3
        widths += [widest(name, [cells[i] for cells in more], 3) for i, name in enumerate(names_of)]
        rows = [[*row, *cells] for row, cells in zip(rows, more, strict=True)]
    return Table(header, rows, widths, () if wide else _OPTIONAL)


def job_row(j: Manifest) -> list[object]:
    """The columns of one job."""
    metadata, spec, status = j["metadata"], j.get("spec", {}), j.get("status") or {}
    return [
        metadata["name"],
        (metadata.get("creationTimestamp") or "0001-01-01")[:10],
        (status.get("state") or {}).get("phase", ""),
        (metadata.get("labels") or {}).get(names.JOB_TYPE) or "Batch",
        sum(t.get("replicas", 0) for t in spec.get("tasks") or ()),
        *(
            status.get(k, 0)
            for k in ("minAvailable", "pending", "running", "succeeded", "failed", "unknown", "retryCount")
        ),
    ]


def _wide_cells(j: Manifest) -> list[str]:
    spec = j.get("spec") or {}
    cells = [spec.get(key) or "<none>" for key in ("queue", "schedulerName", "priorityClassName")]
    return [*cells, age(j)]


def expected_end(j: Manifest) -> str:
    """When a running job is expected to end, by the limit that its user states; empty if it states none."""
    from volcano_py.scheduler.framework.reservations.stated_limits import limit_of_manifest

    state = (j.get("status") or {}).get("state") or {}
    since = state.get("lastTransitionTime")
    limit = limit_of_manifest(j) if state.get("phase") == "Running" and since else None
    if limit is None:
        return ""
    end = parse_time(since) + limit
    return format_time(end) if end > time.time() else "overdue"
