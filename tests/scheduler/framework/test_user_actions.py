"""Actions of users: what a statement rejects, and the calls around `execute`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from volcano_py.plugin import Action, Session, Statement, Task
from volcano_py.testing import Cluster

CALLS: list[str] = []


def act(execute: Callable[[Session], None]) -> type[Action]:
    class Acts(Action):
        name = "acts"

        def execute(self, session: Session) -> None:
            execute(session)

    return Acts


def cluster(action: type[Action]) -> Cluster:
    made = Cluster(actions=[action])
    made.add_node("n1", cpu=4)
    made.add_node("n2", cpu=4, labels={"only": "n2"})
    return made


def task_of(session: Session, job: str) -> Task:
    return next(iter(session.jobs[f"default/{job}"].tasks.values()))


def rejected(execute: Callable[[Statement, Session], str | None], **job: object) -> str:
    """The error of a statement for the job `big`; nothing may be bound or counted."""
    errors: list[str | None] = []

    def run(session: Session) -> None:
        idle = session.numbers.idle.copy()
        statement = Statement(session)
        errors.append(execute(statement, session))
        steps = len(statement.steps)
        if steps == 0:
            assert (session.numbers.idle == idle).all()
        statement.commit()

    made = cluster(act(run))
    made.add_job("big", **job)  # type: ignore[arg-type]
    decision = made.schedule(actions="enqueue, acts")
    assert not decision.faults and not decision.bound
    assert errors[0] is not None
    return errors[0]


def test_a_statement_rejects_what_does_not_fit() -> None:
    error = rejected(lambda statement, session: statement.allocate(task_of(session, "big"), 0), cpu=100)
    assert error == "node n1 resources are not enough to put task default/big-0"


def test_a_statement_rejects_what_no_longer_fits() -> None:
    errors: list[str | None] = []

    def run(session: Session) -> None:
        statement = Statement(session)
        errors.extend(statement.allocate(task_of(session, job), 0) for job in ("a", "b"))
        statement.commit()

    made = cluster(act(run))
    made.add_job("a", cpu=3)
    made.add_job("b", cpu=3)
    assert made.schedule(actions="enqueue, acts").bound == {"a-0": "n1"}
    assert errors == [None, "node n1 resources are not enough to put task default/b-0"]


@pytest.mark.parametrize("node", [-1, 2])
@pytest.mark.parametrize("verb", ["allocate", "pipeline"])
def test_a_statement_rejects_a_node_that_does_not_exist(node: int, verb: str) -> None:
    def run(statement: Statement, session: Session) -> str | None:
        task = task_of(session, "big")
        return statement.allocate(task, node) if verb == "allocate" else statement.pipeline(task, node, False)

    assert rejected(run, cpu=1) == f"node {node} does not exist; the session has the nodes 0 to 1"


def test_a_statement_rejects_a_task_that_has_a_node() -> None:
    errors: list[str | None] = []

    def run(session: Session) -> None:
        statement, task = Statement(session), task_of(session, "a")
        errors.extend((statement.allocate(task, 0), statement.allocate(task, 1), statement.pipeline(task, 1, False)))
        statement.commit()
        errors.append(Statement(session).allocate(task_of(session, "old"), 1))

    made = cluster(act(run))
    made.add_job("a", cpu=1)
    made.add_job("old", cpu=1, runs_on="n1")
    assert made.schedule(actions="enqueue, acts").bound == {"a-0": "n1"}
    why = "only a Pending task can get a node"
    assert errors[0] is None
    assert errors[1:3] == [f"task default/a-0 is Allocated; {why}"] * 2
    assert errors[3] == f"task default/old-0 is Running; {why}"


def test_feasible_nodes_follow_predicates_and_capacity() -> None:
    found: list[list[str]] = []

    def run(session: Session) -> None:
        assert [n.name for n in session.nodes] == ["n1", "n2"]
        for job in ("any", "picky", "big"):
            found.append([n.name for n in session.feasible_nodes(task_of(session, job))])
        Statement(session).allocate(task_of(session, "picky"), 1)
        found.append([n.name for n in session.feasible_nodes(task_of(session, "any"))])

    made = cluster(act(run))
    made.add_job("any", cpu=3)
    made.add_job("picky", cpu=3, spec={"nodeSelector": {"only": "n2"}})
    made.add_job("big", cpu=30)
    assert not made.schedule(actions="enqueue, acts").faults
    assert found == [["n1", "n2"], ["n2"], [], ["n1"]]


class Recorded(Action):
    name = "recorded"
    fails_in = ""

    def _called(self, name: str) -> None:
        CALLS.append(name)
        if name == Recorded.fails_in:
            raise RuntimeError(name)

    def initialize(self) -> None:
        self._called("initialize")

    def execute(self, session: Session) -> None:
        self._called("execute")

    def uninitialize(self) -> None:
        self._called("uninitialize")


@pytest.mark.parametrize(
    ("fails_in", "called"),
    [
        ("", ["initialize", "execute", "uninitialize"]),
        ("initialize", ["initialize"]),
        ("execute", ["initialize", "execute", "uninitialize"]),
        ("uninitialize", ["initialize", "execute", "uninitialize"]),
    ],
)
def test_an_action_is_initialized_and_uninitialized(fails_in: str, called: list[str]) -> None:
    CALLS.clear()
    Recorded.fails_in = fails_in
    made = cluster(Recorded)
    made.add_job("a", cpu=1)
    decision = made.schedule(actions="enqueue, recorded, allocate")
    assert called == CALLS
    assert len(decision.faults) == bool(fails_in)
    assert all(f.startswith(f"recorded action RuntimeError: {fails_in}") for f in decision.faults)
    assert decision.bound == {"a-0": "n1"}, "the other actions run"


def test_a_task_without_a_node_is_not_evicted() -> None:
    def run(session: Session) -> None:
        statement = Statement(session)
        statement.evict(task_of(session, "old"), "test")
        try:
            statement.evict(task_of(session, "new"), "test")
        finally:
            statement.commit()

    made = cluster(act(run))
    made.add_job("old", cpu=1, runs_on="n1")
    made.add_job("new", cpu=1)
    decision = made.schedule(actions="enqueue, acts")
    assert decision.evicted == ["old-0"]
    assert "task default/new-0 is Pending and has no node" in decision.faults[0]
