"""Sticky: a pod is placed again on the node on which its owner first ran. Not in Kubernetes.

The node is an annotation of the last owner of a chain, such as pod → VirtualMachineInstance → VirtualMachine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from volcano_py.scheduler.framework.search.node_rules import Codes
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.objects import Manifest, ObjectKind, key_of
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import NODES, OBJECTS, ActionType, ClusterEvent, Interest
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter, Observer, PostBind, PreFilter
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, SUCCESS, Status, error, unresolvable
from volcano_py.scheduler.rules import sticky as rule

_ELSEWHERE = unresolvable(rule.ELSEWHERE)


class StickyOwner(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str


class StickyArguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    owners: list[StickyOwner] = []
    """The kinds from the pod's owner up; the last one has the annotation."""
    annotation: str = rule.ANNOTATION
    """The annotation of the last owner with the name of the node. Remove it to place the pod on another node."""
    per_pod: bool = False
    """Whether the owner has several pods, as a StatefulSet or a Volcano Job: the pod's name is added to the
    annotation."""
    release_on_node_loss: bool = False
    """Whether a deleted node is ignored; otherwise the pod waits for it."""


class _Memory(NamedTuple):
    """The owner and the node of a pod, in the state of its cycle."""

    owner: Manifest
    annotation: str
    node: str
    """The stored node, or empty."""


class ProfileSticky(PreFilter, Filter, PostBind, Observer):
    """Follows the owners of a pod, and stores its node in an annotation of the last one."""

    name = "Sticky"
    kinds = OBJECTS

    def __init__(self, arguments: StickyArguments, handle: Handle) -> None:
        if not arguments.owners:
            raise ValueError("owners: name at least one kind, e.g. {apiVersion: apps/v1, kind: StatefulSet}")
        self._args = arguments
        self._handle = handle
        self._chain = [ObjectKind(o.api_version, o.kind) for o in arguments.owners]
        self._written: dict[tuple[str, str], str] = {}
        """(UID of owner, annotation) to a node that was written and is not observed yet."""
        self.reads = self._chain

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        found = self._remembered(pod)
        if found is None:
            return None, SKIP
        if isinstance(found, Status):
            return None, found
        state.write(self.name, found)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        memory: _Memory = state.read(self.name)
        return SUCCESS if rule.accepts(memory.node, node.name) else _ELSEWHERE

    def filter_codes(self, state: CycleState, pod: PodInfo, nodes: Columns) -> tuple[Codes, Sequence[Status]]:
        memory: _Memory = state.read(self.name)
        return rule.codes(memory.node, nodes.index), (_ELSEWHERE,)

    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        memory: _Memory | None = state.read(self.name)
        if memory is None or memory.node:
            return
        self._written[memory.owner["metadata"]["uid"], memory.annotation] = node
        patch = {"metadata": {"annotations": {memory.annotation: node}}}
        self._handle.patch(self._chain[-1], key_of(memory.owner), patch, pod)

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(NODES, ActionType.ADD | ActionType.DELETE | ActionType.TAINT),
            Interest(OBJECTS, ActionType.ADD | ActionType.OTHER | ActionType.DELETE, self._owner_helps),
        )

    def _remembered(self, pod: PodInfo) -> _Memory | Status | None:
        """None: the pod has no such owner. An error: an owner cannot be read."""
        reference: Mapping[str, Any] | None = _controller(msgspec.to_builtins(pod.pod.metadata), self._chain[0])
        owner: Manifest | None = None
        for i, kind in enumerate(self._chain):
            if reference is None:
                return None if i == 0 else error(f"{self._chain[i - 1].kind} {_name(owner)} has no owner {kind.kind}")
            owner = self._handle.object(kind, f"{pod.namespace}/{reference['name']}")
            if owner is None or owner["metadata"].get("uid") != reference["uid"]:
                return error(f"the owner {kind.kind} {pod.namespace}/{reference['name']} cannot be read")
            if i + 1 < len(self._chain):
                reference = _controller(owner["metadata"], self._chain[i + 1])
        assert owner is not None
        annotation = rule.annotation_of(self._args.annotation, pod.name, self._args.per_pod)
        return _Memory(owner, annotation, self._node(owner, annotation))

    def _node(self, owner: Manifest, annotation: str) -> str:
        written = self._written.get((owner["metadata"]["uid"], annotation), "")
        shown = _annotations(owner) if _annotations(owner).get(annotation) else {annotation: written}
        return rule.stored(shown, annotation, self._handle.cluster.nodes, self._args.release_on_node_loss)

    def observe(self, event: ClusterEvent) -> None:
        """Drop a written node when it is observed, or its owner was deleted."""
        there = event.new if event.new is not None else event.old
        uid, shown = there["metadata"].get("uid"), there["metadata"].get("annotations") or {}
        for key in [k for k in self._written if k[0] == uid and (event.new is None or k[1] in shown)]:
            del self._written[key]

    def _owner_helps(self, pod: PodInfo, old: Manifest | None, new: Manifest | None) -> bool:
        """Whether an owner was created, or its annotations changed."""
        there = new if new is not None else old
        if there is None or there["metadata"].get("namespace") != pod.namespace:
            return False
        return _annotations(old) != _annotations(new) or old is None


def _annotations(owner: Manifest | None) -> Mapping[str, str]:
    found: Mapping[str, str] = (owner["metadata"].get("annotations") or {}) if owner is not None else {}
    return found


def _controller(metadata: Mapping[str, Any], kind: ObjectKind) -> Mapping[str, Any] | None:
    """The owner reference to this kind."""
    for reference in metadata.get("ownerReferences") or ():
        if (reference["apiVersion"], reference["kind"]) == kind:
            found: Mapping[str, Any] = reference
            return found
    return None


def _name(owner: Manifest | None) -> str:
    return key_of(owner) if owner is not None else ""
