"""python -m tests.differential [--cases N] [--seed N]: where both front ends differ, by rule."""

from __future__ import annotations

from collections import Counter

import click

from tests.differential.clusters import cluster
from tests.differential.comparison import differences


@click.command()
@click.option("--cases", default=500)
@click.option("--seed", default=1)
@click.option("--show", default=3, help="Cases to print of each kind.")
def main(cases: int, seed: int, show: int) -> None:
    counts: Counter[str] = Counter()
    for number in range(cases):
        for kind, text in differences(cluster(seed, number)):
            counts[kind] += 1
            if counts[kind] <= show:
                print(f"   {seed} {number}: {kind}: {text}")
    print(f"{cases} clusters; differences: {dict(counts)}")


if __name__ == "__main__":
    main()
