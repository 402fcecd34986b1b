"""The arguments of gang. A module of its own: mypyc does not compile it."""

from __future__ import annotations

from msgspec import field

from volcano_py.scheduler.framework.plugin import PluginArguments


class GangArguments(PluginArguments):
    release_after: str = field(default="5m", name="releaseAfter")
    """How long a gang that has lost members keeps its capacity while its other members are pending (deviation
    heal-gangs): a duration; 0: no limit."""
