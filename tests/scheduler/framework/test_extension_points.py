"""How the results of plugins are combined, and the effect of a callback that raises, point by point."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from volcano_py.scheduler.framework.callbacks import Callbacks, Vote
from volcano_py.scheduler.framework.config import PluginOption
from volcano_py.scheduler.framework.deviations import DEFAULT, PARITY, Deviations
from volcano_py.scheduler.framework.extension_points.binding import Binding
from volcano_py.scheduler.framework.extension_points.events import Events
from volcano_py.scheduler.framework.extension_points.face import PluginFace
from volcano_py.scheduler.framework.extension_points.hyper_nodes import NetworkDomains
from volcano_py.scheduler.framework.extension_points.jobs import Invalid, JobStates
from volcano_py.scheduler.framework.extension_points.nodes import NodeRules
from volcano_py.scheduler.framework.extension_points.orders import Orders
from volcano_py.scheduler.framework.extension_points.queues import QueueLimits
from volcano_py.scheduler.framework.extension_points.table import FLAGS_OF_POINTS, POINTS
from volcano_py.scheduler.framework.extension_points.victims import Basis, VictimSelection
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.pre_bind import AwaitVolume, PreBindSteps, SelectNode
from volcano_py.scheduler.model.plan import Bind

EVERY_FLAG = frozenset(point.flag for point in POINTS.values() if point.flag)
PERMIT, ABSTAIN, REJECT = Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT


class Points(PluginFace):
    """The extension points without a session; a method of a part is called as one of the points."""

    def __init__(self) -> None:
        self.callbacks = callbacks = Callbacks(FLAGS_OF_POINTS)
        self._jobs: Any = {}
        session: Any = None
        self.registration = callbacks.of
        self.orders = Orders(callbacks)
        self.states = JobStates(callbacks)
        self.limits = QueueLimits(callbacks)
        self.rules = NodeRules(callbacks, session)
        self.network = NetworkDomains(callbacks, session)
        self.events = Events(callbacks)
        self.decide_with(PARITY)

    def decide_with(self, deviations: Deviations) -> None:
        self.victims = VictimSelection(self.callbacks, deviations, self.limits, self._jobs)
        self.binding = Binding(self.callbacks, ["n0"], deviations.gang_pre_bind)

    def __getattr__(self, name: str) -> Any:
        return next(getattr(part, name) for part in vars(self).values() if hasattr(part, name))


class Subject(NamedTuple):
    """The parts of a job, sub-job, queue or task that the callbacks read."""

    name: str = "s"
    uid: str = "s"
    key: str = "s"
    created: float = 0.0
    match_index: int = 0
    index: int | None = None
    has_policies: bool = True
    constraint: None = None
    path: tuple[()] = ()
    model: Any = SimpleNamespace(tree=None, evicts_nothing=False)


S: Any = Subject()
Answers = dict[str, Callable[..., Any]]


def fails(*_: Any) -> Any:
    raise RuntimeError("fails")


def points(point: str, *tiers: Answers, **basis: Basis) -> Points:
    """Extension points at one of which each plugin has a callback."""
    made = Points()
    for tier in tiers:
        for plugin, answer in tier.items():
            with made.registration(plugin):
                made.callbacks.add(point, answer, basis.get(plugin, Basis.CLAIM))
    made.callbacks.compile([[PluginOption(plugin, EVERY_FLAG) for plugin in tier] for tier in tiers])
    return made


def returns(answer: Any) -> Callable[..., Any]:
    return lambda *_: answer


# ---- yes or no ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tiers", "answer"),
    [
        ([], True),
        ([{"a": ABSTAIN}], True),
        ([{"a": REJECT}], False),
        ([{"a": PERMIT}, {"b": REJECT}], True),
        ([{"a": PERMIT, "b": REJECT}], False),
        ([{"a": ABSTAIN}, {"b": REJECT}], False),
    ],
)
@pytest.mark.parametrize("point", ["job_pipelined", "job_enqueueable"])
def test_a_reject_counts_at_once_and_a_permit_at_the_end_of_its_tier(
    point: str, tiers: list[dict[str, int]], answer: bool
) -> None:
    made = points(point, *({plugin: returns(value) for plugin, value in tier.items()} for tier in tiers))
    assert getattr(made, point)(S) is answer


def test_all_must_agree_that_a_job_is_ready_and_one_is_enough_for_overused() -> None:
    assert points("job_ready").job_ready(S) and not points("overused").overused(S)
    assert not points("job_ready", {"a": returns(True)}, {"b": returns(False)}).job_ready(S)
    assert points("overused", {"a": returns(False)}, {"b": returns(True)}).overused(S)


def test_the_first_tier_with_callbacks_decides_who_starves() -> None:
    assert not points("job_starving").job_starving(S)
    assert points("job_starving", {"a": returns(True)}, {"b": returns(False)}).job_starving(S)
    assert not points("job_starving", {"a": returns(True), "c": returns(False)}, {"b": returns(True)}).job_starving(S)


def test_the_first_reason_against_a_job_or_task_is_reported() -> None:
    why = Invalid("A", "a")
    assert points("job_valid", {"a": returns(None), "b": returns(why)}).job_valid(S) is why
    assert points("pre_predicate", {"a": returns(None), "b": returns("no")}).pre_predicate(S) == "no"
    assert points("job_valid").job_valid(S) is None and points("pre_predicate").pre_predicate(S) is None


def test_a_pre_predicate_is_not_called_for_classes_that_it_does_not_concern() -> None:
    rejected, other = (SimpleNamespace(key=str(i), spec_class=SimpleNamespace(id=i)) for i in range(2))
    calls = []

    def reject(task: Any) -> str:
        calls.append(task)
        return "no"

    made: Any = Points()
    with made.registration("a"):
        made.add_pre_predicate(reject, concerns=lambda task: task is rejected)
    made.callbacks.compile([[PluginOption("a", EVERY_FLAG)]])
    assert [made.pre_predicate(each) for each in (rejected, other, other)] == ["no", None, None]
    assert calls == [rejected]


def test_sub_job_callbacks_run_only_for_jobs_with_policies() -> None:
    alone: Any = Subject(has_policies=False)
    made = points("sub_job_ready", {"a": returns(False)})
    assert made.sub_job_ready(alone, S) and not made.sub_job_ready(S, S)
    made = points("sub_job_pipelined", {"a": returns(REJECT)})
    assert made.sub_job_pipelined(alone, S) and not made.sub_job_pipelined(S, S)


# ---- orders ---------------------------------------------------------------------------------------------------


def test_orders_fall_back_on_age_and_name() -> None:
    old: Any = Subject("z", "z", created=1)
    new: Any = Subject("a", "a", created=2)
    assert points("queue_order").queue_before(old, new) and not points("queue_order").queue_before(new, old)
    assert points("queue_order", {"a": returns(1)}).queue_before(new, old) is False
    assert points("queue_order", {"a": returns(0), "b": returns(-1)}).queue_before(new, old)
    assert points("job_order").job_key(old) < points("job_order").job_key(new)
    assert points("job_order").job_rank(old) == points("job_order").job_rank(new)
    newest_first = points("job_order", {"a": lambda j: -j.created})
    assert newest_first.job_rank(old) > newest_first.job_rank(new)
    assert points("sub_job_order", {"a": returns(5)}).sub_job_key(S) == (5, 0, "s")


def test_the_queue_that_is_served_last_loses_pods_first() -> None:
    old: Any = Subject("z", created=1)
    new: Any = Subject("a", created=2)
    assert points("victim_queue_order").victim_queue_before(new, old, None)
    assert points("victim_queue_order", {"a": returns(-1)}).victim_queue_before(old, new, None)
    assert not points("victim_queue_order", {"a": returns(1)}).victim_queue_before(new, old, None)
    assert points("victim_queue_order", {"a": fails}).victim_queue_before(new, old, None)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Subject(index=1, created=9), Subject(index=2)),
        (Subject(index=2), Subject(index=None, created=1)),
        (Subject(uid="a"), Subject(uid="b")),
    ],
)
def test_tasks_are_ordered_by_number_age_and_uid(left: Any, right: Any) -> None:
    made = points("task_order")
    assert made.task_before(left, right) and not made.task_before(right, left)
    assert points("task_order", {"a": lambda t: t is left}).task_before(right, left)


# ---- victims --------------------------------------------------------------------------------------------------

ABC: list[Any] = [Subject(name, name) for name in "abc"]


def victims_of(names: str) -> Callable[..., Any]:
    return lambda _, candidates: [t for t in candidates if t.uid in names]


ABSTAINS = returns(None)


@pytest.mark.parametrize(
    ("tiers", "victims"),
    [
        ([], ""),
        ([{"x": victims_of("ab"), "y": victims_of("bc")}], "b"),
        ([{"x": victims_of("ab"), "y": ABSTAINS}], "ab"),
        ([{"x": victims_of("ab"), "y": victims_of("")}, {"z": victims_of("c")}], "c"),
        ([{"x": victims_of("a"), "y": victims_of("b"), "z": victims_of("c")}], "c"),
        ([{"x": victims_of("a"), "y": victims_of("b")}], ""),
        ([{"x": victims_of("a")}, {"z": victims_of("c")}], "a"),
    ],
)
@pytest.mark.parametrize("point", ["preemptable", "reclaimable", "unified_evictable"])
def test_a_tier_names_the_pods_that_all_its_plugins_name(point: str, tiers: list[Answers], victims: str) -> None:
    assert "".join(t.uid for t in getattr(points(point, *tiers), point)(S, ABC)) == victims


@pytest.mark.parametrize(
    ("basis", "first", "second", "victims"),
    [
        (Basis.PROTECTION, victims_of("ab"), victims_of("a"), "a"),
        (Basis.PROTECTION, victims_of("ab"), fails, ""),
        (Basis.GANG_MINIMUM, victims_of("ab"), victims_of("a"), "ab"),
        (Basis.CLAIM, victims_of("ab"), victims_of("a"), "ab"),
    ],
)
def test_a_protection_in_a_later_tier_holds(
    basis: Basis, first: Callable[..., Any], second: Callable[..., Any], victims: str
) -> None:
    """A gang's minimum holds only up to the tier that decided."""
    made = points("preemptable", {"x": first}, {"y": second}, y=basis)
    made.decide_with(Deviations(rank_holds=False))
    assert "".join(t.uid for t in made.preemptable(S, ABC)) == victims
    made.decide_with(PARITY)
    assert "".join(t.uid for t in made.preemptable(S, ABC)) == "ab"


