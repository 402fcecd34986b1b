"""PodGroups of scheduling.k8s.io in a quarter of the runs, as Kubernetes 1.37 serves them, and the controller that
protects them, which is that of the sandbox. To the oracle they are gangs like those of Volcano."""

from __future__ import annotations

from typing import Any

from tests.dst.parts import Call, Part
from tests.dst.server import ApiServer
from tests.dst.virtual import chance
from volcano_py.sandbox.controllers.resource import group_protection

Object = dict[str, Any]

GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
KIND = "podgroups.scheduling.k8s.io"
JOB = "podgroup.scheduling.k8s.io"
"""Part of the key of such a group's job in the model."""
QUEUE = "volcano.sh/queue-name"


class NativeGangs(Part):
    """The native gangs of a run."""

    name = "native gangs"
    share = 0.25

    def __init__(self, server: ApiServer, seed: str, call: Call) -> None:
        super().__init__(server, seed, call)

    async def begin(self) -> None:
        """The controller that protects the groups of pods."""
        if self.used:
            self._server.run(group_protection.controller)

    def is_native(self, name: str) -> bool:
        """Whether a gang has a PodGroup of this API."""
        return self.used and chance(self._seed, "native", name) < 0.5

    async def create(self, group: Object, pods: list[Object]) -> bool:
        """Create the PodGroup of a gang instead of Volcano's, and let its pods name it."""
        name, spec = group["metadata"]["name"], group["spec"]
        wanted: Object = {"schedulingPolicy": {"gang": {"minCount": spec["minMember"]}}}
        if "priorityClassName" in spec:
            wanted["priorityClassName"] = spec["priorityClassName"]
        body = {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "labels": {QUEUE: spec["queue"]}},
            "spec": wanted,
        }
        for pod in pods:
            del pod["metadata"]["annotations"]
            pod["spec"]["schedulingGroup"] = {"podGroupName": name}
        return await self._call("POST", GROUPS, body, "user") < 400

    async def tidy(self) -> None:
        """Delete the groups whose pods are gone."""
        named = {key_of(pod) for pod in self._server.objects("pods").values()}
        for group in self._server.objects(KIND).values():
            name = group["metadata"]["name"]
            if f"default/{KIND} {name}" not in named and not group["metadata"].get("deletionTimestamp"):
                await self._call("DELETE", f"{GROUPS}/{name}", None, "user")


def key_of(pod: Object) -> str:
    """The key of a pod's native group among the groups of the oracle; empty if it names none."""
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "")
    return f"{pod['metadata']['namespace']}/{KIND} {name}" if name else ""


def as_group(group: Object) -> Object:
    """A native group as a PodGroup of Volcano."""
    metadata, policy = group["metadata"], group["spec"]["schedulingPolicy"]
    spec = {"minMember": policy["gang"]["minCount"], "queue": (metadata.get("labels") or {}).get(QUEUE, "default")}
    return {"metadata": {**metadata, "name": f"{KIND} {metadata['name']}"}, "spec": spec}
