"""The example of docs/decisions-over-time.md in simulated time: the gang lands with the plugin, and not without."""

from __future__ import annotations

from benchmarks.landing import GANG, NODES, WITH, WITHOUT, frame, jobs, nodes
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.trace.engine import Outcome, replay


def played(conf: str) -> Outcome:
    found = replay(jobs(), nodes(), configuration(conf, False), 1.0)
    assert not found.faults
    return found


def test_a_gang_of_the_whole_cluster_lands_while_small_jobs_arrive() -> None:
    with_it, without = played(WITH), played(WITHOUT)
    last = max(job.submitted for job in jobs())
    assert without.started[GANG] > last, "it waits until no small job arrives any more"
    # submitted at 9 s, its patience ends after 4 s, and all that runs then has ended 10 s later; cycles are 1 s apart
    assert with_it.started[GANG] <= 9 + 4 + 10 + 2
    waits = [with_it.started[job.name] - job.submitted for job in jobs() if job.name != GANG]
    assert max(waits) < 60


def test_a_frame_has_what_runs_and_who_waits() -> None:
    def pod(name: str, node: str = "", phase: str = "Running") -> dict[str, object]:
        spec = {"nodeName": node} if node else {}
        return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase if node else "Pending"}}

    pods = [pod("small-01-w-0", "node-0"), pod("small-02-w-0", "node-0"), pod("small-03-w-0")]
    gang = [pod(f"gang-w-{i}") for i in range(NODES)]
    assert frame(3, [*pods, *gang]) == "  3 s  oooo  ....  ....  ....   1 small job waits; the gang waits"
    gang = [pod(f"gang-w-{i}", f"node-{i}") for i in range(NODES)]
    assert frame(12, gang) == " 12 s  ####  ####  ####  ####   0 small jobs wait; the gang runs"
    gang = [pod(f"gang-w-{i}", f"node-{i}", "Succeeded") for i in range(NODES)]
    assert frame(30, [*pods[:1], *gang]) == " 30 s  oo..  ....  ....  ....   0 small jobs wait; the gang has ended"
