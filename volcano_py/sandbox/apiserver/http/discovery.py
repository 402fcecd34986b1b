"""Discovery documents: /api, /apis and below, in the legacy and in the aggregated form.

Kubernetes: k8s.io/apiserver/pkg/endpoints/discovery.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

from volcano_py.sandbox.apiserver.apimachinery import errors
from volcano_py.sandbox.apiserver.endpoints.views import to_yaml
from volcano_py.sandbox.apiserver.http.routing import Route, is_custom
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.resources import Registry, Resource
from volcano_py.sandbox.apiserver.serializer.negotiate import negotiate

Object = dict[str, Any]
AGGREGATED = "APIGroupDiscoveryList"


def answer(api: Api, http: web.BaseRequest, target: Route) -> web.Response:
    """The document for a path of discovery."""
    accept = http.headers.get("Accept", "")
    registry = api.registry
    if http.method != "GET" and target.level in ("core", "version") and not is_custom(registry, target.group):
        raise errors.method_not_allowed()  # documents of groups and of CRDs are served for any method
    aggregable = target.level in ("core", "groups")
    form = negotiate(accept, (AGGREGATED,) if aggregable else ())
    headers = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
    if aggregable:
        headers["Vary"] = "Accept"
    if form.as_ == AGGREGATED:
        body = aggregated(registry, core=target.level == "core")
        headers["Content-Type"] = f"application/json;g=apidiscovery.k8s.io;v={form.version};as={AGGREGATED}"
        raw = orjson.dumps(body)
        headers["Etag"] = '"' + hashlib.sha256(raw).hexdigest().upper()[:32] + '"'
        if http.headers.get("If-None-Match") == headers["Etag"]:
            return web.Response(status=304, headers=headers)
    else:
        raw = orjson.dumps(_legacy(api, http, target))
        if form.media == "yaml":
            raw, headers["Content-Type"] = to_yaml(orjson.loads(raw)), "application/yaml"
    return web.Response(body=raw, headers=headers)


def _legacy(api: Api, http: web.BaseRequest, target: Route) -> Object:
    registry = api.registry
    if target.level == "core":
        return {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": http.host}],
        }
    if target.level == "groups":
        rows = [_group(registry, name) for name in ordered_groups(registry) if name]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": rows}
    if target.level == "group":
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(registry, target.group)}
    resources = registry.groups[target.group][target.version]
    group_version = f"{target.group}/{target.version}" if target.group else target.version
    rows = [row for resource in _by_name(resources) for row in _rows(resource)]
    out: Object = {"kind": "APIResourceList"}
    if target.group:
        out["apiVersion"] = "v1"
    return {**out, "groupVersion": group_version, "resources": rows}


def ordered_groups(registry: Registry, by_name: bool = False) -> list[str]:
    """Built-in groups in the server's order, then those of CRDs by the names of their API services, or their own."""
    builtin, custom = [], []
    for group, versions in registry.groups.items():
        if any(r.custom is not None for resources in versions.values() for r in resources.values()):
            custom.append(group)
        else:
            builtin.append(group)
    if by_name:
        custom.sort()
    else:
        custom.sort(key=lambda group: min(f"{version}.{group}" for version in registry.groups[group]))
    return builtin + custom


def version_key(version: str) -> tuple[int, int, int, str]:
    """The sort key of versions in Kubernetes' order of preference: v2, v1, v1beta2, v1alpha1, others."""
    import re

    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if match is None:
        return (3, 0, 0, version)
    level = {None: 0, "beta": 1, "alpha": 2}[match.group(2)]
    return (level, -int(match.group(1)), -int(match.group(3) or 0), version)


def ordered_versions(registry: Registry, group: str) -> list[str]:
    return sorted(registry.groups[group], key=version_key)


def _group(registry: Registry, group: str) -> Object:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version} for version in ordered_versions(registry, group)
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _rows(resource: Resource) -> list[Object]:
    row: Object = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        row["shortNames"] = list(resource.short_names)
    if resource.categories:
        row["categories"] = list(resource.categories)
    if "list" in resource.verbs and len(resource.verbs) > 2:
        row["storageVersionHash"] = _storage_hash(resource)
    rows = [row]
    for name, sub in resource.subresources.items():
        extra: Object = {}
        if sub.group is not None:
            extra = {"group": sub.group, "version": sub.version}
        rows.append(
            {
                "name": f"{resource.plural}/{name}",
                "singularName": "",
                "namespaced": resource.namespaced,
                **extra,
                "kind": sub.kind,
                "verbs": list(sub.verbs),
            }
        )
    return rows


def _storage_hash(resource: Resource) -> str:
    text = f"{resource.collection.name}/{resource.version}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _by_name(resources: Mapping[str, Resource]) -> list[Resource]:
    return sorted(resources.values(), key=lambda each: each.plural)


def aggregated(registry: Registry, core: bool) -> Object:
    """The APIGroupDiscoveryList of the core group or of all others."""
    items = []
    groups = [""] if core else [group for group in ordered_groups(registry, by_name=True) if group]
    for group in groups:
        versions = []
        for version in ordered_versions(registry, group):
            resources = [_aggregated_row(r) for r in _by_name(registry.groups[group][version])]
            versions.append({"version": version, "resources": resources, "freshness": "Current"})
        items.append({"metadata": {"name": group} if group else {}, "versions": versions})
    return {
        "kind": AGGREGATED,
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _aggregated_row(resource: Resource) -> Object:
    custom = resource.custom is not None
    group, version = (resource.group, resource.version) if custom else ("", "")
    row: Object = {
        "resource": resource.plural,
        "responseKind": {"group": group, "version": version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        row["shortNames"] = list(resource.short_names)
    if resource.categories:
        row["categories"] = list(resource.categories)
    if resource.subresources:
        row["subresources"] = [
            {
                "subresource": name,
                "responseKind": {
                    "group": group if sub.group is None else sub.group,
                    "version": version if sub.version is None else sub.version,
                    "kind": sub.kind,
                },
                "verbs": list(sub.verbs),
            }
            for name, sub in resource.subresources.items()
        ]
    return row
