"""Several configurations replay the same trace, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

from msgspec import Struct

from volcano_py.api import scheduling
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.simulate.trace.engine import Outcome, replay
from volcano_py.simulate.trace.jobs import TraceJob, TraceNode


class Replayed(Struct):
    """The results of one configuration, and how long they took."""

    outcome: Outcome
    seconds: float


def replay_all(
    jobs: Sequence[TraceJob],
    nodes: Sequence[TraceNode],
    configurations: Mapping[str, Configuration],
    interval: float,
    *,
    seed: int = 0,
    queues: Sequence[scheduling.Queue] = (),
    processes: int | None = None,
) -> dict[str, Replayed]:
    """The results by name; `processes`: how many run at the same time, None: as many as there are cores."""
    most = min(len(configurations), processes or os.cpu_count() or 1)
    if most < 2:
        return {name: _replay(jobs, nodes, conf, interval, seed, queues) for name, conf in configurations.items()}
    # fork: plugins of other packages are registered in this process, and stay so in the others
    with ProcessPoolExecutor(most, mp_context=multiprocessing.get_context("fork")) as pool:
        running = {
            name: pool.submit(_replay, jobs, nodes, conf, interval, seed, queues)
            for name, conf in configurations.items()
        }
        return {name: future.result() for name, future in running.items()}


def _replay(
    jobs: Sequence[TraceJob],
    nodes: Sequence[TraceNode],
    configuration: Configuration,
    interval: float,
    seed: int,
    queues: Sequence[scheduling.Queue],
) -> Replayed:
    begun = time.monotonic()
    outcome = replay(jobs, nodes, configuration, interval, seed=seed, queues=queues)
    return Replayed(outcome, time.monotonic() - begun)
