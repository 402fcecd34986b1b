"""A plugin and an action of our own: spread pods over the nodes with the fewest pods, and count what was decided."""

from collections import Counter

from volcano_py.scheduler.framework.node_rules import PlainScore


class Launch:
    """Rates a node the higher the fewer pods it has."""

    name = "launch"

    def __init__(self, arguments):
        self.weight = arguments.get("launch.weight", 1)

    def on_session_open(self, session):
        def fewest_pods(task, node):
            return -self.weight * session.numbers.kube_pods[session.table.index[node]]

        session.add_score(self.name, PlainScore(self.name, session, fewest_pods))


def tally(session):
    """An action: say in an Event on each job how many of its pods are where."""
    for job in session.jobs.values():
        nodes = Counter(session.table.names[n] for t in job.tasks.values() if (n := session.node_of(t)) is not None)
        if nodes:
            session.note(job, "Normal", "Tally", ", ".join(f"{node}: {n}" for node, n in sorted(nodes.items())))


tally.action = "tally"
