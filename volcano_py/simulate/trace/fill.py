"""Filling a cluster: pods of a trace arrive in random order and stay, until more GPUs are requested than there are.

The inflation test of FGD (Weng et al., USENIX ATC 2023). A job that does not start in the cycle after its arrival is
withdrawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from volcano_py.scheduler.framework.config import Configuration
from volcano_py.simulate.trace.engine import Engine, Outcome
from volcano_py.simulate.trace.jobs import GPU, TraceError, TraceJob, TraceNode

REQUESTED = 1.3
"""GPUs that are requested in all, as a multiple of those that exist."""
FIRST_WAIT, AT_THE_END = "GPU allocated at the first wait", "GPU allocated at arrivals of 130 %"
_BATCH = 50
_FOREVER = 1e10


def arrivals(jobs: Sequence[TraceJob], nodes: Sequence[TraceNode], seed: int) -> list[TraceJob]:
    """Jobs of a trace in random order, until they have requested 130 % of the GPUs. Raises TraceError."""
    capacity = gpus_of(nodes)
    if not capacity or not any(job.requests.get(GPU) for job in jobs):
        raise TraceError("--arrivals fill needs GPUs: the nodes have none, or no job requests one")
    random, arriving, requested = Random(seed), list[TraceJob](), 0
    while requested < REQUESTED * capacity:
        job = random.choice(jobs)
        number = len(arriving)
        arriving.append(
            msgspec.structs.replace(
                job, name=f"{number}-{job.name}", submitted=float(number // _BATCH), duration=_FOREVER
            )
        )
        requested += job.pods * job.requests.get(GPU, 0)
    return arriving


def gpus_of(nodes: Sequence[TraceNode]) -> int:
    """In thousandths."""
    return sum(node.capacity.get(GPU, 0) for node in nodes)


def fill(
    jobs: Sequence[TraceJob], nodes: Sequence[TraceNode], configuration: Configuration, seed: int
) -> tuple[Outcome, dict[str, float]]:
    """The outcome, and the shares of the GPUs that are allocated when a job waits for the first time and when 100 % and
    130 % of the GPUs have been requested."""
    arriving, capacity = arrivals(jobs, nodes, seed), gpus_of(nodes)
    engine = Engine(arriving, nodes, configuration, 1.0, seed)
    found: dict[str, float] = {}
    requested = 0
    for begin in range(0, len(arriving), _BATCH):
        batch = arriving[begin : begin + _BATCH]
        engine.advance(batch[0].submitted)
        requested += sum(job.pods * job.requests.get(GPU, 0) for job in batch)
        allocated = engine.used[GPU] / capacity
        waiting = engine.withdraw()
        if waiting:
            found.setdefault(FIRST_WAIT, allocated)
        if requested >= capacity:
            found.setdefault("GPU allocated at arrivals of 100 %", allocated)
    found[AT_THE_END] = engine.used[GPU] / capacity
    return engine.outcome, found
