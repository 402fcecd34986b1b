"""Validation of pod specs. Kubernetes: ValidatePodSpec, for the parts that a batch cluster uses."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata, quantity
from volcano_py.sandbox.apiserver.apimachinery.errors import (
    Cause,
    duplicate,
    field_forbidden,
    field_not_found,
    invalid_value,
    required,
    unsupported,
)

Object = dict[str, Any]

_STANDARD = {"cpu", "memory", "ephemeral-storage"}
_EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]


def pod_spec_causes(spec: Object, path: str = "spec", restart_policies: tuple[str, ...] = ()) -> list[Cause]:
    """The errors of a defaulted pod spec."""
    out: list[Cause] = []
    volumes = _volumes(spec.get("volumes") or [], f"{path}.volumes", out)
    containers = spec.get("containers") or []
    names: set[str] = set()
    if not containers:
        out.append(required(f"{path}.containers"))
    for index, container in enumerate(containers):
        _container(container, f"{path}.containers[{index}]", names, volumes, out)
    for index, container in enumerate(spec.get("initContainers") or []):
        _container(container, f"{path}.initContainers[{index}]", names, volumes, out)
    policy = spec.get("restartPolicy", "")
    if policy not in ("Always", "OnFailure", "Never"):
        out.append(unsupported(f"{path}.restartPolicy", policy, ["Always", "OnFailure", "Never"]))
    dns = spec.get("dnsPolicy", "")
    if dns not in ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"):
        choices = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]
        out.append(unsupported(f"{path}.dnsPolicy", dns, choices))
    out.extend(metadata.labels_causes(spec.get("nodeSelector") or {}, f"{path}.nodeSelector"))
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        value = spec["terminationGracePeriodSeconds"]
        text = "must be greater than or equal to 0"
        out.append(invalid_value(f"{path}.terminationGracePeriodSeconds", value, text))
    if "activeDeadlineSeconds" in spec and not 1 <= spec["activeDeadlineSeconds"] <= 2**31 - 1:
        value = spec["activeDeadlineSeconds"]
        text = "must be between 1 and 2147483647, inclusive"
        out.append(invalid_value(f"{path}.activeDeadlineSeconds", value, text))
    if spec.get("serviceAccountName"):
        name = spec["serviceAccountName"]
        out.extend(invalid_value(f"{path}.serviceAccountName", name, m) for m in metadata.subdomain_errors(name))
    if spec.get("nodeName"):
        out.extend(
            invalid_value(f"{path}.nodeName", spec["nodeName"], m) for m in metadata.subdomain_errors(spec["nodeName"])
        )
    if spec.get("priorityClassName"):
        name = spec["priorityClassName"]
        out.extend(invalid_value(f"{path}.priorityClassName", name, m) for m in metadata.subdomain_errors(name))
    if spec.get("hostname"):
        out.extend(
            invalid_value(f"{path}.hostname", spec["hostname"], m) for m in metadata.label_errors(spec["hostname"])
        )
    if spec.get("subdomain"):
        out.extend(
            invalid_value(f"{path}.subdomain", spec["subdomain"], m) for m in metadata.label_errors(spec["subdomain"])
        )
    tolerations_causes(spec.get("tolerations") or [], f"{path}.tolerations", out)
    _gates(spec, path, out)
    _spread(spec.get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints", out)
    _affinity(spec.get("affinity") or {}, f"{path}.affinity", out)
    return out


def _volumes(volumes: list[Object], path: str, out: list[Cause]) -> set[str]:
    names: set[str] = set()
    for index, volume in enumerate(volumes):
        at = f"{path}[{index}]"
        name = volume.get("name", "")
        if not name:
            out.append(required(f"{at}.name"))
        else:
            out.extend(invalid_value(f"{at}.name", name, m) for m in metadata.label_errors(name))
        if name in names:
            out.append(duplicate(f"{at}.name", name))
        names.add(name)
        sources = [key for key in volume if key != "name"]
        if len(sources) > 1:
            out.extend(
                field_forbidden(f"{at}.{source}", "may not specify more than 1 volume type") for source in sources[1:]
            )
        if volume.get("hostPath") is not None and not volume["hostPath"].get("path"):
            out.append(required(f"{at}.hostPath.path"))
        if volume.get("secret") is not None and not volume["secret"].get("secretName"):
            out.append(required(f"{at}.secret.secretName"))
        if volume.get("configMap") is not None and not volume["configMap"].get("name"):
            out.append(required(f"{at}.configMap.name"))
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            out.append(required(f"{at}.persistentVolumeClaim.claimName"))
    return names


def _container(container: Object, at: str, names: set[str], volumes: set[str], out: list[Cause]) -> None:
    name = container.get("name", "")
    if not name:
        out.append(required(f"{at}.name"))
    else:
        out.extend(invalid_value(f"{at}.name", name, m) for m in metadata.label_errors(name))
        if name in names:
            out.append(duplicate(f"{at}.name", name))
        names.add(name)
    image = container.get("image", "")
    if not image:
        out.append(required(f"{at}.image"))
    elif image != image.strip():
        out.append(invalid_value(f"{at}.image", image, "must not have leading or trailing whitespace"))
    ports: set[tuple[str, str]] = set()
    for index, port in enumerate(container.get("ports") or []):
        _port(port, f"{at}.ports[{index}]", ports, out)
    for index, variable in enumerate(container.get("env") or []):
        _variable(variable, f"{at}.env[{index}]", out)
    mounts: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or []):
        where = f"{at}.volumeMounts[{index}]"
        if not mount.get("name"):
            out.append(required(f"{where}.name"))
        elif mount["name"] not in volumes:
            out.append(field_not_found(f"{where}.name", mount["name"]))
        if not mount.get("mountPath"):
            out.append(required(f"{where}.mountPath"))
        elif mount["mountPath"] in mounts:
            out.append(invalid_value(f"{where}.mountPath", mount["mountPath"], "must be unique"))
        mounts.add(mount.get("mountPath", ""))
    policy = container.get("imagePullPolicy", "")
    if policy not in ("Always", "IfNotPresent", "Never"):
        out.append(unsupported(f"{at}.imagePullPolicy", policy, ["Always", "IfNotPresent", "Never"]))
    policy = container.get("terminationMessagePolicy", "")
    if policy not in ("File", "FallbackToLogsOnError"):
        choices = ["FallbackToLogsOnError", "File"]
        out.append(unsupported(f"{at}.terminationMessagePolicy", policy, choices))
    resources_causes(container.get("resources") or {}, f"{at}.resources", out)


def _port(port: Object, at: str, names: set[tuple[str, str]], out: list[Cause]) -> None:
    number = port.get("containerPort", 0)
    if number == 0:
        out.append(required(f"{at}.containerPort"))
    elif not 0 < number < 65536:
        out.append(invalid_value(f"{at}.containerPort", number, "must be between 1 and 65535, inclusive"))
    host = port.get("hostPort", 0)
    if host and not 0 < host < 65536:
        out.append(invalid_value(f"{at}.hostPort", host, "must be between 1 and 65535, inclusive"))
    if port.get("protocol") not in ("TCP", "UDP", "SCTP"):
        out.append(unsupported(f"{at}.protocol", port.get("protocol", ""), ["SCTP", "TCP", "UDP"]))
    name = port.get("name")
    if name:
        key = (name, "")
        if key in names:
            out.append(duplicate(f"{at}.name", name))
        names.add(key)


def _variable(variable: Object, at: str, out: list[Cause]) -> None:
    name = variable.get("name", "")
    if not name:
        out.append(required(f"{at}.name"))
    elif "=" in name or not name.isprintable():
        text = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        out.append(invalid_value(f"{at}.name", name, text))
    source = variable.get("valueFrom")
    if source is not None:
        if not source:
            text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
            out.append(invalid_value(f"{at}.valueFrom", "", text))
        elif variable.get("value"):
            text = "may not be specified when `value` is not empty"
            out.append(invalid_value(f"{at}.valueFrom", "", text))


def resources_causes(resources: Object, at: str, out: list[Cause]) -> None:
    """Requests and limits of a container."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, table in (("limits", limits), ("requests", requests)):
        for name, value in table.items():
            if name in _STANDARD:
                pass
            else:
                _resource_name(name, f"{at}.{kind}[{name}]", out)
            amount = quantity.parse(value)
            if amount < 0:
                out.append(invalid_value(f"{at}.{kind}[{name}]", value, "must be greater than or equal to 0"))
            elif name not in _STANDARD and not name.startswith("hugepages-") and amount.denominator != 1:
                out.append(invalid_value(f"{at}.{kind}[{name}]", value, "must be an integer"))
    for name, value in requests.items():
        if name in limits:
            limit = limits[name]
            if quantity.parse(value) > quantity.parse(limit):
                text = f"must be less than or equal to {name} limit of {limit}"
                out.append(invalid_value(f"{at}.requests", value, text))
            elif _fixed(name) and quantity.parse(value) != quantity.parse(limit):
                text = f"must be equal to {name} limit of {limit}"
                out.append(invalid_value(f"{at}.requests", value, text))
        elif _fixed(name):
            text = "Limit must be set for non overcommitable resources"
            out.append(required(f"{at}.limits", text))


