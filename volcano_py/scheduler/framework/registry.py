"""The registry of plugins and actions. One line in `plugins/__init__.py` or `actions/__init__.py` adds one. Volcano:
RegisterPluginBuilder, RegisterAction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any, TypeVar

from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.plugin import Action, Plugin

PluginBuilder = Callable[[Mapping[str, Any]], Plugin]
ActionBuilder = Callable[[Mapping[str, Any]], Action]
Builder = TypeVar("Builder", PluginBuilder, ActionBuilder)


class Builders(MutableMapping[str, Builder]):
    """Constructors by name. A built-in one is given as `module:Class` and imported on use, so that a command that
    reads only names, or a few of them, starts fast."""

    def __init__(self, given: Mapping[str, Builder | str]) -> None:
        self._given: dict[str, Builder | str] = dict(given._given if isinstance(given, Builders) else given)
        self._loaded: dict[str, Builder] = {}
        self.changes = 0
        """How often a constructor was set or deleted."""

    def is_built_in(self, name: str) -> bool:
        """Whether a name is one of volcano_py's own."""
        return isinstance(self._given.get(name), str)

    def __getitem__(self, name: str) -> Builder:
        found = self._loaded.get(name)
        if found is None:
            given: Any = self._given[name]
            if isinstance(given, str):
                module, _, attribute = given.partition(":")
                given = getattr(import_module(module), attribute)
            found = self._loaded[name] = given
        return found

    def __setitem__(self, name: str, builder: Builder) -> None:
        self._given[name] = self._loaded[name] = builder
        self.changes += 1

    def __delitem__(self, name: str) -> None:
        del self._given[name]
        self._loaded.pop(name, None)
        self.changes += 1

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __contains__(self, name: object) -> bool:
        return name in self._given

    def __len__(self) -> int:
        return len(self._given)


class Registry:
    """The plugins and actions that a configuration may name, each with its constructor from arguments."""

    def __init__(self, plugins: Mapping[str, PluginBuilder], actions: Mapping[str, ActionBuilder]) -> None:
        self.plugins = Builders[PluginBuilder](plugins)
        self.actions = Builders[ActionBuilder](actions)
        self._keys: tuple[Configuration | None, int, tuple[tuple[str, ...], tuple[str, ...]]] = (None, 0, ((), ()))
        """The last result of `keys_of`, with what it depends on."""

    def load(self, configuration: Configuration) -> None:
        """Import the plugins and actions of a configuration, so that no cycle waits for an import."""
        for name in configuration.actions:
            self.actions.get(name)
        for tier in configuration.tiers:
            for option in tier:
                self.plugins.get(option.name)

    def keys_of(self, configuration: Configuration) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The labels and annotations of pods that the configured plugins read in their rules."""
        if self._keys[0] is configuration and self._keys[1] == self.plugins.changes:
            return self._keys[2]
        labels: set[str] = set()
        annotations: set[str] = set()
        for tier in configuration.tiers:
            for option in tier:
                plugin = self.plugins.get(option.name)
                labels.update(_listed(getattr(plugin, "reads_labels", ())))
                annotations.update(_listed(getattr(plugin, "reads_annotations", ())))
        found = tuple(sorted(labels)), tuple(sorted(annotations))
        self._keys = configuration, self.plugins.changes, found
        return found


def _listed(keys: str | Iterable[str]) -> Iterable[str]:
    """The declared keys; a single one may be a string."""
    return (keys,) if isinstance(keys, str) else keys
