"""Gangs of which a node holds fewer pods than its capacity permits, beside a stream of small jobs that fills all nodes.

The promise: the first gang for which nodes are held starts once the jobs that ran then have ended. The bound is
computed from the jobs alone.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.scheduler.reservations.test_promises import CONF, STEP
from volcano_py.api import core
from volcano_py.api.codec import from_manifest, to_manifest
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.reservations import trial
from volcano_py.scheduler.framework.reservations.expected_ends import Estimates, expected_ends
from volcano_py.scheduler.framework.reservations.gang_members import members_of
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.cycles import Simulation
from volcano_py.simulate.trace import engine
from volcano_py.simulate.trace.jobs import TraceJob, TraceNode
from volcano_py.testing import table

GANG = "gang"


def kept_apart(pod: core.Pod, how: str) -> core.Pod:
    """The pod, with what keeps it apart from the others of its gang."""
    manifest: dict[str, Any] = to_manifest(pod)
    manifest["metadata"]["labels"] = {"job": GANG}
    term = {"labelSelector": {"matchLabels": {"job": GANG}}, "topologyKey": "kubernetes.io/hostname"}
    if how == "port":
        manifest["spec"]["containers"][0]["ports"] = [{"containerPort": 9000, "hostPort": 9000}]
    elif how == "affinity":
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        manifest["spec"].setdefault("affinity", {})["podAntiAffinity"] = required
    else:
        manifest["spec"]["topologySpreadConstraints"] = [{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
    return from_manifest(core.Pod, manifest)


class Case:
    """Small jobs that keep all cores busy, and a gang with one pod for each node."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        small = rng.randint(5, 6)
        self.cores = [8 * small, *[small] * rng.randint(1, 3)]
        self.nodes = [TraceNode(f"n{i}", {"cpu": 1000 * n, "memory": 1000}) for i, n in enumerate(self.cores)]
        self.patience, self.longest = rng.choice((0, 30)), rng.choice((10, 30))
        lasting = 160
        often = 1.3 * sum(self.cores) * lasting / (0.75 * self.longest)
        self.jobs = [
            TraceJob(
                f"s{i}",
                i * lasting / often,
                rng.randint(self.longest // 2, self.longest),
                "u",
                1,
                SMALL,
                (),
                float(self.longest),
            )
            for i in range(int(often))
        ]
        requests = {"cpu": 1000 * (small - 1), "memory": 1}
        pods = len(self.nodes)
        self.jobs.append(TraceJob(GANG, 40.0, 10.0, "u", pods, requests, (), 20.0))
        text = CONF.format(
            most=1, patience=self.patience, large=0, oldest=self.patience, order="size", ratio=0, backfill="short"
        )
        self.configuration = configuration(text, False)
        self.bound = self.patience + self.longest + 3 * STEP


SMALL = {"cpu": 1000, "memory": 1}


@pytest.mark.parametrize("how", ["port", "affinity", "spread"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_a_gang_starts_once_what_runs_has_ended(seed: int, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pod_object = engine.pod_object

    def pod(job: TraceJob, *numbers: int) -> core.Pod:
        made = pod_object(job, *numbers)
        return kept_apart(made, how) if job.name == GANG else made

    tried, accepted = 0, trial._accepted

    def unchanged(session: Session, *rest: Any) -> Any:
        nonlocal tried
        before = state(session)
        found = accepted(session, *rest)
        for a, b in zip(before, state(session), strict=True):
            assert np.array_equal(a, b)
        tried += 1
        return found

    monkeypatch.setattr(engine, "pod_object", pod)
    monkeypatch.setattr(trial, "_accepted", unchanged)
    case = Case(seed)
    outcome = engine.replay(case.jobs, case.nodes, case.configuration, STEP)
    assert not outcome.faults
    waited = outcome.started[GANG] - 40.0
    assert waited <= case.bound
    assert tried


def state(session: Session) -> list[Any]:
    """What a trial must not change."""
    numbers = session.numbers
    counts = [tuple(job.counts) for job in session.jobs.values()]
    amounts = [part.copy() for part in (numbers.idle, numbers.used, numbers.releasing, numbers.pipelined)]
    return [*amounts, bytes(session.statuses), counts]


@pytest.mark.parametrize(("label", "limited"), [("a", True), ("b", False)])
def test_anti_affinity_of_other_pods_counts_for_those_that_it_selects(label: str, limited: bool) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    jobs = {
        "runs": {"phase": "Running", "each": {"cpu": 1, "runsOn": "n1", "spec": {"affinity": apart}}},
        "waits": {"each": {"cpu": 1, "labels": {"app": label}}},
    }
    conf = load(table.configuration({"actions": "enqueue", "plugins": [["gang", "predicates"]]}), REGISTRY.actions)
    cluster = Simulation(table.manifests({"nodes": {"n1": {"cpu": 4}}, "jobs": jobs})).cluster
    session = run_once(cluster, conf, 0.0, assume=False).session
    [members] = members_of(session, session.jobs["default/waits"], expected_ends(session, Estimates()))
    assert members.limited == limited
