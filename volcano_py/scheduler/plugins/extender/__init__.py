"""extender: decisions of a program of your own, called over HTTP. Volcano: plugin extender."""

from volcano_py.scheduler.plugins.extender.plugin import Extender

__all__ = ["Extender"]
