"""shuffle: evict whom the plugins name, so that it is placed anew. Volcano: action shuffle."""

from __future__ import annotations

from volcano_py.scheduler.framework.plugin import Action
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model import status as st


class Shuffle(Action):
    """Ask plugins for victims among all running tasks, and evict them at once."""

    name = "shuffle"

    def execute(self, session: Session) -> None:
        running = [
            t  # in an order that does not depend on who came first
            for j in session.jobs.values()
            for t in sorted(j.tasks.values(), key=lambda t: t.key)
            if session.status(t) == st.RUNNING
        ]
        for victim in session.victim_tasks(running):
            session.evict(victim, "shuffle")
