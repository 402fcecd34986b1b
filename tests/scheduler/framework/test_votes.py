"""How plugins' answers are combined; what a plugin that raises is worth, point by point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from volcano_py.scheduler.framework.config import PluginOption
from volcano_py.scheduler.framework.votes import ABSTAIN, PERMIT, POINTS, REJECT, Invalid, Votes

EVERY_FLAG = frozenset(flag for flag in POINTS.values() if flag)


class Subject(NamedTuple):
    """As much of a job, sub-job, queue or task as votes look at."""

    name: str = "s"
    uid: str = "s"
    key: str = "s"
    created: float = 0.0
    match_index: int = 0
    index: int | None = None
    has_policies: bool = True


S: Any = Subject()
Answers = dict[str, Callable[..., Any]]


def boom(*_: Any) -> Any:
    raise RuntimeError("boom")


def votes(point: str, *tiers: Answers) -> Votes:
    """Votes in which each plugin answers one question."""
    made = Votes()
    for tier in tiers:
        for plugin, answer in tier.items():
            made.add(point, plugin, answer)
    made.compile([[PluginOption(plugin, EVERY_FLAG) for plugin in tier] for tier in tiers])
    return made


def says(answer: Any) -> Callable[..., Any]:
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
    made = votes(point, *({plugin: says(value) for plugin, value in tier.items()} for tier in tiers))
    assert getattr(made, point)(S) is answer


def test_all_must_agree_that_a_job_is_ready_and_one_is_enough_for_overused() -> None:
    assert votes("job_ready").job_ready(S) and not votes("overused").overused(S)
    assert not votes("job_ready", {"a": says(True)}, {"b": says(False)}).job_ready(S)
    assert votes("overused", {"a": says(False)}, {"b": says(True)}).overused(S)


def test_the_first_tier_with_an_opinion_says_who_starves() -> None:
    assert not votes("job_starving").job_starving(S)
    assert votes("job_starving", {"a": says(True)}, {"b": says(False)}).job_starving(S)
    assert not votes("job_starving", {"a": says(True), "c": says(False)}, {"b": says(True)}).job_starving(S)


def test_the_first_reason_against_a_job_or_task_is_told() -> None:
    why = Invalid("A", "a")
    assert votes("job_valid", {"a": says(None), "b": says(why)}).job_valid(S) is why
    assert votes("pre_predicate", {"a": says(None), "b": says("no")}).pre_predicate(S) == "no"
    assert votes("job_valid").job_valid(S) is None and votes("pre_predicate").pre_predicate(S) is None


def test_sub_jobs_are_asked_only_where_policies_make_several() -> None:
    alone: Any = Subject(has_policies=False)
    made = votes("sub_job_ready", {"a": says(False)})
    assert made.sub_job_ready(alone, S) and not made.sub_job_ready(S, S)
    made = votes("sub_job_pipelined", {"a": says(REJECT)})
    assert made.sub_job_pipelined(alone, S) and not made.sub_job_pipelined(S, S)


# ---- orders ---------------------------------------------------------------------------------------------------


def test_orders_fall_back_on_age_and_name() -> None:
    old: Any = Subject("z", "z", created=1)
    new: Any = Subject("a", "a", created=2)
    assert votes("queue_order").queue_before(old, new) and not votes("queue_order").queue_before(new, old)
    assert votes("queue_order", {"a": says(1)}).queue_before(new, old) is False
    assert votes("queue_order", {"a": says(0), "b": says(-1)}).queue_before(new, old)
    assert votes("job_order").job_key(old) < votes("job_order").job_key(new)
    assert votes("job_order").job_compare(old, new) == 0
    assert votes("job_order", {"a": lambda j: -j.created}).job_compare(old, new) == 1
    assert votes("sub_job_order", {"a": says(5)}).sub_job_key(S) == (5, 0, "s")


def test_the_queue_to_lose_first_is_the_one_to_be_served_last() -> None:
    old: Any = Subject("z", created=1)
    new: Any = Subject("a", created=2)
    assert votes("victim_queue_order").victim_queue_before(new, old, None)
    assert votes("victim_queue_order", {"a": says(-1)}).victim_queue_before(old, new, None)
    assert not votes("victim_queue_order", {"a": says(1)}).victim_queue_before(new, old, None)
    assert votes("victim_queue_order", {"a": boom}).victim_queue_before(new, old, None)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Subject(index=1, created=9), Subject(index=2)),
        (Subject(index=2), Subject(index=None, created=1)),
        (Subject(uid="a"), Subject(uid="b")),
    ],
)
def test_tasks_go_by_number_age_and_uid(left: Any, right: Any) -> None:
    made = votes("task_order")
    assert made.task_before(left, right) and not made.task_before(right, left)
    assert votes("task_order", {"a": lambda t: t is left}).task_before(right, left)


# ---- victims --------------------------------------------------------------------------------------------------

ABC: list[Any] = [Subject(name, name) for name in "abc"]


def who(names: str, vote: int = PERMIT) -> Callable[..., Any]:
    return lambda _, candidates: ([t for t in candidates if t.uid in names], vote)


@pytest.mark.parametrize(
    ("tiers", "victims"),
    [
        ([], ""),
        ([{"x": who("ab"), "y": who("bc")}], "b"),
        ([{"x": who("ab"), "y": who("", ABSTAIN)}], "ab"),
        ([{"x": who("ab"), "y": who("")}, {"z": who("c")}], "c"),
        ([{"x": who("a"), "y": who("b"), "z": who("c")}], "c"),
        ([{"x": who("a"), "y": who("b")}], ""),
        ([{"x": who("a")}, {"z": who("c")}], "a"),
    ],
)
@pytest.mark.parametrize("point", ["preemptable", "reclaimable", "unified_evictable"])
def test_a_tier_names_those_on_whom_it_agrees(point: str, tiers: list[Answers], victims: str) -> None:
    assert "".join(t.uid for t in getattr(votes(point, *tiers), point)(S, ABC)) == victims


@pytest.mark.parametrize(
    ("protector", "first", "second", "victims"),
    [
        ("pdb", who("ab"), who("a"), "a"),
        ("pdb", who("ab"), boom, ""),
        ("gang", who("ab"), who("a"), "ab"),
        ("other", who("ab"), who("a"), "ab"),
    ],
)
def test_whom_a_protector_spares_in_a_later_tier_is_no_victim(
    protector: str, first: Callable[..., Any], second: Callable[..., Any], victims: str
) -> None:
    """gang speaks only where it was asked: before the tier that answered."""
    made = votes("preemptable", {"x": first}, {protector: second})
    made.protectors = frozenset(("pdb", "gang"))
    assert "".join(t.uid for t in made.preemptable(S, ABC)) == victims


def test_gang_holds_where_it_was_asked_before() -> None:
    made = votes("preemptable", {"gang": who("a"), "x": who("")}, {"y": who("ab")})
    made.protectors = frozenset(("gang",))
    assert "".join(t.uid for t in made.preemptable(S, ABC)) == "a"


def test_the_first_tier_that_names_anybody_gives_its_victims() -> None:
    made = votes("victim_tasks", {"x": says([])}, {"y": says(ABC[:2]), "z": says(ABC[1:])}, {"u": boom})
    assert made.victim_tasks([]) == ABC and made.faults == []
    assert votes("victim_tasks", {"x": says([])}).victim_tasks(ABC) == []


# ---- HyperNodes -----------------------------------------------------------------------------------------------


def test_the_first_gradient_decides_and_rates_are_added() -> None:
    assert votes("job_gradient").job_gradients(S, "h", "allocate") == [["h"]]
    assert votes("job_gradient", {"a": says([["x"]])}, {"b": boom}).job_gradients(S, "h", "allocate") == [["x"]]
    assert votes("sub_job_gradient", {"a": says([])}).sub_job_gradients(S, S, "h", "allocate") == []
    made = votes("hyper_node_order", {"a": says({"x": 1.0}), "c": boom}, {"b": says({"x": 2.0, "y": 3.0})})
    assert made.hyper_node_rates(S, ["x", "y"]) == {"x": 3.0, "y": 3.0} and len(made.faults) == 1


# ---- a plugin that raises -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "arguments", "answer"),
    [
        ("job_ready", (S,), False),
        ("job_pipelined", (S,), False),
        ("job_enqueueable", (S,), False),
        ("job_enqueued", (S,), None),
        ("job_starving", (S,), False),
        ("job_valid", (S,), Invalid("PluginError", "plugin p failed: boom")),
        ("overused", (S,), True),
        ("allocatable", (S, S), False),
        ("preemptive", (S, [S]), False),
        ("pre_predicate", (S,), "plugin p failed: boom"),
        ("preemptable", (S, ABC), []),
        ("reclaimable", (S, ABC), []),
        ("unified_evictable", (S, ABC), []),
        ("victim_tasks", (ABC,), []),
        ("sub_job_ready", (S, S), False),
        ("sub_job_pipelined", (S, S), False),
    ],
)
def test_the_answer_of_one_that_raises_is_the_one_that_changes_least(
    point: str, arguments: tuple[Any, ...], answer: Any
) -> None:
    made = votes(point, {"p": boom})
    assert getattr(made, point)(*arguments) == answer
    assert [(f.plugin, f.point, f.error) for f in made.faults] == [("p", point, "RuntimeError: boom")]


@pytest.mark.parametrize("point", ["job_gradient", "sub_job_gradient"])
def test_without_a_gradient_no_hyper_node_is_tried(point: str) -> None:
    made = votes(point, {"p": boom})
    found = made.job_gradients(S, "h", "x") if point == "job_gradient" else made.sub_job_gradients(S, S, "h", "x")
    assert found == [] and made.faults[0].point == point


def test_an_order_that_raises_lapses() -> None:
    old: Any = Subject("z", "z", created=1)
    new: Any = Subject("a", "a", created=2)
    assert votes("queue_order", {"p": boom}).queue_before(old, new)
    assert votes("job_order", {"p": boom}).job_key(old) == (0, 1, "z")
    assert votes("task_order", {"p": boom}).task_key(old) == (0,)
    assert votes("sub_job_order", {"p": boom}).sub_job_key(old) == (0, 0, "z")


def test_flags_switch_callbacks_off_and_a_closed_plugin_lets_nothing_happen() -> None:
    made = Votes()
    made.add("overused", "p", says(True))
    made.compile([[PluginOption("p", frozenset())]])
    assert not made.overused(S) and made.enabled("overused") == []
    made.close("p")
    made.compile([[PluginOption("p", EVERY_FLAG)]])
    assert made.preemptable(S, ABC) == [] and not made.job_enqueueable(S)
    assert made.job_valid(S) == Invalid("PluginError", "plugin p failed to open; its votes are missing")
    with pytest.raises(KeyError):
        made.add("nowhere", "p", boom)
