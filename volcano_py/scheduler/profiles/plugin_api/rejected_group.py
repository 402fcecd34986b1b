"""What a plugin at podGroupPostFilter gets and returns. Kubernetes: PodGroupInfo, PodGroupSchedulingFunc and
PodGroupPostFilterResult of the scheduling framework."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from volcano_py.api.gang import AnyGroup
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import Status


class PodGroupPostFilterResult(NamedTuple):
    status: Status
    nominated: Mapping[str, str] | None = None
    """The nodes to nominate, by the keys of pods (`namespace/name`); the other waiting pods lose their nomination. None
    leaves all nominations unchanged."""
    victims: tuple[PodInfo, ...] = ()
    """Pods to evict."""


class RejectedGroup(Protocol):
    """A root group whose attempt has failed. Its methods change nothing."""

    @property
    def root(self) -> AnyGroup:
        """The PodGroup, or the CompositePodGroup at the root of a tree."""

    @property
    def waiting(self) -> Sequence[PodInfo]:
        """The pods that were to be placed."""

    @property
    def reasons(self) -> Sequence[str]:
        """Why the attempt has failed."""

    @property
    def tried(self) -> bool:
        """Whether nodes were evaluated for a pod, as opposed to: there are too few pods."""

    def nodes_without(self, victims: Iterable[PodInfo]) -> Mapping[str, str] | None:
        """The nodes that waiting pods would get, by their keys, if these pods were gone; None: the group would fail
        again."""

    def evict_weaker(self) -> PodGroupPostFilterResult:
        """What the plugin DefaultPreemption returns."""
