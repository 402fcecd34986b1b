"""Jobs and nodes of a trace: openb (Alibaba's GPU pods as CSV) and SWF (the Standard Workload Format)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from msgspec import Struct

GPU = "gpu-milli"
"""The resource of GPUs in a trace: thousandths, so that shares of a GPU count."""

_LARGEST = 1e11
"""Of a number in a trace (seconds, thousandths, MiB): 3000 years, so that every time is a date."""
_LONGEST = 100_000
"""Of a line, in characters."""


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
    limit: float | None = None
    """How long it may run as its user has stated (SWF: the requested time), in seconds; None: not stated."""
    queue: str = ""
    """The queue that the trace names: `queue-N` of SWF, the service class of openb; empty: none."""
    cards: int = 0
    """How many GPU cards one pod uses."""
    share: int = 0
    """Of each of them, in thousandths."""


class TraceNode(Struct):
    name: str
    capacity: dict[str, int]
    """As TraceJob.requests."""
    model: str = ""


def read_jobs(path: Path, cores: int, skip: bool = False, timeless: bool = False) -> tuple[list[TraceJob], int]:
    """The jobs of a file by time, and the number of rows that were left out. A file name that ends with .swf is SWF,
    whose jobs have one pod per `cores` processors; others are openb. `skip`: leave out invalid rows. `timeless`: leave
    times out, which openb's variants do not have.

    Otherwise raises TraceError for the first such row, and OSError.
    """
    rows = _swf(path, cores) if path.suffix == ".swf" else _openb(path, timeless)
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
        problem = _problem(row, ("cpu_milli", "memory_mib", "gpu"))
        if problem:
            raise TraceError(f"{path}:{number}: {problem}")
        capacity = {
            "cpu": _whole(row["cpu_milli"]),
            "memory": _whole(row["memory_mib"]),
            GPU: 1000 * _whole(row["gpu"]),
        }
        found.append(TraceNode(row["sn"], capacity, row.get("model") or ""))
    if not found:
        raise TraceError(f"{path} has no node")
    return found


def _csv(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(_lines(file, path))
        try:
            missing = [column for column in columns if column not in (reader.fieldnames or ())]
            if missing:
                raise TraceError(f"{path}:1: the column {missing[0]} is missing; it must have {', '.join(columns)}")
            for row in reader:
                yield reader.line_num, {key: value or "" for key, value in row.items() if key is not None}
        except (csv.Error, UnicodeDecodeError) as error:
            raise TraceError(f"{path}: not a CSV file: {error}") from None


def _openb(path: Path, timeless: bool) -> Iterable[TraceJob | str]:
    """Jobs, and for other rows the fault."""
    columns: tuple[str, ...] = (
        "name",
        "cpu_milli",
        "memory_mib",
        "num_gpu",
        "gpu_milli",
        "creation_time",
        "deletion_time",
    )
    if timeless:
        columns = columns[:5]
    for number, row in _csv(path, columns):
        if timeless:
            row |= {"creation_time": "0", "deletion_time": "0", "scheduled_time": ""}
        begun = "scheduled_time" if row.get("scheduled_time") else "creation_time"
        problem = _problem(row, (*columns[1:], begun))
        if problem:
            yield f"{number}: {problem}"
            continue
        duration = float(row["deletion_time"]) - float(row[begun])
        if duration < 0:
            yield f"{number}: {row['name']} ends {-duration:g} s before it begins"
            continue
        requests = {
            "cpu": _whole(row["cpu_milli"]),
            "memory": _whole(row["memory_mib"]),
            GPU: _whole(row["num_gpu"]) * _whole(row["gpu_milli"]),
        }
        models = tuple(filter(None, (row.get("gpu_spec") or "").split("|")))
        user = row.get("qos") or "all"
        cards, share = _whole(row["num_gpu"]), _whole(row["gpu_milli"])
        of_gpu = (cards, share) if cards and share else (0, 0)
        yield TraceJob(
            row["name"], float(row["creation_time"]), duration, user, 1, requests, models, None, user, *of_gpu
        )


def _problem(row: dict[str, str], columns: Iterable[str]) -> str:
    """What is wrong with the numbers of a row; empty: nothing."""
    for column in columns:
        text = row[column]
        if not text.replace(".", "", 1).removeprefix("-").isdecimal():
            return f"{column} is {text!r}, and must be a number"
        if not 0 <= float(text) <= _LARGEST:
            return f"{column} is {text}, and must be from 0 to {_LARGEST:.0e}"
    return ""


def _whole(text: str) -> int:
    return int(float(text))


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """The lines of a file, of bounded length."""
    number = 0
    while line := file.readline(_LONGEST):
        number += 1
        if len(line) == _LONGEST:
            raise TraceError(f"{path}:{number}: the line has {_LONGEST:,} characters or more; is it a trace?")
        yield line


def _swf(path: Path, cores: int) -> Iterable[TraceJob | str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(_lines(file, path), 1):
            text = line.partition(";")[0].split()
            if not text:
                continue
            try:
                fields = [float(field) for field in text]
            except ValueError as error:
                yield f"{number}: {error}"
                continue
            if not all(abs(field) <= _LARGEST for field in fields):
                yield f"{number}: a number is not finite, or above {_LARGEST:.0e}"
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
            limit = fields[8] if fields[8] > 0 else None
            queue = f"queue-{int(fields[14])}" if len(fields) > 14 and fields[14] > 0 else ""
            user = f"user-{int(fields[11])}"
            yield TraceJob(f"job-{text[0]}", submitted, duration, user, pods, requests, (), limit, queue)
