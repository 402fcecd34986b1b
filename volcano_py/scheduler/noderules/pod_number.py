"""The number of pods that a node accepts. Volcano: predicates, `node(s) pod number exceeded`."""

from __future__ import annotations

from typing import Literal

import numpy as np

from volcano_py.scheduler.framework.kernels.formulas import Formula, FormulaTerm
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import LOCAL, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.some_nodes import Numbers


class PodNumber:
    """Rejects nodes whose allocatable `pods` are used up; a node that sets none accepts no pods."""

    name = "PodNumber"
    in_runs = True
    scope: Literal[Scope.LOCAL] = LOCAL
    reasons = [Reason("node(s) pod number exceeded", FitCode.UNSCHEDULABLE)]

    def __init__(self, session: Session) -> None:
        self._numbers = session.numbers

    def applies(self, task: Task) -> bool:
        return True

    def filter(self, task: Task, numbers: Numbers) -> Codes:
        return (numbers.max_pods <= numbers.kube_pods).view(np.int8)

    def filter_node(self, task: Task, node: int) -> int:
        n = self._numbers
        return int(n.max_pods.item(node) <= n.kube_pods.item(node))

    def term(self, task: Task) -> FormulaTerm:
        return FormulaTerm(Formula.POD_NUMBER)
