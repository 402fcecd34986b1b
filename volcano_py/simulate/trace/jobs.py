"""Jobs and nodes of a trace: openb (Alibaba's GPU pods as CSV) and SWF (the Standard Workload Format)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

GPU = "gpu-milli"
"""The resource of GPUs in a trace: thousandths, so that shares of a GPU count."""


class TraceError(ValueError):
    """A trace is invalid; the message contains file, line and field."""


class TraceJob(Struct):
    """A job: its `pods` must start together, and run for `duration` seconds."""

    name: str
    submitted: float
    """Seconds since the start of the trace."""
    duration: float
    user: str
    """The subject of fairness: the user of SWF, the service class of openb."""
    pods: int
    requests: dict[str, int]
    """The requests of one pod: `cpu` in thousandths, `memory` in MiB, GPU."""
    models: tuple[str, ...] = ()
    """The GPU models that it accepts; empty: any."""


class TraceNode(Struct):
    name: str
    capacity: dict[str, int]
    """As TraceJob.requests."""
    model: str = ""


def read_jobs(path: Path, cores: int, skip: bool = False) -> tuple[list[TraceJob], int]:
    """The jobs of a file by time, and the number of rows that were left out. A file name that ends with .swf is SWF,
    whose jobs have one pod per `cores` processors; others are openb. `skip`: leave out invalid rows.

    Otherwise raises TraceError for the first such row, and OSError.
    """
    rows = _swf(path, cores) if path.suffix == ".swf" else _openb(path)
    jobs: list[TraceJob] = []
    skipped = 0
    for row in rows:
        if isinstance(row, TraceJob):
            jobs.append(row)
        elif skip:
            skipped += 1
        else:
            raise TraceError(f"{path}:{row}; correct it, or leave such rows out with --skip")
    if not jobs:
        raise TraceError(f"{path} has no job; give a CSV file of openb, or an SWF file that is named *.swf")
    jobs.sort(key=lambda job: job.submitted)
    return jobs, skipped


def read_nodes(path: Path) -> list[TraceNode]:
    """The nodes of an openb file. Raises TraceError, OSError."""
    found = []
    for number, row in _csv(path, ("sn", "cpu_milli", "memory_mib", "gpu")):
        try:
            capacity = {"cpu": int(row["cpu_milli"]), "memory": int(row["memory_mib"]), GPU: 1000 * int(row["gpu"])}
        except ValueError as error:
            raise TraceError(f"{path}:{number}: {error}") from None
        found.append(TraceNode(row["sn"], capacity, row.get("model") or ""))
    if not found:
        raise TraceError(f"{path} has no node")
    return found


def _csv(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        try:
            missing = [column for column in columns if column not in (reader.fieldnames or ())]
            if missing:
                raise TraceError(f"{path}:1: the column {missing[0]} is missing; it must have {', '.join(columns)}")
            for row in reader:
                yield reader.line_num, {key: value or "" for key, value in row.items() if key is not None}
        except (csv.Error, UnicodeDecodeError) as error:
            raise TraceError(f"{path}: not a CSV file: {error}") from None


def _openb(path: Path) -> Iterable[TraceJob | str]:
    """Jobs, and for other rows the fault."""
    columns = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time", "deletion_time")
    for number, row in _csv(path, columns):
        for column in columns[1:]:
            if not row[column].replace(".", "", 1).removeprefix("-").isdecimal():
                yield f"{number}: {column} is {row[column]!r}, and must be a number"
                break
        else:
            begun = row.get("scheduled_time") or row["creation_time"]
            duration = float(row["deletion_time"]) - float(begun)
            if duration < 0:
                yield f"{number}: {row['name']} ends {-duration:g} s before it begins"
                continue
            requests = {
                "cpu": int(row["cpu_milli"]),
                "memory": int(row["memory_mib"]),
                GPU: int(row["num_gpu"]) * int(row["gpu_milli"]),
            }
            models = tuple(filter(None, (row.get("gpu_spec") or "").split("|")))
            user = row.get("qos") or "all"
            yield TraceJob(row["name"], float(row["creation_time"]), duration, user, 1, requests, models)


def _swf(path: Path, cores: int) -> Iterable[TraceJob | str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            text = line.partition(";")[0].split()
            if not text:
                continue
            try:
                fields = [float(field) for field in text]
            except ValueError as error:
                yield f"{number}: {error}"
                continue
            if len(fields) < 12:
                yield f"{number}: {len(fields)} fields; SWF has 18"
                continue
            submitted, duration, processors = fields[1], fields[3], int(fields[7] if fields[7] > 0 else fields[4])
            if submitted < 0 or duration < 0 or processors <= 0:
                what = ("submit time", "run time", "processors")[[submitted < 0, duration < 0, True].index(True)]
                yield f"{number}: job {text[0]} has no {what} (-1)"
                continue
            memory = max(int(fields[9] if fields[9] > 0 else 0) // 1024, 0)
            pods = -(-processors // cores)
            each = -(-processors // pods)
            requests = {"cpu": 1000 * each, "memory": memory * each, GPU: 0}
            yield TraceJob(f"job-{text[0]}", submitted, duration, f"user-{int(fields[11])}", pods, requests)
