"""What the scheduler would report about a configuration at startup, and what is legal but rarely meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from volcano_py.scheduler.framework.config import (
    INIT_PARAMS,
    Configuration,
    ConfigurationError,
    PluginOption,
    load,
    read_yaml,
    unknown_plugins,
)
from volcano_py.scheduler.framework.registry import Builders, Registry

Severity = Literal["error", "warning", "hint"]

_ORDER = ("error", "warning", "hint")

NEED_ARGUMENTS = ("extender",)
"""Plugins that report missing arguments."""
QUEUE_PLUGINS = ("proportion", "capacity")
SCORING = ("nodeorder", "binpack", "resource-strategy-fit", "usage", "network-topology-aware", "task-topology")
EVICTING = ("preempt", "reclaim", "gangpreempt", "gangreclaim")
RECLAIMING = ("reclaim", "gangreclaim")


WITHOUT_EFFECT = {
    "enableBestNode": "no plugin selects the node itself; a plugin of your own can score nodes (add_node_order)",
    "enableTargetJob": "it belongs to the action elect, which Volcano does not have any more",
    "enableReservedNodes": "it belongs to the action reserve, which Volcano does not have any more",
    "enabledClusterOrder": "it orders clusters, and this scheduler has one",
}
"""The flags of Volcano's format without an extension point, and why."""


class Finding(NamedTuple):
    """`error`: the scheduler does not use the document. `warning`: a part of it is ignored. `hint`: legal, but odd."""

    severity: Severity
    text: str


def findings(text: str, registry: Registry) -> list[Finding]:
    """All findings about Volcano's configuration, errors first."""
    found: list[Finding] = []
    try:
        configuration = load(text, registry.actions)
    except ConfigurationError as error:
        found = [Finding("error", problem) for problem in error.problems]
        if error.usable is None:
            return found
        configuration = error.usable
    except RecursionError:
        return [Finding("error", "it is nested too deep; use fewer levels")]
    found += [Finding("warning", warning) for warning in configuration.warnings]
    found += [Finding("warning", warning) for warning in unknown_plugins(configuration, registry.plugins)]
    found += argument_findings(configuration, registry)
    if not any(finding.severity == "error" for finding in found):
        # with invalid parts left out, hints would report what is missing because of them
        found += [Finding("hint", hint) for hint in (*_hints(configuration), *_flags_without_effect(text))]
    return sorted(found, key=lambda finding: _ORDER.index(finding.severity))


def argument_findings(configuration: Configuration, registry: Registry) -> list[Finding]:
    """What the plugins and the actions report about their arguments."""
    found: list[Finding] = []
    for i, tier in enumerate(configuration.tiers):
        for j, option in enumerate(tier):
            if option.name not in registry.plugins or _needs_no_check(registry.plugins, option.name, option.arguments):
                continue
            builder = registry.plugins[option.name]
            where = f"tiers[{i}].plugins[{j}]"
            try:
                found += [Finding("warning", f"{where}: {text}") for text in builder(option.arguments).warnings]
            except Exception as error:
                found.append(Finding("error", f"{where}: plugin {option.name} cannot be made: {error}"))
    for name in dict.fromkeys(configuration.actions):
        arguments = configuration.action_arguments.get(name, {})
        if _needs_no_check(registry.actions, name, arguments):
            continue
        try:
            action = registry.actions[name](arguments)
            found += [Finding("warning", f"configurations: {text}") for text in action.warnings]
        except Exception as error:
            found.append(Finding("error", f"configurations: action {name} cannot be made: {error}"))
    return found


def _flags_without_effect(text: str) -> Iterator[str]:
    """The flags in the document that Volcano's format has and that enable nothing."""
    for i, tier in enumerate(read_yaml(text).get("tiers") or ()):
        for j, plugin in enumerate(tier.get("plugins") or ()):
            for flag, why in WITHOUT_EFFECT.items():
                if flag in plugin:
                    yield f"tiers[{i}].plugins[{j}] ({plugin['name']}): {flag} has no effect: {why}; remove it"


def _needs_no_check(builders: Builders[Any], name: str, arguments: Mapping[str, Any]) -> bool:
    """Whether there is nothing to report: built-in defaults are valid, and importing the module takes time."""
    return builders.is_built_in(name) and not arguments and name not in NEED_ARGUMENTS


def _hints(configuration: Configuration) -> Iterator[str]:
    options = [option for tier in configuration.tiers for option in tier]
    names, actions = {option.name for option in options}, configuration.actions
    yield from _twice(options, actions)
    if "allocate" not in actions:
        yield "actions: allocate is missing: only best-effort pods can be placed; add it after enqueue"
    if "backfill" not in actions:
        yield "actions: backfill is missing: pods that request no resources are never placed; add it at the end"
    if "enqueue" in actions and "allocate" in actions and actions.index("enqueue") > actions.index("allocate"):
        yield "actions: enqueue is after allocate: a job waits one cycle more than it has to; put enqueue first"
    for name in configuration.action_arguments:
        if name not in actions and name != INIT_PARAMS:
            yield f"configurations: the action {name} has arguments and does not run; add it to actions"
    yield from _missing_plugins(names, actions)
    if {"proportion", "capacity"} <= names:
        yield "plugins proportion and capacity both limit queues; a job needs the consent of both: keep one of them"
    if "capacity" in names and not set(actions).intersection(RECLAIMING):
        yield "actions: reclaim is missing: a queue does not get back what it deserves and others hold; add reclaim"
    if "overcommit" in names and "enqueue" not in actions:
        yield "plugin overcommit decides which jobs are admitted, and the action enqueue does not run; add enqueue"
    for option in options:
        if not option.enabled:
            yield f"plugin {option.name}: all of its flags are off, so it does nothing; remove it or turn flags on"


def _twice(options: list[PluginOption], actions: tuple[str, ...]) -> Iterator[str]:
    for name, count in Counter(actions).items():
        if count > 1:
            yield f"actions: {name} runs {count} times in each cycle; name it once"
    for name, count in Counter(option.name for option in options).items():
        if count > 1:
            yield f"plugin {name} is listed {count} times, and each one votes and scores; list it once"


def _missing_plugins(names: set[str], actions: tuple[str, ...]) -> Iterator[str]:
    if "gang" not in names:
        yield "plugin gang is missing: jobs start with any number of their pods, and minMember has no effect; add it"
        for action in actions:
            if action in EVICTING:
                yield f"action {action} without the plugin gang breaks up running gangs; add gang"
    if "predicates" not in names:
        yield "plugin predicates is missing: taints, selectors, affinity, ports and volumes are not respected; add it"
    if not names.intersection(QUEUE_PLUGINS):
        for action in actions:
            if action in RECLAIMING:
                yield f"action {action} without proportion or capacity: no queue has a share; add one of them"
        yield "neither proportion nor capacity is a plugin: queues have no share and no limit; add one of them"
    if not names.intersection(SCORING):
        yield "no plugin scores nodes: pods go to nodes in a fixed order; add nodeorder or binpack"
    if "priority" not in names and {"preempt", "gangpreempt"}.intersection(actions):
        yield "preempt without the plugin priority does not compare priorities; add priority"
