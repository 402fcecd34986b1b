"""A few runs of the simulation, the same run twice, and the parts that judge and reduce runs.

The runs have a process of their own: the simulation replaces the clock before the product is imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date

import pytest

from tests.dst.oracle import Oracle, amount

SEED = int(os.environ.get("DST_SEED", date.today().strftime("%Y%m%d"))) * 1000
"""New runs each day for the slow suite; set it to repeat a day."""
MANY = int(os.environ.get("DST_SEEDS", "300"))


def simulate(*arguments: str) -> str:
    """The output of a batch of runs; fails with it if one of them went wrong."""
    command = [sys.executable, "-m", "tests.dst", *arguments]
    done = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout


def test_a_few_runs_twice() -> None:
    """Nothing goes wrong, and the logs are equal: a run can be repeated by its seed."""
    printed = simulate("--seeds", "2", "--steps", "25", "--twice")
    assert "wrong: none" in printed


@pytest.mark.slow
def test_the_same_run_in_another_process() -> None:
    """Byte by byte, also after another run."""
    first = simulate("--seed", "7", "--log")
    again = simulate("--seeds", "2", "--first", "6", "--log")
    lines = [text.splitlines() for text in (first, again)]
    assert len(lines[0]) > 500
    begin = lines[1].index(lines[0][20]) - 20
    assert lines[0][:-3] == lines[1][begin : begin + len(lines[0]) - 3]


@pytest.mark.slow
def test_many_runs() -> None:
    """New ones each day. A failure prints its seed: python -m tests.dst --seed SEED --shrink."""
    print(simulate("--seeds", str(MANY), "--first", str(SEED), "--quiet", "--jobs", "1"))


# ---- the oracle on histories with a known answer ------------------------------------------------------------------


def node(cpu: str) -> dict[str, object]:
    return {"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": {"cpu": cpu, "pods": "9"}}}


def pod(name: str, cpu: str, on: str = "", **parts: object) -> dict[str, object]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"metadata": metadata, "spec": {"containers": [container], "nodeName": on}, "status": {}, **parts}


def bound(*pods: dict[str, object], allocatable: str = "2", writer: str = "dispatcher") -> list[str]:
    """What the oracle says about these binds."""
    oracle = Oracle()
    oracle.observe(0.0, "node", "nodes", "ADDED", node(allocatable))
    for one in pods:
        oracle.observe(1.0, writer, "pods", "MODIFIED", one)
    return oracle.violations


def test_the_oracle_finds_an_overcommitted_node() -> None:
    assert bound(pod("a", "1", "n"), pod("b", "1", "n")) == []
    assert "node n has 2 cpu, and 2.5 are bound" in bound(pod("a", "1", "n"), pod("b", "1500m", "n"))[0]


def test_what_a_rival_has_bound_just_now_is_no_fault() -> None:
    assert bound(pod("a", "1", "n"), pod("b", "1500m", "n"), writer="rival") == []


def test_the_oracle_finds_a_pod_that_moves() -> None:
    assert "moved from node n to m" in bound(pod("a", "1", "n"), pod("a", "1", "m"))[0]


def test_the_oracle_finds_an_eviction_without_a_reason() -> None:
    leaving = pod("a", "1", "n")
    leaving["metadata"] = {**leaving["metadata"], "deletionTimestamp": "now"}  # type: ignore[dict-item]
    assert "without the condition DisruptionTarget" in bound(pod("a", "1", "n"), leaving)[0]


def test_the_oracle_finds_a_pod_on_a_node_that_does_not_exist() -> None:
    assert "which does not exist" in bound(pod("a", "1", "m"))[0]


def test_the_oracle_counts_requests() -> None:
    oracle = Oracle()
    for i in range(100):
        oracle.requested(i / 10, "controllers", "PUT status", "jobs", "default/j")
    assert len(oracle.violations) == 1


@pytest.mark.parametrize(("text", "value"), [("1500m", 1.5), ("2Gi", 2**31), ("3", 3), ("1k", 1000)])
def test_quantities(text: str, value: float) -> None:
    assert amount(text) == value
