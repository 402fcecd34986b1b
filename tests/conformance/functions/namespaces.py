"""Namespaces: their resource quotas in the model."""

from __future__ import annotations

from typing import Any

from tests.conformance.functions.adapter import Adapter, Adapters, Data, receiver_after
from tests.conformance.functions.opened import cluster_of, feed
from volcano_py.api.codec import to_manifest
from volcano_py.scheduler.model.cluster import Cluster


def _quota(namespace: str, name: str, status: Data) -> Data:
    return {"kind": "ResourceQuota", "metadata": {"namespace": namespace, "name": name}, "status": status}


def _before(receiver: Data) -> Cluster:
    return cluster_of([_quota(receiver["Name"], name, status) for name, status in receiver["QuotaStatus"].items()])


def _out(cluster: Cluster, namespace: str) -> list[Any]:
    found = {q.metadata.name: to_manifest(q.status) for q in cluster.others.get("ResourceQuota", {}).values()}
    return [{"Name": namespace, "QuotaStatus": found}]


def _update(r: Data, a: list[Any]) -> list[Any]:
    cluster = _before(r)
    feed(cluster, _quota(r["Name"], a[0]["metadata"]["name"], a[0]["status"]))
    return _out(cluster, r["Name"])


def _delete(r: Data, a: list[Any]) -> list[Any]:
    cluster = _before(r)
    cluster.remove("ResourceQuota", r["Name"], a[0]["metadata"]["name"])
    return _out(cluster, r["Name"])


ADAPTERS: Adapters = {
    "api.NewNamespaceCollection": lambda r, a: _out(cluster_of([]), a[0]),
    "api.NamespaceCollection.Update": Adapter(_update, receiver_after),
    "api.NamespaceCollection.Delete": Adapter(_delete, receiver_after),
    "api.NamespaceCollection.Snapshot": lambda r, a: _out(_before(r), r["Name"]),
}
