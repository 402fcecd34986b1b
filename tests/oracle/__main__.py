"""python -m tests.oracle [--cases N] [--seed N] [--family NAME] [--parity]: the table of the promises."""

from __future__ import annotations

from collections import Counter

import click

from tests.oracle.families import FAMILIES, drawn
from tests.oracle.playing import play
from tests.oracle.verdicts import asks, judge


@click.command()
@click.option("--cases", default=300, help="Clusters of each family.")
@click.option("--seed", default=1)
@click.option("--family", default="", help="Only this family.")
@click.option("--parity", is_flag=True, help="Decide as Volcano does.")
@click.option("--show", default=3, help="Cases to print for each verdict.")
def main(cases: int, seed: int, family: str, parity: bool, show: int) -> None:
    for name in [family] if family else list(FAMILIES):
        broken: Counter[str] = Counter()
        asked = evictions = kept_of_asked = 0
        for number in range(cases):
            cluster = drawn(name, seed, number)
            question = asks(name, cluster)
            played = play(cluster, parity)
            wrong = judge(name, played)
            asked += question
            evictions += played.evictions
            kept_of_asked += question and not wrong
            for verdict, text in wrong.items():
                broken[verdict] += 1
                if broken[verdict] <= show:
                    print(f"   {name} {seed} {number}: {verdict}: {text}")
        print(f"{name}: {cases} clusters, {asked} ask the question ({kept_of_asked} all right); "
              f"{evictions} evictions; not kept: {dict(broken)}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
