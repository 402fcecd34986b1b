"""usage: nodes are chosen by how busy they really are. Volcano: plugin usage."""

from volcano_py.scheduler.plugins.usage.plugin import Usage

__all__ = ["Usage"]
