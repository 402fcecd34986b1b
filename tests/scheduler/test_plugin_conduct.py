"""Plugins that fail, are slow or do not return several cycles in a row."""

from __future__ import annotations

import pytest

from volcano_py.scheduler.framework.config import DEFAULT_TEXT, Configuration, load
from volcano_py.scheduler.protection.plugin_conduct import MOST_FAILURES, MOST_STUCK, RETRY, PluginConduct
from volcano_py.scheduler.run_once import REGISTRY

POINTS = {"nodeorder": ["node_order"], "predicates": ["predicate", "event_handler"], "gang": ["job_ready", "job_order"]}


class Trial:
    def __init__(self) -> None:
        self.reports: list[str] = []
        self.conduct = PluginConduct(self.reports.append, slow=10.0)
        self.given = load(DEFAULT_TEXT, REGISTRY.actions)
        self.now = 0.0

    def cycle(self, *failed: str, tried: bool = True, **seconds: float) -> None:
        self.now += 1
        self.applied()
        self.conduct.ended(failed, seconds, POINTS, tried, self.now)

    def applied(self) -> Configuration:
        return self.conduct.applied(self.given, self.now)

    def plugins(self) -> dict[str, str]:
        return {option.name: option.closed for tier in self.applied().tiers for option in tier}


def test_the_configuration_is_the_same_object_while_nothing_happens() -> None:
    trial = Trial()
    trial.cycle()
    assert trial.applied() is trial.given


@pytest.mark.parametrize("how", ["fails", "slow"])
def test_a_plugin_that_only_scores_is_switched_off_and_tried_again(how: str) -> None:
    trial = Trial()

    def bad() -> None:
        if how == "fails":
            trial.cycle("nodeorder")
        else:
            trial.cycle(nodeorder=11.0)

    for _ in range(MOST_FAILURES):
        assert "nodeorder" in trial.plugins()
        bad()
    assert "nodeorder" not in trial.plugins() and "predicates" in trial.plugins()
    assert trial.applied() is trial.applied()
    (text,) = trial.reports
    assert "plugin nodeorder" in text and "switched off" in text and trial.conduct.note() == text
    trial.now += RETRY + 1
    assert trial.applied() is trial.given
    bad()
    assert "nodeorder" not in trial.plugins()


@pytest.mark.parametrize("name", ["predicates", "gang"])
def test_any_other_plugin_stays_and_is_reported_once_until_it_works(name: str) -> None:
    trial = Trial()
    for _ in range(3 * MOST_FAILURES):
        trial.cycle(name)
    assert trial.plugins()[name] == ""
    (text,) = trial.reports
    assert "its rules are needed, so what it would permit is not done" in text
    trial.cycle()
    assert not trial.conduct.note()


def test_only_failures_in_a_row_count() -> None:
    trial = Trial()
    for _ in range(3):
        for _ in range(MOST_FAILURES - 1):
            trial.cycle("nodeorder")
        trial.cycle()
    assert "nodeorder" in trial.plugins() and not trial.reports


def test_a_cycle_without_work_shows_nothing() -> None:
    trial = Trial()
    for _ in range(MOST_FAILURES):
        trial.cycle(tried=False)
        trial.cycle("nodeorder")
    assert "nodeorder" not in trial.plugins()


@pytest.mark.parametrize(
    ("points", "state"), [(["node_order"], "off"), (["node_order", "pre_bind"], "closed"), ([], "closed")]
)
def test_a_plugin_that_does_not_return_is_off_or_closed(points: list[str], state: str) -> None:
    trial = Trial()
    trial.applied()
    for _ in range(MOST_STUCK):
        trial.conduct.stuck("drf", "a call of plugin drf has lasted 10 s", points, trial.now)
        trial.applied()
    if state == "off":
        assert "drf" not in trial.plugins()
    else:
        assert "did not return" in trial.plugins()["drf"]
    assert trial.conduct.conditions["drf"].state == state


def test_a_new_configuration_begins_again() -> None:
    trial = Trial()
    for _ in range(MOST_FAILURES):
        trial.cycle("nodeorder")
    assert "nodeorder" not in trial.plugins()
    trial.given = load(DEFAULT_TEXT, REGISTRY.actions)
    assert "nodeorder" in trial.plugins() and not trial.conduct.note()
