"""cdp: protect a pod for a while after its start. Volcano: plugin cdp (cool-down protection)."""

from __future__ import annotations

from volcano_py.api import names
from volcano_py.api.core import Pod
from volcano_py.api.duration import parse_duration
from volcano_py.api.meta import parse_time
from volcano_py.scheduler.framework.extension_points.victims import Basis
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task


class Cdp(Plugin):
    """No arguments. The pod's label or annotation `volcano.sh/cooldown-time` sets the time."""

    name = "cdp"

    def on_session_open(self, session: Session) -> None:
        def unprotected(_: object, candidates: list[Task]) -> list[Task]:
            found = []
            for t in candidates:
                until = cools_until(t)
                if until > session.now:
                    session.wake_at(until)
                else:
                    found.append(t)
            return found

        session.add_preemptable(unprotected, basis=Basis.PROTECTION)
        session.add_reclaimable(unprotected, basis=Basis.PROTECTION)
        if session.deviations.protections_hold:
            session.add_unified_evictable(unprotected, basis=Basis.PROTECTION)


def cooldown_time(pod: Pod) -> float | None:
    """The seconds for which a pod is protected; None: it sets no valid duration."""
    meta = pod.metadata
    text = ((meta.annotations or {}) | (meta.labels or {})).get(names.COOLDOWN_TIME)
    try:
        return parse_duration(text) if text else None
    except ValueError:
        return None


def cools_until(task: Task) -> float:
    """When a running pod is no longer protected, in seconds since the epoch; 0 if it is not protected."""
    cooldown = cooldown_time(task.pod)
    if cooldown is None or task.pod.status.phase != "Running":
        return 0.0
    scheduled = (
        parse_time(c.last_transition_time)
        for c in task.pod.status.conditions or ()
        if c.type == "PodScheduled" and c.status == "True" and c.last_transition_time
    )
    return max((since + cooldown for since in scheduled), default=0.0)


def cooling(task: Task, now: float) -> bool:
    """Whether a running pod was scheduled less than its cool-down time ago."""
    return cools_until(task) > now
