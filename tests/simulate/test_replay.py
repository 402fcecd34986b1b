"""Recorded cycles decide the same when they are replayed."""

from __future__ import annotations

import errno
import gzip
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from click.testing import CliRunner

from tests.scheduler import churn
from volcano_py.api import gang
from volcano_py.api.core import Container, EnvVar, Node, Pod, PodSpec
from volcano_py.api.meta import ObjectMeta
from volcano_py.cli.main import main
from volcano_py.scheduler.framework.config import DEFAULT_TEXT, load
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.group_names import NATIVE
from volcano_py.scheduler.model.nodes.sample_size import DEFAULT_SAMPLE
from volcano_py.scheduler.model.plan import Bind
from volcano_py.scheduler.recording import entries
from volcano_py.scheduler.recording import file as recording_file
from volcano_py.scheduler.recording import recorder as recording
from volcano_py.scheduler.recording.archive import ArchiveError
from volcano_py.scheduler.recording.recorder import RecordedCluster, Recorder
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, run_once
from volcano_py.simulate.replay import replay


def recorded(folder: Path, cycles: int, first: int = 0, each: int = 60, limit: int = 2**28) -> list[Path]:
    """The files of a cluster with churn, recorded from cycle `first` on."""
    recorder: Recorder | None = None
    count = 0

    def run(model: Any, configuration: Any, now: float, seed: int, *, emit: Callable[..., None]) -> CycleReport:
        nonlocal recorder, count
        assert isinstance(model, RecordedCluster)
        if recorder is None and count >= first:
            recorder = Recorder(folder, model, limit, each)
        count += 1
        if recorder is not None:
            recorder.begin(configuration, now, seed, None, None, DEFAULT_SAMPLE)
        report = run_once(model, configuration, now, seed, emit=emit)
        if recorder is not None:
            recorder.end(report.plan)
        return report

    with patch("volcano_py.simulate.cycles.Cluster", RecordedCluster), patch.object(churn, "run_once", run):
        for _ in churn.plans(7, cycles):
            pass
    assert recorder is not None
    recorder.close()
    return sorted(folder.iterdir())


def replayed(files: list[Path]) -> tuple[int, int, int]:
    """Cycles, those that are identical, and operations."""
    found = [each for file in files for each in replay(file)]
    return len(found), sum(each.identical for each in found), sum(len(each.decided) for each in found)


def test_recorded_cycles_decide_the_same(tmp_path: Path) -> None:
    cycles, identical, operations = replayed(recorded(tmp_path, 40, first=7, each=15))
    assert cycles == identical == 33 and operations > 60


@pytest.mark.slow
def test_two_hundred_recorded_cycles_decide_the_same(tmp_path: Path) -> None:
    files = recorded(tmp_path, 240, first=40)
    cycles, identical, operations = replayed(files)
    assert len(files) == 4 and cycles == identical == 200 and operations > 1000


def test_a_different_decision_is_found(tmp_path: Path) -> None:
    (file,) = recorded(tmp_path, 3)
    content = gzip_content(file)
    (tmp_path / "bent").write_bytes(gzip.compress(content.replace(b'"cpu":"8"', b'"cpu":"0"')))
    result = CliRunner().invoke(main, ("replay", str(tmp_path / "bent")))
    assert result.exit_code == 1 and "DIFFERENT" in result.output and '  - {"op":"bind"' in result.output


def gzip_content(file: Path) -> bytes:
    import zlib

    return zlib.decompressobj(wbits=31).decompress(file.read_bytes())


def test_files_are_private_and_the_oldest_are_deleted(tmp_path: Path) -> None:
    files = recorded(tmp_path, 30, each=5, limit=12_000)
    assert 0 < len(files) < 6 and all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    assert sum(file.stat().st_size for file in files[:-1]) <= 12_000


def test_the_command_names_cycles_and_answers(tmp_path: Path) -> None:
    (file,) = recorded(tmp_path, 4)
    result = CliRunner().invoke(main, ("replay", str(file)))
    assert result.exit_code == 0 and "4 cycles, 4 with identical decisions" in result.output
    result = CliRunner().invoke(main, ("replay", str(file), "--cycle", "2", "--verbose"))
    assert result.exit_code == 0 and "cycle 2 " in result.output and "cycle 1 " not in result.output
    assert "gang.job_ready(default/" in result.output and "predicates.filter" in result.output
    assert "proportion.queue_order(" in result.output


