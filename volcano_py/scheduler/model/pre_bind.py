"""Pre-bind steps: what must be written before a pod may be bound, as data. Volcano: PreBinder; kube-scheduler: PreBind.

A plugin returns the steps of a bound task at the extension point `add_pre_bind`; they travel in `plan.Bind`. The
dispatcher carries out the steps of one bind in order, and undoes them in reverse order when one of them fails
(`dispatch.barriers`, `dispatch.pre_bind_writes`). Every step can be repeated without harm. The model counts them as
done meanwhile (`model.pending_steps`), so that no later cycle gives a volume or a device away twice.

A new step is a tagged struct here, a member of `PreBindStep`, and a case in `object_of` and in
`dispatch.pre_bind_writes`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct


class SelectNode(Struct, tag_field="step", tag="select-node", frozen=True, gc=False):
    """Ask for a volume for a claim near a node: the annotation `volume.kubernetes.io/selected-node`."""

    namespace: str
    claim: str
    uid: str
    node: str
    resource_version: str = ""
    """The step fails if the claim has changed since this version; empty: the step does what is still to be done."""


class BindVolume(Struct, tag_field="step", tag="bind-volume", frozen=True, gc=False):
    """Reserve a PersistentVolume for a claim: its claimRef."""

    volume: str
    namespace: str
    claim: str
    uid: str
    """Of the claim."""
    resource_version: str = ""
    """Of the volume, see SelectNode."""


class AwaitVolume(Struct, tag_field="step", tag="await-volume", frozen=True, gc=False):
    """Wait until a claim is bound to a volume."""

    namespace: str
    claim: str
    uid: str
    node: str = ""
    """The node selected for provisioning; the step fails if the provisioner withdraws it."""
    timeout: float = 600.0
    """Seconds."""


class AllocateClaim(Struct, tag_field="step", tag="allocate-claim", frozen=True, gc=False):
    """Reserve a ResourceClaim for a pod, and write its allocation if it has none yet."""

    namespace: str
    claim: str
    uid: str
    pod: str
    pod_uid: str
    allocation: dict[str, Any] | None = None
    """The claim's `status.allocation`; None: it is allocated already and only reserved."""
    resource_version: str = ""
    """Of the claim, see SelectNode."""


class LockNode(Struct, tag_field="step", tag="lock-node", frozen=True, gc=False):
    """Lock a node for a pod with devices: an annotation with the time at which it is taken. The device plugin removes
    it when the pod has its devices."""

    node: str
    lock: str
    """The annotation."""
    time: str
    """RFC 3339, with a fraction of a second that makes it this step's own."""


LOCK_EXPIRES = 300.0
"""Seconds after which a lock of a node was left behind and counts no more."""

PreBindStep = SelectNode | BindVolume | AwaitVolume | AllocateClaim | LockNode


class PreBind(NamedTuple):
    """The steps of a plugin before a pod is bound, and the annotations that it adds to the Binding."""

    steps: list[PreBindStep]
    annotations: dict[str, str]


def object_of(step: PreBindStep) -> tuple[str, str, str]:
    """Kind, namespace and name of the object that a step writes: its writes never overlap."""
    match step:
        case BindVolume():
            return "PersistentVolume", "", step.volume
        case AllocateClaim():
            return "ResourceClaim", step.namespace, step.claim
        case LockNode():
            return "Node", "", step.node
        case SelectNode() | AwaitVolume():
            return "PersistentVolumeClaim", step.namespace, step.claim
