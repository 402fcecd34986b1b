"""Plugins that fail, are slow or do not return several cycles in a row. Not in Volcano.

A plugin that merely scores or orders is switched off for a while: pods are then placed without its preference. Any
other one fails closed: what it would permit is not done. It is called again in each cycle if it fails or is slow; one
whose call did not return is closed for a while, that is, no job is placed and no pod is evicted, because its rules are
missing. Each is tried again after RETRY, and when the configuration changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal, NamedTuple

from msgspec.structs import replace

from volcano_py.scheduler.framework.config import Configuration, PluginOption

MOST_FAILURES = 5
"""Cycles in a row in which a plugin may fail or be slow."""
MOST_STUCK = 2
"""Cycles in a row in which a call of a plugin may not return."""
RETRY = 600.0
"""Seconds until a plugin that is off or closed is tried again."""
HARMLESS = frozenset(
    (
        "job_order",
        "queue_order",
        "victim_queue_order",
        "task_order",
        "sub_job_order",
        "node_order",
        "hyper_node_order",
    )
)
"""Extension points that score or order. A plugin with a callback at any other one may protect something."""

State = Literal["off", "closed", "failing"]


class Condition(NamedTuple):
    """What is done about a plugin, since when, and why."""

    state: State
    since: float
    why: str

    def text(self, plugin: str) -> str:
        """As a sentence."""
        again = f"it is tried again after {RETRY:.0f} s, and when the configuration changes"
        match self.state:
            case "off":
                effect = f"it only scores or orders, so it is switched off; {again}"
            case "closed":
                effect = f"its rules are needed, so no job is placed and no pod is evicted; {again}"
            case _:
                effect = "its rules are needed, so what it would permit is not done"
        return f"plugin {plugin} {self.why}: {effect}; correct it, or remove it from the configuration"


class PluginConduct:
    """Counts, and decides which configuration to use. `report(text)` is called once for each new condition."""

    def __init__(self, report: Callable[[str], None], slow: float) -> None:
        """`slow`: seconds in one cycle after which a plugin is slow; 0: never."""
        self.conditions: dict[str, Condition] = {}
        """By plugin."""
        self._report = report
        self._slow = slow
        self._failures: dict[str, int] = {}
        self._stuck: dict[str, int] = {}
        self._harmless: set[str] = set()
        self._given: Configuration | None = None
        self._applied: Configuration | None = None

    def applied(self, given: Configuration, now: float) -> Configuration:
        """The configuration in force, without plugins that are off; those that are closed are marked. The same object
        as long as nothing changes."""
        if given is not self._given:
            self._given, self._applied = given, None
            self.conditions.clear()
            self._failures.clear()
            self._stuck.clear()
        for name, condition in list(self.conditions.items()):
            if condition.state != "failing" and now - condition.since > RETRY:
                del self.conditions[name]
                self._failures[name], self._stuck[name] = MOST_FAILURES - 1, MOST_STUCK - 1
                self._applied = None
        if self._applied is None:
            self._applied = self._changed(given)
        return self._applied

    def ended(
        self,
        failed: Collection[str],
        seconds: Mapping[str, float],
        callbacks: Mapping[str, Iterable[str]],
        tried: bool,
        now: float,
    ) -> None:
        """A cycle has ended. `failed`: plugins that raised; `seconds`: the time of plugins; `callbacks`: the extension
        points of each plugin; `tried`: whether there was anything to decide, so that plugins were called."""
        for name, points in callbacks.items():
            known = frozenset(points)
            if known and known <= HARMLESS:
                self._harmless.add(name)
            else:
                self._harmless.discard(name)
        slow = {name for name, spent in seconds.items() if self._slow and spent > self._slow}
        for name in {*failed, *slow} & callbacks.keys():
            self._failures[name] = count = self._failures.get(name, 0) + 1
            if count >= MOST_FAILURES:
                what = "failed" if name in failed else f"took more than {self._slow:g} s"
                self._conclude(name, f"{what} in {count} cycles in a row", now, stuck=False)
        if tried:
            for name in [n for n in self._failures if n not in failed and n not in slow]:
                del self._failures[name]
                if name in self.conditions and self.conditions[name].state == "failing":
                    del self.conditions[name]
            self._stuck.clear()

    def stuck(self, name: str, text: str, points: Collection[str], now: float) -> None:
        """A cycle was ended in a call of a plugin. `points`: its extension points; empty: not known."""
        if points and HARMLESS.issuperset(points):
            self._harmless.add(name)
        self._stuck[name] = count = self._stuck.get(name, 0) + 1
        if count >= MOST_STUCK:
            self._conclude(name, f"did not return in {count} cycles in a row ({text})", now, stuck=True)

    def note(self) -> str:
        """All conditions, for /readyz."""
        return "; ".join(condition.text(name) for name, condition in sorted(self.conditions.items()))

    def _conclude(self, name: str, why: str, now: float, *, stuck: bool) -> None:
        state: State = "off" if name in self._harmless else "closed" if stuck else "failing"
        known = self.conditions.get(name)
        if known is not None and (known.state == state or known.state != "failing"):
            return
        self.conditions[name] = condition = Condition(state, now, why)
        self._applied = None
        self._report(condition.text(name))

    def _changed(self, given: Configuration) -> Configuration:
        if not any(condition.state != "failing" for condition in self.conditions.values()):
            return given
        tiers = tuple(tuple(o for option in tier for o in self._option(option)) for tier in given.tiers)
        return replace(given, tiers=tiers)

    def _option(self, option: PluginOption) -> tuple[PluginOption, ...]:
        condition = self.conditions.get(option.name)
        match condition.state if condition is not None else "":
            case "off":
                return ()
            case "closed":
                assert condition is not None
                return (replace(option, closed=condition.why),)
            case _:
                return (option,)
