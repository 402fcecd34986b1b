"""Synthetic batch traces in SWF: gangs of very different sizes, with limits as users state them.

Most jobs are small, and a few need a large part of the cluster; run times are spread over four orders of magnitude.
Users state round limits, often several times what a job takes; some jobs take exactly what was stated. A load of 0.92
means that the jobs request 92 % of the core-seconds that the cluster has while they arrive.

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
_LONGEST = _LIMITS[-1]


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
    """In cores: part of a node, or whole nodes."""
    kind = rng.random()
    if kind < 0.4:
        return min(cores, 1 << rng.randrange(int(math.log2(cores)) + 1))
    if kind < 0.94:  # powers of two, the larger the rarer
        exponents = list(range(max(1, int(math.log2(nodes)) - 2)))
        return int(cores * 2 ** rng.choices(exponents, [1 / (e + 1) for e in exponents])[0])
    return cores * rng.randint(max(1, nodes // 4), max(1, nodes * 3 // 4))


def _times(rng: random.Random) -> tuple[int, int]:
    """How long a job runs, and its limit."""
    duration = min(_LONGEST, max(30, int(rng.lognormvariate(math.log(1.2 * HOUR), 1.5))))
    if rng.random() < 0.15:  # ended at its limit
        limit = next(of for of in _LIMITS if of >= duration)
        return limit, limit
    wanted = duration * rng.choice((1.1, 1.5, 2, 3, 5, 10))
    return duration, next((of for of in _LIMITS if of >= wanted), _LONGEST)


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
