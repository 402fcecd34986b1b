"""The same history results in the same plans, byte by byte: repeated, with another hash seed, in another order, after a
restart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

CYCLES = 200


def history(hash_seed: str, *arguments: str) -> list[str]:
    """Each cycle's plan, as JSON."""
    command = [sys.executable, "-m", "tests.scheduler.churn", "--seed", "7", "--cycles", str(CYCLES), *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, timeout=300)
    return done.stdout.splitlines()


@pytest.mark.slow
def test_two_hundred_cycles_are_reproducible() -> None:
    first = history("0")
    assert len(first) == CYCLES
    kinds = Counter(op["op"] for line in first for op in json.loads(line))
    assert kinds["bind"] > 2 * CYCLES and kinds["evict"] > CYCLES // 4, kinds
    assert history("12345") == first
    assert history("1", "--shuffle", "3") == first


@pytest.mark.slow
def test_a_restart_in_the_middle_changes_no_decision() -> None:
    """A new scheduler repeats Events, because it cannot read the earlier ones, and has not counted the rounds of
    evictions (eviction-back-off); everything else is equal."""

    def silent(lines: list[str]) -> list[list[dict[str, object]]]:
        return [[op for op in json.loads(line) if op["op"] != "event"] for line in lines]

    off = ("--without", "eviction-back-off")
    assert silent(history("0", "--restart", str(CYCLES // 2), *off)) == silent(history("0", *off))
