"""usage: choose nodes by their measured load. Volcano: plugin usage."""

from volcano_py.scheduler.plugins.usage.plugin import Usage

__all__ = ["Usage"]