def test_a_gang_minimum_holds_in_an_earlier_tier() -> None:
    tiers = {"g": victims_of("a"), "x": victims_of("")}, {"y": victims_of("ab")}
    made = points("preemptable", *tiers, g=Basis.GANG_MINIMUM)
    made.decide_with(Deviations(rank_holds=False))
    assert "".join(t.uid for t in made.preemptable(S, ABC)) == "a"


def test_a_protection_that_has_named_all_victims_is_not_called_again() -> None:
    calls = []

    def protects(_: object, candidates: list[Any]) -> list[Any]:
        calls.append(len(candidates))
        return candidates[:1]

    made = points("preemptable", {"x": victims_of("ab"), "y": protects}, y=Basis.PROTECTION)
    made.decide_with(Deviations(rank_holds=False))
    assert "".join(t.uid for t in made.preemptable(S, ABC)) == "a" and calls == [3]
    # If the plugins agree on no pod, the next one decides alone: its victims are not yet those of the protection.
    tier = {"y": protects, "x": victims_of("b"), "z": victims_of("ab")}
    made = points("preemptable", tier, y=Basis.PROTECTION)
    made.decide_with(Deviations(rank_holds=False))
    assert "".join(t.uid for t in made.preemptable(S, ABC)) == "a" and calls == [3, 3, 3]


