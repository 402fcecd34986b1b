"""A real session over a few objects, for rules that read more than their arguments."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from tests.conformance.functions.adapter import Data
from tests.conformance.functions.values import amounts, resource
from volcano_py.scheduler.framework.begin_cycle import begin_cycle
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, open_plugins
from volcano_py.simulate.manifests import as_struct

RECORDED = "recorded"
"""The name of the plugin under which `register` adds rules and callbacks of the data."""


def cluster_of(manifests: list[Data]) -> Cluster:
    cluster = Cluster()
    for manifest in manifests:
        feed(cluster, manifest)
    return cluster


def feed(cluster: Cluster, manifest: Data) -> None:
    """Put an object into the model."""
    cluster.upsert(manifest["kind"], as_struct(manifest))


def opened(
    manifests: list[Data],
    plugins: list[Data] | None = None,
    register: Callable[[Session], None] | None = None,
) -> Session:
    """A session with these objects and configured plugins, before its actions run."""
    tiers = [{"plugins": [*(plugins or []), {"name": RECORDED}]}]
    conf = load(json.dumps({"actions": "allocate", "tiers": tiers, "deviations": "parity"}), REGISTRY.actions)
    cluster = cluster_of(manifests)
    begin_cycle(cluster, conf, 0.0)
    session = Session(cluster, conf, 0.0, 0, lambda _: None)
    if register is not None:
        with session.registration(RECORDED):
            register(session)
    open_plugins(session, REGISTRY, CycleReport(session), lambda *_: nullcontext())
    assert not session.callbacks.faults, session.callbacks.faults
    return session


def node(name: str, allocatable: Data | None = None) -> Data:
    """A Node with an amount of the data."""
    have = amounts(resource(allocatable), pods=True)
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": have}}


def pod(key: str, request: Data | None = None, on: str = "", status: str = "Running", **metadata: Any) -> Data:
    """A Pod with one container that requests an amount of the data."""
    namespace, _, name = key.rpartition("/")
    return {
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, **metadata},
        "spec": {"containers": [{"resources": {"requests": amounts(resource(request))}}], "nodeName": on},
        "status": {"phase": status if on else "Pending"},
    }
