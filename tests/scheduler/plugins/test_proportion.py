"""What proportion reports of queues."""

from __future__ import annotations

import pytest

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests


@pytest.mark.parametrize(("deviations", "reported"), [(None, {0.0}), ("parity", {1.0})])
def test_an_idle_cluster_has_no_overused_queue(deviations: str | None, reported: set[float]) -> None:
    """A queue that asks for nothing deserves nothing, and nothing is what it holds: that is no excess."""
    jobs = {"g": {"queue": "q", "min": 0, "pods": 0, "phase": "Inqueue"}}
    simulation = Simulation(manifests({"nodes": {"n1": {}}, "queues": {"q": {"weight": 1}}, "jobs": jobs}))
    conf = {"plugins": [["gang"], ["proportion"]]} | ({"deviations": deviations} if deviations else {})
    report = run_once(simulation.cluster, load(configuration(conf), REGISTRY.actions), now=0.0)
    over = {
        value for name, label, value in report.session.gauges if name == "queue_overused" and label["queue_name"] == "q"
    }
    assert over == reported
