"""shuffle: evict the pods that plugins select, so that they are placed again. Volcano: action shuffle."""

from __future__ import annotations

from volcano_py.scheduler.framework.plugin import Action
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st


class Shuffle(Action):
    """Evict the running tasks that plugins select as victims."""

    name = "shuffle"

    def execute(self, session: Session) -> None:
        running = [
            t  # in an order that does not depend on the order of arrival
            for j in session.jobs.values()
            for t in sorted(j.tasks.values(), key=lambda t: t.key)
            if session.status(t) == st.RUNNING
        ]
        for victim in session.victims.victim_tasks(running):
            session.moves.evict(victim, "shuffle")
