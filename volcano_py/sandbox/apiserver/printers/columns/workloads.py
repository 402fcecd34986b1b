"""Columns of apps/v1, batch/v1 and ReplicationControllers. Kubernetes: pkg/printers/internalversion."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.printers.cells import AGE, NAME, Column, Printer, age, human_duration, since
from volcano_py.sandbox.apiserver.printers.columns.core import name, pairs
from volcano_py.sandbox.apiserver.schema import codec

Object = dict[str, Any]

_WIDE = (Column("Containers", priority=1), Column("Images", priority=1))
_SELECTOR = Column("Selector", priority=1)
_OPERATORS = {"In": "in", "NotIn": "notin"}


def _template(spec: Object) -> list[str]:
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or []
    return [",".join(c["name"] for c in containers), ",".join(c.get("image", "") for c in containers)]


def selector_text(selector: Object | None) -> str:
    """A LabelSelector as text."""
    if selector is None:
        return "<none>"
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for row in selector.get("matchExpressions") or []:
        operator = row["operator"]
        if operator in _OPERATORS:
            parts.append(f"{row['key']} {_OPERATORS[operator]} ({','.join(sorted(row.get('values') or []))})")
        else:
            parts.append(row["key"] if operator == "Exists" else "!" + row["key"])
    return ",".join(parts) or "<none>"


def _deployment(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    return [
        name(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj),
        *_template(spec),
        selector_text(spec.get("selector")),
    ]


def _replica_set(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    return [
        name(obj),
        spec.get("replicas", 1),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj),
        *_template(spec),
        selector_text(spec.get("selector")),
    ]


def _stateful_set(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    return [
        name(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}",
        age(obj),
        *_template(spec),
    ]


def _daemon_set(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    return [
        name(obj),
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        pairs(((spec.get("template") or {}).get("spec") or {}).get("nodeSelector")),
        age(obj),
        *_template(spec),
        selector_text(spec.get("selector")),
    ]


def _job(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    done, wanted = status.get("succeeded", 0), spec.get("completions")
    if wanted is not None:
        completions = f"{done}/{wanted}"
    else:
        parallel = spec.get("parallelism", 0)
        completions = f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"
    start, end = status.get("startTime"), status.get("completionTime")
    duration = ""
    if start:
        duration = since(start) if not end else _between(start, end)
    conditions = {c["type"] for c in status.get("conditions") or [] if c["status"] == "True"}
    word = "Running"
    if obj["metadata"].get("deletionTimestamp"):
        word = "Terminating"
    for type_, text in (("Complete", "Complete"), ("Failed", "Failed")):
        if type_ in conditions:
            word = text
            break
    else:
        if word == "Running":
            for type_ in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
                word = type_ if type_ in conditions else word
    return [
        name(obj),
        word,
        completions,
        duration,
        age(obj),
        *_template(spec),
        selector_text(spec.get("selector")),
    ]


def _between(start: str, end: str) -> str:
    return human_duration((codec.parse_time(end) - codec.parse_time(start)).total_seconds())


def _cron_job(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    last = status.get("lastScheduleTime")
    return [
        name(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or "<none>",
        str(bool(spec.get("suspend"))),
        len(status.get("active") or []),
        since(last) if last else "<none>",
        age(obj),
        *_template((spec.get("jobTemplate") or {}).get("spec") or {}),
        selector_text(((spec.get("jobTemplate") or {}).get("spec") or {}).get("selector")),
    ]


PRINTERS = {
    "deployments.apps": Printer(
        (NAME, Column("Ready"), Column("Up-to-date"), Column("Available"), AGE, *_WIDE, _SELECTOR), _deployment
    ),
    "replicasets.apps": Printer(
        (
            NAME,
            Column("Desired", "integer"),
            Column("Current", "integer"),
            Column("Ready", "integer"),
            AGE,
            *_WIDE,
            _SELECTOR,
        ),
        _replica_set,
    ),
    "statefulsets.apps": Printer((NAME, Column("Ready"), AGE, *_WIDE), _stateful_set),
    "daemonsets.apps": Printer(
        (
            NAME,
            Column("Desired", "integer"),
            Column("Current", "integer"),
            Column("Ready", "integer"),
            Column("Up-to-date", "integer"),
            Column("Available", "integer"),
            Column("Node Selector"),
            AGE,
            *_WIDE,
            _SELECTOR,
        ),
        _daemon_set,
    ),
    "jobs.batch": Printer(
        (NAME, Column("Status"), Column("Completions"), Column("Duration"), AGE, *_WIDE, _SELECTOR), _job
    ),
    "cronjobs.batch": Printer(
        (
            NAME,
            Column("Schedule"),
            Column("Timezone"),
            Column("Suspend", "boolean"),
            Column("Active", "integer"),
            Column("Last Schedule"),
            AGE,
            *_WIDE,
            _SELECTOR,
        ),
        _cron_job,
    ),
}
