"""A plugin and an action of our own: spread pods over the nodes with the fewest pods, and report where jobs run."""

from collections import Counter

import msgspec

from volcano_py.plugin import LOCAL, Action, NodeView, Plugin, PluginArguments, Session, Task


class Launch(Plugin):
    """Prefer the node that runs the fewest pods."""

    name = "launch"

    class Arguments(PluginArguments):
        weight: int = msgspec.field(default=1, name="launch.weight")

    arguments: Arguments

    def on_session_open(self, session: Session) -> None:
        session.add_node_order(self.score, scope=LOCAL)

    def score(self, task: Task, node: NodeView) -> float:
        return -self.arguments.weight * node.pod_count


class Tally(Action):
    """Report in an Event on each job how many of its pods are on which node."""

    name = "tally"

    def execute(self, session: Session) -> None:
        for job in session.jobs.values():
            columns = (session.node_of(task) for task in job.tasks.values())
            nodes = Counter(session.node(column).name for column in columns if column is not None)
            if nodes:
                session.note(job, "Normal", "Tally", ", ".join(f"{name}: {n}" for name, n in sorted(nodes.items())))
