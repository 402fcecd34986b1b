"""Host ports. kube-scheduler: NodePorts.

Two host ports conflict if protocol and number are the same, and the addresses are the same or one of them is any.
A profile compares a pod with the pods of one node (`conflict`), because its simulations change these pods; a session
counts the ports of all nodes as it places pods (`UsedPorts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from volcano_py.api.core import ContainerPort

_ANY = "0.0.0.0"


def conflict(wanted: Iterable[ContainerPort], used: Sequence[ContainerPort]) -> bool:
    """Whether one of the wanted ports is in use."""
    return any(_port(a) == _port(b) and _meet(_address(a), _address(b)) for a in wanted for b in used)


class UsedPorts:
    """The host ports in use on each node."""

    def __init__(self) -> None:
        self._used: dict[tuple[str, int], dict[int, set[str]]] = {}

    def add(self, ports: Iterable[ContainerPort], node: int) -> None:
        """Count the ports of a pod on a node."""
        for p in ports:
            self._used.setdefault(_port(p), {}).setdefault(node, set()).add(_address(p))

    def remove(self, ports: Iterable[ContainerPort], node: int) -> None:
        """Free the ports of a pod. If two pods have the same port on a node, which the kubelet prevents, the first one
        that leaves frees it, as in kube-scheduler."""
        for p in ports:
            self._used.get(_port(p), {}).get(node, set()).discard(_address(p))

    def in_conflict(self, wanted: Iterable[ContainerPort]) -> set[int]:
        """The nodes on which one of the wanted ports is in use."""
        return {
            node
            for p in wanted
            for node, addresses in self._used.get(_port(p), {}).items()
            if any(_meet(_address(p), other) for other in addresses)
        }


def _port(p: ContainerPort) -> tuple[str, int]:
    return p.protocol or "TCP", p.host_port


def _address(p: ContainerPort) -> str:
    return p.host_ip or _ANY


def _meet(one: str, other: str) -> bool:
    return one == other or _ANY in (one, other)
