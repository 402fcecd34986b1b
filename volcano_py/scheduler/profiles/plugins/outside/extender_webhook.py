"""kube-scheduler's extender webhooks: filter, prioritize, preempt and bind. Kubernetes: extender.go, extender/v1.

Each entry of the section `extenders` of a configuration is one such plugin, in every profile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from volcano_py.api.duration import parse_duration
from volcano_py.scheduler.profiles.plugin_api.calls import Call, Tls
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import CAPACITY_EVENTS, Interest
from volcano_py.scheduler.profiles.plugin_api.extension_points import (
    MAX_SCORE,
    Binder,
    Candidate,
    NodesFilter,
    Reviewer,
    Score,
)
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import (
    PENDING,
    SKIP,
    SUCCESS,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from volcano_py.scheduler.profiles.plugins.outside.extender_answers import (
    Bound,
    Filtered,
    HostPriority,
    Preempted,
    decode,
)

T = TypeVar("T")

_HIGHEST = 10
"""Extenders score from 0 to 10."""


class ManagedResource(msgspec.Struct, rename="camel"):
    name: str
    ignored_by_scheduler: bool = False
    """Whether NodeResourcesFit ignores the resource."""


class TlsConfig(msgspec.Struct, rename="camel"):
    insecure: bool = False
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""


class ExtenderWebhookArguments(msgspec.Struct, rename="camel"):
    """An entry of `extenders`, in kube-scheduler's format."""

    url_prefix: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    http_timeout: str = msgspec.field(default="5s", name="httpTimeout")
    node_cache_capable: bool = False
    managed_resources: list[ManagedResource] = []
    ignorable: bool = False
    tls_config: TlsConfig = msgspec.field(default_factory=TlsConfig)


