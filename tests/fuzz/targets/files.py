"""Files that users exchange: snapshots, recordings, manifests, traces."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import orjson

from tests.fuzz.target import Target, text_of
from tests.fuzz.targets.configuration import folder, in_file
from tests.fuzz.targets.kinds import seeds_of
from tests.fuzz.targets.seeds import ROOT
from volcano_py.api import kinds
from volcano_py.scheduler.recording import entries
from volcano_py.scheduler.recording.archive import ArchiveError, Header, pack
from volcano_py.simulate import manifests, replay, snapshot
from volcano_py.simulate.trace.jobs import TraceError, read_jobs, read_nodes


def _packed(data: bytes) -> bytes:
    """Lines as an archive; what is no text stays a damaged archive."""
    return data if data[:2] == b"\x1f\x8b" else gzip.compress(data, 1, mtime=0)


def _snapshot(data: bytes) -> None:
    path = folder() / "snapshot"
    path.write_bytes(_packed(data))
    cluster, _ = snapshot.cluster_of(snapshot.load(path))
    assert cluster is not None


def _recording(data: bytes) -> None:
    path = folder() / "recording"
    path.write_bytes(_packed(data))
    for _ in replay.replay(path):
        pass


def _manifests(data: bytes) -> None:
    for manifest in manifests.parse(text_of(data), "file"):
        manifests.as_struct(manifests.in_namespace(manifest), named=True)


def _jobs(path: Path) -> None:
    read_jobs(path, 4)


def _swf(path: Path) -> None:
    read_jobs(path, 4, skip=True)


def _nodes(path: Path) -> None:
    read_nodes(path)


def _snapshot_seed() -> bytes:
    path = folder() / "seed"
    objects = {"Pod": seeds_of(kinds.POD), "Node": seeds_of(kinds.NODE), "Queue": seeds_of(kinds.QUEUE)}
    made = snapshot.Snapshot(
        1.0,
        {
            kind: [msgspec.json.decode(one, type=kinds.STRUCTS[rt]) for one in objects[kind]]
            for kind, rt in (("Pod", kinds.POD), ("Node", kinds.NODE), ("Queue", kinds.QUEUE))
        },
        "actions: allocate",
        ("volcano",),
    )
    snapshot.save(made, path)
    return gzip.decompress(path.read_bytes())


def _recording_seed() -> bytes:
    start = entries.RecordingStart(0, ("volcano",), "default", (), ())
    conf = {"actions": ["allocate"], "tiers": []}
    cycle = entries.Cycle(1, 1.0, 0, None, None, (100, 5, 0), msgspec.Raw(b"[]"))
    lines = [start, entries.Put("Queue", msgspec.Raw(seeds_of(kinds.QUEUE)[0])), entries.SessionSettings(conf), cycle]
    packed = pack(Header(entries.FORMAT, entries.VERSION), [msgspec.json.encode(line) for line in lines])
    return gzip.decompress(packed)


def targets() -> list[Target]:
    documents = [path.read_bytes() for path in sorted((ROOT / "examples").glob("*.yaml"))]
    jobs = (
        b"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
        b"p,1000,1024,1,500,,LS,Running,0,100,5\nq,2000,1024,2,1000,A100,BE,Running,1,50,\n"
    )
    nodes = b"sn,cpu_milli,memory_mib,gpu,model\nn,1000,1024,1,A100\n"
    swf = b"; comment\n1 0 5 100 4 -1 -1 4 100 -1 1 1 1 1 1 -1 -1 -1\n2 7 5 100 8 -1 -1 8 100 -1 1 1 1 1 1 -1 -1 -1\n"
    single = [orjson.dumps(orjson.loads(one)) for rt in (kinds.JOB, kinds.QUEUE) for one in seeds_of(rt)]
    return [
        Target("snapshot", _snapshot, (ArchiveError,), [_snapshot_seed(), _packed(_snapshot_seed())], "bytes"),
        Target("recording", _recording, (ArchiveError,), [_recording_seed(), _packed(_recording_seed())], "bytes"),
        Target("manifests of YAML", _manifests, (manifests.ManifestError,), documents, "bytes"),
        Target("manifests", _manifests, (manifests.ManifestError,), single, "json"),
        Target("trace of openb", in_file(_jobs, "jobs.csv"), (TraceError,), [jobs], "bytes"),
        Target("trace of SWF", in_file(_swf, "jobs.swf"), (TraceError,), [swf], "bytes"),
        Target(
            "nodes of openb",
            in_file(_nodes, "nodes.csv"),
            (TraceError,),
            [nodes],
            "bytes",
        ),
    ]
