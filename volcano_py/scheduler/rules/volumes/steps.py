"""The writes for the claims of a pod that wait for their first consumer. kube-scheduler: BindPodVolumes."""

from __future__ import annotations

from volcano_py.scheduler.model.jobs.pre_bind import AwaitVolume, BindVolume, PreBindStep, SelectNode
from volcano_py.scheduler.rules.volumes.volume_book import VolumeDecision


def binding_steps(
    decision: VolumeDecision, namespace: str, node: str, timeout: float, *, exact: bool = False
) -> list[PreBindStep]:
    """The writes for waiting claims before their pod is bound. `timeout`: seconds until the claims must be bound.
    `exact`: a step fails if its object has changed since the decision."""
    steps: list[PreBindStep] = []
    waits: list[PreBindStep] = []
    for claim, volume in decision.bindings:
        name, version = claim.key.partition("/")[2], volume.metadata.resource_version if exact else ""
        steps.append(BindVolume(volume.metadata.name, namespace, name, claim.uid, version))
        waits.append(AwaitVolume(namespace, name, claim.uid, "", timeout))
    for claim in decision.provisions:
        name, version = claim.key.partition("/")[2], claim.resource_version if exact else ""
        steps.append(SelectNode(namespace, name, claim.uid, node, version))
        waits.append(AwaitVolume(namespace, name, claim.uid, node, timeout))
    return steps + waits
