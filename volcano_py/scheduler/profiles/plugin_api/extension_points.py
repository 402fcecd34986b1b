"""The points at which plugins take part in a pod's cycle. Kubernetes: scheduling framework, interface.go.

A plugin is a class that inherits from one of these classes for each point that it implements. Its methods are called
serially, and must not block: a method that depends on a call to another program returns PENDING until the response has
arrived. An exception, or a return value of another type, is an error for the pod.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Codes, Scope
from volcano_py.scheduler.profiles.columns import AnyColumns, Columns
from volcano_py.scheduler.profiles.objects import ObjectKind
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import EVERY_EVENT, PLAIN, ClusterEvent, Interest, Kind
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.rejected_group import PodGroupPostFilterResult, RejectedGroup
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Status
from volcano_py.scheduler.rules.arrays import Bools, Indices, Ints

MAX_SCORE = 100


class NoArguments(msgspec.Struct, forbid_unknown_fields=True):
    """For plugins without arguments."""


class ProfilePlugin:
    """The common part of all plugins: a name, arguments, and the events after which rejected pods are tried again.

    A plugin is constructed once for each profile that enables it, with its arguments and a handle.
    """

    name: str = ""
    Arguments: ClassVar[type[Any]] = NoArguments
    """A msgspec Struct: what `pluginConfig` can set, checked at the start."""
    skips_all: ClassVar[bool] = False
    """If its PreFilter returns SKIP, PreScore, Reserve and PreBind of the plugin are skipped as well."""
    reads: Sequence[ObjectKind] = ()
    """Kinds that the scheduler watches for this plugin, in addition to nodes and pods."""

    def __init__(self, arguments: Any = None, handle: Handle | None = None) -> None:
        """A plugin that needs neither of them omits this method."""

    def interests(self) -> Sequence[Interest]:
        """The events that may make a pod schedulable that this plugin rejected. A plugin without this method: every
        event. An empty result: none, except for a change of the pod's specification."""
        return (EVERY_EVENT,)


class Observer(ProfilePlugin, ABC):
    """Not a point: a plugin that keeps a cache of its own gets the events of some kinds."""

    kinds: ClassVar[frozenset[Kind]] = PLAIN

    @abstractmethod
    def observe(self, event: ClusterEvent) -> None:
        """Handle an event; the handle returns the new state."""


class PreEnqueue(ProfilePlugin, ABC):
    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Whether the pod may enter the active queue. If not, it is gated until one of the plugin's events."""


class QueueSort(ProfilePlugin, ABC):
    @abstractmethod
    def sort_key(self, pod: PodInfo, queued_at: float) -> tuple[float | str, ...]:
        """Pods with a lower key are tried earlier. `queued_at`: when the pod last entered the queue, in seconds."""


class PreFilter(ProfilePlugin, ABC):
    @abstractmethod
    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        """Called once per cycle. Returns the only nodes that can run the pod (None: any), and the status; SKIP also
        skips the plugin's Filter."""

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        """Update the state of `pre_filter` when a simulation adds the pod `added` to a node."""

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        """Update the state of `pre_filter` when a simulation removes the pod `removed` from a node."""


