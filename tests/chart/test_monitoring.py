"""The dashboard and the alerts of the chart ask for metrics that the programs have, and alerts can fire."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import yaml

from tests.chart import promtool
from tests.chart.cluster import CHART
from volcano_py.controllers import metrics as controllers
from volcano_py.scheduler.runtime.metrics import Metrics
from volcano_py.scheduler.shadow.metrics import ShadowMetrics

NAME = re.compile(r"\bvolcano_\w+")
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}
OF_PLUGINS = {
    f"volcano_queue_{kind}_{unit}" for kind in ("allocated", "deserved") for unit in ("milli_cpu", "memory_bytes")
}
"""What proportion and capacity report; the registry has these only after a session."""


def expressions() -> Iterator[tuple[str, str]]:
    """Where an expression is, and the expression."""
    for panel in json.loads((CHART / "dashboards/volcano.json").read_text())["panels"]:
        yield from ((panel["title"], target["expr"]) for target in panel["targets"])
    for group in yaml.safe_load((CHART / "files/alerts.yaml").read_text())["groups"]:
        yield from ((rule["alert"], rule["expr"]) for rule in group["rules"])


def series() -> set[str]:
    """The names under which Prometheus stores the programs' metrics."""
    scheduler = Metrics().registry
    ShadowMetrics(scheduler)
    families = [*scheduler.collect(), *controllers.REGISTRY.collect()]
    return {family.name + suffix for family in families for suffix in SUFFIXES.get(family.type, ())}


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_every_metric_exists(where: str, expression: str) -> None:
    assert set(NAME.findall(expression)) <= series() | OF_PLUGINS, where


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_a_sum_is_not_matched_by_labels_it_does_not_have(where: str, expression: str) -> None:
    # `a and sum(b)` is always empty if `a` has labels: the sum has none.
    assert not re.search(r"\b(and|unless) sum\(", expression), where


def test_every_alert_has_a_case_for_promtool(monkeypatch: pytest.MonkeyPatch) -> None:
    assert promtool.tests()["tests"]
    more = promtool.rules()
    more["groups"][0]["rules"].append({"alert": "VolcanoNew", "expr": "vector(1)"})
    monkeypatch.setattr(promtool, "rules", lambda: more)
    with pytest.raises(ValueError, match="VolcanoNew"):
        promtool.tests()
