"""Snapshot: the objects of a cluster that decisions depend on, at one moment, as a value and as a file.

`volcano_py.simulate.capture` reads one from a live cluster. It never contains private fields
(`volcano_py.scheduler.recording.private`), and `volcano_py.simulate.anonymize` replaces the names of its objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from volcano_py import __version__
from volcano_py.api import core
from volcano_py.api.codec import to_manifest
from volcano_py.kube.errors import UNDECODABLE
from volcano_py.scheduler.cache.filters import ObjectFilters
from volcano_py.scheduler.framework.config import DEFAULT_TEXT
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.feature_gates import DEFAULT_GATES
from volcano_py.scheduler.recording.archive import ArchiveError, Header, pack, read, write
from volcano_py.simulate.manifests import STRUCTS, Manifest

FORMAT = "snapshot"
VERSION = 1
SAVE = "volcano-py snapshot save"

ALL, NAMESPACE, OBJECT = "all", "namespace", "object"
"""What is missing of a kind: all objects, those outside of the user's namespace, one object."""


class Unread(msgspec.Struct, frozen=True):
    """A kind that is missing from a snapshot, or incomplete in it, and the reason."""

    kind: str
    why: str
    scope: str = ALL
    forbidden: bool = False
    """The user has no permission; otherwise another error."""


def summary(unread: Iterable[Unread]) -> list[str]:
    """What could not be read, in one sentence per cause, not per kind."""
    found: dict[str, list[str]] = {}
    for each in unread:
        cause = "no permission to list" if each.forbidden and each.scope == ALL else ""
        if each.scope == NAMESPACE:
            cause = each.why
        found.setdefault(cause, []).append(each.kind if cause else f"{each.kind}: {each.why}")
    return [f"{cause}: {', '.join(kinds)}" for cause, kinds in found.items() if cause] + found.get("", [])


class Snapshot(msgspec.Struct):
    """The objects that decisions depend on, and the configuration. Objects are read-structs, as in the model."""

    time: float
    """The time of the snapshot, in seconds since the epoch: the time of the first cycle."""
    objects: dict[str, list[Any]] = {}
    """By kind, in the order in which they are put into the model."""
    configuration: str = ""
    """The scheduler's configuration document; empty: it could not be read, and the built-in one is used."""
    scheduler_names: tuple[str, ...] = ("volcano",)
    default_queue: str = "default"
    unread: tuple[Unread, ...] = ()
    anonymized: bool = False
    program: str = __version__

    @property
    def configuration_text(self) -> str:
        """The configuration document for decisions."""
        return self.configuration or DEFAULT_TEXT

    def of(self, kind: str) -> list[Any]:
        """The objects of one kind."""
        return self.objects.get(kind, [])


@cache
def _list_decoder(kind: str) -> Any:
    of: Any = STRUCTS[kind]
    return msgspec.json.Decoder(list[of])


class _Head(msgspec.Struct):
    """The second line of the file: everything except the objects. Then follows one line with the objects per kind."""

    time: float
    configuration: str
    scheduler_names: tuple[str, ...]
    default_queue: str
    unread: tuple[Unread, ...]
    anonymized: bool
    kinds: list[str]


def cluster_of(snapshot: Snapshot, features: frozenset[str] = DEFAULT_GATES) -> tuple[Cluster, list[str]]:
    """The model of a snapshot's objects, as the scheduler would have it after a restart, and the invalid objects with
    the reason. Several models of one snapshot share its objects, which the decision core never changes."""
    names = frozenset(snapshot.scheduler_names)
    cluster = Cluster(shadow_schedulers=names, default_queue=snapshot.default_queue, features=features)
    accepts = ObjectFilters(names).accepts
    rejected = []
    for kind, objects in snapshot.objects.items():
        for obj in objects:
            if not accepts(kind, obj):
                continue
            try:
                cluster.upsert(kind, obj)
            except ValueError as error:
                rejected.append(f"{kind} {obj.metadata.key}: {error}")
    return cluster, rejected


def manifests_of(snapshot: Snapshot) -> Iterator[Manifest]:
    """The objects as manifests, for `volcano_py.simulate.cycles`."""
    for objects in snapshot.objects.values():
        for obj in objects:
            manifest = to_manifest(obj)
            if isinstance(obj, core.Pod):
                manifest.setdefault("spec", {})
                manifest.setdefault("status", {})
            yield manifest


def save(snapshot: Snapshot, path: Path) -> int:
    """Write a file that only its owner can read; returns its size in bytes. Raises ArchiveError, OSError."""
    head = _Head(
        snapshot.time,
        snapshot.configuration,
        snapshot.scheduler_names,
        snapshot.default_queue,
        snapshot.unread,
        snapshot.anonymized,
        list(snapshot.objects),
    )
    lines = [msgspec.json.encode(head), *(msgspec.json.encode(objects) for objects in snapshot.objects.values())]
    packed = pack(Header(FORMAT, VERSION), lines)
    write(path, packed)
    return len(packed)


def load(path: Path) -> Snapshot:
    """Read a file. Raises ArchiveError, whose message is one sentence with the remedy, and OSError."""
    header, lines = read(path, FORMAT, VERSION, SAVE)
    try:
        head = msgspec.json.decode(lines[0], type=_Head)
        unknown = [kind for kind in head.kinds if kind not in STRUCTS]
        if unknown or len(head.kinds) != len(lines) - 1:
            raise ArchiveError(f"{path} is damaged; recreate it with `{SAVE}`")
        objects = {kind: _list_decoder(kind).decode(line) for kind, line in zip(head.kinds, lines[1:], strict=True)}
    except (*UNDECODABLE, IndexError) as error:
        raise ArchiveError(f"{path} is damaged ({error}); recreate it with `{SAVE}`") from None
    return Snapshot(
        head.time,
        objects,
        head.configuration,
        head.scheduler_names,
        head.default_queue,
        head.unread,
        head.anonymized,
        header.program,
    )
