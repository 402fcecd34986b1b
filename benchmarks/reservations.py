"""Waits of a synthetic batch trace: the shipped configuration, the one for batch clusters, and EASY in a small model.

    python -m benchmarks.reservations --seeds 10          # docs/decisions-over-time.md has the table

The seeds' loads are between 0.90 and 0.95. A ratio compares with the shipped configuration ("today") or with EASY, seed
by seed; the last rows have the median and the worst of all seeds.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.batch_model import Model, easy, read
from benchmarks.batch_traces import batch_trace
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.trace.engine import Outcome
from volcano_py.simulate.trace.figures import figures
from volcano_py.simulate.trace.jobs import TraceJob, TraceNode, read_jobs
from volcano_py.simulate.trace.side_by_side import replay_all

NODES, CORES = 64, 64
_CONF = Path(__file__).parent.parent / "conf"
LARGEST, MEAN, LONGEST, SLOWDOWN = "wait of the largest 5 %, p95", "wait, mean", "wait, max", "slowdown, mean"
BUSY = "cpu busy while jobs wait, mean"
HEAD = ("p95/today", "p95/EASY", "longest/EASY", "mean/today", "slowdown/today", "busy/today")


class Results(NamedTuple):
    """Of one trace: the jobs, the results by configuration (today, batch), and the waits with EASY."""

    jobs: list[TraceJob]
    outcomes: dict[str, Outcome]
    easy: dict[str, float]


def replayed(seed: int, load: float, processes: int | None, exact: bool = False) -> Results:
    """The results of one seed. `exact`: the limits for the scheduler are the run times; EASY has the stated ones."""
    text = batch_trace(seed, load, nodes=NODES, cores=CORES)
    with tempfile.NamedTemporaryFile("w", suffix=".swf") as file:
        file.write(with_exact_limits(text) if exact else text)
        file.flush()
        jobs, _ = read_jobs(Path(file.name), CORES)
    nodes = [TraceNode(f"node-{i}", {"cpu": 1000 * CORES, "memory": 2**30}) for i in range(NODES)]
    names = {"today": "volcano-scheduler.conf", "batch": "volcano-scheduler-batch.conf"}
    confs = {name: configuration((_CONF / file).read_text(), False) for name, file in names.items()}
    interval = max(1.0, (jobs[-1].submitted - jobs[0].submitted) / 2000)
    found = replay_all(jobs, nodes, confs, interval, processes=processes)
    model = read(text, CORES)
    started = Model(NODES, CORES, first=easy).run(model, interval)
    waits = {job.name: started[job.name] - job.submitted for job in model}
    return Results(list(jobs), {name: of.outcome for name, of in found.items()}, waits)


def with_exact_limits(text: str) -> str:
    """The same trace in SWF, with the run time of each job as its limit."""
    lines = []
    for line in text.splitlines():
        fields = line.split()
        if not line.startswith(";"):
            fields[8] = fields[3]
        lines.append(line if line.startswith(";") else " ".join(fields))
    return "\n".join(lines) + "\n"


def measured(seed: int, load: float, processes: int | None, exact: bool = False) -> tuple[float, ...]:
    """The ratios of one seed."""
    jobs, outcomes, waits = replayed(seed, load, processes, exact)
    today, batch = (figures(jobs, outcome) for outcome in outcomes.values())
    largest = sorted(jobs, key=lambda job: (-job.pods * job.requests["cpu"], job.submitted, job.name))
    of_easy = float(np.percentile([waits[job.name] for job in largest[: len(jobs) // 20]], 95))
    return (
        batch[LARGEST] / today[LARGEST],
        batch[LARGEST] / of_easy,
        batch[LONGEST] / max(waits.values()),
        batch[MEAN] / today[MEAN],
        batch[SLOWDOWN] / today[SLOWDOWN],
        batch[BUSY] / today[BUSY],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int)
    parser.add_argument("--exact", action="store_true", help="the limits are the run times")
    given = parser.parse_args()
    print("| seed | load |", " | ".join(HEAD), "|")
    rows = []
    for seed in range(1, given.seeds + 1):
        load = 0.90 + 0.005 * (seed % 11)
        rows.append(measured(seed, load, given.processes, given.exact))
        print(f"| {seed} | {load:.3f} |", " | ".join(f"{value:.2f}" for value in rows[-1]), "|", flush=True)
    columns = list(zip(*rows, strict=True))
    print("| median | |", " | ".join(f"{median(of):.2f}" for of in columns), "|")
    worst = [max(of) for of in columns[:-1]] + [min(columns[-1])]
    print("| worst | |", " | ".join(f"{value:.2f}" for value in worst), "|")


if __name__ == "__main__":
    main()
