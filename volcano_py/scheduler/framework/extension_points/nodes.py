"""Extension points that accept and score nodes. Volcano: PrePredicate, Predicate, NodeOrder, BatchNodeOrder.

Each has two forms. The plain one is a function of a task and one node; with a scope narrower than `DOMAIN` it is called
once for each class of equal pods and each node that changed, not for each pod. The array form is a `Filter` or `Score`
(`framework.search.node_rules`), which evaluates all nodes at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from volcano_py.scheduler.framework.callbacks import Callbacks, Fault
from volcano_py.scheduler.framework.search.fit_errors import Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Filter, Scope, Score
from volcano_py.scheduler.framework.search.node_view import NodeView, ViewedSession
from volcano_py.scheduler.framework.search.plain_rules import plain_filter, plain_score
from volcano_py.scheduler.model.jobs.task import Task


class NodeRules:
    """Which nodes accept a task, and which is best."""

    def __init__(self, callbacks: Callbacks, session: ViewedSession) -> None:
        self.callbacks = callbacks
        self._session = session
        self._filters: dict[str, list[Filter]] = defaultdict(list)
        self._scores: dict[str, list[Score]] = defaultdict(list)
        self._needs_pre_predicate: set[str] = set()
        self._pre_predicated: set[str] = set()
        self._pre_predicate_concerns: dict[str, Callable[[Task], bool]] = {}
        """By plugin: whether its pre_predicate can reject a task, if the plugin has stated it."""
        self._unconcerned: dict[int, bool] = {}
        """By class: whether no plugin can reject its tasks."""

    def remove(self, plugin: str) -> None:
        """Remove the rules of a plugin, which is about to register again."""
        self._filters.pop(plugin, None)
        self._scores.pop(plugin, None)

    def add_pre_predicate(
        self, fn: Callable[[Task], str | None], *, concerns: Callable[[Task], bool] | None = None
    ) -> None:
        """Reject a task for all nodes, with the reason; None: the nodes are filtered.

        `concerns`: whether the plugin can reject a task; the result must be the same for all tasks of a class. `fn` is
        then not called for other tasks.

        Called: once per task before its nodes are filtered.
        Combination: the first rejection.
        Flag: enablePredicate.
        On error: the task is rejected.
        """
        self.callbacks.add("pre_predicate", fn)
        self._pre_predicate_concerns.pop(self.callbacks.plugin, None)
        if concerns is not None:
            self._pre_predicate_concerns[self.callbacks.plugin] = concerns
        self._unconcerned.clear()

    def pre_predicate(self, task: Task) -> str | None:
        """Why the task is rejected for all nodes; None: the nodes are filtered."""
        if self._pre_predicate_concerns:
            unconcerned = self._unconcerned.get(task.spec_class.id)
            if unconcerned is None:
                unconcerned = self._unconcerned[task.spec_class.id] = not self._is_concerned(task)
            if unconcerned:
                if self._needs_pre_predicate:
                    self._pre_predicated.add(task.key)
                return None
        for plugin, answer in self.callbacks.answers("pre_predicate", task):
            if isinstance(answer, Fault):
                return f"plugin {plugin} failed: {answer.error.partition(': ')[2]}"
            if answer is not None:
                reason: str = answer
                return reason
            if plugin in self._needs_pre_predicate:
                self._pre_predicated.add(task.key)
        return None

    def _is_concerned(self, task: Task) -> bool:
        for plugin, _, _ in self.callbacks.enabled("pre_predicate"):
            concerns = self._pre_predicate_concerns.get(plugin)
            try:
                if concerns is None or concerns(task):
                    return True
            except Exception as e:
                self.callbacks.fault(plugin, "pre_predicate", e, task.key)
                return True
        return False

    def without_pre_predicate(self, task: Task) -> frozenset[str]:
        """The plugins whose filters reject the task because their pre_predicate was not called for it in this
        session."""
        return frozenset() if task.key in self._pre_predicated else frozenset(self._needs_pre_predicate)

    def add_predicate(
        self,
        fn: Callable[[Task, NodeView], Reason | str | None],
        *,
        scope: Scope = DOMAIN,
        follows_dry_runs: bool = False,
    ) -> None:
        """Reject one node for a task, with the reason; None: the node accepts it.

        `scope`: what the result depends on. STATIC: the pod's class and the Node object. LOCAL: also the node's own
        numbers. DOMAIN (default): anything. A class is all pods with equal requests, node selector, affinity,
        tolerations, host ports and images; labels and annotations count only if a plugin declares them in
        `reads_labels` and `reads_annotations`.
        `follows_dry_runs`: preempt calls it again after each eviction of a dry run, because it reads what the evicted
        pods hold; the plugin follows evictions with an event handler.

        Called: STATIC once per class and changed Node object, LOCAL once per class and node whose numbers changed,
        DOMAIN for each pod and node.
        Combination: all plugins accept; of several rejections the one of the first plugin is reported.
        Flag: enablePredicate.
        On error: the node is rejected with the reason "plugin … failed".
        """
        self.add_filters(plain_filter(self.callbacks.plugin, self._session, fn, scope, follows_dry_runs))

    def add_filters(self, *filters: Filter, after_pre_predicate: bool = False) -> None:
        """The array form of `add_predicate`: rules that are called in this order. A rule may have the field
        `follows_dry_runs`.

        `after_pre_predicate`: they reject every task for which this plugin's pre_predicate was not called.
        """
        plugin = self.callbacks.plugin
        self._filters[plugin] += filters
        if after_pre_predicate:
            self._needs_pre_predicate.add(plugin)
        self.callbacks.add("predicate", _nothing)

    def add_node_order(self, fn: Callable[[Task, NodeView], float], *, scope: Scope = DOMAIN) -> None:
        """Score one node for a task: higher is better.

        `scope`: what the result depends on, as for `add_predicate`.

        Called: as for predicate, for nodes that accept the task.
        Combination: the sum over plugins, once for each time that a plugin is in the tiers.
        Flag: enableNodeOrder.
        On error: the plugin adds nothing for this node.
        """
        self.add_scores(plain_score(self.callbacks.plugin, self._session, fn, scope))

    def add_scores(self, *scores: Score) -> None:
        """The array form of `add_node_order`. A score's `batch` selects in which of Volcano's two sums it counts."""
        plugin = self.callbacks.plugin
        self._scores[plugin] += scores
        self.callbacks.add("node_order", _nothing)

    def rules_of(self, plugin: str) -> list[Filter | Score]:
        """The filters and scores that a plugin has added, in its order."""
        return [*self._filters[plugin], *self._scores[plugin]]

    def enabled_filters(self) -> list[tuple[str, Filter]]:
        """(plugin, rule) in order; a plugin that is in the tiers twice is called once."""
        plugins = dict.fromkeys(c.plugin for c in self.callbacks.enabled("predicate"))
        return [(plugin, f) for plugin in plugins for f in self._filters[plugin]]

    def enabled_scores(self) -> list[tuple[str, Score]]:
        """(plugin, rule) in order; a plugin that is in the tiers twice counts twice."""
        return [(c.plugin, s) for c in self.callbacks.enabled("node_order") for s in self._scores[c.plugin]]


def _nothing(*_: object) -> None:
    """The callback that represents a plugin's node rules."""
