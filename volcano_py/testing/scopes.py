"""Finds rules with a wrong scope: STATIC or LOCAL rules whose result depends on more than their scope declares.

The scheduler calls such a rule once for a class of pods, and uses the result for other pods and later. Here each rule
is also called without a scope: for every waiting pod and every node, before and after the actions of a cycle, and with
copies of the pod that differ in one field. A result that differs although the scope excludes it is reported with
the pod, the node and the field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from volcano_py.api.core import Pod
from volcano_py.scheduler.framework.plugin import Action
from volcano_py.scheduler.framework.search.fit_errors import Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, STATIC, Scope
from volcano_py.scheduler.framework.search.plain_rules import PlainFilter, PlainScore
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import spec_class
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task

BEFORE, AFTER = "check-scopes-before", "check-scopes-after"
"""The names of the actions that check, around the actions of a cycle."""
Answers = list[Any]
"""By node: what a rule returns, or the exception that it raises."""


class Rule(NamedTuple):
    """One scoped rule of a plugin."""

    plugin: str
    point: str
    name: str
    scope: Scope
    rule: Any

    @property
    def text(self) -> str:
        which = "" if self.name == self.plugin else f" {self.name}"
        return f"plugin {self.plugin}: {self.point}{which} is declared {self.scope.name}, but its result for"


class ScopeCheck:
    """Checks the scoped rules of some plugins during one cycle; `problems` are complete after it."""

    def __init__(self, plugins: Iterable[str]) -> None:
        self._plugins = tuple(plugins)
        self.problems: list[str] = []
        self._before: dict[tuple[Rule, str], Answers] = {}
        self._numbers: NDArray[np.float64] = np.zeros((0, 0))

    def actions(self) -> dict[str, Callable[..., Action]]:
        """The actions to run first and last, by name."""
        return {BEFORE: _calling(BEFORE, self._start), AFTER: _calling(AFTER, self._end)}

    def assert_none(self) -> None:
        """Raises AssertionError with the problems of the last cycle, if there are any."""
        if self.problems:
            raise AssertionError("\n".join(self.problems))

    def _start(self, session: Session) -> None:
        self.problems, self._before = [], {}
        self._numbers = session.numbers.matrix.copy()
        tasks = _waiting(session)
        for rule in self._rules(session):
            of_class: dict[int, tuple[Task, Answers]] = {}
            for task in tasks:
                answers = _unscoped(rule, session, task)
                self._before[rule, task.key] = answers
                known = of_class.get(task.spec_class.id)
                if known is None:
                    of_class[task.spec_class.id] = task, answers
                    self._check_kept(session, rule, task, answers)
                    self._vary(session, rule, task, answers)
                elif (node := _differs(known[1], answers)) is not None:
                    field = _field_between(session, rule, known[0], task, node)
                    self._report(session, rule, task, node, f"depends on {field}", known[1], answers)

    def _end(self, session: Session) -> None:
        unchanged = (session.numbers.matrix == self._numbers).all(axis=0)
        rules = {rule[:4]: rule for rule in self._rules(session)}
        for (rule, key), before in self._before.items():
            task = session.cluster.tasks.get(key)
            if task is None or rule[:4] not in rules:
                continue
            after = _unscoped(rules[rule[:4]], session, task)
            same = range(len(after)) if rule.scope is STATIC else np.flatnonzero(unchanged).tolist()
            node = _differs(before, after, same)
            if node is not None:
                what = "the Node object" if rule.scope is STATIC else "the numbers of that node"
                self._report(session, rule, task, node, f"changes in a cycle in which {what} did not", before, after)

    def _rules(self, session: Session) -> Iterator[Rule]:
        for plugin in self._plugins:
            for rule in session.rules.rules_of(plugin):
                if rule.scope is not DOMAIN:
                    point = "predicate" if hasattr(rule, "filter") else "node_order"
                    yield Rule(plugin, point, rule.name, rule.scope, rule)

    def _check_kept(self, session: Session, rule: Rule, task: Task, answers: Answers) -> None:
        """Compare with what the scheduler keeps of a STATIC rule from pods and cycles before."""
        if rule.scope is not STATIC:
            return
        kept = _shown(rule, rule.rule.filter(task) if rule.point == "predicate" else rule.rule.score(task))
        valid = [a for a in answers if not isinstance(a, Exception)]
        node = _differs(kept, answers) if len(valid) == len(answers) else None
        if node is not None:
            self._report(session, rule, task, node, "depends on more than Node object and class", kept, answers)

    def _vary(self, session: Session, rule: Rule, task: Task, answers: Answers) -> None:
        for field, copy in _copies(session, task):
            other = _unscoped(rule, session, copy)
            if (node := _differs(answers, other)) is not None:
                self._report(session, rule, task, node, f"depends on {field}", answers, other)

    def _report(
        self, session: Session, rule: Rule, task: Task, node: int, why: str, one: Answers, other: Answers
    ) -> None:
        remedy = "declare scope=DOMAIN"
        if why.startswith("depends on its label"):
            remedy += ", or name the label in reads_labels"
        elif why.startswith("depends on its annotation"):
            remedy += ", or name the annotation in reads_annotations"
        elif rule.scope is STATIC and why.startswith("changes"):
            remedy = "declare scope=LOCAL if it reads the numbers of this node only, else scope=DOMAIN"
        values = f"({_text(one[node])}, {_text(other[node])})"
        where = f"pod {task.key} on node {session.table.names[node]}"
        text = f"{rule.text} {where} {why} {values}; {remedy}"
        if not any(p.startswith(f"{rule.text} {where}") for p in self.problems):
            self.problems.append(text)


def _calling(action_name: str, check: Callable[[Session], None]) -> Callable[..., Action]:
    class Check(Action):
        name = action_name

        def execute(self, session: Session) -> None:
            check(session)

    return Check


def _waiting(session: Session) -> list[Task]:
    return [t for job in session.jobs.values() for t in job.tasks.values() if session.status(t) == st.PENDING]


def _unscoped(rule: Rule, session: Session, task: Task) -> Answers:
    """The results of a rule for all nodes, from the rule itself."""
    made = rule.rule
    if isinstance(made, PlainFilter | PlainScore):
        found: Answers = []
        for node in range(len(session.table)):
            try:
                answer = made.unscoped(task, node, rule.scope is not STATIC)
            except Exception as e:
                answer = e
            found.append(answer.text if isinstance(answer, Reason) else answer)
        return found
    try:
        if not made.applies(task):
            return [None] * len(session.table)
        call = made.filter if rule.point == "predicate" else made.score
        return _shown(rule, call(task) if rule.scope is STATIC else call(task, session.numbers))
    except Exception as e:
        return [e] * len(session.table)


def _shown(rule: Rule, answers: NDArray[Any]) -> Answers:
    """Numbers of reasons as their texts; scores as they are."""
    if rule.point != "predicate":
        return list(answers)
    return [None if not code else rule.rule.reasons[code - 1].text for code in answers.tolist()]


def _differs(one: Answers, other: Answers, nodes: Iterable[int] | None = None) -> int | None:
    """The first node for which the results differ. What raises for both is a fault of the plugin, not of its scope."""
    for node in range(len(one)) if nodes is None else nodes:
        if not _equal(one[node], other[node]):
            return node
    return None


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Exception) or isinstance(other, Exception):
        return isinstance(one, Exception) and isinstance(other, Exception)
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
        return True
    return bool(one == other)


def _text(answer: Any) -> str:
    if isinstance(answer, Exception):
        return f"raises {type(answer).__name__}: {answer}"
    return "accepted" if answer is None else repr(answer)


# ---- pods that differ in one field ----------------------------------------------------------------------------------


def _copies(session: Session, task: Task) -> Iterator[tuple[str, Task]]:
    """Pods of the same class that differ from a pod in one field, with the field."""
    meta, keys = task.pod.metadata, session.cluster.classes.keys
    for label in meta.labels or {}:
        if label not in keys.labels and label not in spec_class.LABELS_OF_CLASS:
            yield f"its label {label}", _with(task, labels=_without(meta.labels, label))
    for annotation in meta.annotations or {}:
        if annotation not in keys.annotations and annotation not in spec_class.ANNOTATIONS_OF_CLASS:
            yield f"its annotation {annotation}", _with(task, annotations=_without(meta.annotations, annotation))
    yield "its name", _with(task, name=f"{meta.name}-copy")
    if meta.owner_references:
        yield "its owner", _with(task, owner_references=None)
    spec = msgspec.structs.replace(task.pod.spec, priority=(task.pod.spec.priority or 0) + 1)
    yield "its priority", _task(task, msgspec.structs.replace(task.pod, spec=spec))
    for job in session.jobs:
        if job != task.job:
            yield "its job", _task(task, task.pod, job)
            break


def _field_between(session: Session, rule: Rule, known: Task, task: Task, node: int) -> str:
    """The field in which two pods of a class differ, and because of which the rule treats them differently."""
    a, b = known.pod.metadata, task.pod.metadata
    for kind, mine, theirs in (("label", b.labels, a.labels), ("annotation", b.annotations, a.annotations)):
        for key in sorted({*(mine or {}), *(theirs or {})}):
            values = _without(mine, key) | ({key: (theirs or {})[key]} if key in (theirs or {}) else {})
            changed = _with(task, **{f"{kind}s": values})
            if _changes(session, rule, task, changed, node):
                return f"its {kind} {key}"
    for field, copy in _copies(session, task):
        if _changes(session, rule, task, copy, node):
            return field
    return "more than its class"


def _changes(session: Session, rule: Rule, task: Task, copy: Task, node: int) -> bool:
    return not _equal(_unscoped(rule, session, task)[node], _unscoped(rule, session, copy)[node])


def _without(values: dict[str, str] | None, key: str) -> dict[str, str]:
    return {k: v for k, v in (values or {}).items() if k != key}


def _with(task: Task, **fields: Any) -> Task:
    return _task(task, msgspec.structs.replace(task.pod, metadata=msgspec.structs.replace(task.pod.metadata, **fields)))


def _task(task: Task, pod: Pod, job: str = "") -> Task:
    made = Task(pod, task.spec_class, job or task.job, task.claims)
    made.slot = task.slot
    return made
