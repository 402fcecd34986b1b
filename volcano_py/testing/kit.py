"""The test kit for authors of plugins and actions: a cluster in a few lines, and what the scheduler decides on it.

    from volcano_py.testing import Cluster

    def test_spreads():
        cluster = Cluster(plugins=[FewestPods])
        cluster.add_node("a", cpu=4)
        cluster.add_node("b", cpu=4)
        cluster.add_job("old", pods=2, cpu=1, runs_on="a")
        cluster.add_job("new", pods=1, cpu=1)
        decision = cluster.schedule(tiers=[["gang"], ["predicates", "fewest-pods"]])
        assert decision.bound == {"new-0": "b"}
        assert not decision.pending and not decision.faults

The decisions are the scheduler's own; only the cluster exists nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from volcano_py.scheduler.framework.callbacks import once_each
from volcano_py.scheduler.framework.config import Configuration, load
from volcano_py.scheduler.framework.plugin import Action, Plugin
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.plan import Event, Operation
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation, result_of
from volcano_py.testing.explained import explanations
from volcano_py.testing.scopes import AFTER, BEFORE, ScopeCheck
from volcano_py.testing.table import configuration, manifests

DEFAULT_TIERS = (("priority", "gang", "conformance"), ("drf", "predicates", "proportion", "nodeorder"))


@dataclass
class Decision:
    """What one cycle decided. Pods are named without their namespace, `default`."""

    session: Session
    bound: dict[str, str] = field(default_factory=dict)
    """Pod → node."""
    evicted: list[str] = field(default_factory=list)
    pipelined: dict[str, str] = field(default_factory=dict)
    """Pod → the node on which it waits for capacity that is being released."""
    pending: dict[str, str] = field(default_factory=dict)
    """Job → why it waits."""
    events: list[str] = field(default_factory=list)
    """`reason: message` of each Event."""
    faults: list[str] = field(default_factory=list)
    """Plugins that raised, once for each line: `plugin point error (file:line)`."""
    warnings: list[str] = field(default_factory=list)
    """What was wrong with the configuration."""
    explanations: dict[str, str] = field(default_factory=dict)
    """Pod → its state and, if it is pending, why."""

    def explain(self, name: str) -> str:
        """Why a pod is pending, in lines: the blockers of its job in their order, then what each node answers. `name`:
        the pod, or a job: its first pending pod."""
        if name in self.explanations:
            return self.explanations[name]
        pods = [
            task.key
            for uid, job in self.session.cluster.jobs.items()
            if _short(uid) == name
            for task in job.tasks.values()
        ]
        texts = [self.explanations[_short(key)] for key in sorted(pods) if _short(key) in self.explanations]
        if not texts:
            raise KeyError(f"no pod or job {name}; pods are {', '.join(sorted(self.explanations)) or 'none'}")
        return next((text for text in texts if "is pending" in text), texts[0])


class Cluster:
    """A described cluster, with the plugins and actions under test beside the built-in ones."""

    def __init__(
        self,
        plugins: Iterable[type[Plugin]] = (),
        actions: Iterable[type[Action]] = (),
        *,
        check_scopes: bool = True,
    ) -> None:
        """`check_scopes`: the rules of the plugins are also called without their scope, and a result that differs is an
        AssertionError (`volcano_py.testing.scopes`)."""
        mine = {p.name: p for p in plugins}
        self._scopes = ScopeCheck(mine) if check_scopes and mine else None
        of_check = self._scopes.actions() if self._scopes is not None else {}
        self._registry = Registry(
            {**REGISTRY.plugins, **mine}, {**REGISTRY.actions, **{a.name: a for a in actions}, **of_check}
        )
        self._simulation = Simulation((), registry=self._registry, now=1_750_000_000.0)
        self._jobs = 0
        self._known: dict[str, Configuration] = {}

    def add(self, manifest: dict[str, Any]) -> None:
        """Add any object as a Kubernetes manifest. Raises ValueError for one that the scheduler cannot use."""
        before = len(self._simulation.rejected)
        self._simulation.put(manifest)
        if len(self._simulation.rejected) > before:
            raise ValueError(self._simulation.rejected[-1])

    def add_node(self, name: str, *, labels: dict[str, str] | None = None, **amounts: Any) -> None:
        """Add a node with allocatable amounts, by default 4 cpu, 8Gi memory and 110 pods."""
        self._add("nodes", name, {"labels": labels or {}, **amounts})

    def add_queue(self, name: str, **spec: Any) -> None:
        """Add a queue; the fields are those of its spec. `default` exists from the first job on."""
        self._add("queues", name, spec)

    def add_job(
        self,
        name: str,
        *,
        pods: int = 1,
        min_member: int = 1,
        queue: str = "default",
        priority: int | None = None,
        runs_on: str = "",
        labels: dict[str, str] | None = None,
        spec: dict[str, Any] | None = None,
        **requests: Any,
    ) -> None:
        """Add a PodGroup with equal pods, `<name>-<i>`. `runs_on`: the node on which they run already."""
        if queue == "default" and "default" not in self._simulation.cluster.queues:
            self.add_queue("default", weight=1)
        each: dict[str, Any] = {"labels": labels or {}, "spec": spec or {}, **requests}
        job: dict[str, Any] = {"min": min_member, "pods": pods, "queue": queue, "each": each}
        if runs_on:
            each["runsOn"], job["phase"] = runs_on, "Running"
        if priority is not None:
            self._add("priorities", f"priority-{priority}", priority)
            job["priority"] = f"priority-{priority}"
            each["spec"] = {"priority": priority, **each["spec"]}
        self._add("jobs", name, job)

    def _add(self, kind: str, name: str, what: Any) -> None:
        for manifest in manifests({kind: {name: what}}):
            meta = manifest["metadata"]
            meta.setdefault("uid", f"{manifest['kind']}-{meta['name']}".lower())
            if kind == "jobs":
                minute, second = divmod(self._jobs, 60)
                meta["creationTimestamp"] = f"2025-01-01T00:{minute:02d}:{second:02d}Z"
            self.add(manifest)
        self._jobs += kind == "jobs"

    def schedule(
        self,
        actions: str = "enqueue, allocate, backfill",
        tiers: Sequence[Sequence[str | dict[str, Any]]] = DEFAULT_TIERS,
        **settings: Any,
    ) -> Decision:
        """Run one cycle, and let the cluster follow it: bound pods run, evicted ones are gone.

        `tiers`: names of plugins, or {name: arguments and flags}. `settings`: `deviations` and `configurations` as in
        the scheduler's configuration. Raises AssertionError for a rule of the plugins under test with a wrong scope.
        """
        if self._scopes is not None:
            actions = f"{BEFORE}, {actions}, {AFTER}"
        text = configuration({"actions": actions, "plugins": [list(tier) for tier in tiers], **settings})
        conf = self._known.setdefault(text, load(text, self._registry.actions))
        simulation, plan = self._simulation, list[Operation]()
        report = run_once(simulation.cluster, conf, simulation.now, 0, emit=plan.extend, registry=self._registry)
        if self._scopes is not None:
            self._scopes.assert_none()
        result = result_of(report, plan)
        explained = {_short(key): text for key, text in explanations(report.session).items()}
        simulation.react(plan)
        return Decision(
            report.session,
            bound={_short(key): node for key, node in result.bound.items()},
            evicted=sorted(_short(key) for key in result.evicted),
            pipelined={_short(key): node for key, node in result.pipelined.items()},
            pending={_short(key): why for key, why in result.waiting.items()},
            events=[f"{o.reason}: {o.message}" for o in plan if isinstance(o, Event)],
            faults=[f"{f.plugin} {f.point} {f.text}" for f, _ in once_each(report.faults)],
            warnings=list(report.warnings),
            explanations=explained,
        )


def _short(key: str) -> str:
    return key.removeprefix("default/")
