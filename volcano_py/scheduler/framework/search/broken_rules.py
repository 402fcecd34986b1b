"""Isolation of node rules that raise: the scheduler reports the plugin, replaces the rule and repeats the search for a
node. Not in Volcano, where a panic of a plugin ends the scheduler.

Until the session ends, a filter that raised rejects every node, and a score that raised is left out. The search itself
has no checks: only after an exception the rules are called one by one to find the one that raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar

import numpy as np

from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, LOCAL, STATIC, Codes, Filter, Scope, Score
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeNumbers


class _Search(Protocol):
    """A search whose rules can be replaced."""

    def replace_broken_rules(self, task: Task) -> bool: ...


S = TypeVar("S", bound=_Search)
P = ParamSpec("P")
R = TypeVar("R")
Rule = TypeVar("Rule", Filter, Score)


class RejectAll:
    """Replaces a filter that raised: rejects all nodes."""

    scope: Literal[Scope.DOMAIN] = DOMAIN

    def __init__(self, name: str, plugin: str, nodes: int) -> None:
        self.name = name
        self.reasons = [Reason(f"plugin {plugin} failed", FitCode.ERROR)]
        self._codes = np.ones(nodes, dtype=np.int8)

    def applies(self, task: Task) -> bool:
        return True

    def filter(self, task: Task) -> Codes:
        return self._codes


def isolating(
    search: Callable[Concatenate[S, Task, P], R],
) -> Callable[Concatenate[S, Task, P], R]:
    """Decorator of searches: if a rule raises, the search is repeated without it."""

    @wraps(search)
    def isolated(placement: S, task: Task, /, *args: P.args, **kwargs: P.kwargs) -> R:
        while True:
            try:
                return search(placement, task, *args, **kwargs)
            except Exception:
                if not placement.replace_broken_rules(task):
                    raise

    return isolated


def broken(rules: Sequence[tuple[str, Rule]], task: Task, numbers: NodeNumbers) -> list[tuple[str, Rule, Exception]]:
    """(plugin, rule, error) of the rules that raise for a task."""
    found = []
    nodes = range(len(numbers.max_pods))
    for plugin, rule in rules:
        try:
            if rule.applies(task):
                _call(rule, task, numbers, nodes)
        except Exception as e:
            found.append((plugin, rule, e))
    return found


def _call(rule: Any, task: Task, numbers: NodeNumbers, nodes: range) -> None:
    """Call a filter or a score in all its forms."""
    is_filter = hasattr(rule, "filter")
    whole = rule.filter if is_filter else rule.score
    if rule.scope is LOCAL:
        whole(task, numbers)
        one = rule.filter_node if is_filter else rule.score_node
        for node in nodes:
            one(task, node)
    elif rule.scope is STATIC or is_filter:
        whole(task)
    else:
        rule.constant(task)
        whole(task, np.arange(len(nodes), dtype=np.intp))
