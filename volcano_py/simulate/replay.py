"""Replay: runs the cycles of a recording again, and the attempts of profiles, and compares the decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from volcano_py import __version__
from volcano_py.kube.errors import UNDECODABLE
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.framework.session import Shard
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.nodes.node_usage import NodeUsage
from volcano_py.scheduler.model.nodes.sample_size import SampleSize
from volcano_py.scheduler.model.plan import Operation
from volcano_py.scheduler.model.reported import EvictionRounds, Rounds
from volcano_py.scheduler.profiles import registry as profile_registry
from volcano_py.scheduler.profiles.attempts.search_record import Search, SearchOutcome
from volcano_py.scheduler.profiles.configuration import load as load_profiles
from volcano_py.scheduler.profiles.registry import Registry as ProfileRegistry
from volcano_py.scheduler.profiles.release import release_of
from volcano_py.scheduler.profiles.scheduler import PodScheduler
from volcano_py.scheduler.recording import entries
from volcano_py.scheduler.recording.archive import ArchiveError, read
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, run_once
from volcano_py.simulate.callback_log import logged
from volcano_py.simulate.manifests import STRUCTS

RECORD = "volcano-py scheduler --record DIR"

_line = msgspec.json.Decoder(entries.Line)
_operations = msgspec.json.Decoder(list[Operation])


class Replayed(msgspec.Struct):
    """One cycle: the recorded decisions, and the decisions of the replay."""

    cycle: entries.Cycle
    recorded: list[Operation]
    decided: list[Operation]
    report: CycleReport

    @property
    def identical(self) -> bool:
        return msgspec.json.encode(self.recorded) == msgspec.json.encode(self.decided)


class ReplayedAttempt(msgspec.Struct):
    """One attempt of a profile: the recorded search, and the outcome of the replay."""

    search: Search
    outcome: SearchOutcome

    @property
    def identical(self) -> bool:
        return self.search.outcome == self.outcome


def replay(
    path: Path,
    cycle: int | None = None,
    *,
    registry: Registry = REGISTRY,
    profile_plugins: ProfileRegistry = profile_registry.REGISTRY,
    log: Callable[[str], None] | None = None,
) -> Iterator[Replayed | ReplayedAttempt]:
    """Run the cycles and attempts of a file, up to `cycle` if it is given; all before it run, too. `log` receives the
    results of the callbacks, of that cycle or of all. Raises ArchiveError, whose message is one sentence, and
    OSError."""
    again = _Replay(path, profile_plugins)
    seen: list[int] = []
    for line in lines_of(path):
        if isinstance(line, entries.Cycle):
            wanted = log if log is not None and cycle in (None, line.number) else None
            yield again.cycle(line, logged(registry, wanted) if wanted else registry)
            seen.append(line.number)
            if line.number == cycle:
                return
        elif isinstance(line, entries.Attempt):
            yield again.attempt(line.search)
        else:
            again.apply(line)
    if not seen:
        raise ArchiveError(f"{path} has no complete cycle; let the scheduler run longer with --record")
    if cycle is not None:
        raise ArchiveError(f"{path} has no cycle {cycle}; it has {seen[0]} to {seen[-1]}")


def lines_of(path: Path) -> Iterator[entries.Line]:
    """The lines of a file; if the scheduler is still running, the last ones may be missing."""
    header, lines = read(path, entries.FORMAT, entries.VERSION, RECORD, growing=True)
    if header.program != __version__:
        raise ArchiveError(
            f"{path} was recorded by volcano-py {header.program}, whose decisions may differ from those of this "
            f"volcano-py {__version__}; replay it with volcano-py {header.program}"
        )
    try:
        for line in lines:
            yield _line.decode(line)
    except UNDECODABLE as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> ArchiveError:
    return ArchiveError(f"{path} is damaged ({error}); copy it again")


class _Replay:
    """The model, the configuration and the profiles of a file, up to the current line."""

    def __init__(self, path: Path, plugins: ProfileRegistry) -> None:
        self._path = path
        self._plugins = plugins
        self._model: Cluster | None = None
        self._configuration: Configuration | None = None
        self._profiles: PodScheduler | None = None

    def apply(self, line: entries.Line) -> None:
        """Apply a line that changes the inputs."""
        if isinstance(line, entries.RecordingStart):
            self._start(line)
        elif isinstance(line, entries.SessionSettings):
            try:
                self._configuration = msgspec.convert(line.configuration, Configuration)
            except msgspec.ValidationError as error:
                raise _damaged(self._path, error) from None
        elif self._model is not None:
            try:
                if isinstance(line, entries.ProfileSettings):
                    self._profiles = self._made(line, self._model)
                else:
                    _apply(self._model, line)
            except (*UNDECODABLE, LookupError) as error:
                raise _damaged(self._path, error) from None

    def cycle(self, line: entries.Cycle, registry: Registry) -> Replayed:
        """Run a cycle."""
        if self._model is None or self._configuration is None:
            raise ArchiveError(f"{self._path} is damaged: a cycle comes before its inputs; record again")
        shard = Shard(frozenset(line.shard[0]), line.shard[1]) if line.shard is not None else None
        report = run_once(
            self._model,
            self._configuration,
            line.now,
            line.seed,
            line.budget,
            registry=registry,
            shard=shard,
            sample_size=SampleSize(*line.sample_size),
            profiles=self._profiles.rules_for_session(line.now) if self._profiles is not None else None,
        )
        return Replayed(line, _operations.decode(line.decisions), list(report.plan), report)

    def attempt(self, search: Search) -> ReplayedAttempt:
        """Run an attempt."""
        if self._profiles is None:
            raise ArchiveError(f"{self._path} is damaged: an attempt comes before its profiles; record again")
        try:
            return ReplayedAttempt(search, self._profiles.searches.again(search))
        except LookupError as error:
            raise _damaged(self._path, error) from None

    def _start(self, line: entries.RecordingStart) -> None:
        self._model = Cluster(
            shadow_schedulers=frozenset(line.shadow_schedulers),
            default_queue=line.default_queue,
            features=frozenset(line.features),
            ignored_provisioners=frozenset(line.ignored_provisioners),
        )
        self._model.cycle = line.cycle

    def _made(self, line: entries.ProfileSettings, model: Cluster) -> PodScheduler:
        features = frozenset(line.features)
        try:
            configuration = load_profiles(line.document, features, self._plugins, release_of(line.release))
        except ValueError as error:
            text = "replay it with the plugins that the scheduler had (--plugins-dir)"
            raise ArchiveError(f"{self._path}: {error}; {text}") from None
        found = PodScheduler(configuration, features, model)
        found.cluster.arrange(line.nodes)
        return found


def _apply(model: Cluster, line: Any) -> None:
    match line:
        case entries.Put():
            obj = msgspec.json.decode(line.obj, type=STRUCTS[line.kind])
            try:
                model.upsert(line.kind, obj)
            except Exception:  # as during the recording: the object is in quarantine
                return
        case entries.Remove():
            model.remove(line.kind, line.namespace, line.name)
        case entries.Assume():
            model.assume(line.operation)
        case entries.Forget():
            model.forget(line.operation)
        case entries.ReserveClaims():
            (model.release if line.released else model.reserve)(line.bind)
        case entries.Hold():
            model.hold(line.why, line.all_nodes)
        case entries.UsageEntry():
            model.usage = {name: NodeUsage(*measured) for name, measured in line.of.items()}
        case entries.ReportedEntry():
            model.reported.conditions = dict(line.conditions)
            model.reported.events = {(kind, key): message for kind, key, message in line.events}
            model.reported.gates_removed = dict(line.gates_removed)
            for key, node in line.nominated.items():
                model.nominations.put(key, node)
            model.nominations.since = dict(line.since)
            model.keep(EvictionRounds).of_job = {uid: Rounds(*rounds) for uid, rounds in line.rounds.items()}
