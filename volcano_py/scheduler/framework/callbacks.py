"""Callbacks: the functions that plugins have registered in a session, and how the results of several plugins combine.

Each extension point has a flag in the configuration (or none) and one of the combination rules below. Tiers and the
order within a tier come from the configuration. All errors of callbacks are handled here: the exception is recorded as
a `Fault` that names the plugin, the safest result is used instead, and the cycle continues.

Volcano: the loops over tiers in session_plugins.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from volcano_py.scheduler.framework.config import PluginOption
from volcano_py.scheduler.framework.source_line import line_of

Fn = Callable[..., Any]


class Vote(IntEnum):
    """A result that may leave the decision to other plugins."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Fault(NamedTuple):
    """An exception of a plugin or an action. `subject`: the object that the callback was called for; `where`: file and
    line."""

    plugin: str
    point: str
    error: str
    subject: str
    where: str = ""

    @property
    def text(self) -> str:
        """The error with file and line."""
        return f"{self.error} ({self.where})" if self.where else self.error


def once_each(faults: Iterable[Fault]) -> list[tuple[Fault, int]]:
    """The first fault of each line of each plugin, and how often it occurred: a rule that raises does so for every pod
    and node, and often with the pod's name in its error."""
    found: dict[tuple[str, ...], tuple[Fault, int]] = {}
    for fault in faults:
        key = (fault.plugin, fault.point, fault.where or fault.error)
        first, count = found.get(key, (fault, 0))
        found[key] = first, count + 1
    return list(found.values())


class Callback(NamedTuple):
    """One function that a plugin has registered. `basis`: why it names victims, see `victims.Basis`."""

    plugin: str
    fn: Fn
    basis: Any = None


Tier = list[Callback]


class CallbackOrders:
    """State between sessions: the order of the plugins at each extension point, which changes only with the
    configuration and with the plugins that register there."""

    def __init__(self) -> None:
        self._tiers: Sequence[Sequence[PluginOption]] = ()
        self._of: dict[str, tuple[tuple[str, ...], list[list[str]]]] = {}

    def use(self, tiers: Sequence[Sequence[PluginOption]]) -> None:
        """Follow a configuration."""
        if tiers is not self._tiers:
            self._tiers = tiers
            self._of.clear()

    def of(self, point: str, flag: str | None, plugins: tuple[str, ...]) -> list[list[str]]:
        """By tier: those of the plugins for which the flag of a point is set, without empty tiers. A plugin may be in
        the tiers twice."""
        known, order = self._of.get(point, ((), []))
        if known != plugins:
            enabled = (
                [o.name for o in tier if o.name in plugins and (flag is None or flag in o.enabled)]
                for tier in self._tiers
            )
            order = [names for names in enabled if names]
            self._of[point] = plugins, order
        return order


class PluginRegistration:
    """The context in which the callbacks of one plugin are added."""

    __slots__ = ("_callbacks", "_plugin")

    def __init__(self, callbacks: Callbacks, plugin: str) -> None:
        self._callbacks = callbacks
        self._plugin = plugin

    def __enter__(self) -> None:
        self._callbacks.current = self._plugin

    def __exit__(self, *_: object) -> None:
        self._callbacks.current = ""


