"""A snapshot as a value and as a file: the decisions are those of its objects, and bad files are one sentence."""

from __future__ import annotations

import gzip
import stat
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from numpy.typing import NDArray

from tests import strategies
from volcano_py.scheduler.framework.config import Configuration, load
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.group_names import NATIVE, native_uid
from volcano_py.scheduler.model.plan import Bind, Evict
from volcano_py.scheduler.recording import archive
from volcano_py.scheduler.recording.archive import ArchiveError
from volcano_py.scheduler.recording.private import without_private, without_secrets
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate import snapshot as snapshots
from volcano_py.simulate import what_if
from volcano_py.simulate.anonymize import anonymize
from volcano_py.simulate.complete import complete
from volcano_py.simulate.manifests import as_struct, model_kind
from volcano_py.simulate.snapshot import Snapshot, Unread, cluster_of
from volcano_py.testing.table import configuration, manifests

Manifest = dict[str, Any]
NOW = 1_767_225_600.0


def snapshot_of(manifests: list[Manifest]) -> Snapshot:
    """Described objects as a snapshot, completed as in a cluster."""
    made, _ = complete(manifests, frozenset(("volcano",)), NOW)
    found: dict[str, list[Any]] = {}
    for manifest in made:
        struct = as_struct(manifest)
        if struct is not None:
            found.setdefault(model_kind(manifest), []).append(without_private(struct))
    return Snapshot(NOW, found)


def decided(snapshot: Snapshot, conf: Configuration) -> tuple[list[str], list[str]]:
    """UIDs of bound pods with their nodes' places in the list of nodes, and of evicted ones, by place in the list."""
    cluster, _ = cluster_of(snapshot)
    pods = {pod.metadata.key: i for i, pod in enumerate(snapshot.of("Pod"))}
    nodes = {node.metadata.name: i for i, node in enumerate(snapshot.of("Node"))}
    plan = run_once(cluster, conf, snapshot.time).plan
    bound = [f"{pods[o.namespace + '/' + o.name]} on {nodes[o.node]}" for o in plan if isinstance(o, Bind)]
    return bound, [str(pods[o.namespace + "/" + o.name]) for o in plan if isinstance(o, Evict)]


def conf_of(tiers: list[list[Any]]) -> Configuration:
    actions = "enqueue, allocate, preempt, reclaim, backfill"
    return load(configuration({"plugins": tiers, "actions": actions}), REGISTRY.actions)


@given(strategies.clusters(), strategies.plugin_tiers())
@settings(max_examples=60, phases=[Phase.generate])
def test_a_file_decides_as_its_objects(
    tmp_path_factory: Any, manifests: list[Manifest], tiers: list[list[Any]]
) -> None:
    path = tmp_path_factory.mktemp("snapshot") / "file"
    snapshot = snapshot_of(manifests)
    snapshots.save(snapshot, path)
    assert decided(snapshots.load(path), conf_of(tiers)) == decided(snapshot, conf_of(tiers))


@pytest.mark.slow
@given(strategies.clusters(), strategies.plugin_tiers())
@settings(max_examples=60, phases=[Phase.generate])
def test_other_names_decide_the_same(manifests: list[Manifest], tiers: list[list[Any]]) -> None:
    """The choice among equal nodes depends on their names; here it is their place in the list."""
    snapshot = snapshot_of(manifests)
    with patch("volcano_py.scheduler.framework.session.rank", by_place):
        assert decided(anonymize(snapshot), conf_of(tiers)) == decided(snapshot, conf_of(tiers))


def by_place(cluster: Cluster, _seed: int) -> NDArray[np.int64]:
    return np.arange(len(cluster.nodes.names), dtype=np.int64)


