"""sticky: a pod is placed again on the node on which it first ran. Not in Volcano.

The profile plugin Sticky for the jobs of a session: the same rule (`rules.sticky`) and arguments. The object that
outlives the pods is the PodGroup: a step before the bind writes the node to its annotation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.group_names import NATIVE, reference
from volcano_py.scheduler.model.jobs.pre_bind import PreBindSteps, StoreNode
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.rules import sticky as rule


class Sticky(Plugin):
    """See `Arguments`."""

    name = "sticky"

    class Arguments(PluginArguments):
        annotation: str = rule.ANNOTATION
        """The annotation of the PodGroup with the name of the node. Remove it to place the pod on another node."""
        perPod: bool = True
        """Whether each pod has a node of its own: the pod's name is added to the annotation. Otherwise all pods of the
        PodGroup run on the node of the first one."""
        releaseOnNodeLoss: bool = False
        """Whether a deleted node is ignored; otherwise the pod waits for it."""

    arguments: Arguments

    def on_session_open(self, session: Session) -> None:
        self._session = session
        session.add_filters(_Filter(self, session.table.index))
        session.add_pre_bind(self._store)

    def annotation_of(self, task: Task) -> str:
        """The annotation of a task's PodGroup."""
        return rule.annotation_of(self.arguments.annotation, task.name, self.arguments.perPod)

    def node_of(self, task: Task) -> str:
        """The node that is stored for a task, or empty."""
        job = self._session.jobs.get(task.job)
        if job is None or job.pod_group is None or job.model.shadow:
            return ""
        annotations = job.pod_group.metadata.annotations or {}
        release = self.arguments.releaseOnNodeLoss
        return rule.stored(annotations, self.annotation_of(task), self._session.table.index, release)

    def first_of_group(self, task: Task) -> str:
        """The node that this session has given to another task of the PodGroup, if all share one; else empty."""
        if self.arguments.perPod:
            return ""
        session, job = self._session, self._session.jobs.get(task.job)
        placed = (session.moves.placed.get(t.slot) for t in job.tasks.values()) if job is not None else ()
        return next((session.table.names[node] for node in placed if node is not None), "")

    def _store(self, task: Task, node: int) -> PreBindSteps | None:
        """The step that writes the node of a task for which none is stored."""
        job = self._session.jobs.get(task.job)
        if job is None or job.pod_group is None or job.model.shadow or self.node_of(task):
            return None
        kind, key = reference(task.job)
        if kind == NATIVE:
            return None
        namespace, _, name = key.partition("/")
        uid, where = job.pod_group.metadata.uid, self.annotation_of(task)
        return PreBindSteps([StoreNode(namespace, name, uid, where, self._session.table.names[node])], {})


class _Filter:
    """DOMAIN, because the node depends on the PodGroup and on the name of the pod."""

    name = "sticky"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    reasons = [Reason(rule.ELSEWHERE, FitCode.UNRESOLVABLE)]

    def __init__(self, plugin: Sticky, columns: Mapping[str, int]) -> None:
        self._plugin = plugin
        self._columns = columns

    def applies(self, task: Task) -> bool:
        return True

    def filter(self, task: Task) -> Codes:
        return rule.codes(self._plugin.node_of(task) or self._plugin.first_of_group(task), self._columns)
