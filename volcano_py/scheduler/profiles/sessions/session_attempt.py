"""What the plugins of a profile have stated about one task of a session before nodes are filtered. Kubernetes:
PreEnqueue and PreFilter of an attempt."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from volcano_py.scheduler.framework.callbacks import Callbacks
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.faults import expect, raised
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import ProfilePlugin
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import Code as StatusCode
from volcano_py.scheduler.profiles.plugin_api.status import Status
from volcano_py.scheduler.profiles.sessions.session_selection import Selection

_CODES = {
    StatusCode.UNSCHEDULABLE: FitCode.UNSCHEDULABLE,
    StatusCode.UNRESOLVABLE: FitCode.UNRESOLVABLE,
    StatusCode.PENDING: FitCode.WAIT,
}


class SessionAttempt(NamedTuple):
    """One task, at one point of the session."""

    pod: PodInfo
    state: CycleState
    columns: Columns
    version: tuple[str, int, int]
    """Changes with the task and with each change of a node."""
    rejected: dict[str, Reason]
    """The plugins that reject the task for all nodes."""
    only: dict[str, frozenset[str]]
    """By plugin: the only nodes that it has named."""


class Attempts:
    """The attempts of one profile in one session; the last one is kept."""

    def __init__(self, profile: str, selection: Selection, cluster: ProfileCluster, callbacks: Callbacks) -> None:
        self.profile = profile
        self.selection = selection
        self._cluster = cluster
        self._callbacks = callbacks
        self._last: SessionAttempt | None = None

    def concerns(self, task: Task) -> bool:
        """Whether the profile's rules apply to a task; the same for all tasks of a class (`PodKeys.profiles`)."""
        return task.pod.spec.scheduler_name == self.profile

    def of(self, task: Task) -> SessionAttempt:
        """The attempt of a task: PreEnqueue and PreFilter are called again when a node has changed."""
        columns = self._cluster.columns
        version = (task.key, id(columns), len(columns.log))
        if self._last is None or self._last.version != version:
            attempt = SessionAttempt(self._cluster.info(task.pod), CycleState(), columns, version, {}, {})
            self._begin(attempt)
            self._last = attempt
        return self._last

    def _begin(self, attempt: SessionAttempt) -> None:
        for gate in self.selection.pre_enqueue:
            try:
                status = expect(gate.pre_enqueue(attempt.pod), Status, gate.name, "PreEnqueue")
            except Exception as e:
                attempt.rejected[gate.name] = self.fault(gate, "PreEnqueue", e, attempt.pod)
                continue
            if not status.ok:
                attempt.rejected[gate.name] = reason_of(status, gate)
        for plugin in self.selection.pre_filter:
            only: Collection[str] | None
            try:
                only, status = plugin.pre_filter(attempt.state, attempt.pod)
                expect(status, Status, plugin.name, "PreFilter")
            except Exception as e:
                attempt.rejected[plugin.name] = self.fault(plugin, "PreFilter", e, attempt.pod)
                continue
            if status.code is StatusCode.SKIP:
                attempt.state.skip_filter.add(plugin.name)
            elif not status.ok:
                attempt.rejected.setdefault(plugin.name, reason_of(status, plugin))
            elif only is not None:
                attempt.only[plugin.name] = frozenset(only)

    def fault(self, plugin: ProfilePlugin, point: str, error: Exception, pod: PodInfo) -> Reason:
        """Report a plugin that raised; the reason of the rejection that follows."""
        raised(plugin.name, point, error)
        self._callbacks.fault(f"{plugin.name} of profile {self.profile}", point, error, pod.key)
        return Reason(f"plugin {plugin.name} failed", FitCode.ERROR)


def reason_of(status: Status, plugin: ProfilePlugin) -> Reason:
    """A rejection as the session counts it."""
    text = status.message or f"node(s) didn't satisfy plugin {plugin.name}"
    return Reason(text, _CODES.get(status.code, FitCode.ERROR))
