"""The batch form of `simulate run`: one case a line in, one result a line out. For test data and bug
reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import orjson

from volcano_py.scheduler.framework import deviations
from volcano_py.scheduler.framework.config import Configuration, ConfigurationError, load
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation
from volcano_py.simulate.manifests import ManifestError, parse

_OPTIONS = frozenset(("raw", "parity", "schedulerNames", "defaultQueue"))


def configuration(text: str, parity: bool, registry: Registry = REGISTRY) -> Configuration:
    """A configuration document; `parity` switches all deviations off. Raises ConfigurationError."""
    loaded = load(text, registry.actions)
    return msgspec.structs.replace(loaded, deviations=deviations.PARITY) if parity else loaded


def run_lines(
    lines: Iterable[str | bytes], *, parity: bool = False, raw: bool = False, registry: Registry = REGISTRY
) -> Iterator[bytes]:
    """Run every case; a case that cannot be run yields its id and the error, and the others go on."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        name: Any = f"line {number}"
        try:
            case = orjson.loads(line)
            if not isinstance(case, dict):
                raise ManifestError("a case must be a JSON object")
            name = case.get("id", name)
            cycles = run_case(case, parity=parity, raw=raw, registry=registry)
        except (ConfigurationError, ManifestError) as e:
            yield orjson.dumps({"id": name, "error": str(e)})
        except orjson.JSONDecodeError as e:
            yield orjson.dumps({"id": name, "error": f"not valid JSON: {e}"})
        else:
            yield orjson.dumps({"id": name, "cycles": cycles})


def run_case(
    case: dict[str, Any], *, parity: bool = False, raw: bool = False, registry: Registry = REGISTRY
) -> list[dict[str, Any]]:
    """One case: its cycles' results. Raises ConfigurationError, ManifestError."""
    options = case.get("options") or {}
    unknown = set(options) - _OPTIONS
    if unknown:
        raise ManifestError(f"options: {sorted(unknown)[0]} is unknown; known are {', '.join(sorted(_OPTIONS))}")
    manifests = []
    for i, o in enumerate(case.get("objects") or []):
        manifests += parse(orjson.dumps(o).decode(), f"objects[{i}]")
    simulation = Simulation(
        manifests,
        now=case.get("now"),
        seed=int(case.get("seed", 0)),
        raw=bool(options.get("raw", raw)),
        scheduler_names=frozenset(options.get("schedulerNames") or ("volcano",)),
        default_queue=options.get("defaultQueue", "default"),
        registry=registry,
    )
    conf = configuration(case.get("conf") or "", bool(options.get("parity", parity)), registry)
    results = []
    for _ in range(int(case.get("cycles", 1))):
        result = msgspec.to_builtins(simulation.cycle(conf))
        if not result["faults"]:
            del result["faults"]
        results.append(result)
    return results
