"""Pods: priority and tolerations on admission, quality of service, gates, immutable fields, graceful deletion.

Kubernetes: pkg/registry/core/pod, and the admission plugins Priority and DefaultTolerationSeconds.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import errors, metadata, quantity
from volcano_py.sandbox.apiserver.apimachinery.errors import Cause, field_forbidden, invalid_value
from volcano_py.sandbox.apiserver.apimachinery.features import GENERIC_WORKLOAD
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategies.pod_validation import pod_spec_causes, tolerations_causes
from volcano_py.sandbox.apiserver.registry.strategies.podspec import default_pod_spec
from volcano_py.sandbox.apiserver.registry.strategies.priority import COMPUTED, resolved
from volcano_py.sandbox.apiserver.registry.strategy import Strategy

Object = dict[str, Any]

_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"


def default(pod: Object) -> None:
    spec = pod.get("spec")
    if spec is None:
        spec = pod["spec"] = {}
    spec.setdefault("enableServiceLinks", True)
    default_pod_spec(spec)


# --- admission plugins of kube-apiserver, for pods -------------------------------------------------------------------


def resolve(api: Api, pod: Object, request: Request) -> None:
    """Set priority, preemption policy and default tolerations of a new pod; drop fields of disabled feature gates."""
    if GENERIC_WORKLOAD not in api.features:
        pod["spec"].pop("schedulingGroup", None)
    _priority(api, pod, pod["spec"])
    tolerate(pod["spec"])


def admit_update(api: Api, new: Object, old: Object, request: Request) -> None:
    """On updates: restore the default tolerations, and keep the priority."""
    tolerate(new["spec"])
    for key in ("priority", "preemptionPolicy"):
        if key not in new["spec"] and key in old["spec"]:
            new["spec"][key] = old["spec"][key]


def tolerate(spec: Object) -> None:
    """Tolerate a node that is not ready or unreachable for five minutes, unless the pod has such tolerations."""
    tolerations = spec.get("tolerations")
    not_ready = unreachable = False
    for toleration in tolerations or ():
        if toleration.get("effect", "") in ("", "NoExecute"):
            key = toleration.get("key", "")
            if not key or key == _NOT_READY:
                not_ready = True
            if not key or key == _UNREACHABLE:
                unreachable = True
    for present, key in ((not_ready, _NOT_READY), (unreachable, _UNREACHABLE)):
        if not present:
            if tolerations is None:
                tolerations = spec["tolerations"] = []
            row = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            tolerations.append(row)


def _priority(api: Api, pod: Object, spec: Object) -> None:
    found = resolved(api, ("", "pods"), pod, spec)
    if found.name:
        spec["priorityClassName"] = found.name
    given_policy = spec.get("preemptionPolicy")
    if given_policy is not None and given_policy != found.policy:
        what = f"the string value of PreemptionPolicy ({given_policy})"
        text = f"{what} must not be provided in pod spec; {COMPUTED.format(found.policy)}"
        raise errors.forbidden("", "pods", pod["metadata"].get("name", ""), text)
    spec["priority"] = found.value
    spec["preemptionPolicy"] = found.policy


# --- create ----------------------------------------------------------------------------------------------------------


def prepare_create(pod: Object, request: Request) -> None:
    spec = pod["spec"]
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    status: Object = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [gated_condition()]
    pod["status"] = status
    pod["metadata"]["generation"] = 1


def gated_condition() -> Object:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": metadata.now(),
        "reason": "SchedulingGated",
        "message": GATED_MESSAGE,
    }


def qos_class(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort, from cpu and memory of all containers."""
    requests: set[str] = set()
    guaranteed = True
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        wanted, limits = resources.get("requests") or {}, resources.get("limits") or {}
        positive = {
            name
            for name in ("cpu", "memory")
            if (name in wanted and quantity.parse(wanted[name]) > 0)
            or (name in limits and quantity.parse(limits[name]) > 0)
        }
        requests |= positive
        if not all(
            name in limits and quantity.parse(limits[name]) > 0 and wanted.get(name, limits[name]) == limits[name]
            for name in ("cpu", "memory")
        ):
            guaranteed = False
    if not requests:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def validate_create(pod: Object, request: Request) -> list[Cause]:
    spec = pod["spec"]
    causes = pod_spec_causes(spec)
    if spec.get("schedulingGates") and spec.get("nodeName"):
        text = "cannot be set until all schedulingGates have been cleared"
        causes.append(field_forbidden("spec.nodeName", text))
    return causes


