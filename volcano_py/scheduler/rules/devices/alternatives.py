"""The score of a node by the alternatives of `firstAvailable` that it serves. kube-scheduler: DynamicResources."""

from __future__ import annotations

from volcano_py.scheduler.model.claims.resource_claims import ClaimDemand
from volcano_py.scheduler.rules.devices.device_choice import DeviceDecision

MAX_ALTERNATIVES = 8
"""Subrequests of one request."""


def has_alternatives(demand: ClaimDemand) -> bool:
    """Whether a claim has alternatives for a request (`firstAvailable`)."""
    return any(
        request.first_available
        for claim in demand.claims
        if claim.claim is not None
        for request in claim.claim.spec.devices.requests or ()
    )


def rank_of(decision: object) -> int:
    """Eight for a first alternative, one less for each later one."""
    total = 0
    if isinstance(decision, DeviceDecision):
        for claim, chosen in zip(decision.claims, decision.chosen, strict=True):
            assert claim.claim is not None
            used = {c.request for c in chosen}
            for request in claim.claim.spec.devices.requests or ():
                for i, sub in enumerate(request.first_available or ()):
                    if f"{request.name}/{sub.name}" in used:
                        total += MAX_ALTERNATIVES - i
    return total
