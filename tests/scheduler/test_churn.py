"""The same history results in the same plans, byte by byte: repeated, with another hash seed, in another order, after a
restart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy

import pytest

from tests.scheduler.churn import START, plans
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.model.plan import Event, Operation, PodCondition, PodGroupStatus
from volcano_py.scheduler.run_once import run_once
from volcano_py.simulate.cycles import Simulation

CYCLES = 200
STEPS = 500


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


@pytest.mark.slow
def test_each_cycle_decides_as_a_scheduler_that_has_just_started() -> None:
    """What is kept between cycles saves time only: at each of 500 steps of churn, a new model that is built from the
    objects alone results in the same binds, evictions, queue statuses and phases. Reasons are not compared: which of
    them was written last, and with which numbers, is kept on purpose."""
    fresh: list[list[object]] = []

    def begin(simulation: Simulation, conf: Configuration) -> None:
        new = Simulation(deepcopy([simulation.objects[key] for key in sorted(simulation.objects)]), raw=True, now=START)
        report = run_once(new.cluster, conf, simulation.now, 7)
        assert not report.faults, report.faults
        phases.update(
            {key: o["status"]["phase"] for (kind, key), o in simulation.objects.items() if kind == "PodGroup"}
        )
        fresh.append(decisions(report.plan, phases))

    phases: dict[str, str] = {}
    kinds: Counter[str] = Counter()
    for cycle, plan in enumerate(plans(7, STEPS, without="eviction-back-off", begin=begin)):
        decided = decisions(plan, phases)
        assert decided == fresh[cycle], f"cycle {cycle}"
        kinds.update(type(each).__name__ for each in decided)
    print(f"{STEPS} steps: {dict(kinds)}")
    assert len(fresh) == STEPS and kinds["Bind"] > STEPS and kinds["Evict"] > STEPS // 4, kinds


def decisions(plan: Sequence[Operation], phases: Mapping[str, str]) -> list[object]:
    """The operations without reasons: of a PodGroup's status, the phase if it is a new one."""
    found: list[object] = []
    for op in plan:
        if isinstance(op, PodGroupStatus):
            if op.status["phase"] != phases[f"{op.namespace}/{op.name}"]:
                found.append((op.namespace, op.name, op.status["phase"]))
        elif not isinstance(op, Event | PodCondition):
            found.append(op)
    return found
