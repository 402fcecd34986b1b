"""Numatopology (nodeinfo.volcano.sh/v1alpha1): the NUMA layout of the node of the same name."""

from __future__ import annotations

from msgspec import field

from volcano_py.api.meta import ApiObject, ApiType

API_VERSION = "nodeinfo.volcano.sh/v1alpha1"

CPU_MANAGER_POLICY = "CPUManagerPolicy"
TOPOLOGY_MANAGER_POLICY = "TopologyManagerPolicy"


class NumaResource(ApiType):
    allocatable: str = ""
    """A cpuset, or a list of counts."""
    capacity: int = 0


class CPUInfo(ApiType):
    numa: int = 0
    socket: int = 0
    core: int = 0


class ContainerAllocation(ApiType):
    name: str = ""
    allocations: dict[str, str] | None = None


class PodAllocation(ApiType):
    uid: str = ""
    name: str = ""
    namespace: str = ""
    container_allocations: list[ContainerAllocation] | None = None


class NumatopoSpec(ApiType):
    policies: dict[str, str] | None = None
    res_reserved: dict[str, str] | None = None
    numares: dict[str, NumaResource] | None = None
    cpu_detail: dict[str, CPUInfo] | None = None
    pod_allocations: list[PodAllocation] | None = None


class Numatopology(ApiObject):
    api_version: str = API_VERSION
    kind: str = "Numatopology"
    spec: NumatopoSpec = field(default_factory=NumatopoSpec)
