"""Assembles an API server: built-in resources, definitions, discovery, health, and the objects of a new cluster.

Kubernetes: kube-apiserver with its post-start hooks.
"""

from __future__ import annotations

import platform
from typing import Any

import orjson
from aiohttp import web

from volcano_py.sandbox.apiserver.admission import limits, namespaces, policies, quota, webhooks
from volcano_py.sandbox.apiserver.apiextensions import definitions
from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apimachinery.errors import PageNotFound
from volcano_py.sandbox.apiserver.auth import default_roles
from volcano_py.sandbox.apiserver.auth.authentication import Authenticator
from volcano_py.sandbox.apiserver.endpoints import scale, subresources, tokens
from volcano_py.sandbox.apiserver.http.server import Server
from volcano_py.sandbox.apiserver.openapi import v3
from volcano_py.sandbox.apiserver.registry import builtin
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.apiserver.registry.strategies.cluster import NAMESPACE_LABEL, SYSTEM_CLASSES
from volcano_py.sandbox.apiserver.schema import codec
from volcano_py.sandbox.apiserver.storage.durable import Durable
from volcano_py.sandbox.apiserver.storage.store import ADDED, Entry

Object = dict[str, Any]

VERSIONS = {"1.33": "v1.33.4", "1.34": "v1.34.1", "1.35": "v1.35.0", "1.36": "v1.36.1", "1.37": "v1.37.2"}
"""What `/version` returns, by the version of Kubernetes."""


def new_api(durable: Durable | None = None, features: frozenset[str] = frozenset(), kubernetes: str = "1.36") -> Api:
    """An API with the built-in resources, the objects that every cluster has, and the persisted objects.

    `features`: the enabled feature gates. `kubernetes`: the version whose resources are served.
    """
    api = Api(features=features, kubernetes=kubernetes)
    builtin.install(api.registry, api.store, features, kubernetes)
    subresources.install(api)
    scale.install(api)
    api.resource("", "namespaces").strategy.delete = namespaces.delete
    api.resource("apiextensions.k8s.io", "customresourcedefinitions").strategy = definitions.STRATEGY
    api.extensions["definitions"] = definitions.Definitions(api)
    api.extensions["openapi"] = v3.OpenAPI(api.registry, kubernetes)
    if durable is not None:
        durable.restore(api.store, api.entry, definitions.CRDS)
        api.store.listeners.append(durable.observe)
    _bootstrap(api)
    default_roles.install(api)
    limits.install(api)
    policies.install(api)
    webhooks.install(api)
    quota.install(api)
    tokens.install(api)
    return api


def new_server(api: Api, users: dict[str, User]) -> Server:
    """The HTTP side of an API for users by token."""

    def stored(plural: str, namespace: str, name: str) -> Entry | None:
        return api.store.collections[plural].get(namespace, name)

    authenticator = Authenticator(users, stored=stored)
    api.extensions["authenticator"] = authenticator
    server = Server(api, authenticator)
    for path in ("/version", "/version/"):
        server.paths[path] = _version
    for path in ("/healthz", "/livez", "/readyz"):
        server.paths[path] = _health
        server.prefixes.append((path + "/", _health))
    server.prefixes.append(("/openapi/", v3.serve))
    for path in ("/", "/index.html"):
        server.paths[path] = _root
    return server


def put(api: Api, group: str, plural: str, obj: Object) -> None:
    """Store an object of a built-in kind with defaults, unless it exists."""
    resource = api.resource(group, plural)
    meta = obj["metadata"]
    if resource.collection.get(meta.get("namespace", ""), meta["name"]) is not None:
        return
    meta.setdefault("uid", metadata.new_uid())
    meta.setdefault("creationTimestamp", metadata.now())
    made = codec.normalise(resource.type, obj, codec.Unknown())
    resource.strategy.default(made)
    api.write(resource, ADDED, made)


def _bootstrap(api: Api) -> None:
    for name in namespaces.SYSTEM:
        put(
            api,
            "",
            "namespaces",
            {
                "metadata": {"name": name, "labels": {NAMESPACE_LABEL: name}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            },
        )
    for name, value in SYSTEM_CLASSES.items():
        text = "Used for system critical pods that must not be moved from their current node."
        if "cluster" in name:
            text = (
                "Used for system critical pods that must run in the cluster, but can be moved to another node "
                "if necessary."
            )
        put(
            api,
            "scheduling.k8s.io",
            "priorityclasses",
            {"metadata": {"name": name, "generation": 1}, "value": value, "description": text},
        )


async def _version(server: Server, http: web.BaseRequest, path: str) -> web.StreamResponse:
    minor = server.api.kubernetes.partition(".")[2]
    info = {
        "major": "1",
        "minor": minor,
        "emulationMajor": "1",
        "emulationMinor": minor,
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": VERSIONS[server.api.kubernetes],
        "gitCommit": "volcano-py-sandbox",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
    return web.Response(body=orjson.dumps(info), headers={"Content-Type": "application/json"})


_CHECKS = ("ping", "log", "etcd", "poststarthook/crd-informer-synced")


async def _health(server: Server, http: web.BaseRequest, path: str) -> web.StreamResponse:
    head, _, rest = path[1:].partition("/")
    headers = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
    if rest:
        if rest not in _CHECKS:
            raise PageNotFound
        return web.Response(body=b"ok", headers=headers)
    if "verbose" in http.query:
        lines = [f"[+]{check} ok" for check in _CHECKS]
        text = "\n".join([*lines, f"{head} check passed", ""])
        return web.Response(body=text.encode(), headers=headers)
    return web.Response(body=b"ok", headers=headers)


async def _root(server: Server, http: web.BaseRequest, path: str) -> web.StreamResponse:
    paths = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
    for group, versions in server.api.registry.groups.items():
        if group:
            paths.append(f"/apis/{group}")
            paths.extend(f"/apis/{group}/{version}" for version in versions)
    body = orjson.dumps({"paths": sorted(paths)})
    return web.Response(body=body, headers={"Content-Type": "application/json"})
