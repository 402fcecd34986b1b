"""The agents of nodes with Ascend 310P chips: they report the chips in ConfigMaps, and create the parts of chips that
pods use. MindCluster: ClusterD and the Ascend device plugin.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox import npu
from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import DELETED, Event
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]

NAMESPACE, REPORT = "mindx-dl", "cluster-info-device-0"
_REPORT_KEY = "report"
_CHIPS, _ASSIGNED = npu.LABELS["accelerator"].encode(), f'"{npu.ASSIGNED}":"'.encode()
_ENDED = ("Succeeded", "Failed")


def controller(api: Api) -> Controller:
    client = Client(api, "npu-device-plugin")
    nodes, pods = (api.resource("", plural).collection for plural in ("nodes", "pods"))

    def node_changed(event: Event) -> Iterable[str]:
        if _CHIPS in event.entry.tail or (event.prev is not None and _CHIPS in event.prev.tail):
            yield _REPORT_KEY

    def pod_changed(event: Event) -> Iterable[str]:
        if _ASSIGNED in event.entry.tail and event.entry.fields["spec.nodeName"]:
            yield _REPORT_KEY
            if event.type != DELETED:
                yield event.entry.key

    def assigned() -> dict[str, list[Object]]:
        """The pods that use chips, by node."""
        found: dict[str, list[Object]] = defaultdict(list)
        for entry in pods.entries.values():
            pod = client.get("pods", entry.key) if _ASSIGNED in entry.tail else None
            if pod is not None and (pod.get("status") or {}).get("phase") not in _ENDED:
                found[entry.fields["spec.nodeName"]].append(pod)
        return found

    async def sync(key: Any) -> None:
        if key == _REPORT_KEY:
            names = [entry.name for entry in nodes.entries.values() if _CHIPS in entry.tail]
            await _write_report(client, _report(client, names, assigned()))
            return
        pod = client.get("pods", key)
        if pod is not None and (pod.get("status") or {}).get("phase") == "Running":
            await _create_devices(client, pod, assigned()[pod["spec"]["nodeName"]])

    return Controller("npu-device-plugin", sync, wakes={"nodes": node_changed, "pods": pod_changed}, gather=0.05)


def _report(client: Client, names: list[str], assigned: dict[str, list[Object]]) -> str:
    """The usable chips of all nodes: healthy, and without a pod."""
    rows: Object = {}
    for name in sorted(names):
        node = client.get("nodes", name)
        if node is None:
            continue
        unhealthy = set(npu.unhealthy(node))
        used = {chip for pod in assigned.get(name, ()) if (use := npu.use_of(pod)) is not None for chip in use.chips}
        usable = [chip for chip in npu.chips_of(node) if chip not in unhealthy and chip not in used]
        rows[f"mindx-dl-deviceinfo-{name}"] = {
            "DeviceList": {npu.DEVICES: _names(usable), f"{npu.DEVICES}-Unhealthy": _names(sorted(unhealthy))},
        }
    return json.dumps(rows)


def _names(chips: list[int]) -> str:
    return ",".join(f"Ascend310P-{chip}" for chip in chips)


async def _write_report(client: Client, text: str) -> None:
    key = f"{NAMESPACE}/{REPORT}"
    current = client.get("configmaps", key)
    data = {REPORT: text}
    if current is not None:
        if current.get("data") != data:
            await client.update("configmaps", key, lambda obj: obj.update(data=data))
        return
    if text == "{}":
        return
    labels = {"mx-consumer-volcano": "true"}
    meta = {"name": REPORT, "namespace": NAMESPACE, "labels": labels}
    await _make(client, "namespaces", {"kind": "Namespace", "metadata": {"name": NAMESPACE}})
    await _make(client, "configmaps", {"kind": "ConfigMap", "metadata": meta, "data": data})


async def _make(client: Client, collection: str, body: Object) -> None:
    try:
        await client.create(collection, {"apiVersion": "v1", **body})
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise


async def _create_devices(client: Client, pod: Object, here: list[Object]) -> None:
    """Create what a pod uses, unless it exists, and name it in the pod's annotation."""
    use = npu.use_of(pod)
    if use is None or npu.REAL in (pod["metadata"].get("annotations") or {}):
        return
    uid = pod["metadata"]["uid"]
    others = [p for p in here if p["metadata"]["uid"] != uid]
    real = [(p["metadata"].get("annotations") or {}).get(npu.REAL, "") for p in others if _shares(p, use)]
    device = npu.real_device(use, len(others), real)
    key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    await client.update("pods", key, lambda obj: obj["metadata"]["annotations"].update({npu.REAL: device}), uid=uid)


def _shares(pod: Object, use: npu.Use) -> bool:
    other = npu.use_of(pod)
    return other is not None and other.chips == use.chips
