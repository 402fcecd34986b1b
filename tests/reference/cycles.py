"""Cycles over manifests, and the batch form: one case per line in, one result per line out.

    python -m tests.reference.cycles < cases.jsonl

Between two cycles bound pods run on their node, evicted and terminating pods are deleted, and written fields are kept:
phases, and nominated nodes. With `come_back`, owners recreate evicted pods; nothing else changes. Objects are used
unchanged.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from tests.reference import conf as configuration
from tests.reference import gpu_share, vgpu
from tests.reference.actions import ACTIONS
from tests.reference.cluster import Cluster, Manifest, Measurement
from tests.reference.messages import Condition
from tests.reference.resource import Resource
from tests.reference.session import Rank, Session
from tests.reference.task import timestamp
from tests.reference.volume_writes import VolumeWrites


@dataclass
class Result:
    """The decisions of one cycle; pods and PodGroups as `namespace/name`."""

    bound: dict[str, str] = field(default_factory=dict)
    pipelined: dict[str, str] = field(default_factory=dict)
    evicted: list[str] = field(default_factory=list)
    claims: dict[str, str] = field(default_factory=dict)
    """By claim that changed: its volume, or `@` and the node for which one is made."""
    writes: VolumeWrites | None = None
    annotations: dict[str, dict[str, str]] = field(default_factory=dict)
    """By bound pod: what its binding adds."""
    phases: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, list[Condition]] = field(default_factory=dict)
    held: dict[str, Resource] = field(default_factory=dict)
    """By queue: status.allocated."""
    nominated: dict[str, str] = field(default_factory=dict)
    """Nodes on which a pod was evicted for the pod, or could have been."""
    deciding: set[str] = field(default_factory=set)
    """The plugins that influenced a decision."""
    rarities: set[str] = field(default_factory=set)
    """Rare events."""

    def decisions(self) -> dict[str, Any]:
        return {
            "bound": self.bound,
            "pipelined": self.pipelined,
            "evicted": sorted(self.evicted),
            "phases": self.phases,
            "annotations": self.annotations,
            "claims": self.claims,
        }


def cycle(
    manifests: Iterable[Manifest],
    conf: configuration.Conf,
    rank: Rank,
    now: float,
    memory: dict[str, Any],
    usage: Mapping[str, Measurement] | None = None,
) -> Result:
    """Decide once."""
    session = Session(Cluster(manifests, usage=usage), conf, rank, now, memory)
    for name in conf.actions:
        ACTIONS[name](session)
    session.close()
    result = Result(session.bound, evicted=session.evicted, deciding=session.votes.deciding, rarities=session.rarities)
    result.writes = VolumeWrites(session.cluster.of("StorageClass"))
    uids = {task.key: task.uid for task in session.cluster.tasks}
    for key, node in list(session.bound.items()):
        if not result.writes.bind(session.volumes.plans.get(uids[key], []), node):
            result.rarities.add("volume-changed")
            del result.bound[key]
    result.claims = result.writes.results
    for m in session.cluster.of("PodGroup"):  # also of queues that do not exist
        key = f"{m['metadata'].get('namespace', 'default')}/{m['metadata']['name']}"
        result.phases[key] = (m.get("status") or {}).get("phase", "")
    result.annotations = {key: of for key, of in session.annotations.items() if key in session.bound}
    result.held = session.held_by_queues()
    for job in session.jobs.values():
        result.rarities |= job.rarities
        result.phases[job.uid] = job.phase
        result.conditions[job.uid] = job.conditions
        for task in job.with_status("Pipelined"):
            result.pipelined[task.key] = task.node
        for task in job.with_status("Allocated", "Pending", "Pipelined"):
            if task.reported_node and not task.gated:
                result.nominated[task.key] = task.reported_node
    return result


def react(manifests: Iterable[Manifest], result: Result, now: float, come_back: bool = False) -> list[Manifest]:
    """Apply the decisions to the cluster."""
    after = []
    manifests = list(manifests)
    nodes = {m["metadata"]["name"] for m in manifests if m["kind"] == "Node"}
    for m in manifests:
        key = f"{m['metadata'].get('namespace', 'default')}/{m['metadata']['name']}"
        if m["kind"] == "Pod":
            if key in result.evicted and come_back:
                after.append(recreated(m))
            if m["metadata"].get("deletionTimestamp") or key in result.evicted:
                continue
            if key in result.bound:
                spec = {**m["spec"], "nodeName": result.bound[key]}
                stamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp}
                status = {"startTime": stamp, **m["status"], "phase": "Running", "conditions": [condition]}
                meta = m["metadata"]
                if key in result.annotations:
                    meta = {**meta, "annotations": {**(meta.get("annotations") or {}), **result.annotations[key]}}
                m = {**m, "metadata": meta, "spec": spec, "status": status}
            elif m["spec"].get("nodeName") in nodes and m["status"].get("phase") == "Pending":
                stamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                m = {**m, "status": {"startTime": stamp, **m["status"], "phase": "Running"}}
            elif key in result.nominated:
                m = {**m, "status": {**m["status"], "nominatedNodeName": result.nominated[key]}}
        elif m["kind"] == "PodGroup" and key in result.phases:
            status = {**(m.get("status") or {}), "phase": result.phases[key]}
            if key in result.conditions:
                names = ("type", "status", "reason", "message")
                status["conditions"] = [dict(zip(names, c, strict=True)) for c in result.conditions[key]]
            m = {**m, "status": status}
        after.append(m)
    return result.writes.apply(after) if result.writes is not None else after


def recreated(pod: Manifest) -> Manifest:
    """The pod that an owner creates in place of an evicted one."""
    meta = {**pod["metadata"], "uid": pod["metadata"]["uid"] + "+", "creationTimestamp": "2026-01-01T00:02:00Z"}
    meta.pop("deletionTimestamp", None)
    if "annotations" in meta:  # without what bindings have added
        meta["annotations"] = {k: v for k, v in meta["annotations"].items() if k not in (gpu_share.INDEX, vgpu.IDS)}
    spec = {k: v for k, v in pod["spec"].items() if k != "nodeName"}
    return {**pod, "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def run(
    manifests: list[Manifest],
    conf_text: str,
    cycles: int,
    rank: Rank,
    come_back: bool = False,
    usage: Mapping[str, Mapping[str, float]] | None = None,
) -> list[Result]:
    """The time is first that of the newest object, and a second later in every cycle.

    `usage`: by node its `cpu` and `memory` load in percent, and the `age` of the measurement in the first cycle.
    """
    conf = configuration.load(conf_text)
    now = max((timestamp(m["metadata"]) for m in manifests), default=0.0)
    results: list[Result] = []
    memory: dict[str, Any] = {}
    measured = {node: Measurement(now - of["age"], of["cpu"], of["memory"]) for node, of in (usage or {}).items()}
    for _ in range(cycles):
        results.append(cycle(manifests, conf, rank, now, memory, measured))
        manifests = react(manifests, results[-1], now, come_back)
        now += 1.0
    return results


def rank_by_hash(seed: int) -> Rank:
    """Volcano selects at random among nodes of equal score; here a seed determines it, as in the scheduler."""
    salt = seed.to_bytes(16, "little", signed=True)

    def rank(name: str) -> int:
        return int.from_bytes(blake2b(name.encode(), digest_size=8, key=salt).digest(), "little", signed=True)

    return rank


def main() -> None:
    for line in sys.stdin:
        case = json.loads(line)
        rank = rank_by_hash(case.get("seed", 0))
        cycles = case.get("cycles", 1)
        results = run(case["objects"], case["conf"], cycles, rank, case.get("come_back", False), case.get("usage"))
        print(json.dumps({"id": case.get("id"), "cycles": [r.decisions() for r in results]}))


if __name__ == "__main__":
    main()
