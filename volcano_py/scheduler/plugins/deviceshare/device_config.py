"""The device configuration: resource names and geometries, from a ConfigMap. Volcano: devices/config, vgpu config."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
import yaml
from msgspec import field

from volcano_py.api import yaml_documents
from volcano_py.scheduler.plugins.deviceshare.mig import Geometry, Instance

_MOST_INSTANCES = 1024
"""The largest number of instances of one kind in a geometry."""
KEY = "device-config.yaml"
"""The key of the configuration in the ConfigMap."""


class InstanceConfig(msgspec.Struct):
    name: str = ""
    memory: int = 0
    """MiB."""
    count: int = 0


class GeometryConfig(msgspec.Struct):
    group: str = ""
    geometries: list[InstanceConfig] = []

    def geometry(self) -> Geometry:
        """The geometry in the form that cards use."""
        return Geometry(self.group, tuple(Instance(i.name, i.memory, i.count) for i in self.geometries))


class ModelGeometries(msgspec.Struct):
    """The geometries of cards whose type contains the name of a model."""

    models: list[str] = []
    allowed: list[GeometryConfig] = field(default_factory=list, name="allowedGeometries")


class VgpuConfig(msgspec.Struct):
    """The section for NVIDIA. Names are resource names."""

    count_name: str = field(default="volcano.sh/vgpu-number", name="resourceCountName")
    memory_name: str = field(default="volcano.sh/vgpu-memory", name="resourceMemoryName")
    cores_name: str = field(default="volcano.sh/vgpu-cores", name="resourceCoreName")
    percentage_name: str = field(default="", name="resourceMemoryPercentageName")
    default_number: int = field(default=1, name="defaultGPUNum")
    memory_factor: int = field(default=1, name="gpuMemoryFactor")
    """MiB in one unit of a pod's request, for MIG."""
    models: list[ModelGeometries] = field(default_factory=list, name="knownMigGeometries")

    def geometries(self, card_type: str) -> tuple[Geometry, ...]:
        """The MIG geometries of a type of card; empty for an unknown type."""
        for known in self.models:
            if any(model in card_type for model in known.models):
                return tuple(g.geometry() for g in known.allowed)
        return ()


class AscendTemplate(msgspec.Struct):
    """A size in which a chip can be shared. `memory` in MiB."""

    name: str = ""
    memory: int = 0
    ai_core: int = field(default=0, name="aiCore")
    ai_cpu: int = field(default=0, name="aiCPU")


class AscendConfig(msgspec.Struct):
    """One type of Ascend chip. Memory in MiB."""

    chip: str = field(default="", name="chipName")
    word: str = field(default="", name="commonWord")
    resource: str = field(default="", name="resourceName")
    memory_resource: str = field(default="", name="resourceMemoryName")
    allocatable: int = field(default=0, name="memoryAllocatable")
    capacity: int = field(default=0, name="memoryCapacity")
    ai_core: int = field(default=0, name="aiCore")
    ai_cpu: int = field(default=0, name="aiCPU")
    templates: list[AscendTemplate] = []


class AscendConfigs(msgspec.Struct):
    """The section for Ascend. `core_mode`: chips are shared by cores, not by templates."""

    core_mode: bool = field(default=False, name="hamiVnpuCore")
    configs: list[AscendConfig] = []


class DeviceConfig(msgspec.Struct):
    """The whole document."""

    nvidia: VgpuConfig = field(default_factory=VgpuConfig)
    vnpus: AscendConfigs = field(default_factory=AscendConfigs)


def _ascend_310p() -> AscendConfig:
    templates = [AscendTemplate(f"vir0{cores}", 3072 * cores, cores, cores) for cores in (1, 2, 4)]
    name = "huawei.com/Ascend310P"
    return AscendConfig("310P3", "Ascend310P", name, f"{name}-memory", 21527, 24576, 8, 7, templates)


DEFAULT = DeviceConfig(vnpus=AscendConfigs(configs=[_ascend_310p()]))


@lru_cache(maxsize=8)
def parsed(text: str) -> DeviceConfig:
    """The same as `read`, cached by text."""
    return read(text)


def read(text: str) -> DeviceConfig:
    """The configuration in a document. Raises ValueError with the field that is invalid."""
    try:
        found: Any = yaml_documents.load(text) or {}
    except yaml.YAMLError as e:
        raise ValueError(f"{KEY}: not valid YAML: {' '.join(str(e).split())}") from None
    if isinstance(found, dict) and isinstance(found.get("vnpus"), list):
        found = {**found, "vnpus": {"configs": found["vnpus"]}}
    try:
        config = msgspec.convert(found, DeviceConfig)
    except msgspec.ValidationError as e:
        raise ValueError(f"{KEY}: {e}") from None
    for known in config.nvidia.models:
        for allowed in known.allowed:
            if any(i.memory < 0 or not 0 <= i.count <= _MOST_INSTANCES for i in allowed.geometries):
                limits = f"memory must be 0 or more, count from 0 to {_MOST_INSTANCES}"
                raise ValueError(f"{KEY}: geometry {allowed.group}: {limits}")
    return config