@pytest.mark.parametrize(
    ("point", "basis", "later_jobs_only"),
    [
        ("preemptable", Basis.CLAIM, False),
        ("preemptable", Basis.RANK, False),
        ("preemptable", Basis.PROTECTION, True),
        ("preemptable", Basis.GANG_MINIMUM, True),
        ("reclaimable", Basis.CLAIM, False),
        ("reclaimable", Basis.RANK, True),
    ],
)
def test_without_a_reason_only_pods_of_later_jobs_are_victims(point: str, basis: Basis, later_jobs_only: bool) -> None:
    made = points(point, {"x": victims_of("ab")}, x=basis)
    made.decide_with(DEFAULT)
    made.victims.of_later_jobs = lambda _, victims: victims[:1]  # type: ignore[method-assign]
    assert "".join(t.uid for t in getattr(made, point)(S, ABC)) == ("a" if later_jobs_only else "ab")


def test_the_first_tier_that_names_a_pod_decides() -> None:
    made = points("victim_tasks", {"x": returns([])}, {"y": returns(ABC[:2]), "z": returns(ABC[1:])}, {"u": fails})
    assert made.victim_tasks([]) == ABC and made.callbacks.faults == []
    assert points("victim_tasks", {"x": returns([])}).victim_tasks(ABC) == []