def _fixed(name: str) -> bool:
    """Resources that cannot be overcommitted: extended ones and huge pages."""
    if name.startswith("hugepages-"):
        return True
    return "/" in name and not name.split("/")[0].endswith("kubernetes.io")


def _resource_name(name: str, at: str, out: list[Cause]) -> None:
    if name.startswith("hugepages-"):
        return
    errors = metadata.qualified_errors(name)
    if errors:
        out.extend(invalid_value(at, name, message) for message in errors)
    elif "/" not in name:
        out.append(invalid_value(at, name, "must be a standard resource type or fully qualified"))
        out.append(invalid_value(at, name, "must be a standard resource for containers"))


def tolerations_causes(tolerations: list[Object], path: str, out: list[Cause]) -> None:
    for index, toleration in enumerate(tolerations):
        at = f"{path}[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        if key:
            out.extend(invalid_value(f"{at}.key", key, m) for m in metadata.qualified_errors(key))
        elif operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            out.append(invalid_value(f"{at}.operator", operator, text))
        if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            out.append(invalid_value(f"{at}.effect", toleration.get("effect", ""), text))
        if operator in ("", "Equal"):
            errors = metadata.label_value_errors(toleration.get("value", ""))
            if errors:
                out.append(invalid_value(f"{at}.operator", toleration.get("value", ""), ";".join(errors)))
        elif operator == "Exists":
            if toleration.get("value"):
                text = "value must be empty when `operator` is 'Exists'"
                out.append(invalid_value(f"{at}.operator", toleration["value"], text))
        elif operator not in ("Lt", "Gt"):
            out.append(unsupported(f"{at}.operator", operator, ["Equal", "Exists"]))
        effect = toleration.get("effect", "")
        if effect and effect not in _EFFECTS:
            out.append(unsupported(f"{at}.effect", effect, _EFFECTS))


