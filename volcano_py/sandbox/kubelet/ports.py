"""The interface between the kubelets and the cluster; an implementation could be in another process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

Object = dict[str, Any]
Handler = Callable[[str, str, str, bytes], None]  # type, namespace, name, the object's bytes


class ClusterPort(Protocol):
    """The requirements of kubelets. Watches begin with the existing objects; handlers must not call back directly."""

    def watch_pods(self, handler: Callable[[str, Object], None], accepts: Callable[[Any], bool]) -> None:
        """Report pods with a node."""

    def watch_nodes(self, handler: Callable[[str, Object], None]) -> None:
        """Report nodes."""

    def pod_addresses(self) -> list[str]:
        """The addresses of existing pods."""

    def pod(self, namespace: str, name: str) -> Object | None:
        """A new copy of a pod."""

    def set_pod_status(self, pod: Object) -> None:
        """Write a pod's status."""

    def remove_pod(self, namespace: str, name: str, uid: str) -> None:
        """Remove a stopped pod immediately."""

    def node(self, name: str) -> Object | None:
        """A new copy of a node."""

    def set_node(self, node: Object) -> None:
        """Write a node."""

    def renew_lease(self, node: str, uid: str) -> None:
        """Renew the Lease of a node."""

    def lookup(self, plural: str, namespace: str, name: str) -> Object | None:
        """A new copy of an object of the core group, or a ResourceClaim."""

    def node_matches(self, name: str, terms: list[Object]) -> bool:
        """Whether a node matches one of some selector terms."""

    def event(self, pod: Object, type_: str, reason: str, message: str) -> None:
        """Record an Event on a pod."""

    def append_log(self, uid: str, container: str, text: str) -> None:
        """Record the output of a container."""

    def forget_logs(self, uid: str) -> None:
        """Drop the logs of a pod."""
