"""extender: decisions of an HTTP service. Volcano: plugin extender."""

from volcano_py.scheduler.plugins.extender.plugin import Extender

__all__ = ["Extender"]
