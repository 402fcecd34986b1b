"""The Grafana dashboard of the chart: panels for the metrics in docs/metrics.md."""

from __future__ import annotations

from typing import Any

_PANELS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("Leading scheduler", "short", {"{{pod}}": "volcano_py_leading"}),
    ("Cycles per second", "short", {"{{pod}}": "rate(volcano_py_cycles_total[5m])"}),
    (
        "Cycle duration",
        "ms",
        {
            f"p{percent}": f"histogram_quantile({percent / 100}, sum by (le) "
            "(rate(volcano_e2e_scheduling_latency_milliseconds_bucket[5m])))"
            for percent in (50, 95)
        },
    ),
    ("Binds per second", "short", {"{{result}}": "sum by (result) (rate(volcano_schedule_attempts_total[5m]))"}),
    ("Evictions per second", "short", {"statements": "rate(volcano_eviction_transactions_total[5m])"}),
    (
        "Actions, p95",
        "ms",
        {
            "{{action}}": "histogram_quantile(0.95, sum by (action, le) "
            "(rate(volcano_action_scheduling_latency_milliseconds_bucket[5m])))"
        },
    ),
    ("PodGroups pending by queue", "short", {"{{queue_name}}": "volcano_queue_pod_group_pending_count"}),
    ("PodGroups running by queue", "short", {"{{queue_name}}": "volcano_queue_pod_group_running_count"}),
    ("PodGroups inqueue by queue", "short", {"{{queue_name}}": "volcano_queue_pod_group_inqueue_count"}),
    ("CPU allocated by queue", "short", {"{{queue_name}}": "volcano_queue_allocated_milli_cpu / 1000"}),
    ("CPU deserved by queue", "short", {"{{queue_name}}": "volcano_queue_deserved_milli_cpu / 1000"}),
    ("Memory allocated by queue", "bytes", {"{{queue_name}}": "volcano_queue_allocated_memory_bytes"}),
    (
        "Rejected writes per second",
        "short",
        {"{{op}}": 'rate(volcano_py_operation_results_total{outcome="failed"}[5m])'},
    ),
    ("Objects that cannot be used", "short", {"{{kind}}": "volcano_py_quarantined_objects"}),
    ("Plugin faults", "short", {"{{plugin}}": "increase(volcano_py_plugin_faults_total[5m])"}),
    ("Failed reconciliations per second", "short", {"{{controller}}": "rate(volcano_py_reconcile_failures_total[5m])"}),
    ("Shadow mode: agreement", "percentunit", {"{{pod}}": "volcano_py_shadow_agreement"}),
    ("Shadow mode: differences", "short", {"{{reason}}": "increase(volcano_py_shadow_differences_total[5m])"}),
)
"""Title, unit, and legend to query of each panel."""
_COLUMNS, _WIDTH, _HEIGHT = 3, 8, 7


def dashboard() -> dict[str, Any]:
    """The dashboard in Grafana's import format."""
    return {
        "uid": "volcano-py",
        "title": "Volcano",
        "tags": ["volcano"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
        "panels": [_panel(number, *row) for number, row in enumerate(_PANELS)],
    }


def _panel(number: int, title: str, unit: str, queries: dict[str, str]) -> dict[str, Any]:
    row, column = divmod(number, _COLUMNS)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": title,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "expr": expr, "legendFormat": legend}
            for place, (legend, expr) in enumerate(queries.items())
        ],
    }
