"""`python -m tests.conformance --data FOLDER`: compare with everything that is recorded, and print a table by area."""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
from collections import Counter
from pathlib import Path

import click

from tests.conformance import (
    apiserver,
    cli,
    controllers,
    framework,
    framework_rules,
    functions,
    job_plugins,
    kubectl,
    policies,
    random_clusters,
    sessions,
    stories,
    webhooks,
)
from tests.conformance.outcome import (
    DEVIATION,
    FAIL,
    NO_COUNTERPART,
    NOT_BUILT,
    OWN_TEST,
    PASS,
    UNBUILDABLE,
    Outcome,
)

_PADDING = 500
_MOST_DEVIATIONS = 0.03
"""Of the API server's answers, over HTTP and through kubectl."""
_DEFAULTS = " (defaults)"
"""Marks sessions that were run with all deviations on."""


@click.command()
@click.option("--data", type=click.Path(path_type=Path), help="The folder with the recorded cases.")
@click.option("--verbose", is_flag=True, help="List what is not built, too.")
def main(data: Path | None, verbose: bool) -> None:
    """Compare sessions, single rules and API server stories with recorded answers."""
    if data is None or not data.is_dir():
        print("conformance: no data; give its folder: make conformance DATA=<folder>")
        sys.exit(2)
    outcomes = list(_all(data))
    _table(outcomes)
    print(functions.summary(outcomes))
    for line in framework.summaries(outcomes):
        print(line)
    ours = Counter((o.area, o.why) for o in outcomes if o.kind == DEVIATION and o.area.endswith(_DEFAULTS))
    for (area, why), n in sorted(ours.items()):
        print(f"{area}: {n} decided otherwise because of {why}")
    failed = [o for o in outcomes if o.kind == FAIL]
    for o in failed[:60]:
        print(f"FAIL {o.area}: {o.name}\n     {o.why[:500]}")
    if verbose:
        without = (NOT_BUILT, NO_COUNTERPART, OWN_TEST, UNBUILDABLE)
        missing = Counter((o.kind, o.area, o.why) for o in outcomes if o.kind in without and o.why)
        for (kind, area, why), n in sorted(missing.items()):
            print(f"{kind}: {area}: {why} ({n})")
        served = (apiserver.AREA, kubectl.AREA, random_clusters.AREA)
        deviations = Counter((o.area, o.why) for o in outcomes if o.kind == DEVIATION and o.area in served)
        for (area, why), n in sorted(deviations.items()):
            print(f"deviation: {area}: {why} ({n})")
    counts = Counter(o.kind for o in outcomes)
    total = sum(n for kind, n in counts.items() if kind != UNBUILDABLE)
    left = counts[NOT_BUILT]
    others = f"{counts[OWN_TEST]} left to own tests, {counts[NO_COUNTERPART]} without counterpart"
    print(f"{counts[PASS]} of {total} pass, {left} not built yet, {counts[DEVIATION]} deviations, {others}")
    sys.exit(1 if failed else 0)


def _all(data: Path) -> list[Outcome]:
    scheduler = data / "scheduler"
    found = list(sessions.run_folder(scheduler, 0))
    found += _differing(found, list(sessions.run_folder(scheduler, _PADDING)), "padded with useless nodes")
    found += [
        Outcome(o.area + _DEFAULTS, o.name, o.kind, o.why)
        for o in sessions.run_folder(scheduler, 0, deviations=None)
        if o.kind in (DEVIATION, FAIL)
    ]
    found += random_clusters.run_folder(data)
    found += functions.run_folder(scheduler)
    found += _apiserver(data)
    found += webhooks.run_folder(data / "webhooks")
    found += policies.run_folder(data / "webhooks")
    found += controllers.run_folder(data / "controllers")
    found += cli.run_folder(data / "cli")
    found += job_plugins.run_folder(data / "job-plugins")
    found += framework.run_folder(data)
    found += framework_rules.run_folder(data / "framework")
    found += stories.run_folder(data / "stories")
    return found


def _differing(plain: list[Outcome], padded: list[Outcome], how: str) -> list[Outcome]:
    """Cases that come out otherwise the second time."""
    return [
        Outcome(b.area, f"{b.name} ({how})", FAIL, b.why)
        for a, b in zip(plain, padded, strict=True)
        if a.kind == PASS and b.kind != PASS
    ]


def _apiserver(data: Path) -> list[Outcome]:
    """The API server's stories request by request, and kubectl's command by command."""
    folder = data / "apiserver"
    if not folder.is_dir():
        return []
    with contextlib.redirect_stdout(io.StringIO()):
        found = asyncio.run(apiserver.replay(folder, [], verbose=False)) + asyncio.run(kubectl.replay(folder))
    deviations = sum(o.kind == DEVIATION for o in found)
    if deviations > _MOST_DEVIATIONS * len(found):
        why = f"{deviations} deviations among {len(found)} answers: at most {_MOST_DEVIATIONS:.0%} are fair"
        found.append(Outcome(apiserver.AREA, "deviations", FAIL, why))
    return found


def _table(outcomes: list[Outcome]) -> None:
    areas: dict[str, Counter[str]] = {}
    for o in outcomes:
        areas.setdefault(o.area, Counter())[o.kind] += 1
    width = max(len(a) for a in areas)
    kinds = (PASS, FAIL, DEVIATION, NOT_BUILT, NO_COUNTERPART, OWN_TEST, UNBUILDABLE)
    print(f"{'area':{width}}  " + "  ".join(f"{k:>14}" for k in kinds))
    for area, counts in areas.items():
        print(f"{area:{width}}  " + "  ".join(f"{counts[k] or '':>14}" for k in kinds))


if __name__ == "__main__":
    main()
