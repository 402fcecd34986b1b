"""extender: decisions of a program of your own, asked over HTTP. Volcano: plugin extender."""

from volcano_py.scheduler.plugins.extender.plugin import Extender

__all__ = ["Extender"]
