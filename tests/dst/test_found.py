"""What the simulation has found, put back: it is found again, and so are faults in other rules that keep it safe.

Each has a quick test of its own beside the code; `python -m tests.dst.mutations` prints the whole table.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

MOST = 60
"""Runs within which these are found; others need up to 2,000."""


def mutation(name: str) -> None:
    command = [sys.executable, "-m", "tests.dst.mutations", "--most", str(MOST), "--name", name]
    done = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    (
        "a 409 on a deletion counts as deleted",  # a Job that restarts waited for a PodGroup that was never created
        "pauses of controllers follow the time of day",  # counters of queues stood still for an hour
        "what is lost stays assumed",  # capacity of plans that a dispatcher has dropped
        "a leader stays one",  # writes after another candidate has the Lease
        "a Lease is taken before it expires",  # two leaders
    ),
)
def test_the_simulation_finds(name: str) -> None:
    mutation(name)
