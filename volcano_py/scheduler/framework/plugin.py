"""The base of plugins and actions: name, arguments, life cycle. Volcano: framework.Plugin, framework.Action.

A plugin is a class with `name`, usually an `Arguments` class, and `on_session_open`, in which it adds callbacks to the
session (`framework.extension_points` lists them):

    class FewestPods(Plugin):
        name = "fewest-pods"

        class Arguments(PluginArguments):
            weight: int = 1

        arguments: Arguments

        def on_session_open(self, session: Session) -> None:
            session.add_node_order(self.score, scope=LOCAL)

        def score(self, task: Task, node: NodeView) -> float:
            return -self.arguments.weight * node.pod_count

The scheduler constructs a plugin for each session. State that a plugin keeps between sessions is an object of a type of
its own, `session.cluster.keep(MyState)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from volcano_py.scheduler.framework.arguments import decode, read_duration

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session


class PluginArguments(msgspec.Struct):
    """The arguments of a plugin: each field has a default and is read from the key with its name.

    `name: int = msgspec.field(default=1, name="my.key")` reads another key. A field `extra: dict[str, Any]` receives
    the keys with the prefixes in `Plugin.prefixes`.
    """


class ActionArguments(PluginArguments):
    """The arguments of an action, from the configuration's `configurations`."""


class Plugin:
    """The base of all plugins. Subclasses set `name` and override `on_session_open`."""

    name: ClassVar[str] = ""
    """The name in the configuration."""
    prefixes: ClassVar[tuple[str, ...]] = ()
    """Prefixes of argument keys that are stored in `Arguments.extra`, such as "binpack.resources."."""

    moved: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Argument keys of older versions, each with what to do instead; a key that ends in a dot is a prefix."""

    reads_labels: ClassVar[tuple[str, ...]] = ()
    """Labels of pods that its rules with scope STATIC or LOCAL read: they become part of the pods' class."""
    reads_annotations: ClassVar[tuple[str, ...]] = ()
    """The same for annotations."""

    Arguments: ClassVar[type[PluginArguments]] = PluginArguments
    """The type of the arguments; by default without fields."""
    arguments: PluginArguments
    """The configured arguments; annotate it with your own `Arguments` class for type checkers."""

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        """Read the arguments. An unknown key or a value of an invalid type becomes a warning."""
        owner = f"plugin {self.name}"
        read = decode(self.Arguments, owner, arguments, prefixes=self.prefixes, moved=self.moved)
        self.arguments, self.warnings = read

    def warn(self, text: str) -> None:
        """Report a setting that is not used; it is logged once."""
        self.warnings.append(f"plugin {self.name}: {text}")

    def duration(self, field: str, *, above_zero: bool = False) -> float:
        """An argument that is a duration, in seconds; its default, with a warning, if it is not usable."""
        seconds, warning = read_duration(self.arguments, field, above_zero=above_zero)
        if warning:
            self.warn(warning)
        assert seconds is not None, f"{field} has an empty default; use optional_duration"
        return seconds

    def optional_duration(self, field: str, otherwise: str, *, above_zero: bool = False) -> float | None:
        """The same for an argument that is empty by default: None. `otherwise`: what that means, for the warning."""
        seconds, warning = read_duration(self.arguments, field, above_zero=above_zero, otherwise=otherwise)
        if warning:
            self.warn(warning)
        return seconds

    def on_session_open(self, session: Session) -> None:
        """Add the plugin's callbacks to the session."""
        raise NotImplementedError

    def on_session_close(self, session: Session) -> None:
        """Called when the session ends: conditions and metrics can be set, tasks can no longer be placed."""


class Action:
    """The base of all actions. Subclasses set `name` and override `execute`."""

    name: ClassVar[str] = ""
    """The name in the configuration."""

    Arguments: ClassVar[type[ActionArguments]] = ActionArguments
    """The type of the arguments; by default without fields."""
    arguments: ActionArguments
    """The configured arguments; annotate it with your own `Arguments` class for type checkers."""

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        """Read the arguments. An unknown key or a value of an invalid type becomes a warning."""
        self.arguments, self.warnings = decode(self.Arguments, f"action {self.name}", arguments)

    def initialize(self) -> None:
        """Called before `execute`. If it raises, the action does not run in this cycle."""

    def execute(self, session: Session) -> None:
        """Run the action: place, evict or admit through the session."""
        raise NotImplementedError

    def uninitialize(self) -> None:
        """Called after `execute`, also if that raised."""
