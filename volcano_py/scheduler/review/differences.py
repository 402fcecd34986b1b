"""What changes when one configuration replaces another, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from inspect import getmodule
from typing import Any

from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.deviations import DEFAULT, PARITY
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.review.effective import settings


def differences(old: Configuration, new: Configuration, registry: Registry) -> list[str]:
    """One line for each effect; none if both decide the same."""
    return [*_actions(old, new, registry), *_plugins(old, new, registry), *_deviations(old, new)]


def _actions(old: Configuration, new: Configuration, registry: Registry) -> Iterator[str]:
    for name in dict.fromkeys(n for n in old.actions if n not in new.actions):
        yield f"action {name} no longer runs ({_about(registry.actions[name], name)})"
    for name in dict.fromkeys(n for n in new.actions if n not in old.actions):
        yield f"action {name} runs now ({_about(registry.actions[name], name)})"
    before = [n for n in old.actions if n in new.actions]
    after = [n for n in new.actions if n in old.actions]
    if before != after:
        yield f"actions run in another order: {', '.join(before)} → {', '.join(after)}"
    yield from _values(old, new, registry, "configurations.")


def _plugins(old: Configuration, new: Configuration, registry: Registry) -> Iterator[str]:
    before, after = _places(old), _places(new)
    for name in sorted(before.keys() - after.keys()):
        yield f"plugin {name} is removed ({_about(registry.plugins.get(name), name)})"
    for name in sorted(after.keys() - before.keys()):
        yield f"plugin {name} is new, in tiers[{after[name][0]}] ({_about(registry.plugins.get(name), name)})"
    both = sorted(before.keys() & after.keys())
    for name in both:
        if before[name][0] != after[name][0]:
            text = f"plugin {name} moves from tiers[{before[name][0]}] to tiers[{after[name][0]}]"
            yield f"{text}: tiers decide about victims and orders one after another"
    order_before = [n for n in before if n in both]
    order_after = [n for n in after if n in both]
    if order_before != order_after and all(before[n][0] == after[n][0] for n in both):
        yield f"plugins are called in another order: {', '.join(order_before)} → {', '.join(order_after)}"
    yield from _values(old, new, registry, "tiers[")


def _places(configuration: Configuration) -> dict[str, tuple[int, int]]:
    """The tier and the position of each plugin; of one that is listed twice, the first."""
    found: dict[str, tuple[int, int]] = {}
    for i, tier in enumerate(configuration.tiers):
        for j, option in enumerate(tier):
            found.setdefault(option.name, (i, j))
    return found


def _values(old: Configuration, new: Configuration, registry: Registry, prefix: str) -> Iterator[str]:
    """Arguments and flags of what is in both; the tier of a plugin makes no difference."""

    def values(configuration: Configuration) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for setting in settings(configuration, registry, everything=True):
            if setting.owner.startswith(prefix):
                found.setdefault(setting.owner.partition(".")[2], {})[setting.name] = setting.value
        return found

    before, after = values(old), values(new)
    for owner in sorted(before.keys() & after.keys()):
        for name in sorted(before[owner].keys() | after[owner].keys()):
            was, now = (each[owner].get(name, "unset") for each in (before, after))
            if was != now:
                yield f"{owner}: {name}: {_text(was)} → {_text(now)}"


def _deviations(old: Configuration, new: Configuration) -> Iterator[str]:
    changed = [f for f in fields(old.deviations) if getattr(old.deviations, f.name) != getattr(new.deviations, f.name)]
    if len(changed) > 1 and new.deviations == PARITY:
        yield f"all deviations are off now ({len(changed)} of them were on): decisions are those of Volcano"
        return
    if len(changed) > 1 and old.deviations == PARITY and new.deviations == DEFAULT:
        yield f"the {len(changed)} deviations of the default are on now: decisions differ where Volcano has a fault"
        return
    for field in changed:
        key = field.name.replace("_", "-")
        state, effect = ("on", "now") if getattr(new.deviations, field.name) else ("off", "no longer")
        yield f"deviation {key} is {state} now ({effect}: {field.metadata['description']})"


def _about(made_by: Callable[[Mapping[str, Any]], Any] | None, name: str) -> str:
    """The first sentence of the docstring of the module of a plugin or an action."""
    module = None if made_by is None else getmodule(made_by)
    text = " ".join((module.__doc__ or "").split()) if module is not None else ""
    first = text.removeprefix(f"{name}: ").split(". ")[0].rstrip(".")
    return first or "no description"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value) or '""'