def secretive() -> list[Manifest]:
    """A cluster in which every name that a user chose contains the word acme."""
    container = {
        "name": "acme-main",
        "image": "acme.io/acme/train:acme",
        "command": ["acme-command"],
        "args": ["--password=acme-argument"],
        "env": [{"name": "ACME", "value": "acme-environment"}],
        "resources": {"requests": {"cpu": "1"}},
    }
    term = {"topologyKey": "acme/rack", "labelSelector": {"matchLabels": {"acme": "acme-1"}}, "namespaces": ["acme"]}
    annotations = {
        "kubectl.kubernetes.io/last-applied-configuration": '{"env": "acme-environment"}',
        "scheduling.k8s.io/group-name": "acme-job",
        "volcano.sh/task-spec": "acme-role",
        "acme.io/note": "acme-free-text",
    }
    meta = {"namespace": "acme", "labels": {"acme": "acme-1"}, "annotations": annotations}
    return [
        {"kind": "Node", "metadata": {"name": "acme-node", "labels": {"acme/rack": "acme-r1"}},
         "spec": {"taints": [{"key": "acme", "value": "acme-taint", "effect": "NoSchedule"}]},
         "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"},
                    "images": [{"names": ["acme.io/acme/train:acme"], "sizeBytes": 5_000_000_000}]}},
        {"kind": "HyperNode", "metadata": {"name": "acme-rack"}, "spec": {"tier": 1, "members": [
            {"type": "Node", "selector": {"regexMatch": {"pattern": "^acme-.*"}}}]}},
        {"kind": "Queue", "metadata": {"name": "acme-team"}, "spec": {"weight": 1}},
        {"kind": "PriorityClass", "metadata": {"name": "acme-first"}, "value": 5, "description": "acme"},
        {"kind": "PodGroup", "metadata": {"name": "acme-job", "namespace": "acme"},
         "spec": {"minMember": 1, "minTaskMember": {"acme-role": 1}, "queue": "acme-team",
                  "priorityClassName": "acme-first",
                  "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}},
        {"kind": "Pod", "metadata": {"name": "acme-pod", **meta}, "spec": {
            "schedulerName": "volcano", "containers": [container], "priorityClassName": "acme-first",
            "tolerations": [{"key": "acme", "operator": "Equal", "value": "acme-taint"}],
            "volumes": [{"name": "acme", "secret": {"secretName": "acme-secret"}}],
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}},
    ]  # fmt: skip


def test_native_gangs_stay_native(tmp_path: Path) -> None:
    gang = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "g", "namespace": "d"}}
    gang["spec"] = {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": "PodGroup"}
    made: list[Manifest] = [gang, {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "d"}}]
    made.append({"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}})
    for i in range(2):
        spec = {"schedulerName": "volcano", "schedulingGroup": {"podGroupName": "g"}, "containers": [{"name": "c"}]}
        metadata = {"name": f"p{i}", "namespace": "d", "uid": f"p{i}"}
        made.append({"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})
    path = tmp_path / "file"
    for snapshot in (snapshot_of(made), anonymize(snapshot_of(made))):
        snapshots.save(snapshot, path)
        read = snapshots.load(path)
        (native,) = read.of(NATIVE)
        assert native.spec.disruption_mode == "PodGroup" and native.spec.scheduling_policy.gang.min_count == 2
        assert len(read.of("PodGroup")) == 1
        simulation = what_if.simulation_of(read)
        outcome = what_if.run(simulation, conf_of([["gang", "predicates"]]))
        key = native_uid(native.metadata.key)
        assert outcome.started == {key: 1} and outcome.bound == {key: 2}


def test_reservations_decide_the_same_with_other_names() -> None:
    scenario = {
        "nodes": {"n1": {"labels": {"rack": "acme"}}, "n2": {"cpu": 2}},
        "queues": {"acme": {}},
        "reservations": {
            "r1": {
                "startTime": "2025-12-31T20:00:00Z",
                "duration": "24h",
                "nodeSelector": {"matchLabels": {"rack": "acme"}},
                "owners": [{"queue": "acme", "namespace": "default", "owner": "zoelle"}],
            },
            "r2": {"startTime": "2025-12-31T20:00:00Z", "endTime": "2026-01-02T20:00:00Z", "resources": {"cpu": "1"}},
        },
        "jobs": {
            "mine": {"queue": "acme", "metadata": {"annotations": {"volcano.sh/owner": "zoelle"}}, "each": {"cpu": 1}},
            "other": {"queue": "acme", "each": {"cpu": 1}},
        },
    }
    snapshot = snapshot_of(manifests(scenario))
    renamed = anonymize(snapshot)
    conf = conf_of([["gang"], ["predicates", "nodeorder", "advance-reservation"]])
    assert decided(snapshot, conf) == decided(renamed, conf) == (["0 on 0"], [])
    assert not {"acme", "zoelle"} & set(str(renamed.of("Reservation")).split("'"))


def test_environment_command_lines_and_secrets_are_never_in_it(tmp_path: Path) -> None:
    snapshots.save(snapshot_of(secretive()), tmp_path / "file")
    content = gzip.decompress((tmp_path / "file").read_bytes())
    for word in ("environment", "argument", "command", "secret", "free-text", "last-applied"):
        assert f"acme-{word}".encode() not in content and b"last-applied" not in content
    assert b"acme-pod" in content
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_no_chosen_name_is_left_and_all_references_hold(tmp_path: Path) -> None:
    snapshot = anonymize(snapshot_of(secretive()))
    snapshots.save(snapshot, tmp_path / "file")
    assert b"acme" not in gzip.decompress((tmp_path / "file").read_bytes()).lower()
    conf = conf_of([["priority", "gang"], ["predicates", "nodeorder", "network-topology-aware"]])
    assert decided(snapshots.load(tmp_path / "file"), conf) == (["0 on 0"], [])


def test_a_configuration_loses_its_passwords() -> None:
    arguments = {"url": "https://user:pass@host:1/x", "token": "t"}
    document = {
        "actions": "allocate",
        "tiers": [{"plugins": [{"name": "extender", "arguments": arguments}]}],
        "metrics": {"type": "elasticsearch", "elasticsearch.password": "p"},
    }
    assert without_secrets(document) == {
        "actions": "allocate",
        "tiers": [{"plugins": [{"name": "extender", "arguments": {"url": "https://host:1/x"}}]}],
    }


def test_what_could_not_be_read_stays_named(tmp_path: Path) -> None:
    snapshots.save(Snapshot(NOW, unread=(Unread("Node", "forbidden"),)), tmp_path / "file")
    assert snapshots.load(tmp_path / "file").unread == (Unread("Node", "forbidden"),)


def packed(path: Path, **header: Any) -> Path:
    content = msgspec.json.encode({"format": "snapshot", "version": 1, "program": "9.9.9", **header})
    path.write_bytes(gzip.compress(content + b'\n{"lines":1}'))
    return path


def bad_files(folder: Path) -> dict[str, Path]:
    snapshots.save(snapshot_of(secretive()), folder / "good")
    good = (folder / "good").read_bytes()
    (folder / "half").write_bytes(good[: len(good) // 2])
    cut = gzip.decompress(good).rsplit(b"\n", 1)[0]
    (folder / "cut").write_bytes(gzip.compress(cut))
    (folder / "text").write_text("kind: List")
    (folder / "nothing").write_bytes(b"")
    (folder / "bent").write_bytes(good[:-60] + b"\xff" * 40 + good[-20:])
    return {
        "is truncated": folder / "half",
        "is truncated; copy it again": folder / "cut",
        "is not a snapshot; make one with `volcano-py snapshot save`": folder / "text",
        "is not a snapshot": folder / "nothing",
        "is damaged": folder / "bent",
        "was written by volcano-py 9.9.9 in format version 2": packed(folder / "new", version=2),
        "is a recording, and not a snapshot": packed(folder / "other", format="recording"),
        "is damaged (": packed(folder / "empty"),
    }


def test_a_bad_file_is_one_sentence(tmp_path: Path) -> None:
    for says, path in bad_files(tmp_path).items():
        with pytest.raises(ArchiveError) as raised:
            snapshots.load(path)
        text = str(raised.value)
        assert says in text and str(path) in text and "\n" not in text and "Traceback" not in text


def test_too_much_is_rejected_before_it_fills_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = tmp_path / "bomb"
    bomb.write_bytes(gzip.compress(b" " * (8 * 2**20)))
    monkeypatch.setattr(archive, "MAX_BYTES", 2**20)
    with pytest.raises(ArchiveError, match="is too large"):
        snapshots.load(bomb)
    pods = [{**secretive()[-1], "metadata": {"name": f"p{i}", "namespace": "acme"}} for i in range(4000)]
    with pytest.raises(ArchiveError, match="above the limit"):
        snapshots.save(snapshot_of(pods), tmp_path / "large")
    assert not (tmp_path / "large").exists()


def test_millions_of_empty_lines_are_rejected_before_they_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_LINES", 1000)
    content = gzip.decompress(packed(tmp_path / "lines").read_bytes())
    (tmp_path / "lines").write_bytes(gzip.compress(content + b"\n" * 1001))
    with pytest.raises(ArchiveError, match="is damaged; copy it again"):
        snapshots.load(tmp_path / "lines")


def test_a_large_file_that_is_no_snapshot_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(500 * 2**20)
    with pytest.raises(ArchiveError, match="sparse is not a snapshot"):
        snapshots.load(tmp_path / "sparse")