def test_private_fields_are_not_recorded(tmp_path: Path) -> None:
    model = RecordedCluster()
    container = Container(name="c", env=[EnvVar(name="A", value="private-value")], command=["private-command"])
    spec = PodSpec(scheduler_name="volcano", containers=[container])
    recorder = Recorder(tmp_path, model)
    conf = load(DEFAULT_TEXT + "metrics:\n  password: private-password\n", REGISTRY.actions)
    for name in ("before", "after"):
        model.upsert("Pod", Pod(metadata=ObjectMeta(name=name, namespace="default", uid=name), spec=spec))
        recorder.begin(conf, 0.0, 0, None, None, DEFAULT_SAMPLE)
        recorder.end([])
    recorder.close()
    (file,) = tmp_path.iterdir()
    content = gzip_content(file)
    assert b'"before"' in content and b'"after"' in content and b"private" not in content


def test_a_recording_that_begins_between_bind_and_event_has_the_bind_and_native_gangs() -> None:
    model = RecordedCluster()
    group = gang.PodGroup(
        metadata=ObjectMeta(name="g", namespace="default", uid="g"),
        spec=gang.PodGroupSpec(scheduling_policy=gang.SchedulingPolicy(gang=gang.GangPolicy(min_count=1))),
    )
    model.upsert(NATIVE, group)
    spec = PodSpec(scheduler_name="volcano", containers=[Container(name="c")])
    model.upsert("Pod", Pod(metadata=ObjectMeta(name="p", namespace="default", uid="p"), spec=spec))
    bind = Bind("default", "p", "p", "n1", "default/g")
    model.assume_binds([bind])
    lines = [msgspec.json.decode(line, type=entries.Line) for line in model.everything()]
    assert [line.kind for line in lines if isinstance(line, entries.Put)] == [NATIVE, "Pod"]
    assert [line.operation for line in lines if isinstance(line, entries.Assume)] == [bind]


def test_what_was_assumed_is_dropped_with_its_pod_while_nothing_is_recorded() -> None:
    model = RecordedCluster()
    spec = PodSpec(scheduler_name="volcano", containers=[Container(name="c")])
    for i in range(30):
        name = f"p{i}"
        model.upsert("Pod", Pod(metadata=ObjectMeta(name=name, namespace="default", uid=name), spec=spec))
        model.assume_binds([Bind("default", name, name, "n1", "")])
        model.remove("Pod", "default", name)
    assert len(model._assumed) < 5


def test_a_plain_model_notes_nothing() -> None:
    assert RecordedCluster.upsert is not Cluster.upsert and not hasattr(Cluster(), "lines")


def test_a_recording_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (file,) = recorded(tmp_path / "r", 3)
    lines = gzip_content(file).split(b"\n")
    header = msgspec.json.decode(lines[0])

    def written(name: str, content: bytes) -> Path:
        (tmp_path / name).write_bytes(gzip.compress(content))
        return tmp_path / name

    other = msgspec.json.encode({**header, "program": "0.0.1"})
    newer = msgspec.json.encode({**header, "version": entries.VERSION + 1})
    for path, says in (
        (written("other", b"\n".join([other, *lines[1:]])), "was recorded by volcano-py 0.0.1"),
        (written("newer", b"\n".join([newer, *lines[1:]])), f"in format version {entries.VERSION + 1}"),
        (written("short", b"\n".join([*lines[:3], b""])), "has no complete cycle"),
        (written("bent", b"\n".join([*lines[:3], b"{}", *lines[3:]])), "is damaged"),
        (written("snap", msgspec.json.encode({**header, "format": "snapshot"}) + b"\n"), "is a snapshot, and not a"),
    ):
        with pytest.raises(ArchiveError, match=says):
            list(replay(path))
        result = CliRunner().invoke(main, ("replay", str(path)))
        assert result.exit_code == 2 and says in result.stderr and len(result.stderr.splitlines()) == 1
    with pytest.raises(ArchiveError, match="has no cycle 99; it has 1 to 3"):
        list(replay(file, 99))


