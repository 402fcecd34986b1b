"""Plugins and actions from outside: entry points and `--plugins-dir`.

A plugin is a subclass of `Plugin`, an action one of `Action`, each with a `name`. Packages declare theirs in the
entry-point groups `volcano_py.plugins` and `volcano_py.actions`; in a plugins folder every Python file is searched.
Volcano loads Go plugins from `--plugins-dir`.
"""

from __future__ import annotations

import importlib.util
import inspect
import logging
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from volcano_py.scheduler.framework.plugin import Action, Plugin
from volcano_py.scheduler.framework.registry import Registry

log = logging.getLogger(__name__)


class ExtensionError(Exception):
    """A plugin file or entry point cannot be loaded; the message names it."""


def extended(registry: Registry, plugins_dir: str = "") -> Registry:
    """A registry with the extensions added; built-in names cannot be replaced.

    Raises ExtensionError for one that cannot be loaded: the scheduler must not run without it.
    """
    made = Registry(registry.plugins, registry.actions)
    for kind, names in (("plugins", made.plugins), ("actions", made.actions)):
        for point in entry_points(group=f"volcano_py.{kind}"):
            try:
                found = point.load()
            except Exception as error:
                raise ExtensionError(f"entry point {point.name} ({point.value}): {error!r}") from error
            base = Plugin if kind == "plugins" else Action
            if not (inspect.isclass(found) and issubclass(found, base)):
                raise ExtensionError(
                    f"entry point {point.name} ({point.value}) is no subclass of volcano_py.plugin.{base.__name__}"
                )
            _add(names, point.name, found, f"entry point {point.value}")
    for file in sorted(Path(plugins_dir).glob("*.py")) if plugins_dir else ():
        for found in _of_file(file):
            target: dict[str, Any] = made.plugins if issubclass(found, Plugin) else made.actions
            _add(target, found.name, found, str(file))
    if plugins_dir and not Path(plugins_dir).is_dir():
        raise ExtensionError(f"--plugins-dir {plugins_dir} is not a directory")
    return made


def _add(names: dict[str, Any], name: str, found: Any, source: str) -> None:
    if name in names:
        raise ExtensionError(f"{source}: {name} is already registered; choose another name")
    names[name] = found
    log.info("%s comes from %s", name, source)


def _of_file(file: Path) -> Iterator[type[Plugin] | type[Action]]:
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
        if issubclass(found, Plugin | Action):
            if found.name:
                yield found
        elif hasattr(found, "on_session_open"):
            raise ExtensionError(f"{file}: class {found.__name__} must be a subclass of volcano_py.plugin.Plugin")
