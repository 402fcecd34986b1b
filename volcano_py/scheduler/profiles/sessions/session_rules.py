"""The rules of profiles in a session: gangs are subject to the filters and scores of the profile that their
schedulerName names. Deviation profile-rules; not in Volcano.

The plugins are those of the profile, and see the nodes as the session has changed them (`Cluster.move`): their array
forms, caches and calls to the handle are the same as in an attempt of the profile. A plugin that raises is a fault; it
then rejects all nodes, or scores none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.faults import raised
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import PreFilter
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.registry import Registry
from volcano_py.scheduler.profiles.sessions.session_attempt import Attempts
from volcano_py.scheduler.profiles.sessions.session_filter import ProfileFilter
from volcano_py.scheduler.profiles.sessions.session_score import ProfileScore
from volcano_py.scheduler.profiles.sessions.session_selection import Selection, left_out_text, select

_OWNER = "profile-rules"


class SessionRules:
    """Adds the rules of all profiles to sessions."""

    def __init__(self, profiles: Iterable[Profile], registry: Registry, cluster: ProfileCluster) -> None:
        self._cluster = cluster
        self._selected: dict[str, Selection] = {p.name: select(p, registry) for p in profiles}
        self.names = frozenset(name for name, found in self._selected.items() if found)
        """The profiles with rules that a session has not itself."""
        self.closed: frozenset[str] = frozenset()
        """Plugins that are not called, because calls of them did not return: their filters reject all nodes."""

    @property
    def left_out(self) -> list[str]:
        """What does not hold for gangs: a sentence for each profile."""
        texts = (left_out_text(name, found) for name, found in self._selected.items())
        return [text for text in texts if text]

    def selected(self, profile: str) -> Selection:
        """The plugins of a profile that take part."""
        return self._selected[profile]

    def open(self, session: Session) -> None:
        """Add the rules to a session that is being opened. Call `close` at its end."""
        if not self.names:
            return
        self._cluster.end_moves()
        for name in sorted(self.names):
            found = self._selected[name]
            attempts = Attempts(name, found.without(self.closed), self._cluster, session.callbacks)
            plugins = {p.name: p for p in (*found.pre_enqueue, *found.pre_filter, *found.filter)}
            for plugin in plugins.values():
                owner = f"{plugin.name} of profile {name}"
                closed = plugin.name in self.closed
                session.further_filters.append((owner, ProfileFilter(plugin, attempts, closed=closed)))
            if attempts.selection.score:
                session.further_scores.append((f"profile {name}", ProfileScore(attempts)))
        table = session.table

        def move(task: Task, node: int, sign: int) -> None:
            self._cluster.move(task, table.names[node], sign)

        def move_run(tasks: Sequence[Task], nodes: Sequence[int]) -> None:
            for task, node in zip(tasks, nodes, strict=True):
                move(task, node, +1)

        with session.registration(_OWNER):
            session.add_event_handler(
                lambda task, node: move(task, node, +1), lambda task, node: move(task, node, -1), allocate_run=move_run
            )

    def close(self) -> None:
        """The session has ended."""
        self._cluster.end_moves()

    def bound(self, pod: PodInfo, node: str) -> None:
        """The session has bound a pod of a profile: call PostBind of the profile's plugins."""
        found = self._selected.get(pod.pod.spec.scheduler_name)
        if found is None:
            return
        for plugin in found.post_bind:
            state = CycleState()
            try:
                if isinstance(plugin, PreFilter):
                    plugin.pre_filter(state, pod)
                plugin.post_bind(state, pod, node)
            except Exception as e:
                raised(plugin.name, "PostBind", e)