# ---- HyperNodes -----------------------------------------------------------------------------------------------


def test_the_first_gradient_decides_and_scores_are_added() -> None:
    assert points("job_gradient").job_gradients(S, "h", "allocate") == [["h"]]
    assert points("job_gradient", {"a": returns([["x"]])}, {"b": fails}).job_gradients(S, "h", "allocate") == [["x"]]
    assert points("sub_job_gradient", {"a": returns([])}).sub_job_gradients(S, S, "h", "allocate") == []
    made = points("hyper_node_order", {"a": returns({"x": 1.0}), "c": fails}, {"b": returns({"x": 2.0, "y": 3.0})})
    assert made.hyper_node_scores(S, ["x", "y"]) == {"x": 3.0, "y": 3.0} and len(made.callbacks.faults) == 1


# ---- before a pod is bound -----------------------------------------------------------------------------------


def binds(made: Points, jobs: str) -> list[Bind]:
    tasks: list[Any] = [
        SimpleNamespace(key=f"ns/{i}", namespace="ns", name=str(i), uid=f"u{i}", job=job) for i, job in enumerate(jobs)
    ]
    return made.binds([(task, 0) for task in tasks])


SELECT = SelectNode("ns", "data", "c", "n0")
AWAIT = AwaitVolume("ns", "data", "c", "n0")


def test_the_steps_and_annotations_of_all_plugins_are_added() -> None:
    first, second = PreBindSteps([SELECT], {"a": "1", "b": "1"}), PreBindSteps([AWAIT], {"b": "2"})
    made = points("pre_bind", {"x": returns(first), "y": returns(None)}, {"z": returns(second)})
    (bind,) = binds(made, "g")
    assert bind.steps == (SELECT, AWAIT) and bind.annotations == {"a": "1", "b": "2"}


def test_the_members_of_a_gang_wait_for_each_other_unless_each_pod_is_on_its_own() -> None:
    made = points("pre_bind", {"x": lambda task, _: PreBindSteps([SELECT], {}) if task.name == "1" else None})
    assert [b.barrier for b in binds(made, "ggh")] == ["", "", ""]
    made.decide_with(DEFAULT)
    assert [b.barrier for b in binds(made, "ggh")] == ["g", "g", ""]
    assert binds(points("pre_bind"), "g") == [Bind("ns", "0", "u0", "n0", "g")]


def test_no_member_is_bound_when_a_plugin_fails_for_one() -> None:
    made = points("pre_bind", {"x": lambda task, _: fails() if task.name == "1" else None})
    assert [b.group for b in binds(made, "ggh")] == ["h"] and len(made.callbacks.faults) == 1


