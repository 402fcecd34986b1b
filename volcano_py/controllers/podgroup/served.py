"""Which schedulers place pods that have no PodGroup. Not in Volcano, whose scheduler places none.

Our scheduler needs no PodGroup for a pod alone (deviation `bare-pods`); Volcano's, and ours with `deviations: parity`,
wait for one. Nothing needs to be configured for that: a pod without a PodGroup that is neither bound nor reported as
unschedulable shows that its scheduler waits. From then on its pods get PodGroups, until one of them is placed without.
Pure.
"""

from __future__ import annotations

from volcano_py.api.core import Pod

GRACE = 10.0
"""Seconds without any reaction to a scheduler's plain pods until they get PodGroups."""
_GATED = "SchedulingGated"
"""The reason that the API server itself writes."""


class Served:
    """Plain pods without a reaction, by key, and what is known of their schedulers. Times are seconds, on one clock."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, float]] = {}
        """By scheduler: the keys of its waiting pods, the oldest first, and since when."""
        self._last: dict[str, float] = {}
        """By scheduler: when it reacted last."""
        self.without: set[str] = set()
        """Schedulers that place no pods without a PodGroup."""

    def waits(self, pod: Pod, now: float) -> None:
        """A plain pod that needs no PodGroup exists."""
        self._waiting.setdefault(pod.spec.scheduler_name, {}).setdefault(pod.key, now)

    def forget(self, pod: Pod) -> None:
        """The pod was deleted, or has a PodGroup now."""
        self._waiting.get(pod.spec.scheduler_name, {}).pop(pod.key, None)

    def changed(self, pod: Pod, now: float) -> bool:
        """A plain pod has changed; returns whether this is the first reaction of its scheduler to it."""
        name = pod.spec.scheduler_name
        if not reacted(pod) or self._waiting.get(name, {}).pop(pod.key, None) is None:
            return False
        self._last[name] = now
        self.without.discard(name)
        return True

    def due(self, now: float) -> tuple[list[str], float | None]:
        """The pods that their schedulers do not place without a PodGroup, and when to call this again, in seconds."""
        found: list[str] = []
        pause: float | None = None
        for name, pods in self._waiting.items():
            if not pods:
                continue
            since = max(next(iter(pods.values())), self._last.get(name, 0.0))
            if name in self.without or now >= since + GRACE:
                found += pods
                self.without.add(name)
                pods.clear()
            else:
                pause = min(since + GRACE - now, GRACE if pause is None else pause)
        return found, pause


def reacted(pod: Pod) -> bool:
    """Whether a scheduler has placed the pod, or has reported why it does not."""
    if pod.spec.node_name:
        return True
    conditions = pod.status.conditions or ()
    return any(c.type == "PodScheduled" and c.status == "False" and c.reason != _GATED for c in conditions)
