"""`python -m tests.fuzz --minutes 5`: run all targets in turn on new input, and print a table.

`--engine mutate` changes valid input at random; `hypothesis` draws documents from nothing; `atheris` (if it is
installed: `pip install atheris`) is guided by the code that an input reaches.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tests.fuzz.engines import atheris_one, hypothesis_round
from tests.fuzz.run import CORPUS, Summary, folder_name, fuzz
from tests.fuzz.targets import ALL


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--target", default="", help="Only targets with this in their name.")
    parser.add_argument("--engine", choices=("mutate", "hypothesis", "atheris"), default="mutate")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="Of the engine mutate. Default: the time.")
    parser.add_argument("--inputs", type=int, default=0, help="Inputs per target instead of a time.")
    parser.add_argument("--keep", action="store_true", help="Write what fails into tests/fuzz/corpus.")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    chosen = {name: target for name, target in ALL.items() if given.target in name}
    if not chosen:
        parser.error(f"--target {given.target!r} is in no name; names: {', '.join(ALL)}")
    if given.engine == "atheris":
        return atheris_one(chosen, given.minutes)
    summaries = {name: Summary() for name in chosen}
    begun = time.monotonic()
    end = begun + 60 * given.minutes
    turn = 0
    while time.monotonic() < end:
        for name, target in chosen.items():
            # what is left is shared by the targets of this turn: short turns, so that all get their part
            share = max(0.05, min(2.0, (end - begun) / len(chosen) / 4))
            if given.engine == "hypothesis":
                hypothesis_round(target, share, summaries[name])
            elif given.inputs:
                fuzz(target, given.seed, 3600.0, summaries[name], given.inputs)
            else:
                fuzz(target, given.seed + turn, share, summaries[name])
        turn += 1
        if given.inputs:
            break
    print(f"seed {given.seed}, engine {given.engine}, {time.monotonic() - begun:.0f} s")
    print("| target | inputs | valid | slowest | its size | faults |\n|---|---|---|---|---|---|")
    for name, s in summaries.items():
        valid = f"{100 * s.accepted / max(1, s.inputs):.0f} %"
        print(
            f"| {name} | {s.inputs:,} | {valid} | {1000 * s.slowest:.1f} ms | {len(s.slowest_input):,} "
            f"| {len(s.findings)} |"
        )
    findings = [finding for summary in summaries.values() for finding in summary.findings]
    for finding in findings:
        print(f"\n{finding.target}: {finding.why}\n{finding.trace}  input: {finding.data[:300]!r}")
        if given.keep:
            folder = CORPUS / folder_name(finding.target)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{len(list(folder.iterdir())):03}").write_bytes(finding.data)
    print(f"\n{sum(s.inputs for s in summaries.values()):,} inputs, {len(findings)} faults")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