class Callbacks:
    """The callbacks of one session. `flags`: extension point → the flag that enables it (None: always on)."""

    def __init__(self, flags: dict[str, str | None]) -> None:
        self.current = ""
        """The plugin that registers now; empty: none does."""
        self._flags = flags
        self._registered: dict[str, dict[str, Callback]] = {}
        self._tiers: dict[str, list[Tier]] = {point: [] for point in flags}
        self._flat: dict[str, Tier] = {point: [] for point in flags}
        self.faults: list[Fault] = []

    def of(self, plugin: str) -> PluginRegistration:
        """Callbacks that are added within this context belong to this plugin."""
        return PluginRegistration(self, plugin)

    @property
    def plugin(self) -> str:
        """The plugin whose `on_session_open` runs. Raises RuntimeError at any other time."""
        if not self.current:
            raise RuntimeError("callbacks can be added only in on_session_open")
        return self.current

    def add(self, point: str, fn: Fn, basis: Any = None) -> None:
        """Add a function of this plugin; a second one replaces the first."""
        plugin = self.current or self.plugin  # the property raises at any other time
        of_point = self._registered.get(point)
        if of_point is None:
            of_point = self._registered[point] = {}
        of_point[plugin] = Callback(plugin, fn, basis)

    def registered_by(self, plugin: str) -> list[tuple[str, Fn, Any]]:
        """(extension point, function, basis) of all callbacks of a plugin."""
        found = ((point, self._registered.get(point, {}).get(plugin)) for point in self._flags)
        return [(point, callback.fn, callback.basis) for point, callback in found if callback is not None]

    def compile(self, tiers: Sequence[Sequence[PluginOption]], orders: CallbackOrders | None = None) -> None:
        """Build the lists of enabled callbacks, in the order of the configuration. `orders`: those of the last
        session."""
        orders = orders if orders is not None else CallbackOrders()
        orders.use(tiers)
        for point, known in self._registered.items():
            flat: Tier = []
            by_tier = self._tiers[point] = []
            for names in orders.of(point, self._flags[point], (*known,)):
                tier = list(map(known.__getitem__, names))
                by_tier.append(tier)
                flat += tier
            self._flat[point] = flat

    def enabled(self, point: str) -> Tier:
        """The enabled callbacks, in the order of tiers and of plugins within a tier."""
        return self._flat[point]

    def tiers(self, point: str) -> list[Tier]:
        """The enabled callbacks by tier, without empty tiers."""
        return self._tiers[point]

    def fault(self, plugin: str, point: str, error: Exception, subject: str = "") -> None:
        """Record that a plugin raised."""
        self.faults.append(Fault(plugin, point, f"{type(error).__name__}: {error}", subject, line_of(error)))

    # ---- combination rules ------------------------------------------------------------------------------

    def key(self, point: str, subject: Any) -> tuple[Any, ...]:
        """Order: the sort keys of all plugins, in their order. On error the plugin's key is 0."""
        key: list[Any] = []
        for plugin, fn, _ in self._flat[point]:
            try:
                key.append(fn(subject))
            except Exception as e:
                self.fault(plugin, point, e, name_of(subject))
                key.append(0)
        return tuple(key)

    def compare(self, point: str, *subjects: Any) -> int:
        """Order: the sign of the first result other than 0. On error the plugin is skipped."""
        for plugin, fn, _ in self._flat[point]:
            try:
                answer = fn(*subjects)
                sign = bool(answer > 0) - bool(answer < 0)
            except Exception as e:
                self.fault(plugin, point, e, name_of(subjects[0]))
                continue
            if sign:
                return sign
        return 0

    def all(self, point: str, *subjects: Any) -> bool:
        """Whether all plugins return true. On error: false."""
        for plugin, fn, _ in self._flat[point]:
            try:
                if not fn(*subjects):
                    return False
            except Exception as e:
                self.fault(plugin, point, e, name_of(subjects[-1]))
                return False
        return True

    def any(self, point: str, *subjects: Any) -> bool:
        """Whether one plugin returns true. On error: true, because a true result at these points is a rejection."""
        for plugin, fn, _ in self._flat[point]:
            try:
                if fn(*subjects):
                    return True
            except Exception as e:
                self.fault(plugin, point, e, name_of(subjects[-1]))
                return True
        return False

    def vote(self, point: str, *subjects: Any) -> bool:
        """A REJECT is final; a PERMIT decides at the end of its tier; true if all abstain. On error: false."""
        for tier in self._tiers[point]:
            permitted = False
            for plugin, fn, _ in tier:
                try:
                    answer = fn(*subjects)
                except Exception as e:
                    self.fault(plugin, point, e, name_of(subjects[-1]))
                    return False
                if answer < 0:
                    return False
                permitted = permitted or bool(answer > 0)
            if permitted:
                return True
        return True

    def first_tier(self, point: str, *subjects: Any) -> bool:
        """Whether all plugins of the first tier that has callbacks return true; false without any. On error: false."""
        for tier in self._tiers[point]:
            for plugin, fn, _ in tier:
                try:
                    if not fn(*subjects):
                        return False
                except Exception as e:
                    self.fault(plugin, point, e, name_of(subjects[-1]))
                    return False
            return True
        return False

    def first(self, point: str, *subjects: Any) -> tuple[str, Any]:
        """(plugin, result) of the first plugin whose result is not None, or ("", None). On error the result is the
        Fault."""
        for plugin, fn, _ in self._flat[point]:
            try:
                answer = fn(*subjects)
            except Exception as e:
                self.fault(plugin, point, e, name_of(subjects[-1]))
                return plugin, self.faults[-1]
            if answer is not None:
                return plugin, answer
        return "", None

    def each(self, point: str, subject: Any) -> None:
        """Call all plugins. On error the others are called nevertheless."""
        for plugin, fn, _ in self._flat[point]:
            try:
                fn(subject)
            except Exception as e:
                self.fault(plugin, point, e, name_of(subject))

    def answers(self, point: str, *subjects: Any) -> Iterator[tuple[str, Any]]:
        """(plugin, result) of each plugin, for points with their own combination rule. On error the result is the
        Fault."""
        for plugin, fn, _ in self._flat[point]:
            try:
                answer = fn(*subjects)
            except Exception as e:
                self.fault(plugin, point, e, name_of(subjects[-1]) if subjects else "")
                answer = self.faults[-1]
            yield plugin, answer


def name_of(subject: Any) -> str:
    """The name of a callback's argument in a fault."""
    return str(getattr(subject, "key", None) or getattr(subject, "uid", None) or getattr(subject, "name", ""))
