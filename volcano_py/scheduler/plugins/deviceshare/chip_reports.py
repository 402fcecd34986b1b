"""What MindCluster reports about the chips of nodes, in ConfigMaps. Volcano: third_party/ascend-for-volcano/common/k8s.

Two sources, selected by the parameter `useClusterInfoManager`: those of ClusterD, with many nodes in each ConfigMap of
the namespace mindx-dl, or those of the node agents, with one ConfigMap of the device plugin (kube-system) and one of
NodeD (mindx-dl) for each node. NodeD has no ConfigMap for a node without faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import field

from volcano_py.api.core import ConfigMap
from volcano_py.scheduler.framework.config import INIT_PARAMS, Configuration

DEVICE_NAMESPACE, NODE_NAMESPACE = "kube-system", "mindx-dl"
DEVICE_PREFIX, NODE_PREFIX = "mindx-dl-deviceinfo-", "mindx-dl-nodeinfo-"
CLUSTER_DEVICES, CLUSTER_NODES = "cluster-info-device-", "cluster-info-node-cm"
DEVICE_KEY, NODE_KEY = "DeviceInfoCfg", "NodeInfo"


class Parameters(NamedTuple):
    """The parameters `init-params`. `cluster_info`: ConfigMaps of ClusterD count, not those of the node agents.
    `own_list`: the usable chips are those of the node without those in use, not the list in the ConfigMap."""

    cluster_info: bool = True
    own_list: bool = True


def parameters_of(configuration: Configuration) -> Parameters:
    """The parameters in a scheduler configuration; everything except `true` is false."""
    found: object = configuration.action_arguments.get(INIT_PARAMS)
    given = found if isinstance(found, dict) else {}
    keys = ("useClusterInfoManager", "self-maintain-available-card")
    return Parameters(*(str(given.get(key, True)).lower() == "true" for key in keys))


class ChipReport(NamedTuple):
    """One node. `devices`: lists of chips by key, such as `huawei.com/Ascend310P-Unhealthy`; None: not reported."""

    devices: tuple[tuple[str, str], ...] | None = None
    status: str = ""

    def chips(self, key: str) -> frozenset[int]:
        """The chips in one list."""
        return chip_numbers((dict(self.devices or ()).get(key) or "").split(","))


class _Devices(msgspec.Struct):
    devices: dict[str, str] | None = field(default=None, name="DeviceList")


class _DevicePlugin(msgspec.Struct):
    info: _Devices = field(default_factory=_Devices, name="DeviceInfo")


class _Status(msgspec.Struct):
    status: str = field(default="", name="NodeStatus")


class _NodeD(msgspec.Struct):
    info: _Status = field(default_factory=_Status, name="NodeInfo")


class ChipReports:
    """The reports of all nodes, kept between sessions. A ConfigMap is read again when its version has changed."""

    def __init__(self) -> None:
        self.by_node: dict[str, ChipReport] = {}
        self.problems: list[str] = []
        """Why ConfigMaps cannot be read."""
        self._parameters: Parameters | None = None
        self._read: dict[str, tuple[str, dict[str, ChipReport]]] = {}

    def update(self, config_maps: Mapping[str, ConfigMap], parameters: Parameters) -> frozenset[str]:
        """Read what has changed; returns the nodes with a different report. `config_maps` by `namespace/name`."""
        if parameters != self._parameters:
            self._parameters = parameters
            self._read.clear()
        self.problems = []
        current: dict[str, tuple[str, dict[str, ChipReport]]] = {}
        for key, config_map in config_maps.items():
            if is_report(config_map, parameters):
                version = config_map.metadata.resource_version
                known = self._read.get(key)
                if known is None or not version or known[0] != version:
                    known = (version, self._parsed(key, config_map))
                current[key] = known
        self._read = current
        before, self.by_node = self.by_node, _joined(found for _, found in current.values())
        return frozenset(n for n in before.keys() | self.by_node.keys() if before.get(n) != self.by_node.get(n))

    def _parsed(self, key: str, config_map: ConfigMap) -> dict[str, ChipReport]:
        """The reports in a ConfigMap; those of the version before if it is invalid."""
        try:
            return dict(_reports(config_map))
        except (msgspec.DecodeError, RecursionError) as e:
            self.problems.append(f"ConfigMap {key}: {e}")
            return self._read.get(key, ("", {}))[1]


def is_report(config_map: ConfigMap, parameters: Parameters) -> bool:
    """Whether a ConfigMap contains reports of the configured source."""
    namespace, name = config_map.metadata.namespace, config_map.metadata.name
    if parameters.cluster_info:
        return namespace == NODE_NAMESPACE and (name == CLUSTER_NODES or name.startswith(CLUSTER_DEVICES))
    prefix = {DEVICE_NAMESPACE: DEVICE_PREFIX, NODE_NAMESPACE: NODE_PREFIX}.get(namespace)
    return prefix is not None and name.startswith(prefix)


def is_any_report(config_map: ConfigMap) -> bool:
    """Whether a ConfigMap contains reports of one of the two sources."""
    return is_report(config_map, Parameters()) or is_report(config_map, Parameters(cluster_info=False))


def _reports(config_map: ConfigMap) -> Iterator[tuple[str, ChipReport]]:
    name, data = config_map.metadata.name, config_map.data or {}
    if name.startswith(DEVICE_PREFIX):
        yield name.removeprefix(DEVICE_PREFIX), _devices(_read(data, DEVICE_KEY, _DevicePlugin).info)
    elif name.startswith(NODE_PREFIX):
        yield name.removeprefix(NODE_PREFIX), ChipReport(status=_read(data, NODE_KEY, _NodeD).info.status)
    elif name == CLUSTER_NODES:
        for key, status in _read(data, name, dict[str, _Status]).items():
            yield key.removeprefix(NODE_PREFIX), ChipReport(status=status.status)
    else:
        for key, devices in _read(data, name, dict[str, _Devices]).items():
            yield key.removeprefix(DEVICE_PREFIX), _devices(devices)


def _read(data: Mapping[str, str], key: str, type_: Any) -> Any:
    """The JSON text of a key; an absent or empty one has no reports."""
    return msgspec.json.decode(data.get(key) or "{}", type=type_)


def _devices(found: _Devices) -> ChipReport:
    return ChipReport(None if found.devices is None else tuple(sorted(found.devices.items())))


def _joined(reports: Iterable[Mapping[str, ChipReport]]) -> dict[str, ChipReport]:
    """Devices and status of each node, which are in different ConfigMaps."""
    joined: dict[str, ChipReport] = {}
    for of_map in reports:
        for node, report in of_map.items():
            known = joined.get(node, ChipReport())
            devices = known.devices if report.devices is None else report.devices
            joined[node] = ChipReport(devices, report.status or known.status)
    return joined


def chip_numbers(names: Iterable[str]) -> frozenset[int]:
    """The chips among device names such as `Ascend310P-0`; a vNPU (`Ascend310P-2c-100-0`) is not a chip."""
    parts = [name.strip().split("-") for name in names]
    return numbers(p[1] for p in parts if len(p) == 2)


def numbers(texts: Iterable[str]) -> frozenset[int]:
    """Numbers of chips; other texts are left out."""
    return frozenset(int(t) for text in texts if (t := text.strip()).isdecimal() and len(t) <= _MOST_DIGITS)


_MOST_DIGITS = 4
"""Digits of the number of a chip; longer ones are not believed."""
