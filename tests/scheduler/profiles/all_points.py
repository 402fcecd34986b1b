"""A plugin that implements every extension point and records its calls. The file can be used in a plugins folder."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence

import msgspec

from volcano_py.profile_plugin import (
    SKIP,
    SUCCESS,
    Bind,
    Code,
    CycleState,
    Filter,
    Handle,
    NodeInfo,
    Permit,
    PodInfo,
    PostBind,
    PostFilter,
    PostFilterResult,
    PreBind,
    PreEnqueue,
    PreFilter,
    QueueSort,
    Reserve,
    Score,
    Status,
    unschedulable,
)

CALLS: list[str] = []
"""`point pod node`, in order."""
REPORT = "ALL_POINTS_REPORT"
"""The environment variable with the path of a file for the calls, one JSON string per line."""


class AllPoints(PreEnqueue, QueueSort, PreFilter, Filter, PostFilter, Score, Reserve, Permit, PreBind, Bind, PostBind):
    """A pod sets with its label `fail` at which point it is rejected, and with `wait` for how long it waits."""

    name = "AllPoints"

    class Arguments(msgspec.Struct, forbid_unknown_fields=True):
        hold: float = 0.0
        """Seconds for which pods with the label `wait` wait."""

    def __init__(self, arguments: Arguments, handle: Handle) -> None:
        self._hold = arguments.hold
        self._handle = handle

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return self._called("preEnqueue", pod)

    def sort_key(self, pod: PodInfo, queued_at: float) -> tuple[float | str, ...]:
        return (-pod.priority, queued_at, pod.key)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        state.write(self.name, pod.name)
        return None, self._called("preFilter", pod)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        assert state.read(self.name) == pod.name
        return self._called("filter", pod, node.name)

    def post_filter(self, state: CycleState, pod: PodInfo, rejected: dict[str, Status]) -> PostFilterResult:
        self._called("postFilter", pod, " ".join(sorted(rejected)))
        return PostFilterResult(unschedulable("AllPoints cannot help"))

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        return self._called("preScore", pod, " ".join(sorted(n.name for n in nodes)))

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        self._called("score", pod, node.name)
        return 300 if node.name == "n2" else 0

    def normalize(self, state: CycleState, pod: PodInfo, scores: dict[str, int]) -> None:
        self._called("normalizeScore", pod, " ".join(f"{n}={s}" for n, s in sorted(scores.items())))
        scores.update({n: s // 3 for n, s in scores.items()})

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return self._called("reserve", pod, node)

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self._called("unreserve", pod, node)

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, float]:
        status = self._called("permit", pod, node)
        return (Status(Code.WAIT), self._hold) if status.ok and "wait" in pod.labels else (status, 0.0)

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return self._called("preBind", pod, node)

    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        status = self._called("bind", pod, node)
        return SKIP if status.ok else status

    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        assert state.read(self.name) == pod.name
        self._called("postBind", pod, node)

    def _called(self, point: str, pod: PodInfo, where: str = "") -> Status:
        call = " ".join(x for x in (point, pod.name, where) if x)
        CALLS.append(call)
        if path := os.environ.get(REPORT):
            with open(path, "a") as file:
                file.write(json.dumps(call) + "\n")
        return unschedulable(f"{point} rejects") if pod.labels.get("fail") == point else SUCCESS