def _gates(spec: Object, path: str, out: list[Cause]) -> None:
    seen: set[str] = set()
    if (group := spec.get("schedulingGroup")) is not None:
        name, at = group.get("podGroupName"), f"{path}.schedulingGroup.podGroupName"
        if name is None:
            out.append(invalid_value(at, None, "must specify one of: `podGroupName`"))
        else:
            out.extend(invalid_value(at, name, fault) for fault in metadata.subdomain_errors(name))
    for index, gate in enumerate(spec.get("schedulingGates") or []):
        at = f"{path}.schedulingGates[{index}]"
        name = gate.get("name", "")
        out.extend(invalid_value(at, name, m) for m in metadata.qualified_errors(name))
        if name in seen:
            out.append(duplicate(at, name))
        seen.add(name)


def _spread(constraints: list[Object], path: str, out: list[Cause]) -> None:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        at = f"{path}[{index}]"
        if constraint.get("maxSkew", 0) <= 0:
            out.append(invalid_value(f"{at}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero"))
        key, when = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
        if not key:
            out.append(required(f"{at}.topologyKey", "can not be empty"))
        if when not in ("DoNotSchedule", "ScheduleAnyway"):
            out.append(unsupported(f"{at}.whenUnsatisfiable", when, ["DoNotSchedule", "ScheduleAnyway"]))
        pair = (key, when)
        if pair in seen:
            out.append(duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {when}}}"))
        seen.add(pair)


def _affinity(affinity: Object, path: str, out: list[Cause]) -> None:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        hard = rules.get("requiredDuringSchedulingIgnoredDuringExecution") or []
        for index, term in enumerate(hard):
            if not term.get("topologyKey"):
                at = f"{path}.{kind}.requiredDuringSchedulingIgnoredDuringExecution[{index}].topologyKey"
                out.append(required(at, "can not be empty"))
                out.append(invalid_value(at, "", "name part must be non-empty"))
                out.append(invalid_value(at, "", metadata.QUALIFIED_MESSAGE))
        soft = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or []
        for index, term in enumerate(soft):
            if not 1 <= term.get("weight", 0) <= 100:
                at = f"{path}.{kind}.preferredDuringSchedulingIgnoredDuringExecution[{index}].weight"
                out.append(invalid_value(at, term.get("weight", 0), "must be in the range 1-100"))
    node = affinity.get("nodeAffinity") or {}
    hard_node = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    if hard_node is not None:
        at = f"{path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        terms = hard_node.get("nodeSelectorTerms") or []
        if not terms:
            out.append(required(at, "must have at least one node selector term"))
        for index, term in enumerate(terms):
            _node_term(term, f"{at}[{index}]", out)
    for index, term in enumerate(node.get("preferredDuringSchedulingIgnoredDuringExecution") or []):
        at = f"{path}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        if not 1 <= term.get("weight", 0) <= 100:
            out.append(invalid_value(f"{at}.weight", term.get("weight", 0), "must be in the range 1-100"))
        _node_term(term.get("preference") or {}, f"{at}.preference", out)


def _node_term(term: Object, at: str, out: list[Cause]) -> None:
    for index, row in enumerate(term.get("matchExpressions") or []):
        where = f"{at}.matchExpressions[{index}]"
        operator, values = row.get("operator", ""), row.get("values") or []
        if operator in ("In", "NotIn") and not values:
            out.append(required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist") and values:
            out.append(
                field_forbidden(f"{where}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
            )
        elif operator in ("Gt", "Lt") and len(values) != 1:
            out.append(required(f"{where}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
        elif operator not in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"):
            out.append(invalid_value(f"{where}.operator", operator, "not a valid selector operator"))
        out.extend(
            invalid_value(f"{where}.key", row.get("key", ""), m) for m in metadata.qualified_errors(row.get("key", ""))
        )
