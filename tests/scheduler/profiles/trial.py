"""A PodScheduler with plugins of a test, and a check that no capacity is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node, Pod
from volcano_py.scheduler.profiles.cluster_events import BindEnded, NodeChanged, PodChanged
from volcano_py.scheduler.profiles.configuration import load
from volcano_py.scheduler.profiles.decisions import BindPod, Decision, EvictPod, Fail
from volcano_py.scheduler.profiles.plugin_api.extension_points import ProfilePlugin
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.registry import REGISTRY, of
from volcano_py.scheduler.profiles.release import DEFAULT, Release
from volcano_py.scheduler.profiles.scheduler import PodScheduler


class Trial:
    """The scheduler `default-scheduler` with additional plugins, and its objects."""

    def __init__(
        self,
        *plugins: type[ProfilePlugin],
        config: Mapping[str, Any] | None = None,
        points: Mapping[str, Any] | None = None,
        arguments: Mapping[str, Mapping[str, Any]] | None = None,
        features: Sequence[str] = (),
        release: Release = DEFAULT,
    ) -> None:
        registry = {**REGISTRY, **{p.name: of(p) for p in plugins}}
        names = [p.name for p in plugins] + [n for n in arguments or () if n not in REGISTRY]
        chosen: dict[str, Any] = {
            "multiPoint": {"enabled": [{"name": n} for n in dict.fromkeys(names)]},
            **(points or {}),
        }
        given = [{"name": n, "args": dict(a)} for n, a in (arguments or {}).items()]
        document = config or {"profiles": [{"plugins": chosen, "pluginConfig": given}]}
        gates = frozenset(features)
        self.scheduler = PodScheduler(load(document, gates, registry, release), gates)
        self.now = 0.0
        self.pods: dict[str, PodInfo] = {}
        self.decided: list[Decision] = []

    def node(self, name: str, cpu: int = 4, **fields: Any) -> None:
        self.scheduler.handle(NodeChanged(None, node(name, cpu, **fields)), self.now)

    def pod(self, name: str, cpu: int = 1, **fields: Any) -> PodInfo:
        made = pod(name, cpu, **fields)
        self.pods[made.key] = made
        self.scheduler.handle(PodChanged(None, made), self.now)
        return made

    def delete(self, name: str) -> None:
        self.scheduler.handle(PodChanged(self.pods.pop(f"default/{name}"), None), self.now)

    def run(self) -> list[Decision]:
        """Schedule pods until none is left; bindings stay open."""
        decided: list[Decision] = []
        while (found := self.scheduler.attempt(self.now)) is not None:
            decided += found
        self.decided += decided
        return decided

    def tick(self, seconds: float = 1.0) -> list[Decision]:
        """Advance the time, second by second."""
        decided: list[Decision] = []
        for _ in range(int(seconds)):
            self.now += 1
            decided += self.scheduler.tick(self.now)
        self.decided += decided
        return decided

    def bind(self, decisions: Sequence[Decision]) -> list[Decision]:
        """Execute the bindings and evictions among some decisions, as the API server would."""
        decided: list[Decision] = []
        for d in decisions:
            if isinstance(d, BindPod) and d.pod.key in self.pods:
                decided += self.scheduler.handle(BindEnded(d.pod.key, "", d.pod.pod.metadata.uid), self.now)
                old = self.pods[d.pod.key]
                self.pods[d.pod.key] = old.on(d.node)
                self.scheduler.handle(PodChanged(old, self.pods[d.pod.key]), self.now)
            elif isinstance(d, EvictPod) and d.pod.key in self.pods:
                self.delete(d.pod.name)
        self.decided += decided
        return decided

    def settle(self) -> dict[str, str]:
        """Schedule and bind until nothing happens; returns the nodes of the pods."""
        while decided := self.run():
            self.bind(decided)
        return self.places()

    def places(self) -> dict[str, str]:
        return {p.name: p.node for p in self.pods.values() if p.node}

    def messages(self) -> dict[str, str]:
        """The newest reason of each pod that failed."""
        return {d.pod.name: d.message for d in self.decided if isinstance(d, Fail)}

    def check(self) -> None:
        """Every node counts exactly the pods that are bound to it or assumed on it, and each pod is counted once."""
        s = self.scheduler
        assumed = {c.pod.key: c.node for c in s._cycles}
        for name, info in s.cluster.nodes.items():
            mine = {k for k, p in self.pods.items() if p.node == name}
            mine |= {k for k, where in assumed.items() if where == name and k in self.pods}
            assert set(info.pods) == mine, f"{name} counts {sorted(info.pods)}, has {sorted(mine)}"
            used: Counter[str] = Counter()
            for key in mine:
                used.update(self.pods[key].requests)
            assert {k: v for k, v in info.requested.items() if v} == dict(used)
            assert (info.non_zero_cpu, info.non_zero_memory) == tuple(
                sum(self.pods[k].non_zero[i] for k in mine) for i in (0, 1)
            )
        for key, p in self.pods.items():
            places = [key in s.queue, key in assumed, key in s._awaiting, bool(p.node)]
            mine_to_place = p.pod.spec.scheduler_name in s._profiles
            assert sum(places) == (1 if mine_to_place or p.node else 0), f"{key}: {places}"
        assert all(key in self.pods for key in assumed)


def node(name: str, cpu: int = 4, *, labels: Mapping[str, str] | None = None, **spec: Any) -> Node:
    amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    found = from_manifest(
        Node,
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
            "spec": spec,
            "status": {"capacity": amounts, "allocatable": amounts},
        },
    )
    assert isinstance(found, Node)
    return found


def pod(name: str, cpu: int = 1, *, uid: str = "", node: str = "", **fields: Any) -> PodInfo:
    metadata = {k: fields.pop(k) for k in ("labels", "annotations", "ownerReferences") if k in fields}
    spec = {
        "schedulerName": "default-scheduler",
        "nodeName": node,
        "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}],
        **fields,
    }
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": uid or name, **metadata},
        "spec": spec,
    }
    return PodInfo(from_manifest(Pod, manifest))
