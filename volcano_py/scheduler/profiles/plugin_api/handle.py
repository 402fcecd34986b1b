"""Handle: the state that a plugin reads, and the actions that it can take. Kubernetes: framework.Handle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from volcano_py.scheduler.profiles.attempts.claims import Claims
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.decisions import Decision, Patch, ReportEvent
from volcano_py.scheduler.profiles.groups.tree import Tree
from volcano_py.scheduler.profiles.objects import Manifest, ObjectKind, Objects
from volcano_py.scheduler.profiles.observations import Observations, SeenPreemption, Unobserved
from volcano_py.scheduler.profiles.plugin_api.calls import Answer, Call
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import Status
from volcano_py.scheduler.profiles.questions import Questions
from volcano_py.scheduler.profiles.release import DEFAULT, Release


class Filters(Protocol):
    """The filters of a profile, for plugins that try pods on nodes."""

    def filter_with_nominated(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status: ...
    def accepts_node(self, pod: PodInfo, node: NodeInfo) -> bool: ...
    def still_fits(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> bool: ...
    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None: ...
    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None: ...


class Review(Protocol):
    """See `Reviewer` in extension_points."""

    def review(self, state: CycleState, pod: PodInfo, candidates: Sequence[Any]) -> Sequence[Any] | Status: ...


class WaitingPod(NamedTuple):
    """A pod that Permit holds on its node. Times are in seconds."""

    pod: PodInfo
    node: str
    deadlines: Mapping[str, float]
    """The plugins that have not allowed the pod yet, to the time at which the pod is rejected."""


class Waiting(Protocol):
    """The table of pods that Permit holds."""

    def waiting(self) -> list[WaitingPod]: ...
    def holds(self, key: str, plugin: str) -> bool: ...
    def allow(self, key: str, plugin: str) -> None: ...
    def reject(self, key: str, plugin: str, message: str) -> None: ...


class World:
    """The common state of the plugins of all profiles."""

    def __init__(
        self,
        cluster: ProfileCluster,
        emit: Callable[[Decision], None],
        features: frozenset[str] = frozenset(),
        release: Release = DEFAULT,
        observations: Observations | None = None,
    ) -> None:
        self.cluster = cluster
        self.features = features
        self.release = release
        self.observations = observations or Unobserved()
        self.tree = Tree(cluster)
        self.claims = Claims(cluster.model)
        self.objects = Objects()
        self.now = 0.0
        self.tried_together: frozenset[str] = frozenset()
        self.emit = emit
        self.questions = Questions(emit)
        self.retries: dict[str, float] = {}
        """Pods that are tried again at a given time, whatever happens."""
        self.waiting: Waiting


class Handle:
    """The common interface of all plugins of a profile. Only its methods change state."""

    def __init__(self, world: World, filters: Filters) -> None:
        self.tree = world.tree
        """The groups of scheduling.k8s.io."""
        self.cluster = world.cluster
        """Nodes, namespaces, budgets and workloads; plugins only read it."""
        self.claims = world.claims
        """Volumes and devices: the demands of pods, and what is reserved for them."""
        self.filters = filters
        """The profile's own filters."""
        self.features = world.features
        """The enabled feature gates."""
        self.release = world.release
        """The version of Kubernetes whose rules hold."""
        self.reviewers: Sequence[Review] = ()
        """The profile's plugins that review candidates of preemption."""
        self._world = world

    @property
    def tried_together(self) -> frozenset[str]:
        """The UIDs of the pods of the root group that is being tried."""
        return self._world.tried_together

    @property
    def now(self) -> float:
        """The time of the current call, in seconds."""
        return self._world.now

    def observe_preemption(self) -> AbstractContextManager[SeenPreemption]:
        """For metrics: the search for the victims of a pod."""
        return self._world.observations.preemption(by_group=False)

    def nodes(self) -> Collection[NodeInfo]:
        return self.cluster.nodes.values()

    def node(self, name: str) -> NodeInfo | None:
        return self.cluster.nodes.get(name)

    def pods(self) -> Iterator[PodInfo]:
        """All pods, including those that wait for a node or belong to other schedulers."""
        return self.cluster.pods()

    def pod(self, key: str) -> PodInfo | None:
        return self.cluster.pod(key)

    def is_placed(self, key: str) -> bool:
        """Whether a pod is bound to a node, or assumed on it."""
        return self.cluster.is_placed(key)

    def nominated(self, node: str) -> Iterator[PodInfo]:
        """The pods that are nominated to a node."""
        return self.cluster.nominated(node)

    def object(self, kind: ObjectKind, key: str) -> Manifest | None:
        """An object of a kind in the plugin's `reads`, as last observed."""
        return self._world.objects.get(kind, key)

    def objects(self, kind: ObjectKind) -> Collection[Manifest]:
        return self._world.objects.all(kind)

    def waiting_pods(self) -> list[WaitingPod]:
        return self._world.waiting.waiting()

    def holds(self, key: str, plugin: str) -> bool:
        """Whether a pod waits at Permit because of `plugin`."""
        return self._world.waiting.holds(key, plugin)

    def allow(self, key: str, plugin: str) -> None:
        """On behalf of `plugin`, let a waiting pod continue to its binding when no other plugin holds it."""
        self._world.waiting.allow(key, plugin)

    def reject(self, key: str, plugin: str, message: str) -> None:
        """Reject a waiting pod on behalf of `plugin`, and release its capacity."""
        self._world.waiting.reject(key, plugin, message)

    def try_again(self, pod: PodInfo, seconds: float) -> None:
        """Try a pod again after some time, even without an event."""
        self._world.retries[pod.key] = self.now + seconds

    def event(self, pod: PodInfo, reason: str, message: str, *, warning: bool = False) -> None:
        """Write an Event about a pod."""
        self._world.emit(ReportEvent(pod, "Warning" if warning else "Normal", reason, message))

    def patch(
        self, kind: ObjectKind, key: str, patch: Mapping[str, Any], pod: PodInfo, *, status: bool = False
    ) -> None:
        """Write a JSON merge patch of an object."""
        self._world.emit(Patch(kind, key, patch, pod, status))

    def answer(self, pod: PodInfo, topic: str, call: Callable[[], Call], *, once: bool = False) -> Answer | None:
        """The response of another program; None: the call is in progress, and the plugin returns PENDING.

        A response is valid for the rest of the attempt; `once`: for this call only. `topic` names plugin and point.
        """
        questions = self._world.questions
        found = questions.answer(pod, topic)
        if found is None:
            questions.ask(pod, topic, call())
        elif once:
            questions.forget(pod.key, topic)
        return found

    def known_answer(self, pod: PodInfo, topic: str) -> Answer | None:
        """The response, if it has arrived; starts no call."""
        return self._world.questions.answer(pod, topic)

    def forget_answer(self, pod: PodInfo, topic: str) -> None:
        """Drop the response, so that the next `answer` starts a new call."""
        self._world.questions.forget(pod.key, topic)

    def notify(self, pod: PodInfo, call: Call) -> None:
        """Call another program without waiting for a response."""
        self._world.questions.notify(pod, call)
