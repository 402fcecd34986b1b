"""Synthetic batch traces in SWF: gangs of very different sizes, with limits as users state them.

Most jobs are small, and a few need the whole cluster; run times are spread over three orders of magnitude, up to a day.
Users state round limits, often several times what a job takes. A load of 0.92 means that the jobs request 92 % of the
core-seconds that the cluster has while they arrive.

    python -m benchmarks.batch_traces --seed 1 --load 0.92 > batch-1.swf
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator

HOUR = 3600
_LIMITS = tuple(m * 60 for m in (5, 10, 15, 30, 60, 120, 240, 480, 720, 1440, 2880))
"""The limits that users choose, in seconds."""
_LONGEST_RUN = 24 * HOUR
_WHOLE_NODES = 0.7
"""Share of the jobs that need whole nodes."""


def batch_trace(
    seed: int, load: float = 0.92, *, jobs: int = 800, nodes: int = 64, cores: int = 64, users: int = 20
) -> str:
    """A trace as text."""
    rng = random.Random(seed)
    shapes = [(_size(rng, nodes, cores), *_times(rng)) for _ in range(jobs)]
    work = sum(size * duration for size, duration, _ in shapes)
    span = work / (load * nodes * cores)
    gaps = [rng.expovariate(1.0) for _ in shapes]
    scale = span / sum(gaps)
    lines = [
        "; Version: 2.2",
        f"; Computer: synthetic, {nodes} nodes of {cores} cores",
        f"; MaxJobs: {jobs}",
        f"; MaxNodes: {nodes}",
        f"; Note: seed {seed}, load {load}",
    ]
    time = 0.0
    weights = [1 / (user + 1) for user in range(users)]
    for number, ((size, duration, limit), gap) in enumerate(zip(shapes, gaps, strict=True), 1):
        time += gap * scale
        user = rng.choices(range(1, users + 1), weights)[0]
        lines.append(
            f"{number} {int(time)} -1 {duration} {size} -1 -1 {size} {limit} -1 1 {user} {1 + user % 4} -1 "
            f"{1 + user % 3} -1 -1 -1"
        )
    return "\n".join(lines) + "\n"


def _size(rng: random.Random, nodes: int, cores: int) -> int:
    """In cores: part of a node, or whole nodes; powers of two, the larger the rarer, up to the whole cluster."""
    if rng.random() >= _WHOLE_NODES:
        return min(cores, 1 << rng.randrange(int(math.log2(cores)) + 1))
    exponents = list(range(int(math.log2(nodes)) + 1))
    return cores * (1 << rng.choices(exponents, [1 / (e + 1) for e in exponents])[0])


def _times(rng: random.Random) -> tuple[int, int]:
    """How long a job runs, and its limit: a round one, of up to ten times as much."""
    duration = min(_LONGEST_RUN, max(60, int(rng.lognormvariate(math.log(HOUR), 1.3))))
    limit = duration * rng.choice((1, 1.2, 1.5, 2, 3, 5, 10))
    return duration, next((of for of in _LIMITS if of >= limit), _LIMITS[-1])


def _arguments() -> Iterator[tuple[str, object, object]]:
    yield "--seed", int, 1
    yield "--load", float, 0.92
    yield "--jobs", int, 800
    yield "--nodes", int, 64
    yield "--cores", int, 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, kind, default in _arguments():
        parser.add_argument(name, type=kind, default=default)  # type: ignore[arg-type]
    given = parser.parse_args()
    print(batch_trace(given.seed, given.load, jobs=given.jobs, nodes=given.nodes, cores=given.cores), end="")


if __name__ == "__main__":
    main()
