"""CycleState: what plugins remember during one pod's cycle. Kubernetes: scheduling framework, CycleState."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from volcano_py.scheduler.profiles.extension_points import Plugin


class CycleState:
    """A store that is empty at the start of each pod's cycle and shared by the plugins of that cycle.

    A value may have a method `clone`; it is called when a simulation (preemption, nominated pods) must be able to
    change the value without changing the cycle's own. Values without it are shared.
    """

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self.skip_filter: set[str] = set()
        """Plugins whose PreFilter answered skip."""
        self.skip_score: set[str] = set()
        """Plugins whose PreScore answered skip."""
        self.per_node: dict[str, Any] | None = None
        """What a plugin may keep by node's name for equal pods; entries of nodes that change are dropped. None if rules
        take part for this pod that look further than one node."""

    def concerns(self, plugin: Plugin) -> bool:
        """Whether the plugin has something to say after PreFilter."""
        return not (plugin.skips_all and plugin.name in self.skip_filter)

    def write(self, key: str, value: Any) -> None:
        self._values[key] = value

    def read(self, key: str) -> Any:
        """The value, or None."""
        return self._values.get(key)

    def clone(self) -> CycleState:
        other = object.__new__(CycleState)
        other.__dict__.update(self.__dict__)
        other._values = {k: v.clone() if hasattr(v, "clone") else v for k, v in self._values.items()}
        return other
