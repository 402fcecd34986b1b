"""Deployments, replica sets, stateful and daemon sets, disruption budgets: defaults, validation, generations.

Kubernetes: pkg/registry/apps and pkg/registry/policy.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata, selectors
from volcano_py.sandbox.apiserver.apimachinery.errors import (
    Cause,
    field_forbidden,
    invalid_value,
    required,
    unsupported,
)
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategies.pod_validation import pod_spec_causes
from volcano_py.sandbox.apiserver.registry.strategies.podspec import default_template
from volcano_py.sandbox.apiserver.registry.strategy import Strategy

Object = dict[str, Any]


def _default_deployment(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    default_template(spec.get("template") or {})
    spec.setdefault("replicas", 1)
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def _default_replica_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    default_template(spec.get("template") or {})
    spec.setdefault("replicas", 1)


def _default_stateful_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    default_template(spec.get("template") or {})
    spec.setdefault("podManagementPolicy", "OrderedReady")
    update = spec.setdefault("updateStrategy", {})
    update.setdefault("type", "RollingUpdate")
    if update["type"] == "RollingUpdate":
        update.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim.setdefault("status", {}).setdefault("phase", "Pending")


def _default_daemon_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    default_template(spec.get("template") or {})
    update = spec.setdefault("updateStrategy", {})
    update.setdefault("type", "RollingUpdate")
    if update["type"] == "RollingUpdate":
        rolling = update.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def selector_causes(selector: Object | None, path: str) -> list[Cause]:
    out: list[Cause] = []
    for index, row in enumerate((selector or {}).get("matchExpressions") or []):
        at = f"{path}.matchExpressions[{index}]"
        operator, values = row.get("operator", ""), row.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                out.append(required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                out.append(field_forbidden(f"{at}.values", text))
        else:
            out.append(invalid_value(f"{at}.operator", operator, "not a valid selector operator"))
        out.extend(
            invalid_value(f"{at}.key", row.get("key", ""), m) for m in metadata.qualified_errors(row.get("key", ""))
        )
    return out


def _workload(policies: tuple[str, ...]) -> Any:
    def validate(obj: Object, request: Request) -> list[Cause]:
        spec = obj["spec"]
        out: list[Cause] = []
        if spec.get("replicas", 0) < 0:
            text = "must be greater than or equal to 0"
            out.append(invalid_value("spec.replicas", spec["replicas"], text))
        selector = spec.get("selector")
        template = spec.get("template") or {}
        if selector is None:
            out.append(required("spec.selector"))
            text = "`selector` does not match template `labels`"
            out.append(invalid_value("spec.template.metadata.labels", None, text))
        else:
            out.extend(selector_causes(selector, "spec.selector"))
            if not (selector.get("matchLabels") or selector.get("matchExpressions")):
                text = f"empty selector is invalid for {request.resource.kind.lower()}"
                out.append(invalid_value("spec.selector", selector, text))
        labels = (template.get("metadata") or {}).get("labels") or {}
        if selector is not None and not out:
            test = selectors.from_label_selector(selector)
            if test is not None and not test(labels):
                text = "`selector` does not match template `labels`"
                out.append(invalid_value("spec.template.metadata.labels", labels, text))
        inner = template.get("spec") or {}
        if request.resource.kind == "StatefulSet":
            # Its containers mount volumes that the claim templates add to the pods.
            if "activeDeadlineSeconds" in inner:
                text = "activeDeadlineSeconds in StatefulSet is not Supported"
                out.append(field_forbidden("spec.template.spec.activeDeadlineSeconds", text))
        else:
            out.extend(pod_spec_causes(inner, "spec.template.spec"))
        policy = inner.get("restartPolicy", "Always")
        if policy not in policies:
            out.append(unsupported("spec.template.spec.restartPolicy", policy, list(policies)))
        return out

    return validate


def _update(policies: tuple[str, ...], allowed: tuple[str, ...] | None = None) -> Any:
    validate = _workload(policies)

    def validate_update(new: Object, old: Object, request: Request) -> list[Cause]:
        out: list[Cause] = validate(new, request)
        if new["spec"].get("selector") != old["spec"].get("selector"):
            out.append(invalid_value("spec.selector", new["spec"].get("selector"), "field is immutable"))
        if allowed is not None:
            changed = [
                key
                for key in {*new["spec"], *old["spec"]}
                if key not in allowed and new["spec"].get(key) != old["spec"].get(key) and key != "selector"
            ]
            if changed or (new["spec"].get("selector") != old["spec"].get("selector")):
                out = [cause for cause in out if cause.field != "spec.selector"]
                text = (
                    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
                    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
                    "'minReadySeconds' are forbidden"
                )
                out.append(field_forbidden("spec", text))
        return out

    return validate_update


_ALWAYS = ("Always",)


def _budget(obj: Object, request: Request) -> list[Cause]:
    spec = obj.get("spec") or {}
    out: list[Cause] = []
    if "minAvailable" in spec and "maxUnavailable" in spec:
        text = "minAvailable and maxUnavailable cannot be both set"
        out.append(invalid_value("spec", spec, text))
    for key in ("minAvailable", "maxUnavailable"):
        value = spec.get(key)
        if isinstance(value, int) and value < 0:
            out.append(invalid_value(f"spec.{key}", value, "must be greater than or equal to 0"))
        elif isinstance(value, str) and not (value.endswith("%") and value[:-1].isdigit()):
            text = (
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
                "regex used for validation is '[0-9]+%')"
            )
            out.append(invalid_value(f"spec.{key}", value, text))
        elif isinstance(value, str) and int(value[:-1]) > 100:
            out.append(invalid_value(f"spec.{key}", value, "must not be greater than 100%"))
    out.extend(selector_causes(spec.get("selector"), "spec.selector"))
    return out


def _budget_create(obj: Object, request: Request) -> None:
    status = obj.setdefault("status", {})
    for key in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        status.setdefault(key, 0)


_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def _daemon_set_create(obj: Object, request: Request) -> None:
    obj["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = "1"


def _daemon_set_update(new: Object, old: Object, request: Request) -> None:
    """The generation of the template is stored in an annotation."""
    number = int((old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "1"))
    if new["spec"].get("template") != old["spec"].get("template"):
        number += 1
    new["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = str(number)


def _generic(default: Any, allowed: tuple[str, ...] | None = None) -> Strategy:
    return Strategy(
        default=default,
        validate_create=_workload(_ALWAYS),
        validate_update=_update(_ALWAYS, allowed),
        has_status=True,
        has_generation=True,
        reset_fields=("status",),
    )


_DAEMON_SET = _generic(_default_daemon_set)
_DAEMON_SET.prepare_create = _daemon_set_create
_DAEMON_SET.prepare_update = _daemon_set_update

STRATEGIES = {
    "deployments.apps": _generic(_default_deployment),
    "replicasets.apps": _generic(_default_replica_set),
    "daemonsets.apps": _DAEMON_SET,
    "statefulsets.apps": _generic(
        _default_stateful_set,
        (
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ),
    ),
    "poddisruptionbudgets.policy": Strategy(
        prepare_create=_budget_create,
        validate_create=_budget,
        validate_update=lambda new, old, request: _budget(new, request),
        has_status=True,
        has_generation=True,
        reset_fields=("status",),
    ),
    "horizontalpodautoscalers.autoscaling": Strategy(has_status=True, reset_fields=("status",)),
    "networkpolicies.networking.k8s.io": Strategy(has_generation=True),
    "ingresses.networking.k8s.io": Strategy(has_status=True, has_generation=True, reset_fields=("status",)),
}