class ExtenderWebhook(NodesFilter, Score, Binder, Reviewer):
    """An extender of the configuration, at the points for which it has verbs."""

    name = "extender"
    writes_itself = True

    def __init__(self, arguments: ExtenderWebhookArguments, handle: Handle) -> None:
        self._args = arguments
        self._handle = handle
        self._timeout = parse_duration(arguments.http_timeout)
        self._managed = frozenset(r.name for r in arguments.managed_resources)
        t = arguments.tls_config
        self._tls = Tls(t.insecure, t.ca_file, t.cert_file, t.key_file)

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Mapping[str, Status] | Status:
        if not self._args.filter_verb or not self._interested(pod):
            return {}
        found = self._ask(self._args.filter_verb, pod, self._shown(pod, nodes), Filtered)
        if isinstance(found, Status):
            return {} if found.ok else found
        if found.error:
            return self._failed(found.error, {})
        passed = found.passed
        hopeless, reasons = found.failedandunresolvablenodes or {}, found.failednodes or {}
        rejected: dict[str, Status] = {}
        for name in (n.name for n in nodes):
            if name in hopeless:
                rejected[name] = unresolvable(hopeless[name])
            elif name not in passed:
                rejected[name] = unschedulable(reasons.get(name, f"node(s) were rejected by {self.name}"))
        for name in passed - {n.name for n in nodes}:
            if self._handle.node(name) is None:
                return self._failed(f"the node {name!r} does not exist", {})
        return rejected

    def review(self, state: CycleState, pod: PodInfo, candidates: Sequence[Candidate]) -> Sequence[Candidate] | Status:
        if not self._args.preempt_verb or not self._interested(pod):
            return candidates
        meta = self._args.node_cache_capable
        field = "NodeNameToMetaVictims" if meta else "NodeNameToVictims"
        victims = {
            c.node: {"Pods": [_victim(v, meta) for v in c.victims], "NumPDBViolations": c.violations}
            for c in candidates
        }
        body = {"Pod": msgspec.to_builtins(pod.pod), field: victims}
        found = self._ask(self._args.preempt_verb, pod, lambda: body, Preempted)
        if isinstance(found, Status):
            return candidates if found.ok else found
        left: list[Candidate] = []
        for node, victims_of_node in (found.nodenametometavictims or {}).items():
            on_node = self._handle.node(node)
            if on_node is None:
                return self._failed(f"the node {node!r} does not exist", candidates)
            elsewhere = (v for c in candidates if c.node == node for v in c.victims)
            by_uid = {p.pod.metadata.uid: p for p in (*on_node.pods.values(), *elsewhere)}
            uids = victims_of_node.uids if victims_of_node is not None else []
            if any(uid not in by_uid for uid in uids):
                return self._failed(f"a victim on node {node!r} does not exist", candidates)
            if any(by_uid[uid].priority >= pod.priority for uid in uids):
                return self._failed(f"a victim on node {node!r} is not of lower priority", candidates)
            if victims_of_node is not None and uids:
                left.append(Candidate(node, tuple(by_uid[uid] for uid in uids), victims_of_node.numpdbviolations or 0))
        return left

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        if not self._args.prioritize_verb or not self._interested(pod):
            return SKIP
        found = self._ask(self._args.prioritize_verb, pod, self._shown(pod, nodes), list[HostPriority], [])
        if isinstance(found, Status):
            return found if found is PENDING else SKIP  # as in Kubernetes: nodes are then scored without it
        for row in found:
            if not 0 <= row.score <= _HIGHEST:
                return self._failed(f"the score {row.score} of {row.host} is outside of 0 to {_HIGHEST}", SKIP)
        state.write(self.name, {row.host: row.score for row in found})
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        scores: dict[str, int] = state.read(self.name)
        return scores.get(node.name, 0) * MAX_SCORE // _HIGHEST

    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        if not self._args.bind_verb or not self._interested(pod):
            return SKIP
        meta = pod.pod.metadata
        body = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": meta.uid, "Node": node}
        found = self._ask(self._args.bind_verb, pod, lambda: body, Bound, forgives=False)
        if isinstance(found, Status):
            return found
        return error(found.error) if found.error else SUCCESS

    def interests(self) -> Sequence[Interest]:
        return CAPACITY_EVENTS

    def _ask(
        self,
        verb: str,
        pod: PodInfo,
        body: Callable[[], Any],
        kind: type[T],
        empty: Any = MappingProxyType({}),
        *,
        forgives: bool = True,
    ) -> T | Status:
        """The response; or PENDING, an error, or success for a call that need not succeed. `empty`: the value for
        null."""
        call = Call(f"{self._args.url_prefix.rstrip('/')}/{verb}", body, self._timeout, self._tls)
        answer = self._handle.answer(pod, f"{self.name} {verb}", lambda: call)
        if answer is None:
            return PENDING
        problem = answer.error
        if not problem:
            try:
                return decode(answer.body, kind, empty)
            except ValueError as e:
                problem = f"the response has an invalid form: {e}"
        return SUCCESS if forgives and self._args.ignorable else error(f"{call.url}: {problem}")

    def _failed(self, problem: str, abstention: T) -> T | Status:
        """The result for an invalid response: the abstention if the extender is ignorable, else an error."""
        return abstention if self._args.ignorable else error(problem)

    def _shown(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Callable[[], Any]:
        names, objects = [n.name for n in nodes], [n.node for n in nodes]
        if self._args.node_cache_capable:
            return lambda: {"Pod": msgspec.to_builtins(pod.pod), "Nodes": None, "NodeNames": names}
        return lambda: {
            "Pod": msgspec.to_builtins(pod.pod),
            "Nodes": {"items": [msgspec.to_builtins(o) for o in objects]},
            "NodeNames": None,
        }

    def _interested(self, pod: PodInfo) -> bool:
        return not self._managed or any(pod.requests.get(r) for r in self._managed)


def _victim(pod: PodInfo, meta: bool) -> Any:
    return {"UID": pod.pod.metadata.uid} if meta else msgspec.to_builtins(pod.pod)
