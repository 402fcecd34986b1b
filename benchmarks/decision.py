"""What thinking costs: scenarios through the real cycle, without an API server, each in a process of its own.

`cycle_s` is the median of the cycles after the first where the scenario repeats them, else the one cycle;
`intake_s` is objects into the model.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from benchmarks.flame import sampled

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.config import Configuration

HERE = Path(__file__).parent


def run_one(spec: dict[str, Any]) -> dict[str, Any]:
    """Run one scenario in this process."""
    from benchmarks.scenario import objects
    from volcano_py.api.codec import decoder
    from volcano_py.scheduler.framework.kernels.choice import use_compiled
    from volcano_py.scheduler.model import plan
    from volcano_py.scheduler.model.cluster import Cluster
    from volcano_py.scheduler.run_once import run_once
    from volcano_py.scheduler.runtime.collection import keep_loaded, paused
    from volcano_py.simulate.manifests import STRUCTS

    if spec.get("kernels") != "numpy":
        use_compiled()
    encoded = [(kind, orjson.dumps(manifest)) for kind, manifest in objects(spec)]
    conf = loaded(spec)
    with paused():
        started = time.perf_counter()
        model = Cluster()
        for kind, data in encoded:
            model.upsert(kind, decoder(STRUCTS[kind]).decode(data))
        intake = time.perf_counter() - started
    keep_loaded()
    encoded.clear()
    counts = {"bound": 0, "evicted": 0}

    def emit(operations: Sequence[plan.Operation]) -> None:
        for op in operations:
            counts["bound"] += isinstance(op, plan.Bind)
            counts["evicted"] += isinstance(op, plan.Evict)

    times, cpu, pipelined = [], [], 0
    for i in range(spec.get("cycles", 1)):
        with paused():  # as the live loop
            wall, used = time.perf_counter(), time.process_time()
            report = run_once(model, conf, 1_760_000_000.0 + i, seed=1, emit=emit)
            times.append(time.perf_counter() - wall)
            cpu.append(time.process_time() - used)
        pipelined = len(report.pipelined())
    after_first = slice(1, None) if len(times) > 1 else slice(None)
    result = {
        "id": spec["id"],
        "cycle_s": round(statistics.median(times[after_first]), 4),
        "intake_s": round(intake, 4),
        "cpu_s": round(statistics.median(cpu[after_first]), 4),
        **counts,
        "pipelined": pipelined,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    wanted = spec.get("expect") or {}
    wrong = {k: result[k] for k in wanted if result.get(k) != wanted[k]}
    if wrong:
        result["unexpected"] = wrong
    return result


def configuration(spec: dict[str, Any]) -> str:
    tiers = []
    for tier in spec["tiers"]:
        plugins = []
        for plugin in tier:
            if isinstance(plugin, str):
                plugins.append({"name": plugin})
            else:
                plugins += [{"name": name, **flags} for name, flags in plugin.items()]
        tiers.append({"plugins": plugins})
    return json.dumps({"actions": ", ".join(spec["actions"]), "tiers": tiers})


def loaded(spec: dict[str, Any]) -> Configuration:
    """The configuration of a scenario. Its plugins are imported, as the scheduler does before its first cycle."""
    from volcano_py.scheduler.framework.config import load
    from volcano_py.scheduler.run_once import REGISTRY

    conf = load(configuration(spec), REGISTRY.actions)
    REGISTRY.load(conf)
    return conf


def default_tiers() -> Any:
    """The tiers of the scenarios that state none."""
    return json.loads((HERE / "scenarios.json").read_text())["decision_config"]["tiers"]


def load_scenarios(path: Path) -> list[dict[str, Any]]:
    document = json.loads(path.read_text())
    found: list[dict[str, Any]] = document["scenarios"]
    for spec in found:
        spec.setdefault("tiers", document["decision_config"]["tiers"])
    return [s for s in found if s.get("layer") == "decision"]


def in_own_process(
    spec: dict[str, Any], flame: Path | None = None, module: str = "benchmarks.decision"
) -> dict[str, Any]:
    """The result of a scenario in a process of its own; with a flame graph of it in the folder `flame`.

    `module`: a program that reads the scenario from its standard input, and writes the result to the file of its
    argument.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, "-m", module, str(out)]
        if flame is None:
            subprocess.run(command, input=orjson.dumps(spec), check=True)
        else:
            flame.mkdir(parents=True, exist_ok=True)
            sampled(command, orjson.dumps(spec), flame / f"{spec['id']}.svg")
        result: dict[str, Any] = orjson.loads(out.read_bytes())
    return result


@click.command()
@click.option("--scenarios", type=click.Path(exists=True, path_type=Path), default=HERE / "scenarios.json")
@click.option("--only", multiple=True, metavar="ID", help="Run only these scenarios; may be repeated.")
@click.option("--json", "out", type=click.Path(path_type=Path), help="Write the results to this file.")
@click.option(
    "--profile",
    "flame",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a flame graph of each scenario to this folder; requires the extra [profile].",
)
def decision(scenarios: Path, only: tuple[str, ...], out: Path | None, flame: Path | None) -> None:
    """Run decision scenarios and print one table."""
    from volcano_py.scheduler.actions import ACTIONS

    known = load_scenarios(scenarios)
    missing = set(only) - {s["id"] for s in known}
    if missing:
        raise click.BadParameter(f"no scenario {sorted(missing)[0]} in {scenarios.name}", param_hint="--only")
    results = []
    print(
        f"{'scenario':24} {'cycle s':>9} {'intake s':>9} {'cpu s':>8} "
        f"{'bound':>7} {'evicted':>8} {'pipelined':>9} {'peak MB':>8}"
    )
    for spec in known:
        if only and spec["id"] not in only:
            continue
        absent = [a for a in spec["actions"] if a not in ACTIONS]
        if absent:
            print(f"{spec['id']:24} left out: action {absent[0]} is not built yet")
            continue
        r = in_own_process(spec, flame)
        results.append(r)
        note = f"   UNEXPECTED {r['unexpected']}" if "unexpected" in r else ""
        print(
            f"{r['id']:24} {r['cycle_s']:9.3f} {r['intake_s']:9.3f} {r['cpu_s']:8.3f} {r['bound']:7d} "
            f"{r['evicted']:8d} {r['pipelined']:9d} {r['peak_rss_mb']:8d}{note}",
            flush=True,
        )
    if out is not None:
        out.write_bytes(orjson.dumps(results, option=orjson.OPT_INDENT_2))
    if any("unexpected" in r for r in results):
        sys.exit("some scenarios did not come out as expected")


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(orjson.dumps(run_one(orjson.loads(sys.stdin.buffer.read()))))
