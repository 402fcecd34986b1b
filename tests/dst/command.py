"""The command line of the simulation."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from tests.dst.forks import outcomes
from tests.dst.report import print_outcome, print_table
from tests.dst.run import STEPS, Outcome, Plan


@click.command()
@click.option("--seeds", default=1, help="Number of runs.")
@click.option("--first", default=1, help="Seed of the first run.")
@click.option("--seed", default="", help="Only this seed.")
@click.option("--steps", default=STEPS)
@click.option("--replay", type=click.Path(exists=True, path_type=Path), help="A plan that was shrunk.")
@click.option("--log", "show_log", is_flag=True, help="Print the log of each run.")
@click.option("--quiet", is_flag=True, help="Print only failures and the sums.")
def main(seeds: int, first: int, seed: str, steps: int, replay: Path | None, show_log: bool, quiet: bool) -> None:
    """Run the simulation."""
    if replay is not None:
        plans = [Plan.of(orjson.loads(replay.read_bytes()))]
    elif seed:
        plans = [Plan(seed, steps)]
    else:
        plans = [Plan(str(number), steps) for number in range(first, first + seeds)]
    done: list[Outcome] = []
    for outcome in outcomes(plans):
        if show_log:
            print("\n".join(outcome.log))
        if not quiet or outcome.violations:
            print_outcome(outcome)
        outcome.log = []
        done.append(outcome)
    print_table(done)
    raise SystemExit(1 if any(outcome.violations for outcome in done) else 0)
