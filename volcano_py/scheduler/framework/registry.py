"""The registry of plugins and actions. One line in `plugins/__init__.py` or `actions/__init__.py` adds one. Volcano:
RegisterPluginBuilder, RegisterAction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from volcano_py.scheduler.framework.plugin import Action, Plugin

PluginBuilder = Callable[[Mapping[str, Any]], Plugin]
ActionBuilder = Callable[[Mapping[str, Any]], Action]


class Registry:
    """The plugins and actions that a configuration may name, each with its constructor from arguments."""

    def __init__(self, plugins: Mapping[str, PluginBuilder], actions: Mapping[str, ActionBuilder]) -> None:
        self.plugins = dict(plugins)
        self.actions = dict(actions)
