"""Validation of a task's pod template when the Job is created, before its pods are.

These are the rules of Kubernetes that users violate most often. The others (affinity terms, security contexts, the
details of each volume source) are left to the API server, which then rejects the pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from volcano_py.webhooks import identifiers
from volcano_py.webhooks.resources import amounts, check_requirements, requests_of

_CHOICES = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "preemptionPolicy": ("PreemptLowerPriority", "Never"),
}
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_EFFECTS = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")


def check_template(template: Mapping[str, Any], path: str, pod_level_resources: bool = True) -> Iterator[str]:
    """Problems of a pod template; `path` is its field path, such as `spec.task[0].template`.

    Without the feature gate PodLevelResources the API server drops `spec.resources`, so it is not validated.
    """
    metadata = template.get("metadata") or {}
    yield from _check_labels(f"{path}.labels", metadata.get("labels"))
    for key in metadata.get("annotations") or {}:
        if problem := identifiers.qualified_name(key.lower()):
            yield f"{path}.annotations: Invalid value: {key!r}: {problem}"
    spec = template.get("spec") or {}
    yield from _check_spec(spec, f"{path}.spec")
    if pod_level_resources:
        yield from _check_pod_resources(spec, f"{path}.spec.resources")


def _check_spec(spec: Mapping[str, Any], path: str) -> Iterator[str]:
    if not spec.get("containers"):
        yield f"{path}.containers: Required value"
    volumes = set[str]()
    for index, volume in enumerate(spec.get("volumes") or ()):
        yield from _check_unique_label(volume.get("name"), volumes, f"{path}.volumes[{index}].name")
    names = set[str]()
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            at = f"{path}.{kind}[{index}]"
            yield from _check_unique_label(container.get("name"), names, f"{at}.name")
            yield from _check_container(container, volumes, bool(spec.get("hostNetwork")), at)
    for field, choices in _CHOICES.items():
        if spec.get(field) and spec[field] not in choices:
            supported = ", ".join(choices)
            yield f"{path}.{field}: Unsupported value: {spec[field]!r}: supported values: {supported}"
    yield from _check_labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    for field, rule in (
        ("hostname", identifiers.dns_label),
        ("subdomain", identifiers.dns_label),
        ("serviceAccountName", identifiers.dns_subdomain),
        ("priorityClassName", identifiers.dns_subdomain),
    ):
        if spec.get(field) and (problem := rule(spec[field])):
            yield f"{path}.{field}: Invalid value: {spec[field]!r}: {problem}"
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        yield f"{path}.terminationGracePeriodSeconds: must be greater than or equal to 0"
    if spec.get("activeDeadlineSeconds") is not None and spec["activeDeadlineSeconds"] < 1:
        yield f"{path}.activeDeadlineSeconds: must be greater than or equal to 1"
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _check_toleration(toleration, f"{path}.tolerations[{index}]")


def _check_unique_label(name: str | None, seen: set[str], path: str) -> Iterator[str]:
    if not name:
        yield f"{path}: Required value"
        return
    if problem := identifiers.dns_label(name):
        yield f"{path}: Invalid value: {name!r}: {problem}"
    if name in seen:
        yield f"{path}: Duplicate value: {name!r}"
    seen.add(name)


def _check_container(container: Mapping[str, Any], volumes: set[str], host_network: bool, path: str) -> Iterator[str]:
    image = container.get("image") or ""
    if not image:
        yield f"{path}.image: Required value"
    elif image != image.strip():
        yield f"{path}.image: Invalid value: {image!r}: must not have leading or trailing whitespace"
    policy = container.get("imagePullPolicy")
    if policy and policy not in _PULL_POLICIES:
        choices = ", ".join(_PULL_POLICIES)
        yield f"{path}.imagePullPolicy: Unsupported value: {policy!r}: supported values: {choices}"
    yield from _check_ports(container.get("ports") or (), host_network, f"{path}.ports")
    for index, variable in enumerate(container.get("env") or ()):
        name = variable.get("name") or ""
        if not name:
            yield f"{path}.env[{index}].name: Required value"
        elif "=" in name:
            yield f"{path}.env[{index}].name: Invalid value: {name!r}: must not contain '='"
        if variable.get("value") and variable.get("valueFrom"):
            yield f"{path}.env[{index}].valueFrom: may not be specified when `value` is not empty"
    mounts = set[str]()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        at = f"{path}.volumeMounts[{index}]"
        if mount.get("name") not in volumes:
            yield f"{at}.name: Not found: {mount.get('name')!r}: the pod has no volume with this name"
        if not mount.get("mountPath"):
            yield f"{at}.mountPath: Required value"
        elif mount["mountPath"] in mounts:
            yield f"{at}.mountPath: Invalid value: {mount['mountPath']!r}: must be unique"
        mounts.add(mount.get("mountPath") or "")
    yield from check_requirements(f"{path}.resources", container.get("resources"))


def _check_ports(ports: Any, host_network: bool, path: str) -> Iterator[str]:
    names = set[str]()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        number, host = port.get("containerPort") or 0, port.get("hostPort") or 0
        if not 1 <= number <= 65535:
            yield f"{at}.containerPort: Invalid value: {number}: must be between 1 and 65535, inclusive"
        if host and not 1 <= host <= 65535:
            yield f"{at}.hostPort: Invalid value: {host}: must be between 1 and 65535, inclusive"
        if host and host_network and host != number:
            yield f"{at}.hostPort: Invalid value: {host}: must match `containerPort` with `hostNetwork`"
        if port.get("protocol", "TCP") not in _PROTOCOLS:
            choices = ", ".join(_PROTOCOLS)
            yield f"{at}.protocol: Unsupported value: {port['protocol']!r}: supported values: {choices}"
        name = port.get("name")
        if name:
            if problem := identifiers.port_name(name):
                yield f"{at}.name: Invalid value: {name!r}: {problem}"
            if name in names:
                yield f"{at}.name: Duplicate value: {name!r}"
            names.add(name)


def _check_labels(path: str, labels: Mapping[str, str] | None) -> Iterator[str]:
    for key, value in (labels or {}).items():
        if problem := identifiers.qualified_name(key):
            yield f"{path}: Invalid value: {key!r}: {problem}"
        if problem := identifiers.label_value(value):
            yield f"{path}: Invalid value: {value!r}: {problem}"


def _check_toleration(toleration: Mapping[str, Any], path: str) -> Iterator[str]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    if key and (problem := identifiers.qualified_name(key)):
        yield f"{path}.key: Invalid value: {key!r}: {problem}"
    if not key and operator != "Exists":
        yield f"{path}.operator: Invalid value: {operator!r}: operator must be Exists when `key` is empty"
    if operator not in ("", "Equal", "Exists", "Lt", "Gt"):
        yield f"{path}.operator: Unsupported value: {operator!r}: supported values: Equal, Exists, Lt, Gt"
    if operator == "Exists" and toleration.get("value"):
        yield f"{path}.operator: Invalid value: value must be empty when `operator` is 'Exists'"
    effect = toleration.get("effect") or ""
    if effect not in _EFFECTS:
        yield f"{path}.effect: Unsupported value: {effect!r}: supported values: {', '.join(_EFFECTS[1:])}"
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield f"{path}.effect: Invalid value: {effect!r}: must be NoExecute when `tolerationSeconds` is set"


def _check_pod_resources(spec: Mapping[str, Any], path: str) -> Iterator[str]:
    """The requests of the pod as a whole cover the sum of the requests of its containers."""
    resources = spec.get("resources") or {}
    if not resources:
        return
    yield from check_requirements(path, resources)
    for part in ("requests", "limits"):
        for name in resources.get(part) or {}:
            if name not in ("cpu", "memory") and not name.startswith("hugepages-"):
                yield f"{path}.{part}[{name}]: Unsupported value for a pod: only cpu, memory and hugepages"
    total: dict[str, Fraction] = {}
    for container in spec.get("containers") or ():
        for name, amount in amounts(requests_of(container.get("resources"))).items():
            total[name] = total.get(name, Fraction(0)) + amount
    for name, amount in amounts(resources.get("requests")).items():
        if amount < total.get(name, 0):
            yield (
                f"{path}.requests[{name}]: Invalid value: {resources['requests'][name]!r}: "
                f"must be greater than or equal to aggregate container requests of {float(total[name]):g}"
            )
