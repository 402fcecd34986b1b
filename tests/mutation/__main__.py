"""Run the tests once for each of a sample of faults, and say how many were found; exit code 1 below the goal."""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from tests.mutation.faults import faults

MODULES = [
    *(f"volcano_py.scheduler.plugins.{name}" for name in ("gang", "drf.plugin", "proportion")),
    *(f"volcano_py.scheduler.plugins.capacity.{name}" for name in ("plugin", "victims")),
    *(f"volcano_py.scheduler.actions.{name}" for name in ("preempt", "reclaim", "eviction.commit_evictions")),
]
TESTS = ["tests/scheduler/plugins", "tests/scheduler/actions", "tests/scenarios", "tests/scheduler/test_bad_input.py"]
LAST = ["tests/reference"]
GOAL = 0.75
_SECONDS = 120
"""A test run that takes longer hangs: found."""


def found(module: str, number: int, *tests: str) -> bool:
    """Whether a test fails on a module with a fault (number −1: as it is)."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "tests.mutation.plugin"]
    environment = {**os.environ, "MUTANT": f"{module}:{number}"}
    try:
        done = subprocess.run(
            [*command, "-p", "no:cacheprovider", *tests], env=environment, capture_output=True, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return True
    if done.returncode not in (0, 1, 2):
        sys.exit(f"pytest ended with {done.returncode}: {done.stdout.decode()[-2000:]}")
    return done.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--sample", type=int, default=120, help="how many faults to try; 0: all of them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    everything = []
    for module in MODULES:
        source = Path(module.replace(".", "/") + ".py").read_text()
        everything += [(module, i, f.line, f.what) for i, f in enumerate(faults(ast.parse(source)))]
    if any(found(module, -1, *TESTS, *LAST) for module in MODULES[:1]):
        print("The tests fail as they are; make them pass first (make test).")
        return 2
    sample = Random(options.seed).sample(everything, options.sample or len(everything))

    def try_one(fault: tuple[str, int, int, str]) -> bool:
        return found(*fault[:2], *TESTS) or found(*fault[:2], *LAST)

    killed, tried = Counter[str](), Counter[str]()
    with ThreadPoolExecutor(options.workers) as pool:
        for (module, _, line, what), dead in zip(sample, pool.map(try_one, sample), strict=True):
            name = module.rpartition(".")[2]
            tried[name] += 1
            killed[name] += dead
            if not dead:
                print(f"not found: {name}:{line}: {what}", flush=True)
    for name in tried:
        print(f"{name:12} {killed[name]:4} of {tried[name]:4} found")
    rate = killed.total() / tried.total()
    print(f"{killed.total()} of {tried.total()} faults found ({rate:.0%}), of {len(everything)} possible ones")
    return 0 if rate >= GOAL else 1


sys.exit(main())
