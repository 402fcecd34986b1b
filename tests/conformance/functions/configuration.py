"""The configuration: its loader, and the arguments in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.conformance.functions.adapter import Adapter, Adapters, Data, arguments_after
from volcano_py.scheduler.framework import arguments, config
from volcano_py.scheduler.run_once import REGISTRY


def _getter(read: Callable[[Any], Any]) -> Adapter:
    def call(r: Any, a: list[Any]) -> list[Any]:
        got = read((r or {}).get(a[1])) if a[1] in (r or {}) else None
        return [a[0] if got is None else got, a[1]]

    return Adapter(call, arguments_after)


def _load(_: Any, a: list[Any]) -> list[Any]:
    known = {*REGISTRY.actions, "preempt", "reclaim", "gangpreempt", "gangreclaim", "shuffle"}
    try:
        loaded = config.load(a[0], known)
    except config.ConfigurationError as e:
        return [{"error": str(e)}]
    tiers = []
    for tier in loaded.tiers:
        plugins = []
        for option in tier:
            entry: Data = {"name": option.name, **dict.fromkeys(option.enabled, True)}
            if option.arguments:
                entry["arguments"] = option.arguments
            plugins.append(entry)
        tiers.append({"plugins": plugins})
    return [{"actions": list(loaded.actions), "tiers": tiers}]


def _defaults(_: Any, a: list[Any]) -> list[Any]:
    given = {k: v for k, v in a[0].items() if k != "name"}
    text = json.dumps({"actions": "allocate", "tiers": [{"plugins": [{"name": a[0].get("name", "x"), **given}]}]})
    option = config.load(text, REGISTRY.actions).tiers[0][0]
    out: Data = {flag: flag in option.enabled for flag, default in config.FLAGS.items() if default or flag in given}
    return [{"name": a[0].get("name"), **out}]


def _action_arguments(_: Any, a: list[Any]) -> list[Any]:
    entries = [{"name": c["Name"], "arguments": c["Arguments"]} for c in a[0]]
    text = json.dumps({"actions": "enqueue, allocate", "tiers": [], "configurations": entries})
    return [config.load(text, REGISTRY.actions).action_arguments.get(a[1])]


ADAPTERS: Adapters = {
    "framework.Arguments.GetBool": _getter(arguments.get_bool),
    "framework.Arguments.GetFloat64": _getter(arguments.get_float),
    "framework.Arguments.GetInt": _getter(arguments.get_int),
    "framework.Arguments.GetString": _getter(arguments.get_string),
    "framework.GetArgOfActionFromConf": _action_arguments,
    "plugins.ApplyPluginConfDefaults": Adapter(_defaults, arguments_after),
    "scheduler.UnmarshalSchedulerConf": Adapter(_load, lambda expected: [expected["result"]]),
}
