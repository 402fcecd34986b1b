"""The scheduler configuration: actions, tiers of plugins, arguments. Volcano: SchedulerConfiguration and its
loader.

`load(text)` applies the loader's defaults: every callback is enabled except hierarchy and cluster order. In `Tier`s
that are built in code, every flag that is not set is off, as in Volcano. Errors contain the path in the document and
the nearest valid name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec
import yaml

from volcano_py.api import yaml_documents
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
INIT_PARAMS = "init-params"
"""An entry of `configurations` that belongs to no action: the parameters of MindCluster, which deviceshare reads."""

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
    closed: str = ""
    """Why the plugin is not called, and its callbacks count as missing; empty: it is called."""


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
    """The document is invalid; the message is the first problem, with the path and what is valid. `problems`: all of
    them. `usable`: the document without its invalid parts, for a review; None if nothing can be read."""

    def __init__(self, message: str, problems: Sequence[str] = (), usable: Configuration | None = None) -> None:
        super().__init__(message)
        self.problems = tuple(problems) or (message,)
        self.usable = usable


def read_yaml(text: str) -> Any:
    """Parse a YAML document. Raises ConfigurationError with line and column."""
    try:
        return yaml_documents.load(text)
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
    problems: list[str] = []
    warnings = [f"{key}: unknown key, ignored" + _nearest(key, _KEYS) for key in document if key not in _KEYS]
    actions = _actions(document.get("actions", ""), known_actions, problems)
    tiers = tuple(
        _tier(tier, f"tiers[{i}]", absent_flags, warnings, problems)
        for i, tier in enumerate(_list(document.get("tiers"), "tiers", problems))
    )
    on, wrong = deviations.read(document.get("deviations"))
    arguments: dict[str, dict[str, Any]] = {}
    for i, entry in enumerate(_list(document.get("configurations"), "configurations", problems)):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            problems.append(f"configurations[{i}]: must be a map with a name and arguments")
            continue
        arguments.setdefault(entry["name"], entry.get("arguments") or {})
        if entry["name"] not in known_actions and entry["name"] != INIT_PARAMS:
            warnings.append(f"configurations[{i}]: no action {entry['name']}" + _nearest(entry["name"], known_actions))
    metrics = document.get("metrics") or {}
    configuration = Configuration(
        actions=actions,
        tiers=tiers,
        action_arguments=arguments,
        metrics={str(k): str(v) for k, v in metrics.items()} if isinstance(metrics, dict) else {},
        deviations=on,
        warnings=(*warnings, *wrong),
    )
    if problems:
        raise ConfigurationError(problems[0], problems, configuration)
    return configuration


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


def _actions(value: Any, known: Collection[str], problems: list[str]) -> tuple[str, ...]:
    if not isinstance(value, str):
        problems.append(f'actions: must be text such as "enqueue, allocate, backfill", found {value!r}')
        return ()
    found = tuple(name.strip() for name in value.split(","))
    unknown = dict.fromkeys(name for name in found if name not in known)
    problems += [f'actions: failed to find Action "{name}"{_nearest(name, known)}' for name in unknown]
    return tuple(name for name in found if name in known)


def _tier(
    tier: Any, place: str, absent_flags: bool | None, warnings: list[str], problems: list[str]
) -> tuple[PluginOption, ...]:
    if not isinstance(tier, dict):
        problems.append(f"{place}: must be a map with the key plugins")
        return ()
    options = []
    for i, plugin in enumerate(_list(tier.get("plugins"), f"{place}.plugins", problems)):
        where = f"{place}.plugins[{i}]"
        if not isinstance(plugin, dict) or not isinstance(plugin.get("name"), str):
            problems.append(f"{where}: must be a map with a name")
            continue
        name = plugin["name"]
        enabled = set()
        for flag, default in FLAGS.items():
            value = plugin.get(flag)
            if value is None:
                value = default if absent_flags is None else absent_flags
            elif not isinstance(value, bool):
                problems.append(f"{where} ({name}): {flag} is {value!r}, it must be true or false")
            if value is True:
                enabled.add(flag)
        for key in plugin:
            if key not in FLAGS and key not in ("name", "arguments"):
                warnings.append(f"{where} ({name}): {key}: unknown key, ignored" + _nearest(key, FLAGS))
        arguments = plugin.get("arguments") or {}
        if not isinstance(arguments, dict):
            problems.append(f"{where} ({name}): arguments must be a map, found {arguments!r}")
            arguments = {}
        options.append(PluginOption(name, frozenset(enabled), {str(k): v for k, v in arguments.items()}))
    names = {o.name for o in options}
    checked = absent_flags is None  # Volcano's loader checks; tiers that bypass it are not checked
    if checked and "proportion" in names and any(o.name == "drf" and "enableHierarchy" in o.enabled for o in options):
        problems.append(
            f"{place}: proportion and drf with hierarchy enabled conflicts; "
            "remove proportion from this tier or set enableHierarchy: false on drf"
        )
    return tuple(options)


def _list(value: Any, place: str, problems: list[str]) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        problems.append(f"{place}: must be a list, found {value!r}")
        return []
    return value


def _nearest(name: object, known: Collection[str]) -> str:
    near = get_close_matches(str(name), list(known), 1)
    return f"; did you mean {near[0]}?" if near else f"; valid values are {', '.join(sorted(known))}"
