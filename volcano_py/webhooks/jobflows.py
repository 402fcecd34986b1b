"""Admission of JobFlows: the flows form a graph without circles. Volcano: /jobflows/validate."""

from __future__ import annotations

from volcano_py.webhooks.dependencies import check_graph
from volcano_py.webhooks.lookup import Manifest


def validate_jobflow(jobflow: Manifest) -> list[str]:
    """What is wrong with a new or changed flow. Of two flows of one name the last counts; no flows are fine, too."""
    name = (jobflow.get("metadata") or {}).get("name", "")
    edges = {
        flow.get("name", ""): (flow.get("dependsOn") or {}).get("targets") or []
        for flow in (jobflow.get("spec") or {}).get("flows") or ()
    }
    problem = check_graph(edges)
    if not problem:
        return []
    return [
        f"jobflow {name}: spec.flows: jobflow Flow is not DAG: {problem}; "
        "let dependsOn.targets name flows of this JobFlow that do not wait for the flow itself"
    ]
