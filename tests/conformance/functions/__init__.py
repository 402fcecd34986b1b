"""Scheduler rules one by one: a call's input and its recorded results.

`ADAPTERS` maps Volcano's functions to this project's. Where a rule is not one function here but a path through the
model or a session, the adapter runs that path. Calls without an adapter are in `listed`, all of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.conformance.functions import (
    claims,
    configuration,
    devices,
    extender,
    gates,
    jobs,
    namespaces,
    nodes,
    numa,
    placement,
    plugins,
    resources,
    topology,
    usage,
)
from tests.conformance.functions.adapter import Adapter, Adapters, Data
from tests.conformance.functions.listed import COVERED, LACKING, LIMIT, without_counterpart
from tests.conformance.functions.values import alike
from tests.conformance.outcome import FAIL, NO_COUNTERPART, OWN_TEST, PASS, UNBUILDABLE, Outcome

ADAPTERS: Adapters = {
    **resources.ADAPTERS,
    **jobs.ADAPTERS,
    **nodes.ADAPTERS,
    **placement.ADAPTERS,
    **namespaces.ADAPTERS,
    **configuration.ADAPTERS,
    **plugins.ADAPTERS,
    **topology.ADAPTERS,
    **devices.ADAPTERS,
    **numa.ADAPTERS,
    **usage.ADAPTERS,
    **extender.ADAPTERS,
    **claims.ADAPTERS,
    **gates.ADAPTERS,
}


def run_folder(folder: Path) -> Iterator[Outcome]:
    """All function cases below a folder. An area with too many calls without an adapter is a failure."""
    found: list[Outcome] = []
    for path in sorted(folder.glob("fn-*/*.json")):
        for number, case in enumerate(json.loads(path.read_text())):
            found.append(run_case(path.parent.name, f"{path.stem}#{number}", case))
    yield from found
    for area, share in shares_by_own_test(found).items():
        if share > LIMIT:
            yield Outcome(
                area, "own tests", FAIL, f"{share:.1%} of its calls are left to own tests, at most {LIMIT:.0%}"
            )


def run_case(area: str, name: str, case: Data) -> Outcome:
    function = case["function"].split("/")[-1]
    label = f"{name} {function} {case.get('case') or ''}".strip()
    adapter = ADAPTERS.get(function)
    if case.get("unbuildable"):
        return Outcome(area, label, UNBUILDABLE)
    if adapter is None:
        return _without_adapter(area, label, function)
    call, answer = adapter if isinstance(adapter, Adapter) else Adapter(adapter)
    panics = "panics" in case.get("expected", {})
    try:
        got = call(case["input"].get("receiver"), case["input"].get("args") or [])
    except AssertionError as e:
        return Outcome(area, label, PASS if panics else FAIL, f"raised {e}")
    except Exception as e:
        return Outcome(area, label, FAIL, f"{type(e).__name__}: {e}")
    if panics:
        return Outcome(area, label, FAIL, f"{got!r}, expected a panic")
    wanted = [answer(v) for v in case.get("expected_variants") or [case["expected"]]]
    if any(alike(got, w) for w in wanted):
        return Outcome(area, label, PASS)
    return Outcome(area, label, FAIL, f"{got!r}, expected {' or '.join(map(repr, wanted))}")


def _without_adapter(area: str, label: str, function: str) -> Outcome:
    if function in COVERED:
        return Outcome(area, label, OWN_TEST, f"{function}: {COVERED[function]}")
    if function in LACKING:
        return Outcome(area, label, UNBUILDABLE, f"{function}: {LACKING[function]}")
    why = without_counterpart(function)
    if why is None:
        return Outcome(area, label, FAIL, f"{function} has no adapter and is not listed")
    return Outcome(area, label, NO_COUNTERPART, f"{why}: {function}")


def shares_by_own_test(outcomes: Iterable[Outcome]) -> dict[str, float]:
    """Per area of single rules: the part of its calls that the project's own tests cover."""
    calls = [o for o in outcomes if o.area.startswith("fn-") and o.kind != UNBUILDABLE]
    own = Counter(o.area for o in calls if o.kind == OWN_TEST)
    return {area: own[area] / count for area, count in Counter(o.area for o in calls).items()}


def summary(outcomes: Iterable[Outcome]) -> str:
    """One line about the calls that the project's own tests cover."""
    shares = ", ".join(f"{area} {share:.1%}" for area, share in shares_by_own_test(outcomes).items() if share)
    return f"single rules left to own tests, of an area's calls (at most {LIMIT:.0%}): {shares or 'none'}"
