"""The effect of a failed pod on its Job. Kubernetes: pod_failure_policy.go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

Object = dict[str, Any]


class Verdict(NamedTuple):
    """action: Count, Ignore, FailJob or FailIndex; message: the rule that matched."""

    action: str
    message: str = ""


COUNT = Verdict("Count")


def evaluate(policy: Object | None, pod: Object) -> Verdict:
    """The first rule that matches a failed pod; without one it counts."""
    for number, rule in enumerate((policy or {}).get("rules") or []):
        why = _by_exit_code(rule.get("onExitCodes"), pod) or _by_condition(rule.get("onPodConditions") or [], pod)
        if why:
            return Verdict(rule["action"], f"{why} matching {rule['action']} rule at index {number}")
    return COUNT


def _by_exit_code(wanted: Object | None, pod: Object) -> str:
    if wanted is None:
        return ""
    for name, code in _exit_codes(pod):
        if wanted.get("containerName") not in (None, name) or code == 0:
            continue
        if (code in wanted["values"]) == (wanted["operator"] == "In"):
            meta = pod["metadata"]
            return f"Container {name} for pod {meta['namespace']}/{meta['name']} failed with exit code {code}"
    return ""


def _exit_codes(pod: Object) -> Iterator[tuple[str, int]]:
    status = pod.get("status") or {}
    for row in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        ended = (row.get("state") or {}).get("terminated")
        if ended is not None:
            yield row["name"], ended["exitCode"]


def _by_condition(wanted: list[Object], pod: Object) -> str:
    rows = {row["type"]: row["status"] for row in (pod.get("status") or {}).get("conditions") or ()}
    for pattern in wanted:
        if rows.get(pattern["type"]) == pattern.get("status", "True"):
            meta = pod["metadata"]
            return f"Pod {meta['namespace']}/{meta['name']} has condition {pattern['type']}"
    return ""