# --- update ----------------------------------------------------------------------------------------------------------


def prepare_update(new: Object, old: Object, request: Request) -> None:
    new["status"] = old.get("status", {})
    if new["spec"].get("terminationGracePeriodSeconds", 0) < 0 and old["spec"].get(
        "terminationGracePeriodSeconds"
    ) != new["spec"].get("terminationGracePeriodSeconds"):
        new["spec"]["terminationGracePeriodSeconds"] = 1
    if new["spec"] != old["spec"]:
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


_IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def validate_update(new: Object, old: Object, request: Request) -> list[Cause]:
    spec, before = new["spec"], old["spec"]
    if spec == before:
        return []
    causes = pod_spec_causes(spec)
    if len(spec.get("containers") or []) != len(before.get("containers") or []):
        text = "pod updates may not add or remove containers"
        return [*causes, field_forbidden("spec.containers", text)]
    if causes:
        return causes
    gates_before = _gate_names(before)
    for index, gate in enumerate(spec.get("schedulingGates") or []):
        if gate["name"] not in gates_before:
            text = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            causes.append(field_forbidden(f"spec.schedulingGates[{index}].name", text))
    _tolerations(spec, before, causes)
    deadline, deadline_before = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if deadline_before is not None and (deadline is None or deadline > deadline_before):
        shown = deadline
        text = (
            "must be less than or equal to previous value"
            if deadline is not None
            else "must not update from a positive integer to nil value"
        )
        causes.append(invalid_value("spec.activeDeadlineSeconds", shown, text))
    if gates_before:
        now, then = spec.get("nodeSelector") or {}, before.get("nodeSelector") or {}
        if any(now.get(key) != value for key, value in then.items()):
            text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            causes.append(invalid_value("spec.nodeSelector", now, text))
    if causes:
        return causes
    if _frozen(spec, bool(gates_before)) != _frozen(before, bool(gates_before)) or (
        gates_before and not _only_narrows(spec, before)
    ):
        causes.append(field_forbidden("spec", _IMMUTABLE))
    return causes


def _gate_names(spec: Object) -> set[str]:
    return {gate["name"] for gate in spec.get("schedulingGates") or []}


def _tolerations(spec: Object, before: Object, causes: list[Cause]) -> None:
    now, then = spec.get("tolerations") or [], before.get("tolerations") or []
    if now == then:
        return

    def bare(toleration: Object) -> Object:
        if toleration.get("effect") == "NoExecute":
            return {k: v for k, v in toleration.items() if k != "tolerationSeconds"}
        return toleration

    kept = [bare(toleration) for toleration in now]
    if any(bare(toleration) not in kept for toleration in then):
        text = "existing toleration can not be modified except its tolerationSeconds"
        causes.append(field_forbidden("spec.tolerations", text))
    tolerations_causes(now, "spec.tolerations", causes)


def _frozen(spec: Object, gated: bool) -> Object:
    """The spec without its mutable fields."""
    out = {k: v for k, v in spec.items() if k not in ("activeDeadlineSeconds", "tolerations", "schedulingGates")}
    for key in ("containers", "initContainers"):
        if out.get(key):
            out[key] = [{**container, "image": ""} for container in out[key]]
    if out.get("terminationGracePeriodSeconds") == 1:
        out.pop("terminationGracePeriodSeconds", None)
    if gated:
        out.pop("nodeSelector", None)
        affinity = dict(out.get("affinity") or {})
        affinity.pop("nodeAffinity", None)
        out["affinity"] = affinity
    return out


