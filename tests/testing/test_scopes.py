"""The test kit finds rules whose scope is a lie, and pods are distinguished by what plugins declare to read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from volcano_py.plugin import DOMAIN, LOCAL, STATIC, NodeView, Plugin, Scope, Session, Task
from volcano_py.testing import Cluster, check, registry

Rule = Callable[[Session, Task, NodeView], Any]


def plugin(rule: Rule, scope: Scope, point: str = "predicate", **declared: Any) -> type[Plugin]:
    class User(Plugin):
        name = "user"

        def on_session_open(self, session: Session) -> None:
            def called(task: Task, node: NodeView) -> Any:
                return rule(session, task, node)

            if point == "predicate":
                session.add_predicate(called, scope=scope)
            else:
                session.add_node_order(called, scope=scope)

    for name, value in declared.items():
        setattr(User, name, value)
    return User


def run(made: type[Plugin], **kit: Any) -> Cluster:
    cluster = Cluster(plugins=[made], **kit)
    cluster.add_node("n1", cpu=4)
    cluster.add_node("n2", cpu=4)
    cluster.add_job("a", cpu=1, labels={"team": "red"})
    cluster.add_job("b", cpu=1, labels={"team": "blue"})
    return cluster


TIERS = [["gang"], ["predicates", "user"]]


def by_label(session: Session, task: Task, node: NodeView) -> str | None:
    return None if task.labels.get("team") == "red" else "not red"


def by_annotation(session: Session, task: Task, node: NodeView) -> str | None:
    return "a job" if "scheduling.k8s.io/group-name" in task.annotations else None


def by_name(session: Session, task: Task, node: NodeView) -> str | None:
    return None if task.name == "a-0" else "another name"


def by_job(session: Session, task: Task, node: NodeView) -> str | None:
    return None if session.jobs[task.job].name == "a" else "another job"


def by_priority(session: Session, task: Task, node: NodeView) -> str | None:
    return "priority" if task.priority > 5 else None


def raises(session: Session, task: Task, node: NodeView) -> str | None:
    return task.labels["team"] if task.labels["team"] == "red" else None


PODS = [
    (
        by_label,
        r"pod default/a-0 on node n1 depends on its label team \(accepted, 'not red'\); declare scope=DOMAIN, or",
    ),
    (raises, r"depends on its label team \('red', raises KeyError: 'team'\)"),
    (by_name, r"depends on its name \(accepted, 'another name'\); declare scope=DOMAIN$"),
    (by_job, r"depends on its job \(accepted, 'another job'\)"),
]


@pytest.mark.parametrize("scope", [STATIC, LOCAL])
@pytest.mark.parametrize(("rule", "text"), PODS)
def test_a_rule_that_depends_on_the_pod(rule: Rule, text: str, scope: Scope) -> None:
    with pytest.raises(AssertionError) as e:
        run(plugin(rule, scope)).schedule(tiers=TIERS)
    found = str(e.value).splitlines()[0]
    assert found.startswith(f"plugin user: predicate is declared {scope.name}, but its result for pod default/a-0")
    assert re.search(text, found), found


def test_a_score_is_checked_as_well() -> None:
    made = plugin(lambda session, task, node: float(len(task.labels)), LOCAL, "node_order")
    with pytest.raises(AssertionError, match=r"node_order is declared LOCAL.*label team \(1\.0, 0\.0\)"):
        run(made).schedule(tiers=TIERS)


def test_the_field_in_which_two_pods_differ_is_named() -> None:
    """A copy without the label is treated alike; only the two values are not."""
    made = plugin(lambda s, task, node: "blue" if task.labels.get("team") == "blue" else None, STATIC)
    with pytest.raises(
        AssertionError, match=r"pod default/b-0 on node n1 depends on its label team \(accepted, 'blue'"
    ):
        run(made).schedule(tiers=TIERS)


def test_a_rule_without_scope_may_depend_on_anything() -> None:
    assert run(plugin(by_label, DOMAIN)).schedule(tiers=TIERS).bound == {"a-0": "n1"}


def test_the_check_can_be_left_out() -> None:
    run(plugin(by_name, STATIC), check_scopes=False).schedule(tiers=TIERS)


def used_of(session: Session, node: str) -> float:
    column = session.table.index[node]
    return float(session.numbers.used[session.table.rows["cpu"], column])


def test_a_static_rule_that_reads_numbers_elsewhere() -> None:
    made = plugin(lambda session, task, node: used_of(session, node.name), STATIC, "node_order")
    with pytest.raises(AssertionError, match=r"changes in a cycle in which the Node object did not.*scope=LOCAL if"):
        run(made).schedule(tiers=TIERS)


def test_a_local_rule_that_reads_another_node() -> None:
    made = plugin(lambda session, task, node: used_of(session, "n1") if node.name == "n2" else 0.0, LOCAL, "node_order")
    with pytest.raises(
        AssertionError, match=r"on node n2 changes in a cycle in which the numbers of that node did not"
    ):
        run(made).schedule(tiers=TIERS)


def test_a_static_rule_whose_kept_result_is_out_of_date() -> None:
    state = {"closed": False}
    cluster = run(plugin(lambda session, task, node: "closed" if state["closed"] else None, STATIC))
    cluster.add_job("large", cpu=50)
    cluster.schedule(tiers=TIERS)
    state["closed"] = True
    with pytest.raises(AssertionError, match=r"depends on more than Node object and class \(accepted, 'closed'\)"):
        cluster.schedule(tiers=TIERS)


class Arrays:
    """A filter in array form that reads labels."""

    name = "arrays"
    scope = STATIC
    reasons: list[Any] = []

    def __init__(self, count: int) -> None:
        from volcano_py.plugin import Reason

        self.reasons = [Reason("not red")]
        self._count = count

    def applies(self, task: Task) -> bool:
        return True

    def filter(self, task: Task) -> Any:
        return np.full(self._count, int(task.labels.get("team") != "red"), dtype=np.int8)


def test_the_array_form_is_checked() -> None:
    class User(Plugin):
        name = "user"

        def on_session_open(self, session: Session) -> None:
            session.add_filters(Arrays(len(session.table)))  # type: ignore[arg-type]

    with pytest.raises(AssertionError, match=r"plugin user: predicate arrays is declared STATIC.*label team"):
        run(User).schedule(tiers=TIERS)


@pytest.mark.parametrize("scope", [STATIC, LOCAL])
def test_a_declared_label_is_part_of_the_class(scope: Scope) -> None:
    decision = run(plugin(by_label, scope, reads_labels=("team",))).schedule(tiers=TIERS)
    assert decision.bound == {"a-0": "n1"} and "not red" in decision.pending["b"]


def test_a_declared_annotation_is_part_of_the_class() -> None:
    key = "scheduling.k8s.io/group-name"
    decision = run(plugin(by_annotation, STATIC, reads_annotations=(key,))).schedule(tiers=TIERS)
    assert decision.bound == {} and len(decision.pending) == 2


def test_a_changed_value_of_a_declared_label_changes_the_class() -> None:
    cluster = run(plugin(by_label, STATIC, reads_labels=("team",)))
    cluster.schedule(tiers=TIERS)
    [pod] = [o for (kind, key), o in cluster._simulation.objects.items() if kind == "Pod" and key == "default/b-0"]
    labels = {**pod["metadata"]["labels"], "team": "red"}
    cluster.add({**pod, "metadata": {**pod["metadata"], "labels": labels}})
    assert cluster.schedule(tiers=TIERS).bound == {"b-0": "n1"}


def test_a_declaration_that_begins_later_divides_known_pods() -> None:
    """As after a new configuration: the pods are in the model already."""
    cluster = run(plugin(by_label, STATIC, reads_labels=("team",)))
    cluster.add_job("runs", cpu=1, runs_on="n2", labels={"team": "red"})
    first = cluster.schedule(actions="enqueue", tiers=[["gang"], ["predicates"]])
    tasks = first.session.cluster.tasks
    assert len({t.spec_class.id for t in tasks.values()}) == 1
    decision = cluster.schedule(tiers=TIERS)
    assert decision.bound == {"a-0": "n1"}
    assert len({t.spec_class.id for t in tasks.values()}) == 2


def test_scenarios_are_checked_as_well() -> None:
    scenario = {
        "name": "x",
        "conf": {"plugins": TIERS},
        "nodes": {"n1": {}},
        "jobs": {"a": {"each": {"cpu": 1, "labels": {"team": "red"}}}},
        "expect": {"bound": {"a-0": "n1"}},
    }
    check(scenario, registry({"user": plugin(by_label, DOMAIN)}))
    with pytest.raises(AssertionError, match="depends on its label team"):
        check(scenario, registry({"user": plugin(by_label, LOCAL)}))
