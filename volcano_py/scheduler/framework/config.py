"""The scheduler configuration: actions, tiers of plugins, arguments. Volcano: SchedulerConfiguration and its
loader.

`load(text)` applies the loader's defaults: every callback is enabled except hierarchy and cluster order. In `Tier`s
that are built in code, every flag that is not set is off, as in Volcano. Errors contain the path in the document and
the nearest valid name.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

import msgspec
import yaml

from volcano_py.scheduler.framework import deviations

FLAGS = {
    "enableJobOrder": True,
    "enableHierarchy": False,
    "enableJobReady": True,
    "enableJobPipelined": True,
    "enableTaskOrder": True,
    "enablePreemptable": True,
    "enableReclaimable": True,
    "enablePreemptive": True,
    "enableQueueOrder": True,
    "enabledClusterOrder": False,
    "enablePredicate": True,
    "enableBestNode": True,
    "enableNodeOrder": True,
    "enableTargetJob": True,
    "enableReservedNodes": True,
    "enableJobEnqueued": True,
    "enabledVictim": True,
    "enableJobStarving": True,
    "enabledOverused": True,
    "enabledAllocatable": True,
    "enabledHyperNodeOrder": True,
    "enabledSubJobReady": True,
    "enabledSubJobPipelined": True,
    "enabledSubJobOrder": True,
    "enabledHyperNodeGradient": True,
}
"""The YAML key of each callback flag, with its default when the key is absent."""

_KEYS = ("actions", "tiers", "configurations", "metrics", "deviations")

DEFAULT_TEXT = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
"""Used without a configuration file, as in Volcano."""


class PluginOption(msgspec.Struct, frozen=True):
    """One plugin in a tier: which of its callbacks are enabled, and its arguments."""

    name: str
    enabled: frozenset[str] = frozenset()
    """The YAML keys of the flags that are on."""
    arguments: dict[str, Any] = {}


class Configuration(msgspec.Struct, frozen=True):
    """A complete configuration. `actions` run in this order; the plugins of a tier are called in theirs."""

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginOption, ...], ...]
    action_arguments: dict[str, dict[str, Any]] = {}
    metrics: dict[str, str] = {}
    deviations: deviations.Deviations = deviations.DEFAULT
    warnings: tuple[str, ...] = ()
    """Problems that do not prevent the use of the configuration; logged once."""


class ConfigurationError(ValueError):
    """The document is invalid; the message contains the path and what is valid."""


def read_yaml(text: str) -> Any:
    """Parse a YAML document. Raises ConfigurationError with line and column."""
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ConfigurationError(f"{place}not valid YAML: {e.problem}") from None
    except yaml.YAMLError as e:
        raise ConfigurationError(f"not valid YAML: {e}") from None


def load(text: str, known_actions: Collection[str], absent_flags: bool | None = None) -> Configuration:
    """Read a configuration document.

    `absent_flags`: the value of flags that are not set (None: the loader's defaults).
    Raises ConfigurationError: not YAML, an unknown action, drf with hierarchy beside proportion.
    """
    document = read_yaml(text)
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise ConfigurationError("the document must be a map with the keys actions and tiers")
    warnings = [f"{key}: unknown key, ignored" + _nearest(key, _KEYS) for key in document if key not in _KEYS]
    actions = _actions(document.get("actions", ""), known_actions)
    tiers = tuple(
        _tier(tier, f"tiers[{i}]", absent_flags, warnings)
        for i, tier in enumerate(_list(document.get("tiers"), "tiers"))
    )
    on, wrong = deviations.read(document.get("deviations"))
    arguments: dict[str, dict[str, Any]] = {}
    for i, entry in enumerate(_list(document.get("configurations"), "configurations")):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise ConfigurationError(f"configurations[{i}]: must be a map with a name and arguments")
        arguments.setdefault(entry["name"], entry.get("arguments") or {})
        if entry["name"] not in known_actions:
            warnings.append(f"configurations[{i}]: no action {entry['name']}" + _nearest(entry["name"], known_actions))
    metrics = document.get("metrics") or {}
    return Configuration(
        actions=actions,
        tiers=tiers,
        action_arguments=arguments,
        metrics={str(k): str(v) for k, v in metrics.items()} if isinstance(metrics, dict) else {},
        deviations=on,
        warnings=(*warnings, *wrong),
    )


def unknown_plugins(configuration: Configuration, known: Collection[str]) -> list[str]:
    """A warning for each plugin that does not exist."""
    warnings = []
    for i, tier in enumerate(configuration.tiers):
        for j, option in enumerate(tier):
            if option.name not in known:
                near = get_close_matches(option.name, list(known), 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                warnings.append(f"tiers[{i}].plugins[{j}]: no plugin {option.name}, it is skipped{hint}")
    return warnings


def _actions(value: Any, known: Collection[str]) -> tuple[str, ...]:
    if not isinstance(value, str):
        raise ConfigurationError(f'actions: must be text such as "enqueue, allocate, backfill", found {value!r}')
    found = tuple(name.strip() for name in value.split(","))
    for name in found:
        if name not in known:
            raise ConfigurationError(f'actions: failed to find Action "{name}"{_nearest(name, known)}')
    return found


def _tier(tier: Any, place: str, absent_flags: bool | None, warnings: list[str]) -> tuple[PluginOption, ...]:
    if not isinstance(tier, dict):
        raise ConfigurationError(f"{place}: must be a map with the key plugins")
    options = []
    for i, plugin in enumerate(_list(tier.get("plugins"), f"{place}.plugins")):
        where = f"{place}.plugins[{i}]"
        if not isinstance(plugin, dict) or not isinstance(plugin.get("name"), str):
            raise ConfigurationError(f"{where}: must be a map with a name")
        name = plugin["name"]
        enabled = set()
        for flag, default in FLAGS.items():
            value = plugin.get(flag)
            if value is None:
                value = default if absent_flags is None else absent_flags
            elif not isinstance(value, bool):
                raise ConfigurationError(f"{where} ({name}): {flag} is {value!r}, it must be true or false")
            if value:
                enabled.add(flag)
        for key in plugin:
            if key not in FLAGS and key not in ("name", "arguments"):
                warnings.append(f"{where} ({name}): {key}: unknown key, ignored" + _nearest(key, FLAGS))
        arguments = plugin.get("arguments") or {}
        if not isinstance(arguments, dict):
            raise ConfigurationError(f"{where} ({name}): arguments must be a map, found {arguments!r}")
        options.append(PluginOption(name, frozenset(enabled), {str(k): v for k, v in arguments.items()}))
    names = {o.name for o in options}
    checked = absent_flags is None  # Volcano's loader checks; tiers that bypass it are not checked
    if checked and "proportion" in names and any(o.name == "drf" and "enableHierarchy" in o.enabled for o in options):
        raise ConfigurationError(
            f"{place}: proportion and drf with hierarchy enabled conflicts; "
            "remove proportion from this tier or set enableHierarchy: false on drf"
        )
    return tuple(options)


def _list(value: Any, place: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ConfigurationError(f"{place}: must be a list, found {value!r}")
    return value


def _nearest(name: object, known: Collection[str]) -> str:
    near = get_close_matches(str(name), list(known), 1)
    return f"; did you mean {near[0]}?" if near else f"; valid values are {', '.join(sorted(known))}"
