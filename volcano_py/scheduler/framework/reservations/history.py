"""What plugins keep over restarts, as data: read at the start of leadership, and written from time to time. Not in
Volcano.

The decision core neither reads nor writes objects. `configuration.history` puts the parts of the stored document here,
and a plugin takes its part when its session opens; the plugin leaves its state here, which the writer turns into a
document. Without a writer, as in simulations, nothing is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class Stored(Protocol):
    """The state of a plugin."""

    def document(self) -> dict[str, Any]:
        """What a restart needs, of bounded size, as JSON."""


@dataclass
class History:
    """Kept in the cluster, by plugin."""

    read: dict[str, Any] = field(default_factory=dict)
    """The parts that were read and that no session has taken yet."""
    states: dict[str, Stored] = field(default_factory=dict)
    """What is to be stored."""

    def take(self, plugin: str, state: Stored) -> Any:
        """The part that was read for a plugin, once; None: there is none. `state` is stored from now on."""
        self.states[plugin] = state
        return self.read.pop(plugin, None)

    def put(self, parts: Mapping[str, Any]) -> None:
        """Offer what was read; it replaces the state that a plugin has."""
        self.read = dict(parts)
