"""Admission rules for Reservations in CEL: a Reservation and each other one (`params`). The rules for one alone are in
the CRD. That it has not ended already is left to the webhook: CEL has no clock.
"""

from __future__ import annotations

from volcano_py.webhooks.cel_rules import Rule


def _start(of: str) -> str:
    return f"timestamp(string({of}.spec.startTime))"


def _end(of: str) -> str:
    end = f"timestamp(string({of}.spec.endTime))"
    return f"(has({of}.spec.endTime) ? {end} : {_start(of)} + duration({of}.spec.duration))"


def _nodes(of: str) -> str:
    """The nodes that are known, as in `reservations.nodes_of`."""
    counts = " || ".join(f"has({of}.spec.{field})" for field in ("nodeCount", "resources", "nodeSelector"))
    return f"({counts} ? {of}.?status.?nodes.orValue([]) : {of}.spec.?nodes.orValue([]))"


_OWNED = " && ".join(f"{of}.spec.?owners.orValue([]).size() > 0" for of in ("object", "params"))

RESERVATIONS_BESIDE = [
    Rule(
        "object.metadata.name == params.metadata.name || "
        "(request.operation == 'UPDATE' && object.spec == oldObject.spec) || "
        f"!({_OWNED}) || {_start('params')} >= {_end('object')} || {_start('object')} >= {_end('params')} || "
        f"!{_nodes('object')}.exists(n, n in {_nodes('params')})",
        "spec.nodes: a node is reserved by another Reservation at this time; use other nodes or another time",
    ),
]
