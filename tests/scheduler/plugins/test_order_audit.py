"""The audit lines of fairshare: single cases, and random queues against what starts without the plugin."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.plugins.fairshare.usage import DecayedUsage, Owner
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

LINE = re.compile(r"fairshare: job default/(\S+) started before default/(\S+), which")


def job(owner: str = "ann", cpu: int = 4, **more: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"volcano.sh/owner": owner}}, "each": {"cpu": cpu}, **more}


def played(
    jobs: dict[str, Any], used: dict[tuple[str, str], float], *, cpu: int = 4, fair: bool = True, **more: Any
) -> tuple[set[str], list[str]]:
    """Who starts, and the lines."""
    plugins = [["priority", "gang"], [*(["fairshare"] if fair else []), "predicates"]]
    conf = configuration({"actions": "enqueue, allocate", "plugins": plugins})
    simulation = Simulation(manifests({"nodes": {"n1": {"cpu": cpu}}, "jobs": jobs, **more}))
    usage = simulation.cluster.keep(DecayedUsage)
    usage.at = simulation.now
    usage.used = {Owner(*owner): hours * 3600 for owner, hours in used.items()}
    report = run_once(simulation.cluster, load(conf, REGISTRY.actions), simulation.now)
    bound = {op.group.partition("/")[2] for op in report.plan if type(op).__name__ == "Bind"}
    return bound, report.session.audit


def test_a_job_of_an_owner_that_has_used_less() -> None:
    jobs = {"old": job("ann"), "new": job("bob")}
    bound, lines = played(jobs, {("default", "ann"): 3.0, ("default", "bob"): 0.5})
    assert bound == {"new"} and lines == [
        "fairshare: job default/new started before default/old, which was created earlier: by weight, owner bob has "
        "used 0.50 h of the cluster, and owner ann has used 3.00 h"
    ]


def test_a_job_of_a_queue_that_has_used_less() -> None:
    queues = {"team": {"weight": 2}, "a": {"parent": "team"}, "other": {}}
    jobs = {"old": job("ann", queue="a"), "new": job("bob", queue="other")}
    bound, lines = played(jobs, {("a", "ann"): 3.0, ("other", "bob"): 1.0}, queues=queues)
    assert bound == {"new"} and lines[0].endswith(
        "queue other has used 1.00 h of the cluster, and queue team has used 1.50 h"
    )


@pytest.mark.parametrize(
    "jobs",
    [
        {"old": job("ann"), "new": job("ann")},
        {"new": job("bob"), "old": job("ann")},
        {"old": job("ann", priority=1), "new": job("bob", priority=2)},
        {"old": job("ann", cpu=8), "new": job("bob")},
    ],
    ids=["the same owner", "it is older", "its priority is higher", "the other one would not fit instead"],
)
def test_no_line_where_the_order_is_not_the_reason(jobs: dict[str, Any]) -> None:
    _, lines = played(jobs, {("default", "ann"): 3.0, ("default", "bob"): 0.5})
    assert lines == []


@pytest.mark.parametrize("seed", range(15))
def test_each_start_before_an_older_job_has_a_line(seed: int) -> None:
    """Jobs of one size, so that a job that waits could have started instead of each that did."""
    rng = random.Random(seed)
    owners = {f"o{i}": rng.choice([0.0, 1.0, 50.0, 100.0]) for i in range(3)}
    names = {f"j{i}": rng.choice(list(owners)) for i in range(rng.randint(3, 8))}
    jobs = {name: job(owner) for name, owner in names.items()}
    used = {("default", owner): hours for owner, hours in owners.items()}
    cpu = 4 * rng.randint(1, 4)
    bound, lines = played(jobs, used, cpu=cpu)
    without, none = played(jobs, used, cpu=cpu, fair=False)
    assert none == [] and len(bound) == len(without)
    order = list(jobs)
    found = {match[1]: match[2] for line in lines if (match := LINE.match(line))}
    assert len(found) == len(lines)
    for name in bound:
        passed = [o for o in order[: order.index(name)] if o not in bound and names[o] != names[name]]
        assert (name in found) == bool(passed), (name, passed, lines)
        if passed:
            assert found[name] == passed[0] and (name not in without or passed[0] in without)
