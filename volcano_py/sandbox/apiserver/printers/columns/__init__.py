"""The printer columns of built-in kinds, by resource. Kubernetes: pkg/printers/internalversion."""

from volcano_py.sandbox.apiserver.printers.cells import Printer
from volcano_py.sandbox.apiserver.printers.columns import core, gangs, pods, workloads

PRINTERS: dict[str, Printer] = {**core.PRINTERS, **pods.PRINTERS, **workloads.PRINTERS, **gangs.PRINTERS}