# ---- a plugin that raises -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "arguments", "answer"),
    [
        ("job_ready", (S,), False),
        ("job_pipelined", (S,), False),
        ("job_enqueueable", (S,), False),
        ("job_enqueued", (S,), None),
        ("job_starving", (S,), False),
        ("job_valid", (S,), Invalid("PluginError", "plugin p failed: fails")),
        ("overused", (S,), True),
        ("allocatable", (S, S), False),
        ("preemptive", (S, [S]), False),
        ("pre_predicate", (S,), "plugin p failed: fails"),
        ("preemptable", (S, ABC), []),
        ("reclaimable", (S, ABC), []),
        ("unified_evictable", (S, ABC), []),
        ("victim_tasks", (ABC,), []),
        ("sub_job_ready", (S, S), False),
        ("sub_job_pipelined", (S, S), False),
    ],
)
def test_a_callback_that_raises_has_the_safest_result(point: str, arguments: tuple[Any, ...], answer: Any) -> None:
    made = points(point, {"p": fails})
    assert getattr(made, point)(*arguments) == answer
    assert [(f.plugin, f.point, f.error) for f in made.callbacks.faults] == [("p", point, "RuntimeError: fails")]


@pytest.mark.parametrize("point", ["job_gradient", "sub_job_gradient"])
def test_without_a_gradient_no_hyper_node_is_tried(point: str) -> None:
    made = points(point, {"p": fails})
    found = made.job_gradients(S, "h", "x") if point == "job_gradient" else made.sub_job_gradients(S, S, "h", "x")
    assert found == [] and made.callbacks.faults[0].point == point


def test_an_order_that_raises_is_ignored() -> None:
    old: Any = Subject("z", "z", created=1)
    new: Any = Subject("a", "a", created=2)
    assert points("queue_order", {"p": fails}).queue_before(old, new)
    assert points("job_order", {"p": fails}).job_key(old) == (0, 1, "z")
    assert points("task_order", {"p": fails}).task_key(old) == (0,)
    assert points("sub_job_order", {"p": fails}).sub_job_key(old) == (0, 0, "z")


def test_flags_disable_callbacks() -> None:
    made = Points()
    with made.registration("p"):
        made.add_overused(returns(True))
    made.callbacks.compile([[PluginOption("p", frozenset())]])
    assert not made.overused(S) and made.callbacks.enabled("overused") == []
    made.callbacks.compile([[PluginOption("p", EVERY_FLAG)]])
    assert made.overused(S)


def test_callbacks_are_added_only_while_a_plugin_opens() -> None:
    with pytest.raises(RuntimeError, match="on_session_open"):
        Points().add_overused(returns(True))


# ---- the reference ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POINTS)
def test_every_point_documents_call_combination_flag_and_error(name: str) -> None:
    point = POINTS[name]
    text = inspect.getdoc(getattr(Session, point.method)) or ""
    parts = dict(re.findall(r"^(Called|Combination|Flag|On error): (.+)$", text, re.MULTILINE))
    assert set(parts) == {"Called", "Combination", "Flag", "On error"}
    assert parts["Flag"] == f"{point.flag or 'none'}."
    hints = inspect.signature(getattr(Session, point.method), eval_str=True).parameters
    assert any("Callable" in str(p.annotation) for p in hints.values()), "the callback's signature"


def test_every_add_method_is_in_the_table() -> None:
    methods = {name for name in dir(Session) if name.startswith("add_")}
    assert methods == {p.method for p in POINTS.values()} | {"add_filters", "add_scores"}


def test_numbers_of_numpy_are_numbers() -> None:
    made = points("queue_order", {"a": returns(np.int64(-7))})
    assert made.callbacks.compare("queue_order", S, S) == -1 and not made.callbacks.faults
    assert points("job_pipelined", {"a": returns(np.int64(1))}).callbacks.vote("job_pipelined", S) is True
