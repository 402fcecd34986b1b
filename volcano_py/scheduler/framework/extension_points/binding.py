"""The extension point before a pod is bound. Volcano: RegisterBinder and the PreBinders of the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from volcano_py.scheduler.framework.callbacks import Callbacks, Fault
from volcano_py.scheduler.model.jobs.pre_bind import PreBindStep, PreBindSteps
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.plan import Bind


class Binding:
    """What must be written before pods are bound, and the operations that bind them.

    node_names: the name of each node column
    together: whether no member of a gang is bound before the steps of all (deviation gang-pre-bind)
    """

    def __init__(self, callbacks: Callbacks, node_names: Sequence[str], together: bool) -> None:
        self.callbacks = callbacks
        self._node_names = node_names
        self._together = together
        self._pre_bind_concerns: dict[str, Callable[[Task], bool]] = {}
        """By plugin: whether its pre_bind does anything for a task, if the plugin has stated it."""

    def add_pre_bind(
        self, fn: Callable[[Task, int], PreBindSteps | None], *, concerns: Callable[[Task], bool] | None = None
    ) -> None:
        """Return what must be written before a task is bound to a node (a column of `session.table`), and the
        annotations of its Binding; None: nothing.

        No member of a job is bound before the steps of all members that the same statement binds have succeeded. When
        a step fails, the completed steps are undone, and none of these members is bound.

        `concerns`: whether there can be something to write for a task. Nothing is called for a statement if no plugin
        has something to write for its tasks.

        Called: once for each bound task, when its statement is committed.
        Combination: the steps of all plugins in their order; of equal annotations the last one counts.
        Flag: none.
        On error: the tasks of the job are not bound in this session.
        """
        self.callbacks.add("pre_bind", fn)
        self._pre_bind_concerns.pop(self.callbacks.plugin, None)
        if concerns is not None:
            self._pre_bind_concerns[self.callbacks.plugin] = concerns

    def binds(self, tasks: Sequence[tuple[Task, int]]) -> list[Bind]:
        """The Bind of each (task, node column) that a statement binds; none for jobs whose callback failed."""
        if not any(self._needs_steps(task) for task, _ in tasks):
            return [Bind(t.namespace, t.name, t.uid, self._node_names[node], t.job) for t, node in tasks]
        found = [(task, node, *self._pre_bind(task, node)) for task, node in tasks]
        failed = {task.job for task, _, steps, _ in found if steps is None}
        together = {task.job for task, _, steps, _ in found if steps} if self._together else ()
        return [
            Bind(
                task.namespace,
                task.name,
                task.uid,
                self._node_names[node],
                task.job,
                annotations or None,
                tuple(steps),
                task.job if task.job in together else "",
            )
            for task, node, steps, annotations in found
            if steps is not None and task.job not in failed
        ]

    def _needs_steps(self, task: Task) -> bool:
        for plugin, _, _ in self.callbacks.enabled("pre_bind"):
            try:
                if plugin not in self._pre_bind_concerns or self._pre_bind_concerns[plugin](task):
                    return True
            except Exception as e:
                self.callbacks.fault(plugin, "pre_bind", e, task.key)
                return True
        return False

    def _pre_bind(self, task: Task, node: int) -> tuple[list[PreBindStep] | None, dict[str, str]]:
        """The steps and annotations of one task; None instead of steps if a callback failed."""
        steps: list[PreBindStep] = []
        annotations: dict[str, str] = {}
        seen: set[str] = set()
        for plugin, answer in self.callbacks.answers("pre_bind", task, node):
            if plugin in seen:  # it is in two tiers; its steps are executed once
                continue
            seen.add(plugin)
            if isinstance(answer, Fault):
                return None, {}
            if answer is not None:
                steps += answer.steps
                annotations |= answer.annotations
        return steps, annotations
