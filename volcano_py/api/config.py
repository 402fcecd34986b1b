"""ColocationConfiguration (config.volcano.sh/v1alpha1): memory quality of service of selected pods."""

from __future__ import annotations

from msgspec import field

from volcano_py.api.meta import ApiObject, ApiType, Condition, LabelSelector

API_VERSION = "config.volcano.sh/v1alpha1"


class MemoryQos(ApiType):
    """Percentages of the memory request or limit."""

    high_ratio: int = 100
    low_ratio: int = 0
    min_ratio: int = 0


class ColocationConfigurationSpec(ApiType):
    selector: LabelSelector | None = None
    memory_qos: MemoryQos | None = None


class ColocationConfigurationStatus(ApiType):
    conditions: list[Condition] | None = None


class ColocationConfiguration(ApiObject):
    api_version: str = API_VERSION
    kind: str = "ColocationConfiguration"
    spec: ColocationConfigurationSpec = field(default_factory=ColocationConfigurationSpec)
    status: ColocationConfigurationStatus = field(default_factory=ColocationConfigurationStatus)