def _only_narrows(spec: Object, before: Object) -> bool:
    """The node affinity of a gated pod may be added and narrowed."""
    hard = "requiredDuringSchedulingIgnoredDuringExecution"
    old_terms = (((before.get("affinity") or {}).get("nodeAffinity") or {}).get(hard) or {}).get("nodeSelectorTerms")
    if not old_terms:
        return True
    new_terms = (((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(hard) or {}).get("nodeSelectorTerms")
    if not new_terms or len(new_terms) != len(old_terms):
        return False
    return all(
        all(row in (new.get(key) or []) for row in old.get(key) or [])
        for new, old in zip(new_terms, old_terms, strict=True)
        for key in ("matchExpressions", "matchFields")
    )


# --- status ----------------------------------------------------------------------------------------------------------


def prepare_status(new: Object, old: Object, request: Request) -> None:
    new["spec"] = old["spec"]
    new["metadata"].pop("deletionTimestamp", None)
    if old["metadata"].get("deletionTimestamp"):
        new["metadata"]["deletionTimestamp"] = old["metadata"]["deletionTimestamp"]
    owners = old["metadata"].get("ownerReferences")
    if owners:
        new["metadata"]["ownerReferences"] = owners
    else:
        new["metadata"].pop("ownerReferences", None)
    status = new.setdefault("status", {})
    if not status.get("qosClass") and (old.get("status") or {}).get("qosClass"):
        status["qosClass"] = old["status"]["qosClass"]
    if old["spec"].get("schedulingGates") is None and not status.get("phase"):
        status.setdefault("phase", (old.get("status") or {}).get("phase", "Pending"))


def validate_status(new: Object, old: Object, request: Request) -> list[Cause]:
    causes: list[Cause] = []
    status, before = new["status"], old.get("status") or {}
    if status.get("qosClass") != before.get("qosClass"):
        causes.append(invalid_value("status.qosClass", status.get("qosClass", ""), "field is immutable"))
    nominated = status.get("nominatedNodeName")
    if nominated:
        errors_ = metadata.subdomain_errors(nominated)
        causes.extend(invalid_value("status.nominatedNodeName", nominated, m) for m in errors_)
        if old["spec"].get("nodeName") and nominated != before.get("nominatedNodeName"):
            text = "may not be set on pods that are already bound to a node"
            causes.append(field_forbidden("status.nominatedNodeName", text))
    return causes


# --- deletion --------------------------------------------------------------------------------------------------------


def grace(pod: Object, requested: int | None, request: Request) -> int:
    """The grace period in seconds: 0 for a pod that is finished or has no node."""
    spec, status = pod["spec"], pod.get("status") or {}
    seconds = requested if requested is not None else spec.get("terminationGracePeriodSeconds", 30)
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    return 1 if seconds < 0 else seconds


def fields(pod: Object) -> dict[str, str]:
    spec, status = pod["spec"], pod.get("status") or {}
    return {
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.restartPolicy": spec.get("restartPolicy", ""),
        "spec.schedulerName": spec.get("schedulerName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase", ""),
        "status.podIP": status.get("podIP", ""),
        "status.nominatedNodeName": status.get("nominatedNodeName", ""),
    }


def warnings(new: Object, old: Object | None) -> list[str]:
    """The warnings for a new pod."""
    if old is not None:
        return []
    out = [
        f'spec.imagePullSecrets[{index}].name: invalid empty name ""'
        for index, secret in enumerate(new["spec"].get("imagePullSecrets") or [])
        if not secret.get("name")
    ]
    faults = metadata.label_errors(new["metadata"].get("name", ""))
    if faults:
        text = "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
        out.append(f"{text}a DNS label is recommended: [{' '.join(faults)}]")
    return out


STRATEGIES = {
    "pods": Strategy(
        default=default,
        admit_create=resolve,
        admit_update=admit_update,
        prepare_create=prepare_create,
        validate_create=validate_create,
        prepare_update=prepare_update,
        validate_update=validate_update,
        prepare_status=prepare_status,
        validate_status=validate_status,
        fields=fields,
        field_names=frozenset(
            {
                "spec.nodeName",
                "spec.restartPolicy",
                "spec.schedulerName",
                "spec.serviceAccountName",
                "spec.hostNetwork",
                "status.phase",
                "status.podIP",
                "status.nominatedNodeName",
            }
        ),
        has_status=True,
        grace=grace,
        returns_deleted=True,
        warnings=warnings,
        reset_fields=("status",),
        reset_status_fields=("spec", "metadata.deletionTimestamp", "metadata.ownerReferences"),
    )
}
