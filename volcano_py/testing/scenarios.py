"""Running scenarios: a cluster in, decisions out, differences reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from volcano_py.api import names
from volcano_py.api.yaml_documents import FAST_LOADER
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.registry import ActionBuilder, PluginBuilder, Registry
from volcano_py.scheduler.model.feature_gates import enabled_gates
from volcano_py.scheduler.model.nodes.node_usage import NodeUsage
from volcano_py.scheduler.profiles import configuration as profiles
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import CycleResult, Simulation
from volcano_py.testing.scopes import AFTER, BEFORE, ScopeCheck
from volcano_py.testing.table import configuration, manifests

Scenario = dict[str, Any]
EVICTING = frozenset(("preempt", "reclaim", "gangpreempt", "gangreclaim", "shuffle"))
"""Actions after which a scenario must state which pods were evicted."""
_EXPECTED = frozenset(
    (
        "bound",
        "pipelined",
        "evicted",
        "phases",
        "waiting",
        "conditions",
        "nativeConditions",
        "devices",
        "claims",
        "faults",
    )
)


def registry(
    plugins: Mapping[str, PluginBuilder] | None = None, actions: Mapping[str, ActionBuilder] | None = None
) -> Registry:
    """The built-in plugins and actions with yours beside them."""
    return Registry({**REGISTRY.plugins, **(plugins or {})}, {**REGISTRY.actions, **(actions or {})})


def scenarios(path: str | Path) -> list[Scenario]:
    """The scenarios of a YAML file. Raises ValueError for a file that holds none."""
    found = yaml.load(Path(path).read_text(), FAST_LOADER)
    if not isinstance(found, list) or not all(isinstance(s, dict) and "name" in s for s in found):
        raise ValueError(f"{path}: must be a list of scenarios, each with a name")
    return found


def check(scenario: Scenario, known: Registry = REGISTRY) -> None:
    """Run a scenario. Raises AssertionError with what differs."""
    gates = enabled_gates(scenario.get("featureGates") or {})
    of_pods = profiles.load(scenario["profiles"]) if "profiles" in scenario else None
    simulation = Simulation(
        manifests(scenario),
        seed=scenario.get("seed", 0),
        registry=known,
        features=gates,
        profiles=of_pods,
        recreates=scenario.get("recreates", False),
    )
    simulation.cluster.check_states = True
    for node, usage in (scenario.get("usage") or {}).items():
        at = simulation.now - usage.get("age", 0)
        simulation.cluster.usage[node] = NodeUsage(at, usage.get("cpu", 0), usage.get("memory", 0))
    simulation.cluster.hold(dict.fromkeys(scenario.get("held") or (), "in doubt"))
    conf = load(configuration(scenario.get("conf")), known.actions)
    mine = [n for n, made in known.plugins.items() if made is not REGISTRY.plugins.get(n)]
    scopes = ScopeCheck(mine)
    if mine:
        simulation.registry = Registry(known.plugins, {**known.actions, **scopes.actions()})
        conf = msgspec.structs.replace(conf, actions=(BEFORE, *conf.actions, AFTER))
    for number, expect in enumerate(scenario.get("cycles") or [scenario["expect"]], 1):
        if not EVICTING.isdisjoint(conf.actions) and "evicted" not in (expect or {}):
            raise AssertionError(f"cycle {number}: actions can evict; state the evicted pods (`evicted: []`: none)")
        groups = {key: _group(pod) for (kind, key), pod in simulation.objects.items() if kind == "Pod"}
        result = simulation.cycle(conf)
        scopes.assert_none()
        compare(result, expect or {}, number, groups)
    rejected = Counter(text.split(":")[0] for text in simulation.rejected)
    assert rejected == Counter(scenario.get("rejected") or []), f"rejected: {simulation.rejected}"


def _group(pod: dict[str, Any]) -> str:
    """The name of a pod's PodGroup."""
    native = pod["spec"].get("schedulingGroup") or {}
    found: str = (pod["metadata"].get("annotations") or {}).get(names.GROUP_NAME) or native.get("podGroupName", "")
    return found


def compare(result: CycleResult, expect: dict[str, Any], number: int, groups: Mapping[str, str]) -> None:
    """Compare one cycle with what is expected of it; what is not stated must not have happened.

    `groups`: pod → the PodGroup that it belongs to, for expectations of so many pods per job.
    """
    unknown = set(expect) - _EXPECTED
    assert not unknown, f"expectations that do not exist: {', '.join(sorted(unknown))}"
    bound = {key.removeprefix("default/"): node for key, node in result.bound.items()}
    wanted = expect.get("bound", {})
    if isinstance(wanted, int):
        assert len(bound) == wanted, f"cycle {number}: bound {bound}"
    elif wanted and all(isinstance(v, int) for v in wanted.values()):
        per_job = Counter(groups.get(f"default/{pod}") or pod for pod in bound)
        assert dict(per_job) == {k: v for k, v in wanted.items() if v}, f"cycle {number}: bound {bound}"
    else:
        assert bound == wanted, f"cycle {number}: bound {bound}, expected {wanted}"
    pipelined = {key.removeprefix("default/"): node for key, node in result.pipelined.items()}
    assert pipelined == expect.get("pipelined", {}), f"cycle {number}: pipelined {pipelined}"
    evicted = sorted(key.removeprefix("default/") for key in result.evicted)
    assert evicted == sorted(expect.get("evicted", [])), f"cycle {number}: evicted {evicted}"
    if "claims" in expect:
        assert result.claims == expect["claims"], f"cycle {number}: claims {result.claims}"
    for job, phase in expect.get("phases", {}).items():
        assert result.phases[f"default/{job}"] == phase, f"cycle {number}: phases {result.phases}"
    for job, words in expect.get("waiting", {}).items():
        reason = result.waiting.get(f"default/{job}", "")
        assert words in reason, f"cycle {number}: {job} waits because of {reason!r}"
    for job, conditions in expect.get("conditions", {}).items():
        of_type = {c["type"]: c["message"] for c in result.conditions.get(f"default/{job}", ())}
        stated = {name: of_type.get(name) for name in conditions}
        assert stated == conditions, f"cycle {number}: conditions of {job}: {stated}"
    for job, types in expect.get("nativeConditions", {}).items():
        by_type = {c["type"]: c for c in result.conditions.get(f"default/{job}", ())}
        assert by_type.keys() == types.keys(), f"cycle {number}: conditions {result.conditions}"
        for type_, words in types.items():
            text = " ".join(str(by_type[type_].get(field, "")) for field in ("status", "reason", "message"))
            assert words in text, f"cycle {number}: condition {type_} of {job} is {text!r}"
    for pod, assigned in expect.get("devices", {}).items():
        found = result.devices.get(f"default/{pod}", {})
        assert assigned.items() <= found.items(), f"cycle {number}: devices of {pod}: {found}"
    assert len(result.faults) == expect.get("faults", 0), f"cycle {number}: {result.faults}"