class Filter(ProfilePlugin, ABC):
    scope: ClassVar[Scope] = DOMAIN
    """What the result depends on. STATIC: the Node objects and the pod's class (its containers, node selector,
    affinity, tolerations, priority). LOCAL: these and the pods on that node. DOMAIN: anything else, such as the pod's
    labels or the state. Results that are not DOMAIN are kept for equal pods, until a node changes."""

    @abstractmethod
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Whether the node can run the pod."""

    def filter_columns(self, pod: PodInfo, nodes: AnyColumns) -> Bools | None:
        """The array form, for a scope other than DOMAIN: which nodes can run the pod. A STATIC filter always gets all
        nodes (Columns). None: there is no array form for this pod."""
        return None

    def reach(self, pod: PodInfo, other: PodInfo) -> frozenset[str] | None:
        """For the scope DOMAIN: from where another pod, if it is added to a node, can change the result for a pod on
        its own node: labels of which the two nodes have the same value. None: from any node. The result must not depend
        on more of the other pod than its namespace, labels and affinity."""
        return None

    def filter_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, ok: Bools) -> Bools | None:
        """The array form for the scope DOMAIN: which nodes can run the pod. Only the results for nodes that are `ok`,
        which other filters accept, matter. None: there is no such form for this pod, or a node is an error."""
        found = self.filter_codes(state, pod, nodes)
        return None if found is None else found[0] == 0

    def filter_codes(self, state: CycleState, pod: PodInfo, nodes: Columns) -> tuple[Codes, Sequence[Status]] | None:
        """The array form with reasons, for the scope DOMAIN: 0 for a node that can run the pod, i for one that is
        rejected with the status i - 1. A session calls it for pods of gangs. None: there is no such form."""
        return None


class NodesFilter(Filter):
    """A Filter that evaluates all nodes at once, after every Filter that evaluates one. Simulations skip it."""

    @abstractmethod
    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Mapping[str, Status] | Status:
        """The nodes that are rejected, each with the reason; or an error, or PENDING."""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS


class Candidate(NamedTuple):
    """A node that evictions would free for a pod."""

    node: str
    victims: tuple[PodInfo, ...]
    """Most important first."""
    violations: int
    """Victims whose eviction breaks a PodDisruptionBudget."""


class Reviewer(ProfilePlugin, ABC):
    """Not a point: DefaultPreemption calls such plugins of its profile before it selects a candidate."""

    @abstractmethod
    def review(self, state: CycleState, pod: PodInfo, candidates: Sequence[Candidate]) -> Sequence[Candidate] | Status:
        """The remaining candidates, possibly with fewer or other victims; or an error, or PENDING."""


class PostFilterResult(NamedTuple):
    status: Status
    nominated: str | None = None
    """The node to nominate; empty clears the nomination, None leaves it unchanged."""
    victims: tuple[PodInfo, ...] = ()
    """Pods to evict."""


class PostFilter(ProfilePlugin, ABC):
    @abstractmethod
    def post_filter(self, state: CycleState, pod: PodInfo, rejected: dict[str, Status]) -> PostFilterResult:
        """Called when no node fits, with the reason of each node. Success or unresolvable ends the calls of plugins."""


class PodGroupPostFilter(ProfilePlugin, ABC):
    @abstractmethod
    def pod_group_post_filter(self, group: RejectedGroup) -> PodGroupPostFilterResult:
        """Called when a root group is rejected, once after its attempt (Kubernetes 1.37); PostFilter is not called for
        its pods. Success or unresolvable ends the calls of plugins; the reasons of the others are joined. PENDING is
        not possible here."""


class Score(ProfilePlugin, ABC):
    scope: ClassVar[Scope] = DOMAIN
    """As for Filter. If it is not DOMAIN, `pre_score` is called once per class; a plugin that normalizes and is not
    STATIC counts as DOMAIN."""

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        """Called once before scoring, with the nodes that fit; SKIP skips the plugin."""
        return SUCCESS

    @abstractmethod
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """The score of the node: 0 to 100 after `normalize`."""

    def normalize(self, state: CycleState, pod: PodInfo, scores: dict[str, int]) -> None:
        """Normalize the scores of all nodes to 0 to 100, in place; by default with `normalize_columns`."""
        if type(self).normalize_columns is not Score.normalize_columns:
            values = self.normalize_columns(np.fromiter(scores.values(), dtype=np.int64, count=len(scores)))
            scores.update(zip(scores, values.tolist(), strict=True))

    def score_columns(self, pod: PodInfo, nodes: AnyColumns) -> Ints | None:
        """The array form of `score`; as `filter_columns`."""
        return None

    def score_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, fits: Indices) -> Ints | None:
        """For a DOMAIN score: the normalized scores of the nodes that fit in one array. None: there is no such form."""
        return None

    def normalize_columns(self, scores: Ints) -> Ints:
        """The array form of `normalize`, required for a STATIC score that normalizes; equal scores stay equal."""
        return scores

    @classmethod
    def normalizes(cls) -> bool:
        """Whether the plugin has one of both forms."""
        return cls.normalize is not Score.normalize or cls.normalize_columns is not Score.normalize_columns


class Reserve(ProfilePlugin, ABC):
    @abstractmethod
    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Called before the pod is assumed on the node."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Undo `reserve`: the pod is not bound to the node. Idempotent; called for every plugin, in reverse order."""


class Permit(ProfilePlugin, ABC):
    @abstractmethod
    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, float]:
        """Approve, reject, or wait for at most that many seconds."""


class PreBind(ProfilePlugin, ABC):
    @abstractmethod
    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Called before the binding is written."""


class Binder(ProfilePlugin, ABC):
    writes_itself: ClassVar[bool] = False
    """Success means that the plugin has bound the pod, which the scheduler must observe within half a minute; otherwise
    the scheduler writes the binding."""

    @abstractmethod
    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Success: this plugin binds the pod; SKIP: the next plugin is called."""


class PostBind(ProfilePlugin, ABC):
    @abstractmethod
    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Called after the pod is bound."""


POINTS: dict[str, type[ProfilePlugin]] = {
    "preEnqueue": PreEnqueue,
    "queueSort": QueueSort,
    "preFilter": PreFilter,
    "filter": Filter,
    "postFilter": PostFilter,
    "podGroupPostFilter": PodGroupPostFilter,
    "preScore": Score,
    "score": Score,
    "reserve": Reserve,
    "permit": Permit,
    "preBind": PreBind,
    "bind": Binder,
    "postBind": PostBind,
}
"""The names of the points in a configuration."""