class Disk:
    """Stands for `os.write` on a disk with this many bytes of free space; None: without a limit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free: int | None = None
        self._write = os.write
        monkeypatch.setattr(recording_file.os, "write", self.write)

    def write(self, handle: int, content: memoryview) -> int:
        if self.free is None:
            return self._write(handle, content)
        if self.free == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self._write(handle, content[: self.free])
        self.free -= written
        return written


def cycles_of(recorder: Recorder, model: RecordedCluster, count: int) -> None:
    """Cycles of a model that changes, each written before the next one begins."""
    conf = load(DEFAULT_TEXT, REGISTRY.actions)
    for _ in range(count):
        model.upsert("Node", Node(metadata=ObjectMeta(name=secrets.token_hex(200))))
        recorder.begin(conf, 0.0, 0, None, None, DEFAULT_SAMPLE)
        recorder.end(run_once(model, conf, 0.0, 0).plan)
        recorder._writer.submit(int).result()


def test_a_full_disk_pauses_the_recording_with_one_log_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    disk, model = Disk(monkeypatch), RecordedCluster()
    recorder = Recorder(tmp_path, model, retry=0.0)
    cycles_of(recorder, model, 2)
    disk.free = 100
    cycles_of(recorder, model, 3)
    disk.free = 0
    cycles_of(recorder, model, 3)
    (file,) = tmp_path.iterdir()
    assert replayed([file]) == (2, 2, 0), "what was complete can be replayed, and nothing else takes space"
    disk.free = None
    cycles_of(recorder, model, 2)
    recorder.close()
    assert replayed(sorted(tmp_path.iterdir())) == (4, 4, 0)
    lines = [record.getMessage().partition(f"{tmp_path}: ")[2] for record in caplog.records]
    assert lines == [
        "No space left on device; recording continues when files can be written again",
        "recording continues",
    ]


def test_nothing_is_kept_in_memory_while_the_recording_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, model = Disk(monkeypatch), RecordedCluster()
    recorder = Recorder(tmp_path, model)
    disk.free = 0
    cycles_of(recorder, model, 3)
    recorder.close()
    assert model.lines is None and not list(tmp_path.iterdir())


def test_a_slow_disk_pauses_the_recording_before_it_takes_all_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recording, "MOST_WAITING", 3)
    model, conf, go_on = RecordedCluster(), load(DEFAULT_TEXT, REGISTRY.actions), Event()
    recorder = Recorder(tmp_path, model)
    recorder._writer.submit(go_on.wait)
    for _ in range(10):
        recorder.begin(conf, 0.0, 0, None, None, DEFAULT_SAMPLE)
        recorder.end(run_once(model, conf, 0.0, 0).plan)
    assert recorder._writer._work_queue.qsize() <= 4 and model.lines is None
    assert "3 writes wait for the disk" in caplog.text
    go_on.set()
    recorder.close()


def test_a_file_that_is_deleted_meanwhile_ends_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = RecordedCluster()
    recorder = Recorder(tmp_path, model, cycles=2)
    cycles_of(recorder, model, 3)
    for file in tmp_path.iterdir():
        file.unlink()
    cycles_of(recorder, model, 3)
    recorder.close()
    assert len(list(tmp_path.iterdir())) == 1 and not caplog.records


def test_a_file_ends_before_it_is_too_large_to_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_CONTENT", 2000)
    model = RecordedCluster()
    recorder = Recorder(tmp_path, model)
    cycles_of(recorder, model, 6)
    recorder.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) > 1 and replayed(files) == (6, 6, 0)


def test_a_comparison_of_no_cycle_is_no_agreement(tmp_path: Path) -> None:
    (file,) = recorded(tmp_path, 1)
    with patch("volcano_py.simulate.replay.replay", return_value=iter(())):
        ran = CliRunner().invoke(main, ["replay", str(file)])
    assert ran.exit_code == 2 and "it contains no cycle, so nothing was compared" in ran.output
