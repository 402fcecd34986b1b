"""Nodes: their sums as pods come and go. The adapters use the model, which has no node object but columns."""

from __future__ import annotations

from typing import Any

from tests.conformance.functions.adapter import Adapter, Adapters, Data
from tests.conformance.functions.opened import cluster_of, feed, pod
from tests.conformance.functions.values import dense, resource, resource_out
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.resource import Resource

_SUMS = ("allocatable", "idle", "used", "releasing", "pipelined")


def _around(receiver: Data, task: Data | None = None) -> Cluster:
    """The model before a call: the node with its pods.

    The data contains only the names and the sum of the pods on a node. The pod of the call requests what its manifest
    contains, one of the others all the rest.
    """
    cluster = cluster_of([{"kind": "Node", **receiver["node"]}])
    rest = resource(receiver["used"])
    here = receiver.get("tasks") or {}
    if task is not None and task["name"] in here:
        feed(cluster, {"kind": "Pod", **task["pod"]})
        rest.sub_unchecked(resource(task["resreq"]))
    for key, status in here.items():
        if task is None or key != task["name"]:
            feed(cluster, pod(key, resource_out(rest), on=receiver["name"], status=status, uid=key))
            rest = Resource()
    return cluster


def _node_out(cluster: Cluster, name: str) -> list[Any]:
    i = cluster.nodes.index.get(name)
    if i is None:
        return [{"name": name, "ready": False}]
    numbers = cluster.nodes.snapshot()
    sums = {}
    for kind in _SUMS:
        amount = Resource()
        for row_name, row in cluster.nodes.rows.items():
            amount[row_name] = float(getattr(numbers, kind)[row, i])
        sums[kind] = dense(resource_out(amount))
    tasks = {t.key: st.STATUS_NAMES[t.status] for t in cluster.on_node.get(name, {}).values()}
    most = int(numbers.max_pods[i])
    return [{"name": name, "ready": True, "tasks": tasks, "max_task_num": most, **sums}]


def _node_facts(node: Data) -> Data:
    """The model's values of a node. Left out: its capacity, which no rule reads; devices and NUMA."""
    facts = {k: node[k] for k in ("name", "ready", "tasks") if k in node}
    return {
        **facts,
        "max_task_num": node["allocatable"].get("max_task_num", 0),
        **{kind: dense(node[kind]) for kind in _SUMS},
    }


def _changed(expected: Data) -> list[Any]:
    return [_node_facts(expected["receiver_after"])]


def _new_node(_: Any, a: list[Any]) -> list[Any]:
    return _node_out(cluster_of([{"kind": "Node", **a[0]}]), a[0]["metadata"]["name"])


def _add_task(r: Data, a: list[Any]) -> list[Any]:
    cluster = _around(r)
    feed(cluster, {"kind": "Pod", **a[0]["pod"]})
    return _node_out(cluster, r["name"])


def _remove_task(r: Data, a: list[Any]) -> list[Any]:
    cluster = _around(r, a[0])
    namespace, _, name = a[0]["name"].rpartition("/")
    cluster.remove("Pod", namespace, name)
    return _node_out(cluster, r["name"])


def _set_node(r: Data, a: list[Any]) -> list[Any]:
    cluster = _around(r)
    feed(cluster, {"kind": "Node", **a[0]})
    return _node_out(cluster, r["name"])


ADAPTERS: Adapters = {
    "api.NewNodeInfo": Adapter(_new_node, lambda expected: [_node_facts(n) for n in expected["result"]]),
    "api.NodeInfo.AddTask": Adapter(_add_task, _changed),
    "api.NodeInfo.RemoveTask": Adapter(_remove_task, _changed),
    "api.NodeInfo.SetNode": Adapter(_set_node, _changed),
}
