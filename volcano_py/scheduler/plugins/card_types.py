"""card-types: pods select types of GPU cards, and rare cards are kept free. Not in Volcano.

The profile plugin CardTypes for the pods of a session: the same rule (`rules.card_types`), annotations and arguments.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import STATIC, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.rules import card_types as rule


class CardTypes(Plugin):
    """See `Arguments`."""

    name = "card-types"
    reads_annotations = rule.ANNOTATIONS

    class Arguments(PluginArguments):
        labels: dict[str, str] = msgspec.field(default_factory=lambda: {"nvidia.com/gpu": "nvidia.com/gpu.product"})
        """For each resource, the label of nodes that contains the type of their cards."""
        rare: list[str] = []
        """Types that are kept for pods that name them."""
        mode: Literal["Filter", "Score"] = "Filter"
        """How other pods are kept off nodes with rare cards: `Filter` always, `Score` while there are other nodes."""
        keepGpuNodesFree: bool = False
        """Whether pods that request no card are kept off nodes with cards, in the same mode."""
        weight: int = 1
        """The weight of the score."""

    arguments: Arguments

    def on_session_open(self, session: Session) -> None:
        a, table = self.arguments, session.table
        name = f"{self.name} {sorted(a.labels.items())}"
        nodes = session.cluster.derived(name, table.generation, lambda: rule.NodeCards(table.objects, a.labels))
        protection = rule.Protection(frozenset(a.rare), a.keepGpuNodesFree)
        filters = a.mode == "Filter"
        session.add_filters(_Filter(nodes, a.labels, protection if filters else None))
        session.add_scores(_Score(nodes, a.labels, None if filters else protection, a.weight))


class _Rule:
    """Common to filter and score. `protection`: the nodes that this one keeps free; None: none."""

    name = "card-types"
    scope: Literal[Scope.STATIC] = STATIC

    def __init__(self, nodes: rule.NodeCards, labels: dict[str, str], protection: rule.Protection | None) -> None:
        self._nodes = nodes
        self._labels = labels
        self._protection = protection

    def _wishes(self, task: Task) -> rule.Wishes:
        return rule.wishes(task.annotations, (name for name, _ in task.spec_class.demands), self._labels)


class _Filter(_Rule):
    reasons = [Reason(rule.TEXTS[code], FitCode.UNRESOLVABLE) for code in rule.CardRejection]

    def applies(self, task: Task) -> bool:
        return bool(self._protection or self._wishes(task).accepted)

    def filter(self, task: Task) -> Codes:
        return self._nodes.codes(self._wishes(task), self._protection)


class _Score(_Rule):
    name = "card-types score"
    batch = False

    def __init__(
        self, nodes: rule.NodeCards, labels: dict[str, str], protection: rule.Protection | None, weight: int
    ) -> None:
        super().__init__(nodes, labels, protection)
        self._weight = weight

    def applies(self, task: Task) -> bool:
        return bool(self._protection or self._wishes(task).preferred)

    def score(self, task: Task) -> Floats:
        return (self._nodes.scores(self._wishes(task), self._protection) * self._weight).astype(np.float64)
