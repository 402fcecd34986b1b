"""`decision.explain` of the test kit."""

from __future__ import annotations

import pytest

from volcano_py.plugin import NodeView, Plugin, Session, Task
from volcano_py.testing import Cluster


class Red(Plugin):
    name = "red"

    def on_session_open(self, session: Session) -> None:
        session.add_predicate(self.predicate)

    def predicate(self, task: Task, node: NodeView) -> str | None:
        return "node is red" if node.labels.get("red") else None


def test_a_pending_pod() -> None:
    cluster = Cluster(plugins=[Red])
    cluster.add_node("a", cpu=4, labels={"red": "yes"})
    cluster.add_node("b", cpu=2)
    cluster.add_node("c", cpu=4)
    cluster.add_job("old", cpu=1, runs_on="c")
    cluster.add_job("new", pods=2, min_member=2, cpu=2)
    cluster.add_job("big", cpu=4)
    decision = cluster.schedule(tiers=[["gang"], ["predicates", "red"]])
    lines = decision.explain("big-0").splitlines()
    assert lines[0] == "pod default/big-0 is pending"
    assert lines[1].startswith("  NodeResources: 2 of 3 nodes have too little cpu free")
    assert "  NodeFilter: 1 of 3 nodes is rejected by plugin red: node is red." in lines
    assert lines[-3:] == [
        "  node a: red: node is red",
        "  node b: it requests 4 cpu, 0 idle",
        "  node c: it requests 4 cpu, 1 idle",
    ]
    assert decision.explain("big") == decision.explain("big-0")
    assert decision.explain("old-0") == "pod default/old-0 is Running on node c"
    assert decision.explain("new-0").startswith("pod default/new-0 is Binding on node ")
    with pytest.raises(KeyError, match="no pod or job x; pods are big-0, new-0, new-1, old-0"):
        decision.explain("x")
