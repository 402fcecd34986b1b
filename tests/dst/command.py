"""The command line of the simulation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path

import click
import orjson

from tests.dst.forks import Runs
from tests.dst.report import print_outcome, print_table
from tests.dst.run import STEPS, Outcome, Plan, document
from tests.dst.shrink import Shrinking


@click.command()
@click.option("--seeds", default=1, help="Number of runs.")
@click.option("--first", default=1, help="Seed of the first run.")
@click.option("--seed", default="", help="Only this seed.")
@click.option("--steps", default=STEPS, help="Steps of the users in each run.")
@click.option("--replay", type=click.Path(exists=True, path_type=Path), help="A plan that --shrink has written.")
@click.option("--shrink", is_flag=True, help="Reduce each failing run, and print its log.")
@click.option("--plans", default=".pytest_cache/dst", type=click.Path(path_type=Path), help="Folder for such plans.")
@click.option("--log", "show_log", is_flag=True, help="Print the log of each run.")
@click.option("--jobs", default=1, help="Runs at the same time.")
@click.option("--quiet", is_flag=True, help="Print only failures and the sums.")
@click.option("--twice", is_flag=True, help="Run each seed twice, and compare the logs.")
@click.option("--json", "as_json", is_flag=True, help="Print each outcome as a line of JSON, and nothing else.")
def main(
    seeds: int,
    first: int,
    seed: str,
    steps: int,
    replay: Path | None,
    shrink: bool,
    plans: Path,
    show_log: bool,
    jobs: int,
    quiet: bool,
    twice: bool,
    as_json: bool,
) -> None:
    """Run the whole system on virtual time with injected faults, once for each seed."""
    if replay is not None:
        wanted = [Plan.of(orjson.loads(replay.read_bytes()))]
    elif seed:
        wanted = [Plan(seed, steps)]
    else:
        wanted = [Plan(str(number), steps) for number in range(first, first + seeds)]
    runs = Runs()
    play = runs.one
    done: list[Outcome] = []
    for outcome in runs.all(wanted, jobs):
        if as_json:
            print(document(outcome).decode(), flush=True)
            continue
        if twice and (difference := first_difference(outcome.log, play(outcome.plan).log)):
            outcome.violations.append(f"the same run again differs: {difference}")
        if shrink and outcome.violations:
            outcome = _shrunk(outcome, play, plans)
        elif show_log:
            print("\n".join(outcome.log))
        if not quiet or outcome.violations:
            print_outcome(outcome)
        outcome.log = []
        done.append(outcome)
        if quiet and len(done) % 25 == 0:
            print(f"{len(done)} runs, {sum(1 for one in done if one.violations)} wrong", flush=True)
    if not as_json:
        print_table(done)
        raise SystemExit(1 if any(outcome.violations for outcome in done) else 0)


def first_difference(one: list[str], other: list[str]) -> str:
    """The first line that differs; empty if none does."""
    for a, b in zip_longest(one, other, fillvalue=""):
        if a != b:
            return f"{a!r}, {b!r}"
    return ""


def _shrunk(failed: Outcome, play: Callable[[Plan], Outcome], folder: Path) -> Outcome:
    """The reduced run: its plan is written to a file, and its log is printed."""
    shrinking = Shrinking(failed, play)
    outcome = shrinking.run()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{outcome.plan.seed}.json"
    file.write_bytes(orjson.dumps(outcome.plan.document(), option=orjson.OPT_INDENT_2))
    print("\n".join(line for line in outcome.log if "PUT leases" not in line))
    print(f"{len(failed.keys)} injections and {len(failed.steps)} steps became {len(outcome.keys)} and "
          f"{len(outcome.steps)} in {shrinking.tries} runs; they are:")  # fmt: skip
    for key in (*outcome.keys, *outcome.steps):
        print(f"    {key}")
    print(f"repeat: python -m tests.dst --replay {file} --log")
    return outcome
