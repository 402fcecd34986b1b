"""The job of a pod, and the UIDs of jobs. Volcano: getJobID.

A job is a PodGroup of Volcano (`namespace/name`, set by an annotation of the pod) or a PodGroup of scheduling.k8s.io
(`namespace/podgroup.scheduling.k8s.io/name`, set by spec.schedulingGroup). Both forms are distinct, because no object
name contains a slash. A PodGroup with a parent is part of the job of the CompositePodGroup at its root
(`model.jobs.native_gangs`).
"""

from __future__ import annotations

from typing import Final

from volcano_py.api import names
from volcano_py.api.core import Pod

NATIVE: Final = "podgroup.scheduling.k8s.io"
"""The name of a PodGroup of scheduling.k8s.io in messages, and its kind in the model, where Volcano's is PodGroup."""
COMPOSITE: Final = "compositepodgroup.scheduling.k8s.io"
"""The same for CompositePodGroups, whose job has the pods of all PodGroups below it."""
NATIVE_KINDS: Final = (NATIVE, COMPOSITE)


def composite_uid(key: str) -> str:
    """The UID of the job of a CompositePodGroup with this key, `namespace/name`."""
    namespace, _, name = key.partition("/")
    return f"{namespace}/{COMPOSITE}/{name}"


def native_uid(key: str) -> str:
    """The UID of the job of a native PodGroup with this key, `namespace/name`."""
    namespace, _, name = key.partition("/")
    return f"{namespace}/{NATIVE}/{name}"


def uid_of(kind: str, key: str) -> str:
    """The UID of the job of a group of this kind in the model: the inverse of `reference`."""
    if kind not in NATIVE_KINDS:
        return key
    return native_uid(key) if kind == NATIVE else composite_uid(key)


def reference(uid: str) -> tuple[str, str]:
    """The PodGroup of a job: its kind in the model, and its key, `namespace/name`."""
    namespace, _, name = uid.partition("/")
    kind, slash, native = name.partition("/")
    return (kind, f"{namespace}/{native}") if slash else ("PodGroup", uid)


def group_of(pod: Pod) -> str:
    """The UID of a pod's job, or ""."""
    namespace = pod.metadata.namespace
    if pod.spec.scheduling_group is not None and pod.spec.scheduling_group.pod_group_name:
        return native_uid(f"{namespace}/{pod.spec.scheduling_group.pod_group_name}")
    name = (pod.metadata.annotations or {}).get(names.GROUP_NAME)
    return f"{namespace}/{name}" if name else ""


def check_group(pod: Pod) -> None:
    """Raises ValueError if a pending pod refers to two PodGroups."""
    native = pod.spec.scheduling_group
    other = (pod.metadata.annotations or {}).get(names.GROUP_NAME) if native is not None else None
    if native is not None and other and not pod.spec.node_name:
        raise ValueError(
            f"spec.schedulingGroup.podGroupName refers to {NATIVE}/{native.pod_group_name}, and the annotation "
            f"{names.GROUP_NAME} refers to podgroup.scheduling.volcano.sh/{other}; remove one of them"
        )
