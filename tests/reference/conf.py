"""The configuration document. Volcano: scheduler-conf and the decoding of arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
OFF_BY_DEFAULT = ("enableHierarchy", "enabledClusterOrder")


@dataclass
class Option:
    """One plugin of a tier."""

    name: str
    flags: dict[str, bool]
    arguments: dict[str, Any]

    def enabled(self, flag: str | None) -> bool:
        if flag is None:
            return True
        return self.flags.get(flag, flag not in OFF_BY_DEFAULT)


@dataclass
class Conf:
    actions: list[str]
    tiers: list[list[Option]]
    configurations: list[dict[str, Any]] = field(default_factory=list)
    metrics: dict[str, str] = field(default_factory=dict)

    def action_arguments(self, action: str) -> dict[str, Any]:
        for entry in self.configurations:
            if entry.get("name") == action:
                return entry.get("arguments") or {}
        return {}

    def first_flag(self, plugin: str, flag: str) -> bool:
        """The flag of the plugin's first occurrence. Volcano: HierarchyEnabled."""
        return next((o.enabled(flag) for tier in self.tiers for o in tier if o.name == plugin), False)


def load(text: str) -> Conf:
    document = yaml.load(text, LOADER)
    tiers = []
    for tier in document.get("tiers") or []:
        options = []
        for plugin in tier.get("plugins") or []:
            flags = {k: v for k, v in plugin.items() if k.startswith("enable")}
            options.append(Option(plugin["name"], flags, plugin.get("arguments") or {}))
        tiers.append(options)
    actions = [a.strip() for a in document["actions"].split(",")]
    return Conf(actions, tiers, document.get("configurations") or [], document.get("metrics") or {})


def get_int(arguments: dict[str, Any], key: str, default: int) -> int:
    value = arguments.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def get_float(arguments: dict[str, Any], key: str, default: float) -> float:
    value = arguments.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


def get_bool(arguments: dict[str, Any], key: str, default: bool) -> bool:
    value = arguments.get(key)
    if isinstance(value, bool):
        return value
    if value in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if value in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    return default


_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration(text: Any) -> float | None:
    """Seconds of a Go duration; None if it is invalid."""
    if not isinstance(text, str):
        return None
    parts = re.findall(r"([0-9]*\.?[0-9]+)(ns|us|ms|s|m|h)", text)
    if not parts or "".join(n + u for n, u in parts) != text:
        return 0.0 if text == "0" else None
    return sum(float(n) * _UNITS[u] for n, u in parts)
