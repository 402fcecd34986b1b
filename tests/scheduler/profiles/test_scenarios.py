"""Small clusters, scheduled pod by pod in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from volcano_py.api.yaml_documents import FAST_LOADER
from volcano_py.simulate.profiles import Scenario, run

TABLE = [
    {"file": path.stem} | row
    for path in sorted(Path(__file__).parent.glob("*.yaml"))
    for row in yaml.load(path.read_text(), FAST_LOADER)
]
_CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['file']}: {row['name']}")
def test_scenario(row: dict[str, Any]) -> None:
    objects = [_node(n, f) for n, f in row["nodes"].items()] + row.get("objects", [])
    scenario = msgspec.convert(
        {
            "config": _CONFIG | _enabled(row.get("plugins", {})) | row.get("config", {}),
            "featureGates": row.get("gates", {}),
            "kubernetes": row.get("kubernetes", "1.36"),
            "objects": objects + [_pod(n, f) for n, f in row["pods"].items()],
            "steps": row.get("steps", []),
            "until": row.get("until", 1),
        },
        Scenario,
    )
    outcomes = run(scenario)
    assert len(outcomes) == len(row["expect"])
    for outcome, expected in zip(outcomes, row["expect"], strict=True):
        assert {k: _short(outcome[k]) for k in expected} == expected, outcome


def _enabled(plugins: dict[str, Any]) -> dict[str, Any]:
    """A configuration with these plugins; one that sorts the queue does so instead of PrioritySort."""
    enabled: dict[str, Any] = {"multiPoint": {"enabled": [{"name": n} for n in plugins]}}
    if "GangPermit" in plugins:
        enabled["multiPoint"]["disabled"] = [{"name": "PrioritySort"}]
    arguments = [{"name": n, "args": a} for n, a in plugins.items()]
    return {"profiles": [{"plugins": enabled, "pluginConfig": arguments}]} if plugins else {}


def _node(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    amounts = {"cpu": str(fields.get("cpu", 4)), "memory": "8Gi", "pods": "110"} | fields.get("holds", {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | fields.get("labels", {})},
        "spec": {"unschedulable": fields.get("cordoned", False)},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _pod(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    requests = {"cpu": str(fields.get("cpu", 1))} | fields.get("requests", {})
    spec: dict[str, Any] = {
        "schedulerName": fields.get("scheduler", "default-scheduler"),
        "priority": fields.get("priority", 0),
        "containers": [{"name": "main", "image": "i", "resources": {"requests": requests}}],
        "schedulingGates": [{"name": g} for g in fields.get("gates", [])],
        "affinity": fields.get("affinity", {}),
        "terminationGracePeriodSeconds": fields.get("grace", 30),
        "volumes": [_volume(v) for v in fields.get("volumes", [])],
        "resourceClaims": [{"name": c, "resourceClaimName": c} for c in fields.get("claims", [])],
    }
    if "node" in fields:
        spec["nodeName"] = fields["node"]
    if "never" in fields:
        spec["preemptionPolicy"] = "Never"
    if "group" in fields:
        spec["schedulingGroup"] = {"podGroupName": fields["group"]}
    created = f"2020-01-01T00:00:{fields.get('created', 0):02}Z"
    metadata = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": created}
    metadata |= {k: fields[k] for k in ("annotations", "ownerReferences") if k in fields}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | {"labels": fields.get("labels", {})},
        "spec": spec,
    }


def _volume(volume: str | dict[str, Any]) -> dict[str, Any]:
    """The name of a claim, or a volume of another sort."""
    if isinstance(volume, str):
        return {"name": volume, "persistentVolumeClaim": {"claimName": volume}}
    return {"name": "disk"} | volume


def _short(value: Any) -> Any:
    """Without the namespace."""
    if isinstance(value, dict):
        return {k.removeprefix("default/"): v for k, v in value.items()}
    return [k.removeprefix("default/") for k in value]
