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

import numpy as np

from benchmarks.batch_model import Model, easy, read
from benchmarks.batch_traces import batch_trace
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.trace.figures import figures
from volcano_py.simulate.trace.jobs import TraceNode, read_jobs
from volcano_py.simulate.trace.side_by_side import replay_all

NODES, CORES = 64, 64
_CONF = Path(__file__).parent.parent / "conf"
LARGEST, MEAN, LONGEST, SLOWDOWN = "wait of the largest 5 %, p95", "wait, mean", "wait, max", "slowdown, mean"
BUSY = "cpu busy while jobs wait, mean"
HEAD = ("p95/today", "p95/EASY", "longest/EASY", "mean/today", "slowdown/today", "busy/today")


def measured(seed: int, load: float, processes: int | None) -> tuple[float, ...]:
    """The ratios of one seed."""
    text = batch_trace(seed, load, nodes=NODES, cores=CORES)
    with tempfile.NamedTemporaryFile("w", suffix=".swf") as file:
        file.write(text)
        file.flush()
        jobs, _ = read_jobs(Path(file.name), CORES)
    nodes = [TraceNode(f"node-{i}", {"cpu": 1000 * CORES, "memory": 2**30}) for i in range(NODES)]
    names = {"today": "volcano-scheduler.conf", "batch": "volcano-scheduler-batch.conf"}
    confs = {name: configuration((_CONF / file).read_text(), False) for name, file in names.items()}
    interval = max(1.0, (jobs[-1].submitted - jobs[0].submitted) / 2000)
    replayed = replay_all(jobs, nodes, confs, interval, processes=processes)
    today, batch = (figures(jobs, replayed[name].outcome) for name in names)
    model = read(text, CORES)
    started = Model(NODES, CORES, first=easy).run(model, interval)
    waits = {job.name: started[job.name] - job.submitted for job in model}
    largest = sorted(model, key=lambda job: (-job.pods * job.cores, job.submitted, job.name))[: len(model) // 20]
    of_easy = float(np.percentile([waits[job.name] for job in largest], 95))
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
    given = parser.parse_args()
    print("| seed | load |", " | ".join(HEAD), "|")
    rows = []
    for seed in range(1, given.seeds + 1):
        load = 0.90 + 0.005 * (seed % 11)
        rows.append(measured(seed, load, given.processes))
        print(f"| {seed} | {load:.3f} |", " | ".join(f"{value:.2f}" for value in rows[-1]), "|", flush=True)
    columns = list(zip(*rows, strict=True))
    print("| median | |", " | ".join(f"{median(of):.2f}" for of in columns), "|")
    worst = [max(of) for of in columns[:-1]] + [min(columns[-1])]
    print("| worst | |", " | ".join(f"{value:.2f}" for value in worst), "|")


if __name__ == "__main__":
    main()
