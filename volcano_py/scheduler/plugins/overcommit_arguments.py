"""The arguments of overcommit. A module of its own: mypyc does not compile it."""

from __future__ import annotations

from msgspec import field

from volcano_py.scheduler.framework.plugin import PluginArguments

DEFAULT_FACTOR = 1.2


class OvercommitArguments(PluginArguments):
    factor: float = field(default=DEFAULT_FACTOR, name="overcommit-factor")
    """The limit of admitted requests, as a multiple of the cluster; a value below 1 means the default."""
