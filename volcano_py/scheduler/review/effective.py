"""What is in force: every value of a configuration, with the defaults and where each value is from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import msgspec

from volcano_py.scheduler.framework.config import FLAGS, Configuration
from volcano_py.scheduler.framework.registry import Registry

FILE = "file"
DEFAULT = "default"


class Setting(NamedTuple):
    """`owner` is a path as in messages: `configurations.preempt`, `tiers[1].binpack`, `deviations`.

    `name` is the key of an argument, a flag or a deviation; empty for the owner itself.
    """

    owner: str
    name: str
    value: Any
    origin: str
    """FILE, or DEFAULT."""


def settings(configuration: Configuration, registry: Registry, *, everything: bool = False) -> list[Setting]:
    """The values in force. Without `everything`, flags and deviations only where they are not as by default."""
    found = [Setting("actions", "", ", ".join(configuration.actions), FILE)]
    for name in dict.fromkeys(configuration.actions):
        given = configuration.action_arguments.get(name, {})
        made = registry.actions[name](given)
        found += _arguments(f"configurations.{name}", made.arguments, given)
    for i, tier in enumerate(configuration.tiers):
        for option in tier:
            place = f"tiers[{i}].{option.name}"
            builder = registry.plugins.get(option.name)
            if builder is None:
                found.append(Setting(place, "", "unknown, skipped", FILE))
                continue
            found.append(Setting(place, "", "on", FILE))
            for flag, default in FLAGS.items():
                on = flag in option.enabled
                if on != default or everything:
                    found.append(Setting(place, flag, on, DEFAULT if on == default else FILE))
            made_plugin = builder(option.arguments)
            found += _arguments(place, getattr(made_plugin, "arguments", None), option.arguments)
    for field in fields(configuration.deviations):
        on = getattr(configuration.deviations, field.name)
        if on != field.default or everything:
            key = field.name.replace("_", "-")
            found.append(Setting("deviations", key, on, DEFAULT if on == field.default else FILE))
    return found


def _arguments(place: str, arguments: Any, given: Mapping[str, Any]) -> list[Setting]:
    if not isinstance(arguments, msgspec.Struct):
        return [Setting(place, key, value, FILE) for key, value in given.items()]
    found = []
    for field in msgspec.structs.fields(type(arguments)):
        value = getattr(arguments, field.name)
        if field.name == "extra":
            found += [Setting(place, key, each, FILE) for key, each in value.items()]
        else:
            origin = FILE if field.encode_name in given else DEFAULT
            found.append(Setting(place, field.encode_name, msgspec.to_builtins(value), origin))
    return found
