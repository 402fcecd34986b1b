"""`--record DIR`: recent cycles on disk, with all that is needed to run them again.

The model is a RecordedCluster, which notes each change from outside of a cycle. A file holds at most CYCLES cycles; the
oldest files are deleted when the folder holds more than its limit. Files are written in a thread. If a write fails (a
full disk), the recording pauses, and continues in a new file once a write succeeds; the scheduler is not affected.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.session import Shard
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status
from volcano_py.scheduler.model.jobs.group_names import NATIVE_KINDS
from volcano_py.scheduler.model.nodes.sample_size import SampleSize
from volcano_py.scheduler.model.plan import Bind, Evict, Operation
from volcano_py.scheduler.model.reported import EvictionRounds
from volcano_py.scheduler.profiles.attempts.search_record import Search
from volcano_py.scheduler.recording import entries
from volcano_py.scheduler.recording.archive import MAX_BYTES
from volcano_py.scheduler.recording.file import RecordingFile, make_folder
from volcano_py.scheduler.recording.private import without_private, without_secrets

log = logging.getLogger(__name__)

CYCLES = 200
"""Of one file."""
MAX_CONTENT = MAX_BYTES // 2
"""Size in bytes, before compression, at which a file ends early: larger ones could not be read."""
MOST_WAITING = 50
"""Writes that wait; with more, the disk is too slow, and the recording pauses."""
MOST_LINES = 5_000
"""Changes and attempts that wait for the end of the next cycle; with more, they are written before."""
RETRY_SECONDS = 30.0
"""Pause after a failed write."""

_encode = msgspec.json.Encoder().encode


class RecordedCluster(Cluster):
    """A model that notes what changes it, but for what a cycle itself assumes."""

    def __init__(self, *, ignored_provisioners: frozenset[str] = frozenset(), **options: Any) -> None:
        super().__init__(ignored_provisioners=ignored_provisioners, **options)
        self.lines: list[bytes] | None = None
        """Changes that have not been written; None: nothing is noted."""
        self.in_cycle = False
        self._ignored_provisioners = ignored_provisioners
        self._assumed: dict[str, Bind | Evict] = {}
        self._reserved: list[Bind] = []

    def upsert(self, kind: str, obj: Any) -> None:
        self._note(put, kind, obj)
        super().upsert(kind, obj)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        self._note(entries.Remove, kind, namespace, name)
        super().remove(kind, namespace, name)

    def assume(self, operation: Operation) -> None:
        if isinstance(operation, Bind | Evict):
            self._remember([operation])
        if not self.in_cycle:
            self._note(entries.Assume, operation)
        super().assume(operation)

    def assume_binds(self, binds: Sequence[Bind]) -> None:
        self._remember(binds)
        super().assume_binds(binds)

    def _remember(self, operations: Sequence[Bind | Evict]) -> None:
        """Keep operations until the pod shows them; others are dropped now and then, also while nothing is recorded."""
        if len(self._assumed) > 2 * len(self.tasks):
            self._drop_seen()
        self._assumed.update((f"{op.namespace}/{op.name}", op) for op in operations)

    def _drop_seen(self) -> None:
        self._assumed = {key: op for key, op in self._assumed.items() if self._is_open(key, op)}
        self._reserved = [bind for bind in self._reserved if self._is_open(f"{bind.namespace}/{bind.name}", bind)]

    def forget(self, operation: Operation) -> None:
        self._note(entries.Forget, operation)
        super().forget(operation)

    def reserve(self, bind: Bind) -> None:
        if len(self._reserved) > 2 * len(self.tasks):
            self._drop_seen()
        self._reserved.append(bind)
        self._note(entries.ReserveClaims, bind)
        super().reserve(bind)

    def release(self, bind: Bind) -> None:
        if bind in self._reserved:
            self._reserved.remove(bind)
        self._note(entries.ReserveClaims, bind, True)
        super().release(bind)

    def hold(self, why: Mapping[str, str], all_nodes: str = "") -> None:
        self._note(entries.Hold, dict(why), all_nodes)
        super().hold(why, all_nodes)

    def everything(self) -> list[bytes]:
        """Lines that make this model out of an empty one."""
        start = entries.RecordingStart(
            self.cycle,
            tuple(sorted(self.shadow_schedulers)),
            self.default_queue,
            tuple(sorted(self.features)),
            tuple(sorted(self._ignored_provisioners)),
        )
        lines = [_encode(start)]
        lines += [_encode(put(kind, obj)) for kind, known in self.others.items() for obj in known.values()]
        lines += [_encode(put("PriorityClass", obj)) for obj in self.priority_classes.values()]
        lines += [_encode(put("Queue", queue.object)) for queue in self.queues.values()]
        lines += [_encode(put("Node", node)) for node in self.nodes.objects]
        for job in self.jobs.values():
            if job.native is None and job.pod_group is not None and not job.shadow:
                lines.append(_encode(put("PodGroup", job.pod_group)))
        for kind in NATIVE_KINDS:
            for key in self.native_groups.keys(kind):
                lines.append(_encode(put(kind, self.native_groups.get(kind, key))))
        lines += [_encode(put("Pod", task.pod)) for task in self.tasks.values()]
        self._drop_seen()
        lines += [_encode(entries.Assume(operation)) for operation in self._assumed.values()]
        lines += [_encode(entries.ReserveClaims(bind)) for bind in self._reserved]
        reported, nominations = self.reported, self.nominations
        events = [(kind, key, message) for (kind, key), message in reported.events.items()]
        rounds: dict[str, tuple[int, int, float]] = {**self.keep(EvictionRounds).of_job}
        all_reported = entries.ReportedEntry(
            reported.conditions, events, reported.gates_removed, nominations.node_of, nominations.since, rounds
        )
        lines.append(_encode(all_reported))
        if self.usage:
            lines.append(_encode(usage(self)))
        if self.held:
            lines.append(_encode(entries.Hold(self.held.why, self.held.all_nodes)))
        return lines

    def _is_open(self, key: str, operation: Operation) -> bool:
        """Whether an assumed operation is not yet seen in the pod."""
        task = self.tasks.get(key)
        if task is None or not isinstance(operation, Bind | Evict) or task.uid != operation.uid:
            return False
        if isinstance(operation, Bind):
            return not task.pod.spec.node_name
        return task.status == status.RELEASING and task.pod.metadata.deletion_timestamp is None

    def _note(self, line: Any, *fields: Any) -> None:
        if self.lines is not None:
            self.lines.append(_encode(line(*fields)))


def put(kind: str, obj: Any) -> entries.Put:
    """The line of an object, without what is private."""
    return entries.Put(kind, msgspec.Raw(_encode(without_private(obj))))


def usage(model: Cluster) -> entries.UsageEntry:
    return entries.UsageEntry({name: (u.time, u.cpu, u.memory) for name, u in model.usage.items()})


class Recorder:
    """Writes the changes of a model and its cycles into `folder`; `limit`: bytes in the folder.

    Call `begin` before a cycle and `end` after it.
    """

    def __init__(
        self,
        folder: Path,
        model: RecordedCluster,
        limit: int = MAX_BYTES,
        cycles: int = CYCLES,
        retry: float = RETRY_SECONDS,
    ) -> None:
        """`retry`: seconds without recording after a failed write.

        Raises OSError if the folder cannot be made, unless the disk is full.
        """
        try:
            make_folder(folder)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
        self._folder = folder
        self._model = model
        self._limit = limit
        self._cycles = cycles
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="recorder")
        self._file: RecordingFile | None = None
        self._count = 0
        self._settings: Configuration | None = None
        self._usage: object = None
        self._retry = retry
        self._paused_until: float | None = None
        self._failure_logged = False
        self._submitted = self._written = 0
        """Writes that were begun, and that have ended; the writer's thread changes only the second."""
        self._cycle: entries.Cycle
        self._profiles: entries.ProfileSettings | None = None
        self._node_order: Callable[[], dict[str, list[str]]] = dict
        self._profiles_noted = False

    def set_profiles(self, settings: entries.ProfileSettings, order: Callable[[], dict[str, list[str]]]) -> None:
        """These profiles are in force from now on. `order`: nodes and pods in the profiles' order."""
        settings.document = without_secrets(settings.document)
        self._profiles, self._node_order, self._profiles_noted = settings, order, False

    def search(self, search: Search) -> None:
        """A profile has searched a node for a pod."""
        lines = self._model.lines
        if lines is None:
            return
        self._note_profiles(lines)
        lines.append(_encode(entries.Attempt(search)))
        if len(lines) >= MOST_LINES and self._file is not None:
            self._submit(self._file, lines)
            self._model.lines = []

    def _note_profiles(self, lines: list[bytes]) -> None:
        if self._profiles is not None and not self._profiles_noted:
            self._profiles_noted = True
            self._profiles.nodes = self._node_order()
            lines.append(_encode(self._profiles))

    def begin(
        self,
        configuration: Configuration,
        now: float,
        seed: int,
        budget: int | None,
        shard: Shard | None,
        sample_size: SampleSize,
    ) -> None:
        """A cycle is about to run with these inputs."""
        model = self._model
        if self._is_paused():
            model.lines = None
            return
        full = self._file is not None and self._file.content >= MAX_CONTENT
        if model.lines is None or full or self._count >= self._cycles:
            model.lines, self._count, self._settings, self._usage = model.everything(), 0, None, model.usage
            self._file = RecordingFile(self._folder, self._limit)
            self._profiles_noted = False
            self._note_profiles(model.lines)
        if model.usage is not self._usage:
            self._usage = model.usage
            model.lines.append(_encode(usage(model)))
        if configuration is not self._settings:
            self._settings = configuration
            public = without_secrets(msgspec.to_builtins(msgspec.structs.replace(configuration, metrics={})))
            model.lines.append(_encode(entries.SessionSettings(public)))
        self._cycle = entries.Cycle(
            model.cycle + 1,
            now,
            seed,
            budget,
            (sorted(shard.nodes), shard.hard) if shard is not None else None,
            (sample_size.minimum, sample_size.minimum_percentage, sample_size.percentage),
            msgspec.Raw(b"[]"),
        )
        model.in_cycle = True

    def end(self, decisions: Sequence[Operation]) -> None:
        """The cycle has run."""
        model, file = self._model, self._file
        model.in_cycle = False
        if model.lines is None or file is None:
            return
        self._cycle.decisions = msgspec.Raw(_encode(decisions))
        lines = [*model.lines, _encode(self._cycle)]
        model.lines = []
        self._count += 1
        self._submit(file, lines)

    def _submit(self, file: RecordingFile, lines: list[bytes]) -> None:
        if self._submitted - self._written >= MOST_WAITING:
            self._fail(file, f"{MOST_WAITING} writes wait for the disk")
            return
        self._submitted += 1
        self._writer.submit(self._write, file, lines)

    def discard(self) -> None:
        """The cycle was ended half-way: its decisions cannot be repeated, so the recording begins again."""
        self._model.in_cycle = False
        self._model.lines = None

    def close(self) -> None:
        """Wait until everything is written."""
        self._writer.shutdown()

    def _is_paused(self) -> bool:
        """Whether the last file failed, and the time to try a new one has not come."""
        if self._file is None or not self._file.failed:
            return False
        now = time.monotonic()
        if self._paused_until is None:
            self._paused_until = now + self._retry
        if now < self._paused_until:
            return True
        self._paused_until, self._model.lines = None, None
        return False

    def _write(self, file: RecordingFile, lines: list[bytes]) -> None:
        try:
            if file.failed:
                return
            file.write(lines)
        except OSError as error:
            self._fail(file, str(error.strerror or error))
        else:
            if self._failure_logged:
                self._failure_logged = False
                log.info("--record %s: recording continues", self._folder)
        finally:
            self._written += 1

    def _fail(self, file: RecordingFile, why: str) -> None:
        file.failed = True
        if not self._failure_logged:
            self._failure_logged = True
            log.error("--record %s: %s; recording continues when files can be written again", self._folder, why)
