"""capacity: the plugin, and the tree of queues that it uses."""

from volcano_py.scheduler.plugins.capacity.plugin import Capacity

__all__ = ["Capacity"]
