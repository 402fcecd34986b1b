"""deviceshare: parts of GPUs and NPUs, or whole ones, that node agents announce. Volcano: plugin deviceshare."""

from volcano_py.scheduler.plugins.deviceshare.plugin import Deviceshare

__all__ = ["Deviceshare"]
