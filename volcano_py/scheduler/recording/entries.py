"""The lines of a recording: what changed the model, and each cycle and attempt with its inputs and its decisions.

A recording begins with `RecordingStart` and the objects of the model at that moment; from then on its lines are the
changes, in order. The same changes, applied to an empty model, make the same model, and `run_once` is a pure function
of it.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from volcano_py.scheduler.model.plan import Bind, Operation
from volcano_py.scheduler.profiles.attempts.search_record import Search

FORMAT = "recording"
VERSION = 2


class RecordingStart(Struct, tag_field="line", tag="start"):
    """The options of the model, and the number of the last cycle before."""

    cycle: int
    shadow_schedulers: tuple[str, ...]
    default_queue: str
    features: tuple[str, ...]
    ignored_provisioners: tuple[str, ...]


class Put(Struct, tag_field="line", tag="put"):
    """An object was added or changed."""

    kind: str
    obj: Raw


class Remove(Struct, tag_field="line", tag="remove"):
    """An object is gone."""

    kind: str
    namespace: str
    name: str


class Assume(Struct, tag_field="line", tag="assume"):
    """An operation counts as done that no cycle of the recording decided."""

    operation: Operation


class Forget(Struct, tag_field="line", tag="forget"):
    """An operation was not carried out."""

    operation: Operation


class ReserveClaims(Struct, tag_field="line", tag="reserve"):
    """The writes before a bind count as done, or no longer (`released`): volumes and devices are reserved for a pod."""

    bind: Bind
    released: bool = False


class UsageEntry(Struct, tag_field="line", tag="usage"):
    """The measured load: time, cpu and memory by node."""

    of: dict[str, tuple[float, float, float]]


class ReportedEntry(Struct, tag_field="line", tag="reported"):
    """What the scheduler has reported and nominated so far."""

    conditions: dict[str, tuple[str, str]]
    events: list[tuple[str, str, str]]
    gates_removed: dict[str, str]
    nominated: dict[str, str]
    since: dict[str, float]
    rounds: dict[str, tuple[int, int, float]] = {}
    """The rounds of evictions of each job: how many, its ready tasks, the time."""


class Hold(Struct, tag_field="line", tag="hold"):
    """These nodes take no new pods: by name, the object that is doubted. `all_nodes`: no node takes any."""

    why: dict[str, str]
    all_nodes: str = ""


class SessionSettings(Struct, tag_field="line", tag="settings"):
    """The configuration from now on, as `msgspec.to_builtins` has it."""

    configuration: dict[str, Any]


class ProfileSettings(Struct, tag_field="line", tag="profiles"):
    """The profiles from now on: the document of `--config`, the feature gates, and the version of Kubernetes."""

    document: dict[str, Any]
    features: tuple[str, ...]
    release: str
    nodes: dict[str, list[str]] = {}
    """The nodes with their pods, in the order that decides between equal ones."""


class Attempt(Struct, tag_field="line", tag="attempt"):
    """A profile has tried a pod."""

    search: Search


class Cycle(Struct, tag_field="line", tag="cycle"):
    """A cycle: the inputs of `run_once` beside the model, and the decisions."""

    number: int
    now: float
    seed: int
    budget: int | None
    shard: tuple[list[str], bool] | None
    sample_size: tuple[int, int, int]
    decisions: Raw


Line = (
    RecordingStart
    | Put
    | Remove
    | Assume
    | Forget
    | ReserveClaims
    | UsageEntry
    | ReportedEntry
    | Hold
    | SessionSettings
    | ProfileSettings
    | Attempt
    | Cycle
)
