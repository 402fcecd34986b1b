"""CycleState: the data of plugins during one pod's cycle. Kubernetes: scheduling framework, CycleState."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol


class Skippable(Protocol):
    """What this module reads of a plugin."""

    name: str
    skips_all: ClassVar[bool]


class CycleState:
    """A store that is empty at the start of each pod's cycle and shared by the plugins of that cycle.

    A value may have a method `clone`. It is called when a simulation (preemption, nominated pods) changes the value, so
    that the value of the cycle stays unchanged. Values without this method are shared.
    """

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self.skip_filter: set[str] = set()
        """Plugins whose PreFilter returned skip."""
        self.per_node: dict[str, Any] | None = None
        """Values that a plugin may keep by node name for equal pods; entries of nodes that change are dropped. None if
        rules that evaluate more than one node take part for this pod."""

    def concerns(self, plugin: Skippable) -> bool:
        """Whether the plugin takes part after PreFilter."""
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
