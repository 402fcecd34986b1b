"""LimitRanges: defaults that they set, and limits that they enforce. Kubernetes: the LimitRanger admission plugin."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from volcano_py.api.quantity import format_amount
from volcano_py.sandbox.apiserver.apimachinery import errors, quantity
from volcano_py.sandbox.apiserver.registry.api import Api, Attributes
from volcano_py.sandbox.apiserver.registry.resources import Resource

Object = dict[str, Any]

ANNOTATION = "kubernetes.io/limit-ranger"
_LISTS = (("initContainers", "init container"), ("containers", "container"))


def install(api: Api) -> None:
    """Enforce LimitRanges; before the configured webhooks, as kube-apiserver does."""
    api.hooks.insert(0, LimitRanger(api))


@dataclass(slots=True)
class LimitRanger:
    """The admission hook."""

    api: Api

    def handles(self, resource: Resource) -> bool:
        if resource.qualified not in ("pods", "persistentvolumeclaims"):
            return False
        return bool(self.api.store.collection("limitranges").entries)

    def _ranges(self, attributes: Attributes) -> list[list[Object]]:
        if attributes.operation != "CREATE" or attributes.request.subresource:
            return []
        entries = self.api.store.collection("limitranges").select(attributes.request.namespace)
        return [(entry.load().get("spec") or {}).get("limits") or [] for entry in entries]

    async def close(self) -> None:
        """Close the plugin; it has no resources."""

    async def mutate(self, attributes: Attributes) -> None:
        if attributes.request.resource.plural != "pods" or attributes.obj is None:
            return
        for limits in self._ranges(attributes):
            fill_in(attributes.obj, limits)

    async def validate(self, attributes: Attributes) -> None:
        obj = attributes.obj
        if obj is None:
            return
        request = attributes.request
        pod = request.resource.plural == "pods"
        for limits in self._ranges(attributes):
            wrong = pod_violations(obj, limits) if pod else claim_violations(obj, limits)
            if wrong:
                text = wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]"
                name = obj["metadata"].get("name", "")
                raise errors.forbidden(request.resource.group, request.resource.plural, name, text)


def fill_in(pod: Object, limits: list[Object]) -> None:
    """Set the default requests and limits of containers, and list them in an annotation."""
    defaults: dict[str, Object] = {"limits": {}, "requests": {}}
    for limit in limits:
        if limit.get("type") == "Container":
            defaults["requests"].update(limit.get("defaultRequest") or {})
            defaults["limits"].update(limit.get("default") or {})
    changes = []
    for field, word in reversed(_LISTS):
        for container in pod["spec"].get(field) or ():
            resources = container.setdefault("resources", {})
            for kind, singular in (("requests", "request"), ("limits", "limit")):
                given = resources.get(kind) or {}
                missing = sorted(set(defaults[kind]) - set(given))
                if missing:
                    resources[kind] = {**given, **{key: defaults[kind][key] for key in missing}}
                    changes.append(f"{', '.join(missing)} {singular} for {word} {container.get('name', '')}")
    if changes:
        annotations = pod["metadata"].get("annotations") or {}
        annotations[ANNOTATION] = "LimitRanger plugin set: " + "; ".join(changes)
        pod["metadata"]["annotations"] = annotations


def pod_violations(pod: Object, limits: list[Object]) -> list[str]:
    """The limits of a LimitRange that a pod violates."""
    out: list[str] = []
    spec = pod["spec"]
    for limit in limits:
        if limit.get("type") == "Container":
            for field in ("containers", "initContainers"):
                for container in spec.get(field) or ():
                    resources = container.get("resources") or {}
                    _check(limit, resources.get("requests") or {}, resources.get("limits") or {}, out)
        elif limit.get("type") == "Pod":
            _check(limit, pod_total(spec, "requests"), pod_total(spec, "limits"), out)
    return out


def claim_violations(claim: Object, limits: list[Object]) -> list[str]:
    """The limits of a LimitRange that a PersistentVolumeClaim violates."""
    out: list[str] = []
    requests = ((claim["spec"].get("resources") or {}).get("requests")) or {}
    for limit in limits:
        if limit.get("type") == "PersistentVolumeClaim":
            for key, value in sorted((limit.get("min") or {}).items()):
                _bound("minimum", key, limit, value, "request", requests.get(key), out)
            for key, value in sorted((limit.get("max") or {}).items()):
                _bound("maximum", key, limit, value, "request", requests.get(key), out)
    return out


def pod_total(spec: Object, kind: str) -> dict[str, str]:
    """The requests or limits of a whole pod: the sum of its containers or the largest init container, and overhead."""
    total: dict[str, str] = {}
    sidecars: dict[str, str] = {}
    first: dict[str, str] = {}
    for container in spec.get("initContainers") or ():
        own = (container.get("resources") or {}).get(kind) or {}
        if container.get("restartPolicy") == "Always":
            _add(sidecars, own)
            own = sidecars
            _add(total, (container.get("resources") or {}).get(kind) or {})
        else:
            own = _sum(own, sidecars)
        _raise(first, own)
    for container in spec.get("containers") or ():
        _add(total, (container.get("resources") or {}).get(kind) or {})
    _raise(total, first)
    overhead = spec.get("overhead") or {}
    _add(total, overhead if kind == "requests" else {key: overhead[key] for key in overhead if key in total})
    return total


def plus(left: str, right: str) -> str:
    """The sum of two quantities, in the format of the left one unless that is zero."""
    base, written = quantity.split(left)
    more, other = quantity.split(right)
    return format_amount(base + more, written if base else other)


def _add(total: dict[str, str], more: dict[str, str]) -> None:
    for key, value in more.items():
        total[key] = plus(total[key], value) if key in total else value


def _sum(left: dict[str, str], right: dict[str, str]) -> dict[str, str]:
    out = dict(left)
    _add(out, right)
    return out


def _raise(total: dict[str, str], other: dict[str, str]) -> None:
    for key, value in other.items():
        if key not in total or quantity.parse(value) > quantity.parse(total[key]):
            total[key] = value


def _check(limit: Object, requests: Object, limits: Object, out: list[str]) -> None:
    for key, value in sorted((limit.get("min") or {}).items()):
        _bound("minimum", key, limit, value, "request", requests.get(key), out)
        if key in requests and not _below(requests[key], value) and key in limits and _below(limits[key], value):
            _bound("minimum", key, limit, value, "limit", limits[key], out)
    for key, value in sorted((limit.get("max") or {}).items()):
        _bound("maximum", key, limit, value, "limit", limits.get(key), out)
        if key in limits and not _below(value, limits[key]) and key in requests and _below(value, requests[key]):
            _bound("maximum", key, limit, value, "request", requests[key], out)
    for key, value in sorted((limit.get("maxLimitRequestRatio") or {}).items()):
        text = f"{key} max limit to request ratio per {limit['type']} is {value}, but "
        requested, allowed = _value(requests.get(key)), _value(limits.get(key))
        if not requested:
            out.append(text + "no request is specified or request is 0")
        elif not allowed:
            out.append(text + "no limit is specified or limit is 0")
        elif allowed / requested > quantity.parse(value):
            out.append(text + f"provided ratio is {float(allowed / requested):f}")


def _bound(word: str, key: str, limit: Object, bound: str, of: str, seen: str | None, out: list[str]) -> None:
    text = f"{word} {key} usage per {limit['type']} is {bound}"
    if seen is None:
        out.append(f"{text}.  No {of} is specified")
    elif _below(seen, bound) if word == "minimum" else _below(bound, seen):
        out.append(f"{text}, but {of} is {seen}")


def _value(text: str | None) -> Fraction:
    return quantity.parse(text) if text is not None else Fraction(0)


def _below(left: str, right: str) -> bool:
    return quantity.parse(left) < quantity.parse(right)
