"""ResourceQuotas: what an object uses, and whether the quota permits it. Kubernetes: the ResourceQuota plugin.

Only `status.hard` is enforced; `controllers/core/resource_quota.py` sets it, and recounts after deletions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from volcano_py.sandbox.apiserver.admission.limits import plus, pod_total
from volcano_py.sandbox.apiserver.apimachinery import errors, quantity
from volcano_py.sandbox.apiserver.registry.api import Api, Attributes
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.storage.store import MODIFIED

Object = dict[str, Any]
Usage = dict[str, str]

_PLAIN = frozenset(("cpu", "memory", "ephemeral-storage"))  # may be specified without "requests."
_MUST_SAY = frozenset(
    ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"),
)
_COUNTED = frozenset(
    (
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
    )
)


def install(api: Api) -> None:
    """Enforce quotas, after all other admission plugins."""
    api.hooks.append(QuotaAdmission(api))


@dataclass(slots=True)
class QuotaAdmission:
    """The admission hook."""

    api: Api

    def handles(self, resource: Resource) -> bool:
        return resource.namespaced and bool(self.api.store.collection("resourcequotas").entries)

    async def close(self) -> None:
        """Close the plugin; it has no resources."""

    async def mutate(self, attributes: Attributes) -> None:
        """Quotas change no objects."""

    async def validate(self, attributes: Attributes) -> None:
        request, obj = attributes.request, attributes.obj
        if attributes.operation != "CREATE" or request.subresource or obj is None:
            return
        resource = request.resource
        name = obj["metadata"].get("name", "")
        changed: list[Object] = []
        for entry in self.api.store.collection("resourcequotas").select(request.namespace):
            quota = entry.load()
            hard = (quota.get("status") or {}).get("hard") or {}
            if not hard or not applies(quota, resource, obj):
                continue
            used = quota["status"].get("used") or {}
            fault, after = charge(quota["metadata"]["name"], hard, used, resource, obj)
            if fault:
                raise errors.forbidden(resource.group, resource.plural, name, fault)
            if after != used:
                quota["status"]["used"] = after
                changed.append(quota)
        if not request.dry_run:
            for quota in changed:
                self.api.write(self.api.resource("", "resourcequotas"), MODIFIED, quota)


def charge(name: str, hard: Usage, used: Usage, resource: Resource, obj: Object) -> tuple[str, Usage]:
    """The reason to deny an object, and the usage including it."""
    if resource.qualified == "pods":
        missing = sorted(_missing_resources(hard, obj))
        if missing:
            return f"failed quota: {name}: must specify " + "; ".join(missing), used
    wanted = {key: value for key, value in usage(resource, obj).items() if key in hard}
    unknown = sorted(key for key in wanted if key not in used)
    if unknown:
        return f"status unknown for quota: {name}, resources: {','.join(unknown)}", used
    after = {**used, **{key: plus(used[key], value) for key, value in wanted.items()}}
    over = sorted(key for key, value in wanted.items() if quantity.parse(value) > 0 and _more(after[key], hard[key]))
    if over:
        rows = [",".join(f"{key}={table[key]}" for key in over) for table in (wanted, used, hard)]
        return f"exceeded quota: {name}, requested: {rows[0]}, used: {rows[1]}, limited: {rows[2]}", used
    return "", after


def usage(resource: Resource, obj: Object) -> Usage:
    """What one object uses, by the resource names of quotas."""
    out = {f"count/{resource.qualified}": "1"}
    if resource.qualified not in _COUNTED:
        return out
    if resource.plural == "pods" and (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return out
    out[resource.plural] = "1"
    spec = obj.get("spec") or {}
    if resource.plural == "pods":
        for key, value in pod_total(spec, "requests").items():
            out[f"requests.{key}"] = value
            if key in _PLAIN or key.startswith("hugepages-"):
                out[key] = value
        for key, value in pod_total(spec, "limits").items():
            out[f"limits.{key}"] = value
    elif resource.plural == "services":
        kind = spec.get("type")
        ports = len(spec.get("ports") or ())
        out["services.loadbalancers"] = "1" if kind == "LoadBalancer" else "0"
        out["services.nodeports"] = str(ports) if kind in ("NodePort", "LoadBalancer") else "0"
    elif resource.plural == "persistentvolumeclaims":
        size = ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")
        out["requests.storage"] = size
        if spec.get("storageClassName"):
            prefix = f"{spec['storageClassName']}.storageclass.storage.k8s.io/"
            out[f"{prefix}requests.storage"] = size
            out[f"{prefix}persistentvolumeclaims"] = "1"
    return out


def total(api: Api, quota: Object) -> Usage:
    """The usage of a quota's resources in its namespace."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    used = dict.fromkeys(hard, "0")
    namespace = quota["metadata"]["namespace"]
    for resource in _counted(api, hard):
        for entry in resource.collection.select(namespace):
            obj = entry.load()
            if applies(quota, resource, obj):
                for key, value in usage(resource, obj).items():
                    if key in used:
                        used[key] = plus(used[key], value)
    return used


def _counted(api: Api, hard: Usage) -> Iterator[Resource]:
    wanted = {key.removeprefix("count/") for key in hard if key.startswith("count/")}
    plain = {key for key in hard if not key.startswith("count/")}
    if plain:
        wanted.add("pods")
    wanted |= plain & _COUNTED
    if any(key.startswith("services.") for key in plain):
        wanted.add("services")
    if any("storage" in key for key in plain):
        wanted.add("persistentvolumeclaims")
    for qualified in sorted(wanted):
        plural, _, group = qualified.partition(".")
        found = api.registry.find(group, plural)
        if found is not None and found.namespaced:
            yield found


def applies(quota: Object, resource: Resource, obj: Object) -> bool:
    """Whether the quota's scopes include an object."""
    spec = quota.get("spec") or {}
    terms = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    terms += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    if not terms:
        return True
    if resource.qualified != "pods":
        return False
    return all(_in_scope(term, obj) for term in terms)


def _in_scope(term: Object, pod: Object) -> bool:
    scope = term.get("scopeName")
    spec = pod.get("spec") or {}
    best_effort = (pod.get("status") or {}).get("qosClass") == "BestEffort"
    if scope in ("BestEffort", "NotBestEffort"):
        return bool(best_effort == (scope == "BestEffort"))
    if scope in ("Terminating", "NotTerminating"):
        return bool((spec.get("activeDeadlineSeconds") is not None) == (scope == "Terminating"))
    if scope == "PriorityClass":
        name, values = spec.get("priorityClassName") or "", term.get("values") or []
        operator = term.get("operator")
        if operator == "In":
            return name in values
        if operator == "NotIn":
            return name not in values
        return bool(name) == (operator == "Exists")
    return False


def _missing_resources(hard: Usage, pod: Object) -> Iterator[str]:
    """Resources that every container must specify under this quota, and the containers that do not."""
    spec = pod.get("spec") or {}
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for key in sorted(_MUST_SAY & set(hard)):
        kind, _, name = key.rpartition(".")
        lacking = sorted(
            container.get("name", "")
            for container in containers
            if name not in ((container.get("resources") or {}).get(kind or "requests") or {})
        )
        if lacking:
            yield f"{key} for: {','.join(lacking)}"


def _more(left: str, right: str) -> bool:
    return quantity.parse(left) > quantity.parse(right)
