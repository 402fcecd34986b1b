"""What is printed about runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.dst.faults import TABLE
from tests.dst.run import Outcome


def print_outcome(outcome: Outcome) -> None:
    """One line about a run, and its violations."""
    plan = outcome.plan
    state = "WRONG" if outcome.violations else "right"
    print(f"seed {plan.seed}: {state}; {plan.steps} steps, {sum(outcome.injected.values())} faults, "
          f"{outcome.binds} binds, {outcome.evictions} evictions, {outcome.virtual_seconds:.0f} s in "
          f"{outcome.seconds:.2f} s; {outcome.digest}", flush=True)  # fmt: skip
    for text in outcome.violations[:5]:
        print(f"    {text}", flush=True)


def print_table(done: Sequence[Outcome]) -> None:
    """The sums of all runs, and injections by fault, component and verb."""
    if len(done) > 1:
        sums: Counter[tuple[str, str]] = Counter()
        details: dict[str, Counter[str]] = {}
        for outcome in done:
            for (fault, component, verb), count in outcome.injected.items():
                sums[fault, component] += count
                details.setdefault(fault, Counter())[f"{component} {verb}"] += count
        print("fault | injections | component verb")
        for kind in TABLE:
            found = details.get(kind.name, Counter())
            shown = ", ".join(f"{name} {count}" for name, count in sorted(found.items()))
            print(f"{kind.name} | {sum(found.values())} | {shown}")
    wrong = [outcome.plan.seed for outcome in done if outcome.violations]
    seconds = sum(outcome.seconds for outcome in done) or 1e-9
    steps = sum(outcome.plan.steps for outcome in done)
    print(f"{len(done)} runs, {steps} steps, {sum(sum(o.injected.values()) for o in done)} faults, "
          f"{sum(o.binds for o in done)} binds, {sum(o.evictions for o in done)} evictions; "
          f"{seconds:.1f} s, {steps / seconds:.0f} steps/s; wrong: {', '.join(wrong) or 'none'}")  # fmt: skip
    for seed in wrong[:10]:
        print(f"repeat: python -m tests.dst --seed {seed} --log")
