"""Events may arrive in any order, with failures in between: the model equals the one that is built from the last
objects alone."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as s
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.strategies import Manifest, clusters
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.simulate.manifests import as_struct


def fingerprint(cluster: Cluster) -> dict[str, Any]:
    """The model without slots, columns and other values that depend on the history."""
    table = cluster.nodes
    n = table.numbers
    nodes = {}
    for name, i in table.index.items():
        rows = {
            resource: tuple(float(getattr(n, kind)[row, i]) for kind in ("allocatable", "idle", "used", "releasing"))
            for resource, row in table.rows.items()
        }
        pods = (float(n.kube_pods[i]), n.kube_nonzero[:, i].tolist(), float(n.max_pods[i]))
        nodes[name] = ({k: v for k, v in rows.items() if any(v)}, pods)
    jobs = {
        uid: (
            tuple(j.counts),
            tuple(j.best_effort_counts),
            sorted(j.tasks),
            j.newest,
            {k: v for k, v in j.allocated.as_dict().items() if v},
            {k: v for k, v in j.total_request.as_dict().items() if v},
            j.pod_group is not None,
            j.queue if j.pod_group else "",
        )
        for uid, j in cluster.jobs.items()
    }
    tasks = {key: (t.status, t.node, cluster.statuses[t.slot]) for key, t in cluster.tasks.items()}
    on_node = {name: sorted(here) for name, here in cluster.on_node.items()}
    return {"nodes": nodes, "jobs": jobs, "tasks": tasks, "on_node": on_node, "queues": sorted(cluster.queues)}


def build(objects: dict[tuple[str, str], Manifest]) -> Cluster:
    cluster = Cluster(shadow_schedulers=frozenset(("volcano",)))
    for (kind, _), manifest in objects.items():
        cluster.upsert(kind, as_struct(manifest))
    return cluster


class OrderOfEvents(RuleBasedStateMachine):
    """Puts and removes objects at random, and assumes and forgets binds and evictions."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Cluster(shadow_schedulers=frozenset(("volcano",)))
        self.objects: dict[tuple[str, str], Manifest] = {}
        self.pool: list[Manifest] = []

    @initialize(first=clusters(), second=clusters())
    def start(self, first: list[Manifest], second: list[Manifest]) -> None:
        self.pool = first + second

    @rule(data=s.data())
    def put(self, data: s.DataObject) -> None:
        manifest = data.draw(s.sampled_from(self.pool))
        struct = as_struct(manifest)
        key = (manifest["kind"], struct.metadata.key)
        old = self.objects.pop(key, None)
        if old is not None and key[0] == "Pod" and old["spec"].get("nodeName") and not manifest["spec"].get("nodeName"):
            self.model.remove("Pod", *key[1].split("/"))  # a pod never loses its node: this is a new pod
        self.objects[key] = manifest
        self.model.upsert(manifest["kind"], struct)

    @rule(data=s.data())
    def remove(self, data: s.DataObject) -> None:
        if self.objects:
            kind, key = data.draw(s.sampled_from(sorted(self.objects)))
            del self.objects[kind, key]
            namespace, _, name = key.rpartition("/")
            self.model.remove(kind, namespace, name)

    @rule(data=s.data())
    def a_huge_pod_that_is_added_and_removed_leaves_nothing(self, data: s.DataObject) -> None:
        pods = [key for key in self.objects if key[0] == "Pod"]
        if pods:
            like = self.objects[data.draw(s.sampled_from(pods))]
            requests = {"cpu": "1" + "0" * 30, "memory": "9E"}
            absurd = {
                **like,
                "metadata": {**like["metadata"], "name": "absurd", "uid": "absurd"},
                "spec": {**like["spec"], "containers": [{"name": "main", "resources": {"requests": requests}}]},
            }
            struct = as_struct(absurd)
            self.model.upsert("Pod", struct)
            self.model.remove("Pod", struct.metadata.namespace, "absurd")

    @rule(data=s.data())
    def a_bind_that_fails_changes_nothing(self, data: s.DataObject) -> None:
        pending = [t for t in self.model.tasks.values() if t.status == st.PENDING]
        nodes = self.model.nodes.names
        if pending and nodes:
            t = data.draw(s.sampled_from(pending))
            op = plan.Bind(t.namespace, t.name, t.pod.metadata.uid, data.draw(s.sampled_from(nodes)), t.job)
            self.model.assume(op)
            assert self.model.tasks[t.key].status == st.BINDING
            self.model.forget(op)

    @rule(data=s.data())
    def an_eviction_that_fails_changes_nothing(self, data: s.DataObject) -> None:
        running = [t for t in self.model.tasks.values() if t.status in (st.RUNNING, st.BOUND)]
        if running:
            t = data.draw(s.sampled_from(running))
            op = plan.Evict(t.namespace, t.name, t.pod.metadata.uid, t.job, "test")
            self.model.assume(op)
            self.model.forget(op)

    @rule(data=s.data())
    def a_bind_and_its_event_are_one_bind(self, data: s.DataObject) -> None:
        pending = [t for t in self.model.tasks.values() if t.status == st.PENDING]
        nodes = self.model.nodes.names
        if pending and nodes:
            t = data.draw(s.sampled_from(pending))
            node = data.draw(s.sampled_from(nodes))
            self.model.assume(plan.Bind(t.namespace, t.name, t.pod.metadata.uid, node, t.job))
            manifest = self.objects.pop(("Pod", t.key))
            stale = as_struct(manifest)
            if data.draw(s.booleans()):
                self.model.upsert("Pod", stale)  # a delayed older event must not free the capacity
            bound = {**manifest, "spec": {**manifest["spec"], "nodeName": node}}
            self.objects["Pod", t.key] = bound
            self.model.upsert("Pod", as_struct(bound))

    @invariant()
    def the_model_equals_a_new_model_of_its_objects(self) -> None:
        assert fingerprint(self.model) == fingerprint(build(self.objects))


TestOrderOfEvents = OrderOfEvents.TestCase
TestOrderOfEvents.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
