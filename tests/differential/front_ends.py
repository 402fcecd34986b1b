"""What the session and a profile answer about a pending pod: the nodes that fit, and their scores by one rule."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np

from tests.differential.clusters import Manifest
from tests.scheduler.trial import configured
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node, Pod
from volcano_py.scheduler.framework.begin_cycle import begin_cycle
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.profiles.cluster_events import NodeChanged, PodChanged
from volcano_py.scheduler.profiles.configuration import load
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.scheduler import PodScheduler
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, open_plugins
from volcano_py.simulate.cycles import Simulation


class Rule(NamedTuple):
    """A score in both front ends: the argument of nodeorder that sets its weight, and the plugin of a profile with its
    arguments."""

    argument: str
    plugin: str
    arguments: Manifest = {}


WEIGHTS = (
    "leastrequested", "mostrequested", "balancedresource", "nodeaffinity", "podaffinity", "tainttoleration",
    "imagelocality", "podtopologyspread",
)  # fmt: skip
MOST = {"scoringStrategy": {"type": "MostAllocated"}}
RULES = (
    Rule("leastrequested", "NodeResourcesFit"),
    Rule("mostrequested", "NodeResourcesFit", MOST),
    Rule("balancedresource", "NodeResourcesBalancedAllocation"),
    Rule("nodeaffinity", "NodeAffinity"),
    Rule("podaffinity", "InterPodAffinity", {"hardPodAffinityWeight": 0}),
    Rule("tainttoleration", "TaintToleration"),
    Rule("imagelocality", "ImageLocality"),
    Rule("podtopologyspread", "PodTopologySpread"),
)


def of_session(objects: Sequence[Manifest], rule: Rule) -> dict[str, float]:
    """The nodes on which the session could place the pod now, with their scores by one rule."""
    group: Manifest = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"minMember": 1, "queue": "default"},
        "status": {"phase": "Inqueue"},
    }
    given: list[Manifest] = [group]
    for o in objects:
        if o["kind"] == "Pod" and o["metadata"]["name"] == "p":
            o = {**o, "metadata": {**o["metadata"], "annotations": {"scheduling.k8s.io/group-name": "g"}}}
        given.append(o)
    simulation = Simulation(given)
    assert not simulation.rejected, simulation.rejected
    weights = {f"{name}.weight": int(name == rule.argument) for name in WEIGHTS}
    conf = configured([["gang", "predicates", {"nodeorder": weights}]])
    begin_cycle(simulation.cluster, conf, simulation.now)
    session = Session(simulation.cluster, conf, simulation.now, 0, lambda _: None)
    open_plugins(session, REGISTRY, CycleReport(session), _untimed)
    assert not session.callbacks.faults, session.callbacks.faults
    task = session.cluster.tasks["default/p"]
    if session.rules.pre_predicate(task) is not None:
        return {}
    fits = np.flatnonzero(session.placement.accepted(task) & session.placement.has_idle(task))
    if not len(fits):
        return {}
    scores = session.placement.scores_of(task, fits)
    return dict(zip((session.table.names[i] for i in fits), scores.tolist(), strict=True))


def of_profile(objects: Sequence[Manifest], rule: Rule) -> dict[str, float]:
    """The nodes on which a profile could place the pod, with their scores by one plugin."""
    plugins = {"score": {"enabled": [{"name": rule.plugin, "weight": 1}], "disabled": [{"name": "*"}]}}
    given = [{"name": rule.plugin, "args": rule.arguments}] if rule.arguments else []
    document = {"percentageOfNodesToScore": 100, "profiles": [{"plugins": plugins, "pluginConfig": given}]}
    scheduler = PodScheduler(load(document))
    for o in objects:
        if o["kind"] == "Node":
            scheduler.handle(NodeChanged(None, from_manifest(Node, o)), 0.0)
    pending: PodInfo | None = None
    for o in objects:
        if o["kind"] == "Pod":
            info = PodInfo(from_manifest(Pod, {**o, "spec": {**o["spec"], "schedulerName": "default-scheduler"}}))
            if info.node:
                scheduler.handle(PodChanged(None, info), 0.0)
            else:
                pending = info
    assert pending is not None
    profile = scheduler._profiles["default-scheduler"]
    state = CycleState()
    only, status, _ = profile.pre_filter(state, pending)
    if not status.ok:
        return {}
    found = profile.filter_nodes(state, pending, profile.feasible(state, pending, only))
    if not found.count:
        return {}
    total = profile.scores(state, pending, found)
    return dict(zip((found.view.columns.infos[i].name for i in found.nodes), total.tolist(), strict=True))


def _untimed(*_: object) -> AbstractContextManager[None]:
    return nullcontext()
