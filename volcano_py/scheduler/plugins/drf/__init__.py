"""drf: the plugin, and the tree of queues of its hierarchy."""

from volcano_py.scheduler.plugins.drf.plugin import Drf

__all__ = ["Drf"]
