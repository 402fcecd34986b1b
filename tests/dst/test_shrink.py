"""A failing run becomes the faults and steps that it needs, without a real run."""

from __future__ import annotations

from tests.dst.run import Outcome, Plan
from tests.dst.shrink import Shrinking

FAULTS = [f"{name}|scheduler|{i}" for name in ("conflict", "late", "lost") for i in range(12)]
STEPS = [f"step {i}" for i in range(60)]
NEEDED = {"conflict|scheduler|7", "late|scheduler|3", "step 21"}


def play(plan: Plan) -> Outcome:
    """Fails if all that is needed happens, within the first 22 steps."""
    faults = [f for f in FAULTS if plan.only is None or f.partition("|")[0] in plan.only]
    steps = STEPS[: plan.steps]
    happened = [key for key in (*faults, *steps) if key not in plan.disabled]
    violations = ["12 s: gang default/g-4 is bound in part"] if set(happened) >= NEEDED else []
    return Outcome(
        plan, violations, keys=[f for f in faults if f in happened], steps=[s for s in steps if s in happened]
    )


def test_what_is_not_needed_is_left_out() -> None:
    failed = play(Plan("1", 60))
    assert failed.violations and len(failed.keys) == 36
    found = Shrinking(failed, play, most=400).run()
    assert {*found.keys, *found.steps} == NEEDED
    assert found.plan.steps < 30
    assert play(Plan.of(found.plan.document())).violations, "the written plan repeats it"


def test_a_run_that_fails_in_another_way_is_not_taken() -> None:
    def other(plan: Plan) -> Outcome:
        outcome = play(plan)
        if outcome.violations and plan.disabled:
            outcome.violations = ["3 s: node n1 has 2 cpu, and 3 are bound"]
        return outcome

    found = Shrinking(other(Plan("1", 60)), other, most=400).run()
    assert found.violations == ["12 s: gang default/g-4 is bound in part"]
    assert found.plan.disabled == frozenset()


def test_the_number_of_tries_is_limited() -> None:
    shrinking = Shrinking(play(Plan("1", 60)), play, most=9)
    assert shrinking.run().violations
    assert shrinking.tries == 9
