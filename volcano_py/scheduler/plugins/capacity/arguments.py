"""The arguments of capacity. Volcano: its plugin arguments."""

from __future__ import annotations

from msgspec import field

from volcano_py.scheduler.framework.plugin import PluginArguments


class CapacityArguments(PluginArguments):
    ancestor_reclaim_level: int = field(default=0, name="ancestorReclaimLevel")
    """The number of ancestors whose deserved amounts reclaim checks."""
    dra: bool = field(default=True, name="capacity.DynamicResourceAllocationEnable")
    """Whether queues limit devices (`deviceclass/<class>` in their spec), with the feature gate
    DynamicResourceAllocation."""
    dra_consumable: bool = field(default=True, name="capacity.DRAConsumableCapacityEnable")
    """Whether they limit the capacity of devices as well (`<dimension>.deviceclass/<class>`), with the feature gate
    DRAConsumableCapacity."""
