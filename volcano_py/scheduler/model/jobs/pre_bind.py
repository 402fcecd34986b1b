"""Pre-bind steps: what must be written before a pod may be bound, as data. Volcano: PreBinder; kube-scheduler: PreBind.

A plugin returns the steps of a bound task at the extension point `add_pre_bind`; they are part of `plan.Bind`. The
dispatcher writes the steps of one bind in order, and undoes them in reverse order when one of them fails
(`dispatch.pre_bind.barriers`, `dispatch.pre_bind.pre_bind_writes`). Every step is idempotent. Meanwhile the model
counts them as done, so that no later cycle assigns a volume or a device twice.

A new step is a tagged struct here, a member of `PreBindStep`, and a case in `object_of` and in
`dispatch.pre_bind.pre_bind_writes`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct


class SelectNode(Struct, tag_field="step", tag="select-node", frozen=True, gc=False):
    """Request a volume for a claim near a node: the annotation `volume.kubernetes.io/selected-node`."""

    namespace: str
    claim: str
    uid: str
    node: str
    resource_version: str = ""
    """The step fails if the claim has changed since this version; empty: it is not compared, and the step writes only
    what is missing."""


class BindVolume(Struct, tag_field="step", tag="bind-volume", frozen=True, gc=False):
    """Reserve a PersistentVolume for a claim: its claimRef."""

    volume: str
    namespace: str
    claim: str
    uid: str
    """The uid of the claim."""
    resource_version: str = ""
    """The version of the volume, see SelectNode."""


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
    """Reserve a ResourceClaim for a pod, and write its allocation if it has none; create the claim first if it is one
    for extended resources."""

    namespace: str
    claim: str
    uid: str
    pod: str
    pod_uid: str
    allocation: dict[str, Any] | None = None
    """The claim's `status.allocation`; None: it is already allocated and only reserved."""
    resource_version: str = ""
    """The version of the claim, see SelectNode."""
    extended: dict[str, Any] | None = None
    """The `requests` of a claim for extended resources, which belongs to the pod and is created for it, and the
    `mappings` for the pod's status."""
    group: str = ""
    """The PodGroup of scheduling.k8s.io for which the claim is reserved, instead of the pod."""
    group_uid: str = ""

    @property
    def consumer(self) -> dict[str, Any]:
        """The entry in `status.reservedFor`."""
        if self.group_uid:
            of_group = {"resource": "podgroups", "name": self.group, "uid": self.group_uid}
            return {"apiGroup": "scheduling.k8s.io", **of_group}
        return {"resource": "pods", "name": self.pod, "uid": self.pod_uid}


class AwaitDevices(Struct, tag_field="step", tag="await-devices", frozen=True, gc=False):
    """Wait until the binding conditions of a ResourceClaim's devices are true."""

    namespace: str
    claim: str
    uid: str
    timeout: float = 600.0
    """Seconds."""


class LockNode(Struct, tag_field="step", tag="lock-node", frozen=True, gc=False):
    """Lock a node for a pod with devices: an annotation with the time of the lock. The device plugin removes it when it
    has assigned the devices to the pod."""

    node: str
    lock: str
    """The key of the annotation."""
    time: str
    """RFC 3339, with a fraction of a second that identifies this step."""


class StoreNode(Struct, tag_field="step", tag="store-node", frozen=True, gc=False):
    """Store the node of a pod in an annotation of its PodGroup. The step fails if another node is stored."""

    namespace: str
    group: str
    uid: str
    """The uid of the PodGroup."""
    annotation: str
    node: str


LOCK_EXPIRES = 300.0
"""Seconds after which a node's lock is stale and ignored."""

PreBindStep = SelectNode | BindVolume | AwaitVolume | AllocateClaim | AwaitDevices | LockNode | StoreNode


class PreBindSteps(NamedTuple):
    """The steps of a plugin before a pod is bound, and the annotations that it adds to the Binding."""

    steps: list[PreBindStep]
    annotations: dict[str, str]


def object_of(step: PreBindStep) -> tuple[str, str, str]:
    """Kind, namespace and name of the object that a step writes: writes of one object do not overlap."""
    match step:
        case BindVolume():
            return "PersistentVolume", "", step.volume
        case AllocateClaim() | AwaitDevices():
            return "ResourceClaim", step.namespace, step.claim
        case LockNode():
            return "Node", "", step.node
        case StoreNode():
            return "PodGroup", step.namespace, step.group
        case SelectNode() | AwaitVolume():
            return "PersistentVolumeClaim", step.namespace, step.claim
