"""vcctl fairshare: the order by the plugin's rule, and the command on a cluster."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Vcctl
from volcano_py.api.kinds import CONFIGMAP
from volcano_py.cli.fairshare_order import lines
from volcano_py.cli.job_table import job_table
from volcano_py.cli.job_view import describe
from volcano_py.cli.vcctl_fairshare import table
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.plugins.fairshare.usage import DecayedUsage, Owner, OwnerUsage, UsageDocument
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

HOUR = 3600.0


def queue(name: str, parent: str = "", weight: int = 1) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"weight": weight, **({"parent": parent} if parent else {})}}


QUEUES = [queue("root"), queue("ml", weight=2), queue("vision", "ml"), queue("speech", "ml"), queue("web", "root")]
USED = UsageDocument(
    at=1_767_225_600.0,
    half_life=168 * HOUR,
    owners=[
        OwnerUsage("vision", "ann", 4 * HOUR, 0.25),
        OwnerUsage("vision", "bob", 4 * HOUR, 0.0, 3.0),
        OwnerUsage("web", "cid", 5 * HOUR),
    ],
)


def test_queues_are_compared_below_their_parent_and_owners_in_their_queue() -> None:
    found = lines(USED, QUEUES)
    assert [(line.queue, line.owner, line.order) for line in found] == [
        ("ml", "", 1),  # 8 h by weight 2 are less than 5 h
        ("speech", "", 1),
        ("vision", "", 2),
        ("vision", "bob", 1),
        ("vision", "ann", 2),
        ("web", "", 2),
        ("web", "cid", 1),
    ]
    assert table(found).rows[0] == ["ml", "*", 1, "2", "67%", "8.00", "62%", "25.0%"]
    assert table(found).rows[3] == ["", "bob", 1, "3", "75%", "4.00", "50%", "0.0%"]


def test_what_is_held_counts_ahead_and_a_circle_of_parents_ends() -> None:
    ahead = UsageDocument(at=1.0, ahead=HOUR, owners=[OwnerUsage("a", "x", 0, 0.5), OwnerUsage("b", "y", 1000)])
    assert [line.queue for line in lines(ahead, [queue("a"), queue("b")]) if not line.owner] == ["b", "a"]
    # as the scheduler: the first of a circle is below root
    rows = [(line.queue, line.depth) for line in lines(ahead, [queue("a", "b"), queue("b", "a")]) if not line.owner]
    assert rows == [("a", 0), ("b", 1)]
    assert [line.queue for line in lines(ahead, [queue("a", "gone")])] == ["a", "a"]
    edited = UsageDocument(at=1.0, owners=[OwnerUsage("a", "x", 9.0, weight=0.0)])
    assert [line.weight for line in lines(edited, [queue("a")])] == [1, 1]


@pytest.mark.parametrize("seed", range(20))
def test_the_order_is_that_of_the_scheduler(seed: int) -> None:
    """Of several queues with one waiting job each, and capacity for one, the first of the table is served."""
    rng = random.Random(seed)
    names = ["a", "b", "c", "d"]
    specs: dict[str, Any] = {"p": {"weight": rng.randint(1, 3)}, "q": {"weight": rng.randint(1, 3)}}
    specs |= {name: {"weight": rng.randint(1, 3), "parent": rng.choice("pq")} for name in names}
    jobs = {f"j-{name}": {"queue": name, "each": {"cpu": 4}} for name in names}
    simulation = Simulation(manifests({"nodes": {"n1": {"cpu": 4}}, "queues": specs, "jobs": jobs}))
    usage = simulation.cluster.keep(DecayedUsage)
    usage.at = simulation.now
    usage.used = {Owner(name, "o"): float(rng.randint(1, 10_000)) for name in names}
    document = UsageDocument(
        simulation.now, owners=[OwnerUsage(o.queue, o.name, used) for o, used in usage.used.items()]
    )
    rows = lines(document, [queue("root"), *(queue(n, s.get("parent", ""), s["weight"]) for n, s in specs.items())])
    first = next(line.queue for line in rows if line.owner)
    text = configuration({"actions": "enqueue, allocate", "plugins": [["gang"], ["fairshare", "predicates"]]})
    report = run_once(simulation.cluster, load(text, REGISTRY.actions), simulation.now)
    assert [getattr(op, "group", "") for op in report.plan if type(op).__name__ == "Bind"] == [f"default/j-{first}"]


async def test_the_command_on_a_cluster(vcctl: Vcctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        Sandbox(0, components=(), controllers=None, path=tmp_path / "kubeconfig") as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        code, out = await vcctl("fairshare")
        assert code != 0 and "volcano-system/volcano-scheduler-history does not exist; the scheduler writes it" in out
        usage = DecayedUsage({Owner("default", "ann"): 7200.0}, {}, 1_767_225_600.0, half_life=168 * HOUR)
        text = json.dumps({"version": 1, "parts": {"fairshare": usage.document()}})
        metadata = {"namespace": "volcano-system", "name": "volcano-scheduler-history"}
        await client.create(CONFIGMAP, {"metadata": metadata, "data": {"history.json": text}}, "volcano-system")
        code, out = await vcctl("fairshare")
        assert code == 0 and [line.split()[:2] for line in out.splitlines()[:3]] == [
            ["Queue", "Owner"],
            ["default", "*"],
            ["ann", "1"],
        ]
        assert out.endswith("Usage at 2026-01-01T00:00:00Z, in hours of the whole cluster; it halves every 168 h.\n")
        code, out = await vcctl("fairshare", "-q", "nope")
        assert code != 0 and "queue 'nope' does not exist" in out
        code, out = await vcctl("fairshare", "-o", "json")
        assert json.loads(out)["lines"][1]["used"] == 7200.0


def job(name: str, phase: str = "Running", since: str = "2026-01-01T00:00:00Z", **task: Any) -> dict[str, Any]:
    status = {"state": {"phase": phase, "lastTransitionTime": since}}
    return {"metadata": {"name": name, "namespace": "x"}, "spec": {"tasks": [{"template": task}]}, "status": status}


def test_jobs_have_expected_ends_if_their_users_state_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_767_225_600.0 + 100)
    deadline = {"spec": {"activeDeadlineSeconds": 600}}
    stated = job("stated")
    stated["metadata"]["annotations"] = {"volcano.sh/max-run-time": "1h"}
    own = {"metadata": {"labels": {"kueue.x-k8s.io/max-exec-time-seconds": "60"}}}
    jobs = [stated, job("deadline", **deadline), job("late", **own), job("none"), job("waits", "Pending", **deadline)]
    shown = job_table(jobs, False, wide=True)
    assert shown.header[-1] == "ExpectedEnd"
    assert [row[-1] for row in shown.rows] == [
        "2026-01-01T01:00:00Z",
        "2026-01-01T00:10:00Z",
        "overdue",
        "<none>",
        "<none>",
    ]
    assert "ExpectedEnd" not in job_table([job("none")], False, wide=True).header
    assert "ExpectedEnd" not in job_table(jobs, False).header


def test_the_view_of_a_job_has_its_limit_and_that_it_was_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_767_225_600.0 + 100)
    limited = job("limited")
    limited["metadata"]["annotations"] = {
        "volcano.sh/max-run-time": "1h",
        "volcano.sh/on-max-run-time": "TerminateJob",
    }
    lines_of = describe(limited)
    assert lines_of[lines_of.index("  State:") :][1:5] == [
        "    Phase:\tRunning",
        "  Max Run Time:\t1h0m0s",
        "  On Max Run Time:\tTerminateJob",
        "  Expected End:\t2026-01-01T01:00:00Z",
    ]
    limited["status"]["state"] |= {"phase": "Terminated", "reason": "MaxRunTimeExceeded", "message": "the Job has run"}
    assert "    Reason:\tMaxRunTimeExceeded" in describe(limited) and "    Message:\tthe Job has run" in describe(
        limited
    )
    assert not any("Run Time" in line for line in describe(job("none")))
