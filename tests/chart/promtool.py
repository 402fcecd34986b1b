"""`make alerts`: Prometheus's own promtool judges the alerts and the dashboard's expressions of the chart.

    PROMTOOL=<program> python -m tests.chart.promtool

The rules are checked as the chart renders them, the expressions of the dashboard as recording rules, and each case of
alert_cases.yaml runs as a test of rules: which alerts fire on given series, and that all others are silent.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.chart.cluster import CHART

NAMESPACE = "volcano-system"
CASES = Path(__file__).with_name("alert_cases.yaml")
REMEDY = "install Prometheus's promtool, and put it on PATH or name it in PROMTOOL"


def rules() -> dict[str, Any]:
    """The alerts as the chart renders them for NAMESPACE."""
    text = (CHART / "files/alerts.yaml").read_text().replace("RELEASE_NAMESPACE", NAMESPACE)
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def recorded_expressions() -> dict[str, Any]:
    """The expressions of the dashboard as recording rules, with a value for each of Grafana's variables."""
    panels = json.loads((CHART / "dashboards/volcano.json").read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    return {
        "groups": [
            {
                "name": "dashboard",
                "rules": [
                    {"record": f"dashboard:{number}", "expr": re.sub(r"\$__?\w+", "5m", expression)}
                    for number, expression in enumerate(expressions)
                ],
            }
        ]
    }


def tests() -> dict[str, Any]:
    """The cases in promtool's form. Raises ValueError for an alert that no case expects, or that does not exist."""
    data = yaml.safe_load(CASES.read_text())
    alerts = [rule["alert"] for group in rules()["groups"] for rule in group["rules"]]
    expected = {alert for case in data["cases"] for alert in case.get("fire", ())}
    if expected != set(alerts):
        raise ValueError(f"{CASES.name}: no case for, or no such alert: {sorted(expected ^ set(alerts))}")
    return {
        "rule_files": ["alerts.yaml"],
        "evaluation_interval": "1m",
        "tests": [_test(case, data, alerts) for case in data["cases"]],
    }


def _test(case: dict[str, Any], data: dict[str, Any], alerts: list[str]) -> dict[str, Any]:
    values = {_series(entry["series"], data["pod"]): entry["values"] for entry in data["running"]}
    for name in case.get("without", ()):
        del values[_series(name, data["pod"])]
    values |= {_series(entry["series"], data["pod"]): entry["values"] for entry in case.get("series", ())}
    fire = case.get("fire", ())
    return {
        "name": case["name"],
        "interval": "1m",
        "input_series": [{"series": series, "values": text} for series, text in values.items()],
        # ALERTS has a series for each alert that fires, whatever its labels are.
        "promql_expr_test": [
            {
                "expr": f'count by (alertname) (ALERTS{{alertname="{alert}", alertstate="firing"}})',
                "eval_time": case["at"],
                "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if alert in fire else [],
            }
            for alert in alerts
        ],
    }


def _series(text: str, pod: str) -> str:
    """A series with the labels of the scheduler's pod; a label of its own replaces one of these."""
    name, _, own = text.rstrip("}").partition("{")
    labels = dict(re.findall(r'(\w+)="([^"]*)"', pod)) | dict(re.findall(r'(\w+)="([^"]*)"', own))
    return name + "{" + ", ".join(f'{key}="{value}"' for key, value in labels.items()) + "}"


def _runs(promtool: str, folder: Path) -> Iterator[int]:
    for arguments in (
        ("check", "rules", "alerts.yaml"),
        ("check", "rules", "dashboard.yaml"),
        ("test", "rules", "cases.yaml"),
    ):
        print(f"promtool {' '.join(arguments)}", flush=True)
        yield subprocess.run((promtool, *arguments), cwd=folder, check=False).returncode


def main() -> int:
    """Write the files, run promtool on them. Returns the exit status: 2 without promtool."""
    promtool = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if promtool is None or not os.access(promtool, os.X_OK):
        print(f"promtool is not installed: {REMEDY}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, data in (("alerts", rules()), ("dashboard", recorded_expressions()), ("cases", tests())):
            (folder / f"{file}.yaml").write_text(yaml.safe_dump(data, sort_keys=False, width=1000))
        return max(_runs(promtool, folder))


if __name__ == "__main__":
    sys.exit(main())
