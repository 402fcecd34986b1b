"""Plugins and actions from outside: entry points and `--plugins-dir`.

A plugin is a class with `name` and `on_session_open`, whose constructor takes its arguments map; an action is
a function of the session with an attribute `action` that names it. Packages announce theirs in the
entry-point groups `volcano_py.plugins` and `volcano_py.actions`; in a plugins folder every Python file is
looked through.
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

from volcano_py.scheduler.framework.registry import Registry

log = logging.getLogger(__name__)


class ExtensionError(Exception):
    """A plugin file or entry point cannot be loaded; the message names it."""


def extended(registry: Registry, plugins_dir: str = "") -> Registry:
    """A registry with the extensions added. Raises ExtensionError: a scheduler without a plugin it was given
    is no scheduler the user asked for. Built-in names cannot be taken.
    """
    made = Registry(registry.plugins, registry.actions)
    for kind, names in (("plugins", made.plugins), ("actions", made.actions)):
        for point in entry_points(group=f"volcano_py.{kind}"):
            try:
                found = point.load()
            except Exception as error:
                raise ExtensionError(f"entry point {point.name} ({point.value}): {error!r}") from error
            _add(names, point.name, found, f"entry point {point.value}")
    for file in sorted(Path(plugins_dir).glob("*.py")) if plugins_dir else ():
        for name, found in _of_file(file):
            target: dict[str, Any] = made.plugins if inspect.isclass(found) else made.actions
            _add(target, name, found, str(file))
    if plugins_dir and not Path(plugins_dir).is_dir():
        raise ExtensionError(f"--plugins-dir {plugins_dir} is no folder")
    return made


def _add(names: dict[str, Any], name: str, found: Any, source: str) -> None:
    if name in names:
        raise ExtensionError(f"{source}: the name {name} is taken; give it another")
    names[name] = found
    log.info("%s comes from %s", name, source)


def _of_file(file: Path) -> Iterator[tuple[str, Any]]:
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
        if getattr(found, "__module__", "") != module_name:
            continue
        if inspect.isclass(found) and isinstance(getattr(found, "name", None), str):
            if callable(getattr(found, "on_session_open", None)):
                yield found.name, found
        elif inspect.isfunction(found) and isinstance(getattr(found, "action", None), str):
            yield found.action, found
