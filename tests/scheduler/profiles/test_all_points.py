"""Every extension point runs once, in order, and failures are undone in reverse order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.scheduler.profiles import all_points
from tests.scheduler.profiles.all_points import CALLS, AllPoints
from tests.scheduler.profiles.trial import Trial
from volcano_py.cli.main import main
from volcano_py.scheduler.profiles.cluster_events import BindEnded, PermitAllowed
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import Reserve
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Status

FIND = ["preEnqueue a", "preFilter a", "filter a n1", "filter a n2", "preScore a n1 n2", "score a n1", "score a n2"]
SEARCH = [*FIND, "normalizeScore a n1=0 n2=300"]
BIND = [f"{point} a n2" for point in ("reserve", "permit", "preBind", "bind", "postBind")]

POINTS = {
    "queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "AllPoints"}]},
    "bind": {"enabled": [{"name": "AllPoints"}]},
}
"""In place of PrioritySort, and before DefaultBinder."""


class Last(Reserve):
    """One more plugin that reserves, after AllPoints."""

    name = "Last"

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        CALLS.append(f"Last reserve {pod.name} {node}")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        CALLS.append(f"Last unreserve {pod.name} {node}")


def trial(*plugins: type[Reserve], hold: float = 0.0) -> Trial:
    CALLS.clear()
    t = Trial(AllPoints, *plugins, points=POINTS, arguments={"AllPoints": {"hold": hold}})
    t.node("n1")
    t.node("n2")
    return t


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    CALLS.clear()


def test_each_point_runs_once_in_order() -> None:
    t = trial()
    t.pod("a")
    assert t.settle() == {"a": "n2"}
    assert CALLS == SEARCH + BIND
    t.check()


def test_post_filter_runs_only_when_no_node_fits() -> None:
    t = trial()
    t.pod("a", labels={"fail": "filter"})
    t.run()
    assert [*FIND[:4], "postFilter a n1 n2"] == CALLS
    assert t.messages()["a"] == "0/2 nodes are available: 2 filter rejects. no new claims to deallocate, " + (
        "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod., AllPoints cannot help"
    )
    t.check()


@pytest.mark.parametrize("point", ["reserve", "permit", "preBind", "bind"])
def test_each_rejection_after_the_node_is_chosen_is_undone_in_reverse(point: str) -> None:
    t = trial(Last)
    t.pod("a", labels={"fail": point})
    t.run()
    begun = [c for c in BIND if c.split()[0] in ("reserve", "permit", "preBind", "bind")]
    begun = begun[: [c.split()[0] for c in begun].index(point) + 1]
    if point != "reserve":
        begun.insert(1, "Last reserve a n2")
    assert [*SEARCH, *begun, "Last unreserve a n2", "unreserve a n2"] == CALLS
    assert t.messages()["a"] == f"{point} rejects"
    t.check()


def test_a_binding_that_the_api_server_rejects_is_undone_in_reverse() -> None:
    t = trial(Last)
    t.pod("a")
    t.run()
    t.scheduler.handle(BindEnded("default/a", "conflict"), 0)
    assert CALLS[-3:] == ["Last unreserve a n2", "unreserve a n2", "preEnqueue a"]
    assert "postBind a n2" not in CALLS
    t.check()


def test_a_waiting_pod_continues_at_the_next_point() -> None:
    t = trial(hold=9)
    t.pod("a", labels={"wait": ""})
    t.run()
    assert [*SEARCH, *BIND[:2]] == CALLS
    t.bind(t.scheduler.handle(PermitAllowed("default/a", "AllPoints"), 3))
    assert CALLS == SEARCH + BIND
    t.check()


def test_a_pod_that_waits_too_long_is_undone() -> None:
    t = trial(hold=9)
    t.pod("a", labels={"wait": ""})
    t.run()
    t.tick(9)
    assert [*SEARCH, *BIND[:2], "unreserve a n2"] == CALLS
    t.check()


def test_a_rejection_before_the_queue_keeps_the_pod_out() -> None:
    t = trial()
    t.pod("a", labels={"fail": "preEnqueue"})
    t.run()
    assert CALLS == ["preEnqueue a"]
    t.check()


def test_simulate_profiles_runs_a_plugin_from_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "all_points.py").write_text(Path(all_points.__file__).read_text())
    calls = tmp_path / "calls"
    monkeypatch.setenv(all_points.REPORT, str(calls))
    plugins = {"multiPoint": {"enabled": [{"name": "AllPoints"}]}, **POINTS}
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": n}, "status": {"allocatable": amounts}}
        for n in ("n1", "n2")
    ]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "default", "uid": "a"},
        "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "i"}]},
    }
    case = {"id": "one", "config": {"profiles": [{"plugins": plugins}]}, "objects": [*nodes, pod], "until": 1}
    ran = CliRunner().invoke(
        main, ["simulate", "profiles", "--jsonl", "--plugins-dir", str(folder)], input=json.dumps(case)
    )
    assert json.loads(ran.stdout)["steps"][-1]["bound"] == {"default/a": "n2"}
    assert [json.loads(line) for line in calls.read_text().splitlines()] == SEARCH + BIND
