"""numa-aware: CPUs of one NUMA node for pods that need them. Volcano: plugin numa-aware."""

from volcano_py.scheduler.plugins.numaaware.plugin import NumaAware

__all__ = ["NumaAware"]
