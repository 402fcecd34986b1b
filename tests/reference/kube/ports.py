"""Host ports."""

from __future__ import annotations

from tests.reference.kube.selectors import Pod

ANY = "0.0.0.0"
HostPort = tuple[str, str, int]


def host_ports(pod: Pod) -> list[HostPort]:
    """(address, protocol, port) of containers and sidecars."""
    sidecars = [c for c in pod["spec"].get("initContainers") or [] if c.get("restartPolicy") == "Always"]
    found = []
    for container in [*(pod["spec"].get("containers") or []), *sidecars]:
        for p in container.get("ports") or []:
            if p.get("hostPort"):
                found.append((p.get("hostIP") or ANY, p.get("protocol") or "TCP", p["hostPort"]))
    return found


def ports_are_free(pod: Pod, taken: set[HostPort]) -> bool:
    for ip, protocol, port in host_ports(pod):
        for other_ip, other_protocol, other_port in taken:
            same_address = ip == other_ip or ANY in (ip, other_ip)
            if same_address and protocol == other_protocol and port == other_port:
                return False
    return True
