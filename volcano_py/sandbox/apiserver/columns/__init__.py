"""The printer columns of built-in kinds, by resource."""

from volcano_py.sandbox.apiserver.columns import core, pods, workloads
from volcano_py.sandbox.apiserver.table import Printer

PRINTERS: dict[str, Printer] = {**core.PRINTERS, **pods.PRINTERS, **workloads.PRINTERS}
