"""Texts of faults have file and line, and each line of a plugin is reported once."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from tests.scheduler.profiles.trial import Trial
from volcano_py.plugin import NodeView, Plugin, Session, Task
from volcano_py.scheduler.framework.callbacks import Fault, once_each
from volcano_py.scheduler.framework.source_line import line_of
from volcano_py.scheduler.profiles import faults
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import Status
from volcano_py.testing import Cluster

HERE = Path(__file__)


def line(text: str) -> str:
    number = next(i for i, found in enumerate(HERE.read_text().splitlines(), 1) if found.endswith(text))
    return f"{HERE.parent.name}/{HERE.name}:{number}"


class Fails(Plugin):
    name = "fails"

    def on_session_open(self, session: Session) -> None:
        session.add_predicate(self.predicate)

    def predicate(self, task: Task, node: NodeView) -> str | None:
        return self.lookup(task.name)

    def lookup(self, name: str) -> str:
        return {}[name]  # raises in the session


def test_a_rule_that_raises_for_every_pod_and_node_is_one_fault() -> None:
    cluster = Cluster(plugins=[Fails])
    for i in range(3):
        cluster.add_node(f"n{i}")
        cluster.add_job(f"j{i}", pods=2, cpu=1)
    decision = cluster.schedule(tiers=[["gang"], ["predicates", "fails"]])
    where = line("# raises in the session")
    assert len(decision.faults) == 1
    assert re.fullmatch(rf"fails predicate KeyError: 'j\d-\d' \({re.escape(where)}\)", decision.faults[0])
    assert not decision.bound


def test_the_line_is_in_the_plugin_also_if_a_library_raises() -> None:
    try:
        re.compile("(")  # raises in a library
    except re.error as e:
        assert line_of(e) == line("# raises in a library")
    assert line_of(ValueError("not raised")) == ""


def test_faults_are_grouped_by_line() -> None:
    found = [Fault("p", "x", f"E: {i}", str(i), "a.py:1") for i in range(3)] + [Fault("p", "x", "E: 1", "1", "a.py:2")]
    assert [(f.text, n) for f, n in once_each(found)] == [("E: 0 (a.py:1)", 3), ("E: 1 (a.py:2)", 1)]


class FailsInProfile(Filter):
    name = "FailsInProfile"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        raise ValueError(pod.name)  # raises in the profile


def test_a_plugin_of_a_profile_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    faults._logged.clear()
    t = Trial(FailsInProfile)
    t.node("n1")
    for name in "abc":
        t.pod(name)
    with caplog.at_level(logging.ERROR):
        t.settle()
    where = line("# raises in the profile")
    assert t.messages()["b"] == f'running Filter plugin "FailsInProfile": raised ValueError: b ({where})'
    assert [r.message for r in caplog.records] == [
        "profile plugin FailsInProfile raised at Filter; this line of the plugin is logged once"
    ]
