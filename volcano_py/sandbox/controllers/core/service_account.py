"""Creates in every namespace the service account `default` and the authority's certificate.

Kubernetes: the service account controller and the root CA publisher.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import DELETED, Event
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]

DEFAULT = "default"
ROOT_CA = "kube-root-ca.crt"


def controller(api: Api, authority: bytes) -> Controller:
    """authority: the certificate, as PEM, that clients trust."""
    client = Client(api, "service-account-controller")
    namespaces = api.resource("", "namespaces").collection
    data = {"ca.crt": authority.decode()}

    def namespace_changed(event: Event) -> Iterable[str]:
        if event.type != DELETED and event.entry.fields["status.phase"] == "Active":
            yield event.entry.name

    def account_changed(event: Event) -> Iterable[str]:
        if event.type == DELETED and event.entry.name == DEFAULT:
            yield event.entry.namespace

    def configmap_changed(event: Event) -> Iterable[str]:
        if event.entry.name == ROOT_CA and event.prev is not None:
            yield event.entry.namespace

    async def sync(name: Any) -> None:
        entry = namespaces.entries.get(name)
        if entry is None or entry.fields["status.phase"] != "Active":
            return
        if client.get("serviceaccounts", f"{name}/{DEFAULT}") is None:
            await make("serviceaccounts", "ServiceAccount", {"name": DEFAULT, "namespace": name})
        published = client.get("configmaps", f"{name}/{ROOT_CA}")
        if published is None:
            note = {
                "kubernetes.io/description": "Contains the certificate of the authority that the API server's is from."
            }
            meta = {"name": ROOT_CA, "namespace": name, "annotations": note}
            await make("configmaps", "ConfigMap", meta, data=data)
        elif published.get("data") != data:
            await client.update("configmaps", f"{name}/{ROOT_CA}", lambda obj: obj.update(data=data))

    async def make(collection: str, kind: str, meta: Object, **fields: Any) -> None:
        try:
            await client.create(collection, {"apiVersion": "v1", "kind": kind, "metadata": meta, **fields})
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise

    wakes = {
        "namespaces": namespace_changed,
        "serviceaccounts": account_changed,
        "configmaps": configmap_changed,
    }
    return Controller("service-account-controller", sync, wakes=wakes)
