"""Plugins and actions from outside: entry points and `--plugins-dir`.

A plugin is a subclass of `Plugin`, an action one of `Action`, and a plugin of profiles one of the classes of
`volcano_py.profile_plugin`, each with a `name`. Packages declare theirs in the entry-point groups
`volcano_py.plugins`, `volcano_py.actions` and `volcano_py.profile_plugins`; in a plugins folder every Python file is
searched. Volcano loads Go plugins from `--plugins-dir`.
"""

from __future__ import annotations

import importlib.util
import inspect
import logging
import sys
from collections.abc import Iterator, MutableMapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from volcano_py.scheduler.framework.plugin import Action, Plugin
from volcano_py.scheduler.framework.registry import Registry

if TYPE_CHECKING:
    from volcano_py.scheduler.profiles.registry import Registry as ProfileRegistry

log = logging.getLogger(__name__)


class ExtensionError(Exception):
    """A plugin file or entry point cannot be loaded; the message names it."""


def extended(registry: Registry, plugins_dir: str = "") -> Registry:
    """A registry with the extensions added; built-in names cannot be replaced.

    Raises ExtensionError for one that cannot be loaded: the scheduler must not run without it.
    """
    made = Registry(registry.plugins, registry.actions)
    for name, found, source in _found("plugins", Plugin, plugins_dir):
        _add(made.plugins, name, found, source)
    for name, found, source in _found("actions", Action, plugins_dir):
        _add(made.actions, name, found, source)
    return made


def profile_plugins(plugins_dir: str = "") -> ProfileRegistry:
    """The plugins that profiles can name, with the extensions added. Raises ExtensionError as `extended` does."""
    from volcano_py.scheduler.profiles import registry  # some 30 plugins, which only profiles need
    from volcano_py.scheduler.profiles.plugin_api.extension_points import ProfilePlugin

    made = dict(registry.REGISTRY)
    for name, found, source in _found("profile_plugins", ProfilePlugin, plugins_dir):
        _add(made, name, registry.of(found), source)
    return made


def _found(group: str, base: type[Any], plugins_dir: str) -> Iterator[tuple[str, type[Any], str]]:
    """(name, class, where it comes from) of all extensions of a kind."""
    for point in entry_points(group=f"volcano_py.{group}"):
        source = f"entry point {point.name} ({point.value})"
        try:
            found = point.load()
        except Exception as error:
            raise ExtensionError(f"{source}: {error!r}") from error
        if not (inspect.isclass(found) and issubclass(found, base)):
            module = "plugin" if base in (Plugin, Action) else "profile_plugin"
            raise ExtensionError(f"{source} is no subclass of volcano_py.{module}.{base.__name__}")
        yield point.name, found, f"entry point {point.value}"
    if plugins_dir and not Path(plugins_dir).is_dir():
        raise ExtensionError(f"--plugins-dir {plugins_dir} is not a directory")
    for file in sorted(Path(plugins_dir).glob("*.py")) if plugins_dir else ():
        for found in _of_file(file):
            if issubclass(found, base):
                yield found.name, found, str(file)


def _add(names: MutableMapping[str, Any], name: str, found: Any, source: str) -> None:
    if name in names:
        raise ExtensionError(f"{source}: {name} is already registered; choose another name")
    names[name] = found
    log.info("%s comes from %s", name, source)


def _of_file(file: Path) -> Iterator[type[Any]]:
    """The plugins and actions that a file defines."""
    from volcano_py.scheduler.profiles.plugin_api.extension_points import ProfilePlugin

    module_name = f"volcano_py_plugins_{file.stem}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise ExtensionError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ExtensionError(f"{file}: {error!r}") from error
    for found in vars(module).values():
        if not inspect.isclass(found) or found.__module__ != module_name:
            continue
        if issubclass(found, Plugin | Action | ProfilePlugin):
            if found.name and not inspect.isabstract(found):
                yield found
        elif hasattr(found, "on_session_open"):
            raise ExtensionError(f"{file}: class {found.__name__} must be a subclass of volcano_py.plugin.Plugin")
