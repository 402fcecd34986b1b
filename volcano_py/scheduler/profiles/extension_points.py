"""The points at which plugins take part in a pod's cycle. Kubernetes: scheduling framework, interface.go.

A plugin is a class that inherits from one of these classes per point it implements. Its methods are called serially,
and must not wait: an answer that depends on a call to another program is PENDING until the answer has come.
An exception, or an answer of another type, is an error for the pod.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec

from volcano_py.scheduler.framework.node_rules import DOMAIN, Scope
from volcano_py.scheduler.profiles.columns import AnyColumns, Bools, Columns, Indices, Ints
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.events import PLAIN, Event, Interest, Kind
from volcano_py.scheduler.profiles.handle import Handle
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.objects import ObjectKind
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.status import SUCCESS, Status

MAX_SCORE = 100


class NoArguments(msgspec.Struct, forbid_unknown_fields=True):
    """For plugins without arguments."""


class Plugin:
    """What all plugins have: a name, arguments, and the events after which pods that they refused are tried again.

    A plugin is constructed once for each profile that enables it, with its arguments and a handle.
    """

    name: str = ""
    Arguments: ClassVar[type[Any]] = NoArguments
    """A msgspec Struct: what `pluginConfig` can set, checked at the start."""
    skips_all: ClassVar[bool] = False
    """Where its PreFilter answers SKIP, it has nothing to say at PreScore, Reserve and PreBind either."""
    reads: Sequence[ObjectKind] = ()
    """Kinds that the scheduler watches for this plugin, beside nodes and pods."""

    def __init__(self, arguments: Any = None, handle: Handle | None = None) -> None:
        """A plugin that needs neither of them leaves this out."""

    def interests(self) -> Sequence[Interest]:
        """The events that may make a pod schedulable that this plugin refused."""
        return ()


class Observer(Plugin, ABC):
    """Not a point: a plugin that keeps a cache of its own gets the events of some kinds."""

    kinds: ClassVar[frozenset[Kind]] = PLAIN

    @abstractmethod
    def observe(self, event: Event) -> None:
        """Something has changed; the handle shows the new state."""


class PreEnqueue(Plugin, ABC):
    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Whether the pod may enter the active queue. Refused: it is gated until one of the plugin's events."""


class QueueSort(Plugin, ABC):
    @abstractmethod
    def sort_key(self, pod: PodInfo, queued_at: float) -> tuple[float | str, ...]:
        """Pods with a lower key are tried earlier. `queued_at`: when the pod last entered the queue, in seconds."""


class PreFilter(Plugin, ABC):
    @abstractmethod
    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        """Once per cycle. Returns the only nodes that can hold the pod (None: any), and the status; SKIP also skips
        the plugin's Filter."""

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        """A simulation puts `added` on a node: update what `pre_filter` wrote into the state."""

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        """A simulation takes `removed` off a node."""


class Filter(Plugin, ABC):
    scope: ClassVar[Scope] = DOMAIN
    """How far the answer reaches. STATIC: the Node objects and the pod's class (its containers, node selector,
    affinity, tolerations, priority). LOCAL: these and the pods on that node. DOMAIN: anything else, such as the pod's
    labels or the state. Answers that are not DOMAIN are kept for equal pods, until a node changes."""

    @abstractmethod
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Whether the node can hold the pod."""

    def filter_columns(self, pod: PodInfo, nodes: AnyColumns) -> Bools | None:
        """The array form, for a scope other than DOMAIN: which nodes can hold the pod. A STATIC filter always gets all
        nodes (Columns). None: there is no array form for this pod."""
        return None

    def filter_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, ok: Bools) -> Bools | None:
        """The array form for the scope DOMAIN: which nodes can hold the pod. Only the answers for nodes that are `ok`
        matter, which other filters accept. None: there is no such form for this pod, or a node is an error."""
        return None


class NodesFilter(Filter):
    """A Filter that looks at all nodes at once, after every Filter that looks at one. Simulations leave it out."""

    @abstractmethod
    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Mapping[str, Status] | Status:
        """The nodes that do not pass, each with the reason; or an error, or PENDING."""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS


class Candidate(NamedTuple):
    """A node that evictions would free for a pod."""

    node: str
    victims: tuple[PodInfo, ...]
    """Most important first."""
    violations: int
    """Victims whose eviction breaks a PodDisruptionBudget."""


class Reviewer(Plugin, ABC):
    """Not a point: DefaultPreemption calls such plugins of its profile before it chooses a candidate."""

    @abstractmethod
    def review(self, state: CycleState, pod: PodInfo, candidates: Sequence[Candidate]) -> Sequence[Candidate] | Status:
        """The candidates that are left, maybe with fewer or other victims; or an error, or PENDING."""


class PostFilterResult(NamedTuple):
    status: Status
    nominated: str | None = None
    """The node to nominate; empty clears the nomination, None leaves it as it is."""
    victims: tuple[PodInfo, ...] = ()
    """Pods to evict."""


class PostFilter(Plugin, ABC):
    @abstractmethod
    def post_filter(self, state: CycleState, pod: PodInfo, refused: dict[str, Status]) -> PostFilterResult:
        """Called when no node fits, with the reason of each node. Success or unresolvable ends the row of plugins."""


class Score(Plugin, ABC):
    scope: ClassVar[Scope] = DOMAIN
    """As that of Filter. If it is not DOMAIN, `pre_score` is called once a class; a plugin that normalizes and is not
    STATIC counts as DOMAIN."""

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        """Once before scoring, with the nodes that fit; SKIP leaves the plugin out."""
        return SUCCESS

    @abstractmethod
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """How good the node is: 0 to 100 after `normalize`."""

    def normalize(self, state: CycleState, pod: PodInfo, scores: dict[str, int]) -> None:
        """Bring the scores of all nodes to 0 to 100, in place."""

    def score_columns(self, pod: PodInfo, nodes: AnyColumns) -> Ints | None:
        """The array form of `score`; as `filter_columns`."""
        return None

    def score_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, fits: Indices) -> Ints | None:
        """For a DOMAIN score: the normalized scores of the nodes that fit in one array. None: there is no such form."""
        return None

    def normalize_columns(self, scores: Ints) -> Ints:
        """The array form of `normalize`, which a STATIC score must have that normalizes; equal scores stay equal."""
        return scores


class Reserve(Plugin, ABC):
    @abstractmethod
    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """The pod is about to go to the node."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """It does not go there after all. Idempotent; called for every plugin, in reverse order."""


class Permit(Plugin, ABC):
    @abstractmethod
    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, float]:
        """Approve, deny, or wait for at most that many seconds."""


class PreBind(Plugin, ABC):
    @abstractmethod
    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Before the binding is written."""


class Bind(Plugin, ABC):
    writes_itself: ClassVar[bool] = False
    """Success means that the plugin has bound the pod, which the scheduler must see within half a minute; otherwise the
    scheduler writes the binding."""

    @abstractmethod
    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Success: this plugin binds the pod; SKIP: ask the next one."""


class PostBind(Plugin, ABC):
    @abstractmethod
    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """The pod is bound."""


POINTS: dict[str, type[Plugin]] = {
    "preEnqueue": PreEnqueue,
    "queueSort": QueueSort,
    "preFilter": PreFilter,
    "filter": Filter,
    "postFilter": PostFilter,
    "preScore": Score,
    "score": Score,
    "reserve": Reserve,
    "permit": Permit,
    "preBind": PreBind,
    "bind": Bind,
    "postBind": PostBind,
}
"""The names of the points in a configuration."""
