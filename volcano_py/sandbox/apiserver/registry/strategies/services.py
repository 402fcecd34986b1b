"""Services: defaults, cluster addresses and node ports, validation. Kubernetes: pkg/registry/core/service."""

from __future__ import annotations

import ipaddress
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apimachinery.errors import Cause, duplicate, invalid_value, required, unsupported
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategy import Strategy

Object = dict[str, Any]

_SERVICE_NETWORK = ipaddress.ip_network("10.96.0.0/16")


def _default_service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("type", "ClusterIP")
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {}).setdefault("timeoutSeconds", 10800)
    for port in spec.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port", 0)
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")


class Allocator:
    """Cluster IPs and node ports, allocated in order."""

    def __init__(self) -> None:
        self.next_ip = 10
        self.next_port = 30000

    def ip(self) -> str:
        self.next_ip += 1
        return str(_SERVICE_NETWORK[self.next_ip % (_SERVICE_NETWORK.num_addresses - 2)])

    def port(self) -> int:
        self.next_port = 30000 + (self.next_port + 1 - 30000) % 2768
        return self.next_port


_ALLOCATOR = Allocator()


def _service_create(obj: Object, request: Request) -> None:
    spec = obj["spec"]
    if spec["type"] != "ExternalName":
        if not spec.get("clusterIP"):
            spec["clusterIP"] = _ALLOCATOR.ip()
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        for port in spec.get("ports") or ():
            if not port.get("nodePort"):
                port["nodePort"] = _ALLOCATOR.port()
    obj["status"] = {"loadBalancer": {}}


def _service_update(new: Object, old: Object, request: Request) -> None:
    spec, before = new["spec"], old["spec"]
    for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if not spec.get(key) and before.get(key) and spec["type"] != "ExternalName":
            spec[key] = before[key]
    if spec["type"] in ("NodePort", "LoadBalancer"):
        ports = {(p.get("name"), p["port"]): p.get("nodePort") for p in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            if not port.get("nodePort"):
                port["nodePort"] = ports.get((port.get("name"), port["port"])) or _ALLOCATOR.port()


def _service(obj: Object, request: Request) -> list[Cause]:
    spec = obj["spec"]
    out: list[Cause] = []
    if spec["type"] not in ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"):
        choices = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]
        out.append(unsupported("spec.type", spec["type"], choices))
    ports = spec.get("ports") or []
    if not ports and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        out.append(required("spec.ports"))
    if spec["type"] == "ExternalName" and not spec.get("externalName"):
        out.append(required("spec.externalName"))
    names: set[str] = set()
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        at = f"spec.ports[{index}]"
        name = port.get("name", "")
        if len(ports) > 1 and not name:
            out.append(required(f"{at}.name"))
        elif name:
            out.extend(invalid_value(f"{at}.name", name, m) for m in metadata.label_errors(name))
            if name in names:
                out.append(duplicate(f"{at}.name", name))
            names.add(name)
        number = port.get("port", 0)
        if not 0 < number < 65536:
            out.append(invalid_value(f"{at}.port", number, "must be between 1 and 65535, inclusive"))
        if port["protocol"] not in ("TCP", "UDP", "SCTP"):
            out.append(unsupported(f"{at}.protocol", port["protocol"], ["SCTP", "TCP", "UDP"]))
        target = port.get("targetPort")
        if isinstance(target, int) and not 0 < target < 65536:
            out.append(invalid_value(f"{at}.targetPort", target, "must be between 1 and 65535, inclusive"))
        pair = (port["protocol"], number)
        if pair in seen:
            out.append(duplicate(at, {"port": number, "protocol": port["protocol"]}))
        seen.add(pair)
    out.extend(metadata.labels_causes(spec.get("selector") or {}, "spec.selector"))
    if spec.get("sessionAffinity") not in ("None", "ClientIP"):
        out.append(unsupported("spec.sessionAffinity", spec.get("sessionAffinity", ""), ["ClientIP", "None"]))
    return out


def _service_validate_update(new: Object, old: Object, request: Request) -> list[Cause]:
    out = []
    before, now = old["spec"], new["spec"]
    internal = before["type"] != "ExternalName" and now["type"] != "ExternalName"
    if internal and before.get("clusterIP") and now.get("clusterIP") != before["clusterIP"]:
        out.append(invalid_value("spec.clusterIPs[0]", now.get("clusterIPs") or [], "may not change once set"))
    return out + _service(new, request)


STRATEGIES = {
    "services": Strategy(
        default=_default_service,
        prepare_create=_service_create,
        validate_create=_service,
        prepare_update=_service_update,
        validate_update=_service_validate_update,
        name_errors=metadata.label_errors,
        has_status=True,
        returns_deleted=True,
        create_on_update=True,
        reset_fields=("status",),
        fields=lambda obj: {
            "spec.clusterIP": obj["spec"].get("clusterIP", ""),
            "spec.type": obj["spec"].get("type", ""),
        },
        field_names=frozenset({"spec.clusterIP", "spec.type"}),
    ),
}
