"""A small cluster and plugins for the cases of `framework_rules`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from volcano_py.api import core, gang
from volcano_py.api.codec import from_manifest
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.configuration import load
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter
from volcano_py.scheduler.profiles.plugin_api.handle import Handle, World
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Status, unschedulable
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.registry import REGISTRY, of

Data = dict[str, Any]


class Bench:
    """A cluster, and the plugins that a case needs."""

    def __init__(self, nodes: Iterable[Data] = (), pods: Iterable[Data] = (), namespaces: Iterable[Data] = ()) -> None:
        self.world = World(ProfileCluster(), lambda decision: None)
        self.cluster = self.world.cluster
        for n in nodes:
            self.cluster.put_node(None, node(n))
        for space in namespaces:
            self.cluster.model.upsert("Namespace", from_manifest(core.Namespace, space))
        for i, p in enumerate(pods or ()):
            info = pod(p, f"p{i}")
            self.cluster.place(info, info.node)

    def plugin(self, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        given = {k: v for k, v in (arguments or {}).items() if k not in ("kind", "apiVersion")}
        registration = REGISTRY[name]
        handle = Handle(self.world, _NoFilters())
        return registration.make(msgspec.convert(given, registration.arguments), handle)

    def profile(self, plugins: Mapping[str, list[str]]) -> Profile:
        """A profile of a few plugins that filter."""
        points: dict[str, Any] = {p: {"disabled": [{"name": "*"}]} for p in ("preFilter", "filter", "score")}
        for name, where in plugins.items():
            for point in where:
                points[point].setdefault("enabled", []).append({"name": name})
        registry = {**REGISTRY, **{p.name: of(p) for p in (TrueFilter, FalseFilter, MatchFilter)}}
        config = load({"profiles": [{"plugins": points}]}, registry=registry)
        return Profile(config.profiles[0], config, self.world)

    def infos(self, given: Iterable[Data]) -> list[NodeInfo]:
        return [self.cluster.nodes[n["metadata"]["name"]] for n in given]


class _NoFilters:
    def filter_with_nominated(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        return None

    remove_pod = add_pod


class TrueFilter(Filter):
    name = "TrueFilter"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS


class FalseFilter(Filter):
    name = "FalseFilter"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return unschedulable("rejected")


class MatchFilter(Filter):
    """A pod fits only on the node of its name."""

    name = "MatchFilter"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if pod.name == node.name else unschedulable("rejected")


def pod(given: Data | None, name: str = "", space: str = "") -> Any:
    if given is None:
        return None
    metadata = {"name": name, "namespace": space} | given.get("metadata", {})
    return PodInfo(from_manifest(core.Pod, {**given, "metadata": metadata}))


def node(given: Data | None) -> Any:
    return from_manifest(core.Node, {"metadata": {}, **given}) if given is not None else None


def node_info(given: Data) -> NodeInfo:
    info = NodeInfo(node(given.get("node") or {"kind": "Node"}))
    for i, p in enumerate(given.get("pods") or ()):
        info.add(pod(p, f"p{i}"))
    return info


def status(answer: Status) -> Data | None:
    """As it is recorded."""
    if answer.ok:
        return None
    return {"code": answer.code.value} | ({"reasons": list(answer.reasons)} if answer.reasons else {})


def group(given: Data | None) -> Any:
    if given is None:
        return None
    metadata = {"namespace": "default"} | given["metadata"]
    return from_manifest(gang.PodGroup, {**given, "metadata": metadata})
