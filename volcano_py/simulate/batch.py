"""The batch mode of `simulate run`: one case per line in, one result per line out. For test data and bug
reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from volcano_py.scheduler.framework import deviations
from volcano_py.scheduler.framework.config import Configuration, ConfigurationError, load
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.model.feature_gates import DEFAULT_GATES, enabled_gates
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.case_lines import run_cases
from volcano_py.simulate.cycles import Simulation
from volcano_py.simulate.jobs import is_job
from volcano_py.simulate.manifests import is_read, unfolded


class Options(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The options of one case; None: the option of the command line."""

    raw: bool | None = None
    parity: bool | None = None
    recreate: bool | None = None
    scheduler_names: list[str] | None = None
    default_queue: str = "default"
    feature_gates: dict[str, bool] | None = None


class Case(msgspec.Struct):
    """One line. Missing fields have the values of the command line; other keys are ignored."""

    objects: list[Any] | None = None
    conf: str | None = None
    cycles: int | None = None
    seed: int | None = None
    now: float | None = None
    """Seconds since the epoch; by default the time of the newest object."""
    options: Options | None = None


class Defaults(msgspec.Struct, frozen=True):
    """The options of the command line, for all cases."""

    conf: str = ""
    cycles: int = 1
    seed: int = 0
    parity: bool = False
    raw: bool = False
    features: frozenset[str] = DEFAULT_GATES
    recreate: bool = False


def configuration(text: str, parity: bool, registry: Registry = REGISTRY) -> Configuration:
    """Read a configuration document; `parity` disables all deviations. Raises ConfigurationError."""
    loaded = load(text, registry.actions)
    return msgspec.structs.replace(loaded, deviations=deviations.PARITY) if parity else loaded


def run_lines(lines: Iterable[str | bytes], defaults: Defaults, registry: Registry = REGISTRY) -> Iterator[bytes]:
    """Run every case; an invalid case yields its id and the error, and the others run."""
    return run_cases(
        lines,
        "case",
        lambda case: _run(msgspec.convert(case, Case, strict=False), defaults, registry),
        ConfigurationError,
    )


def _run(case: Case, defaults: Defaults, registry: Registry) -> dict[str, Any]:
    """Run one case: the results of its cycles, and the invalid objects.

    Raises ConfigurationError, ManifestError.
    """
    options = case.options or Options()
    manifests = [m for i, o in enumerate(case.objects or ()) for m in unfolded(o, f"objects[{i}]")]
    simulation = Simulation(
        manifests,
        now=case.now,
        seed=defaults.seed if case.seed is None else case.seed,
        raw=defaults.raw if options.raw is None else options.raw,
        scheduler_names=frozenset(options.scheduler_names or ("volcano",)),
        default_queue=options.default_queue,
        registry=registry,
        recreates=defaults.recreate if options.recreate is None else options.recreate,
        features=defaults.features if options.feature_gates is None else enabled_gates(options.feature_gates),
    )
    parity = defaults.parity if options.parity is None else options.parity
    conf = configuration(defaults.conf if case.conf is None else case.conf, parity, registry)
    results = []
    for _ in range(defaults.cycles if case.cycles is None else case.cycles):
        result = msgspec.to_builtins(simulation.cycle(conf))
        if not result["faults"]:
            del result["faults"]
        results.append(result)
    ignored = sorted({str(m["kind"]) for m in manifests if not is_read(m) and not is_job(m)})
    more = {"rejected": simulation.rejected, "ignoredKinds": ignored}
    return {"cycles": results, **{key: found for key, found in more.items() if found}}
