"""Admission of JobFlows: the flows form an acyclic graph. Volcano: /jobflows/validate."""

from __future__ import annotations

from volcano_py.webhooks.dependencies import check_graph
from volcano_py.webhooks.lookup import Manifest


def validate_jobflow(jobflow: Manifest) -> list[str]:
    """Problems of a new or updated JobFlow. Of two flows with one name the last one counts; an empty list is valid."""
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
        "list in dependsOn.targets flows of this JobFlow that do not depend on the flow itself"
    ]
