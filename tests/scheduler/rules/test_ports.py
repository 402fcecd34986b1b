"""The rule about host ports: wanted ports and those in use to conflicts."""

from __future__ import annotations

import pytest

from volcano_py.api.core import ContainerPort
from volcano_py.scheduler.rules.ports import UsedPorts, conflict


def port(number: int, ip: str = "", protocol: str = "") -> ContainerPort:
    return ContainerPort(container_port=80, host_port=number, host_ip=ip, protocol=protocol)


TABLE = {
    "none in use": ([port(80)], [], False),
    "none wanted": ([], [port(80)], False),
    "the same": ([port(80)], [port(80)], True),
    "another number": ([port(80)], [port(81)], False),
    "another protocol": ([port(80)], [port(80, protocol="UDP")], False),
    "TCP is the default": ([port(80)], [port(80, protocol="TCP")], True),
    "any address is the default": ([port(80)], [port(80, "0.0.0.0")], True),
    "the same address": ([port(80, "127.0.0.1")], [port(80, "127.0.0.1")], True),
    "another address": ([port(80, "127.0.0.1")], [port(80, "10.0.0.1")], False),
    "one address wanted, any in use": ([port(80, "127.0.0.1")], [port(80)], True),
    "any address wanted, one in use": ([port(80)], [port(80, "127.0.0.1")], True),
    "an address and a protocol": ([port(80, "127.0.0.1")], [port(80, protocol="UDP")], False),
    "the second of two": ([port(80), port(81)], [port(82), port(81)], True),
}


@pytest.mark.parametrize(("wanted", "used", "expected"), TABLE.values(), ids=TABLE)
def test_conflicts(wanted: list[ContainerPort], used: list[ContainerPort], expected: bool) -> None:
    assert conflict(wanted, used) is expected
    nodes = UsedPorts()
    nodes.add([port(9999)], 2)
    nodes.add(used, 3)
    assert nodes.in_conflict(wanted) == ({3} if expected else set())
    nodes.remove(used, 3)
    assert nodes.in_conflict(wanted) == set()


def test_the_nodes_of_each_port() -> None:
    nodes = UsedPorts()
    nodes.add([port(80)], 0)
    nodes.add([port(81), port(80, "10.0.0.1")], 1)
    assert nodes.in_conflict([port(80)]) == {0, 1}
    assert nodes.in_conflict([port(80, "127.0.0.1")]) == {0}
    assert nodes.in_conflict([port(80, "127.0.0.1"), port(81)]) == {0, 1}


def test_of_two_pods_with_one_port_the_first_that_leaves_frees_it() -> None:
    """As in kube-scheduler, which keeps a set."""
    nodes = UsedPorts()
    nodes.add([port(80)], 0)
    nodes.add([port(80)], 0)
    nodes.remove([port(80)], 0)
    assert nodes.in_conflict([port(80)]) == set()
    nodes.remove([port(80)], 0)
