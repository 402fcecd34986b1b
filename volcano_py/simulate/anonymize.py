"""Replaces all names in a snapshot, so that it can be published.

Names, namespaces, UIDs, labels, images and other identifying values are replaced, each by the same name everywhere, so
that owners, selectors, affinity, queues and claims still refer to the same objects. New names have the order of the old
ones, because the order of names breaks ties. Amounts, times, enumerated values of the Kubernetes API, names of
resources, drivers and device classes, and names that every cluster has (`default`, `kube-system`, …) are kept. Fields
that this module does not list are dropped.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import yaml

from volcano_py.api.codec import from_manifest, to_manifest
from volcano_py.api.kinds import RESERVATION
from volcano_py.api.topology import MEMBER_NODE, ExactMatch, Member, MemberSelector
from volcano_py.scheduler.framework.config import ConfigurationError, read_yaml
from volcano_py.scheduler.model.nodes.hyper_nodes import build
from volcano_py.scheduler.plugins.deviceshare.chip_reports import is_any_report
from volcano_py.simulate.anonymous_fields import (
    DOMAINS,
    KEPT,
    KEYS,
    MAPS,
    NAMED,
    NAMES,
    REFERENCES,
    SAME,
    VOCABULARY,
    WHOLE,
)
from volcano_py.simulate.manifests import STRUCTS, Manifest
from volcano_py.simulate.snapshot import Snapshot

_AMOUNT = re.compile(r"[+-]?[0-9.]+([eE][+-]?[0-9]+|[numkKMGTPE]i?|%|[smhd])?")
_PARTS = re.compile(r"([/:@,;|]+)")
_BETWEEN, _LETTERS = ("default", "kube-", "root", "system-", "volcano"), "aelstw"
"""Names that are kept, in order, and a letter before, between and after them."""

Rename = Callable[[str], str]


def anonymize(snapshot: Snapshot) -> Snapshot:
    """A snapshot of the same cluster with other names."""
    # Reports of chips contain names and addresses of nodes in texts.
    kept = {
        kind: [obj for obj in objects if kind != "ConfigMap" or not is_any_report(obj)]
        for kind, objects in _without_patterns(snapshot).items()
    }
    manifests = {kind: [to_manifest(obj) for obj in objects] for kind, objects in kept.items()}
    found: set[str] = set()

    def collect(name: str) -> str:
        found.add(name)
        return name

    _all(manifests, collect)
    width = len(str(len(found)))
    new = {name: f"{_letter(name)}{i:0{width}}" for i, name in enumerate(sorted(found))}
    renamed = _all(manifests, new.__getitem__)
    return msgspec.structs.replace(
        snapshot,
        objects={kind: [from_manifest(STRUCTS[kind], m) for m in of] for kind, of in renamed.items()},
        configuration=_configuration(snapshot.configuration, new),
        unread=tuple(msgspec.structs.replace(u, why="not readable") for u in snapshot.unread),
        anonymized=True,
    )


def _letter(name: str) -> str:
    """The first letter of the new name, so that it keeps its position among the names that are kept."""
    return _LETTERS[bisect_right(_BETWEEN, name)]


def _without_patterns(snapshot: Snapshot) -> dict[str, list[Any]]:
    """The objects, with members of HyperNodes by name instead of by pattern, which would not match the new names."""
    hyper_nodes = snapshot.of("HyperNode")
    if not hyper_nodes:
        return snapshot.objects
    labels = {node.metadata.name: node.metadata.labels or {} for node in snapshot.of("Node")}
    exact = []
    for obj in hyper_nodes:
        members = []
        for member in obj.spec.members or ():
            if member.selector.regex_match is None:
                members.append(member)
                continue
            alone = msgspec.structs.replace(obj, spec=msgspec.structs.replace(obj.spec, members=[member]))
            for name in sorted(build([alone], labels).infos[obj.metadata.name].nodes):
                members.append(Member(type=MEMBER_NODE, selector=MemberSelector(exact_match=ExactMatch(name=name))))
        exact.append(msgspec.structs.replace(obj, spec=msgspec.structs.replace(obj.spec, members=members)))
    return {**snapshot.objects, "HyperNode": exact}


def _all(manifests: Mapping[str, list[Manifest]], rename: Rename) -> dict[str, list[Manifest]]:
    """All objects; `rename` is called for every name."""
    result = {}
    for kind, objects in manifests.items():
        keeps_name = kind in ("DeviceClass", "CSIDriver", "ConfigMap")
        made = []
        for manifest in objects:
            new = _reservation(manifest, rename) if kind == RESERVATION.kind else _map(manifest, rename)
            selector = (manifest.get("spec") or {}).get("selector")
            if kind in ("Service", "ReplicationController") and selector:
                new["spec"]["selector"] = _labels(selector, rename)
            if keeps_name:
                new["metadata"]["name"] = manifest["metadata"]["name"]
            if kind == "ConfigMap":
                new["data"] = manifest.get("data")
            made.append(new)
        result[kind] = made
    return result


def _reservation(manifest: Manifest, rename: Rename) -> Manifest:
    """A Reservation: its fields `nodeSelector` and `resources` have other types than those of pods."""
    spec = dict(manifest["spec"])
    selector, amounts = spec.pop("nodeSelector", None), spec.pop("resources", None)
    new = _map({**manifest, "spec": spec}, rename)
    new["spec"] |= {"nodeSelector": _map(selector, rename)} if selector is not None else {}
    new["spec"] |= {"resources": amounts} if amounts else {}
    return new


def _map(value: Mapping[str, Any], rename: Rename) -> Manifest:
    by_key = "key" in value or "operator" in value
    result: Manifest = {}
    for field, inner in value.items():
        if field in WHOLE and isinstance(inner, dict):
            result[field] = inner
        elif field in MAPS and isinstance(inner, dict):
            result[field] = _labels(inner, rename, annotations=field == "annotations")
        elif field in NAMED and isinstance(inner, dict):
            result[field] = {_name(key, rename): amount for key, amount in inner.items()}
        elif by_key and field in ("key", "value", "values"):
            result[field] = _by_key(str(value.get("key", "")), field, inner, rename)
        elif field == "drivers" and isinstance(inner, list):
            result[field] = [{**_map(driver, rename), "name": driver.get("name", "")} for driver in inner]
        elif field == "schedulingGates" or field == "consumesCounters":
            result[field] = inner
        else:
            found = _field(field, inner, rename)
            if found is not None:
                result[field] = found
    return result


def _field(field: str, value: Any, rename: Rename) -> Any:
    """The value of one field; None: it is dropped."""
    if isinstance(value, dict):
        return _map(value, rename)
    if isinstance(value, list):
        return [found for inner in value if (found := _field(field, inner, rename)) is not None]
    if not isinstance(value, str) or field in KEPT:
        return value
    if field in KEYS:
        return _key(value, rename)
    return _parts(value, rename) if field in NAMES else None


def _by_key(key: str, field: str, value: Any, rename: Rename) -> Any:
    """Key and values of a requirement, a taint or a toleration."""
    if field == "key":
        return _key(value, rename)
    if isinstance(value, list):
        return [_value(key, text, rename) for text in value]
    return _value(key, value, rename) if isinstance(value, str) else value


def _labels(given: Mapping[str, str], rename: Rename, annotations: bool = False) -> dict[str, str]:
    result = {}
    for key, value in given.items():
        if not annotations:
            result[_key(key, rename)] = _value(key, value, rename)
        elif key in REFERENCES:
            result[key] = _parts(value, rename)
        elif key in VOCABULARY or _AMOUNT.fullmatch(value) or value in SAME:
            result[key] = value
    return result


def _key(key: str, rename: Rename) -> str:
    domain = key.partition("/")[0] if "/" in key else ""
    if any(domain == known or domain.endswith(f".{known}") for known in DOMAINS):
        return key
    return _name(key, rename)


def _value(key: str, value: str, rename: Rename) -> str:
    return value if key in VOCABULARY else _name(value, rename)


def _parts(text: str, rename: Rename) -> str:
    """A text in which names are separated: `repository/image:tag`, `request/subrequest`, `root/eng/dev`."""
    parts = _PARTS.split(text)
    return "".join(part if i % 2 else _name(part, rename) for i, part in enumerate(parts))


def _name(name: str, rename: Rename) -> str:
    """The new name; amounts and names that every cluster has are kept. In `job-role-7` the 7, the order of tasks, is
    kept."""
    if not name or name in SAME or _AMOUNT.fullmatch(name):
        return name
    base, _, index = name.rpartition("-")
    return f"{rename(base)}-r-{index}" if "-" in base and index.isdecimal() else rename(name)


def _configuration(text: str, new: Mapping[str, str]) -> str:
    """The configuration with the new names of queues, nodes and other objects in plugins' arguments."""
    try:
        document = read_yaml(text)
    except ConfigurationError:
        return ""
    if not isinstance(document, dict):
        return text
    for tier in document.get("tiers") or ():
        for plugin in _dicts(tier.get("plugins") if isinstance(tier, dict) else None):
            if "arguments" in plugin:
                plugin["arguments"] = _renamed(plugin["arguments"], new)
    return yaml.safe_dump(document, sort_keys=False)


def _dicts(value: Any) -> Iterable[dict[str, Any]]:
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def _renamed(value: Any, new: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(inner, new) for key, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, new) for inner in value]
    return _name(value, lambda name: new.get(name, name)) if isinstance(value, str) else value
