"""Extension points about domains of the network. Volcano: HyperNodeOrderMapFn, HyperNodeGradientForJobFn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from volcano_py.scheduler.framework.callbacks import Callbacks, Fault
from volcano_py.scheduler.framework.extension_points.open_session import OpenSession
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob
from volcano_py.scheduler.framework.search.label_domains import domains_for, domains_of_group, scores_of

ALLOCATE, EVICT = "allocate", "evict"
"""The purpose of a gradient."""

Gradient = list[list[str]]
"""Names of HyperNodes in groups; the first group with a solution is used."""


class NetworkDomains:
    """In which domains of the network a job is tried, and which HyperNode is best."""

    def __init__(self, callbacks: Callbacks, session: OpenSession) -> None:
        self.callbacks = callbacks
        self._session = session

    def add_job_gradient(self, fn: Callable[[SessionJob, str, str], Gradient]) -> None:
        """Return the HyperNodes below a given one in which a job is tried, with the purpose `ALLOCATE` or `EVICT`.

        Called: once a job with a hard topology or with subGroupPolicy, for the whole cluster.
        Combination: the first plugin decides; without any the given HyperNode itself is tried.
        Flag: enabledHyperNodeGradient.
        On error: the job is tried nowhere.
        """
        self.callbacks.add("job_gradient", fn)

    def job_gradients(self, job: SessionJob, hyper_node: str, purpose: str) -> Gradient:
        """The domains below a HyperNode in which to try a job; for a native gang with a topology key, the domains of
        that label."""
        if job.constraint is not None and job.constraint.label:
            return [domains_for(self._session, job, evicts=purpose == EVICT)]
        if job.model.tree is not None:
            return [[hyper_node]]
        return self._gradients("job_gradient", hyper_node, job, hyper_node, purpose)

    def add_sub_job_gradient(self, fn: Callable[[SessionJob, SubJob, str, str], Gradient]) -> None:
        """Return the HyperNodes in which one sub-job is tried, below a HyperNode that was chosen for its job.

        Called: for each sub-job in each HyperNode in which its job is tried.
        Combination: the first plugin decides; without any the given HyperNode itself is tried.
        Flag: enabledHyperNodeGradient.
        On error: the sub-job is tried nowhere.
        """
        self.callbacks.add("sub_job_gradient", fn)

    def sub_job_gradients(self, job: SessionJob, sub: SubJob, hyper_node: str, purpose: str) -> Gradient:
        """The domains below a HyperNode in which to try a sub-job."""
        if sub.path:
            return [domains_of_group(self._session, job, sub.path, hyper_node)]
        if job.constraint is not None and job.constraint.label:
            return [[hyper_node]]
        return self._gradients("sub_job_gradient", hyper_node, job, sub, hyper_node, purpose)

    def _gradients(self, point: str, hyper_node: str, *subjects: Any) -> Gradient:
        for _, answer in self.callbacks.answers(point, *subjects):
            return [] if isinstance(answer, Fault) else answer
        return [[hyper_node]]

    def add_hyper_node_order(self, fn: Callable[[SubJob, list[str]], dict[str, float]]) -> None:
        """Score HyperNodes for a sub-job: higher is better.

        Called: with the HyperNodes of a group in which a dry run has placed the sub-job.
        Combination: the sum over plugins.
        Flag: enabledHyperNodeOrder.
        On error: the plugin adds nothing.
        """
        self.callbacks.add("hyper_node_order", fn)

    def hyper_node_scores(self, sub: SubJob, hyper_nodes: list[str]) -> dict[str, float]:
        """The score of each HyperNode."""
        if sub.constraint is not None and sub.constraint.label:
            return scores_of(self._session, sub, hyper_nodes)
        total = dict.fromkeys(hyper_nodes, 0.0)
        for _, answer in self.callbacks.answers("hyper_node_order", sub, hyper_nodes):
            if not isinstance(answer, Fault):
                for name, value in answer.items():
                    total[name] += value
        return total
