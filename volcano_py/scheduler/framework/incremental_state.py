"""State that a plugin keeps between sessions: built once, then updated for the jobs that changed. Volcano rebuilds it
every session.

`build(cluster)` builds the state from scratch, `apply(state, cluster, jobs)` updates it for the jobs that changed
since. A session must not write the state; it copies what it changes. With `check`, the results of both are compared,
for tests and debugging.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from volcano_py.scheduler.model.cluster import Cluster

S = TypeVar("S")


@dataclass
class PluginStates:
    """By plugin: the version of its state, the position in the log of job changes, and the state."""

    of: dict[str, tuple[object, int, Any]] = field(default_factory=dict)


def state_of(
    cluster: Cluster,
    plugin: str,
    version: object,
    build: Callable[[Cluster], S],
    apply: Callable[[S, Cluster, set[str]], None],
    check: bool = False,
) -> S:
    """The current state of a plugin. `version`: what else the state depends on; it is rebuilt when the version
    changes."""
    position = cluster.job_changes.position
    states = cluster.keep(PluginStates).of
    kept = states.get(plugin)
    changed = cluster.job_changes.since(kept[1]) if kept is not None and kept[0] == version else None
    if kept is None or changed is None:
        state = build(cluster)
    else:
        state = kept[2]
        if changed:
            apply(state, cluster, changed)
        if check and state != build(cluster):
            raise AssertionError(f"plugin {plugin}: the incremental state differs from the one built from scratch")
    states[plugin] = (version, position, state)
    return state
