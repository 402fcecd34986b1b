"""Cluster: all objects that the scheduler uses. Volcano: the scheduler cache, without its informers.

Only events from the API server (`upsert`, `remove`) and plans that were sent (`assume`) or failed (`forget`) change it.
The order of events does not matter: objects may arrive before the objects that they refer to.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from volcano_py.api import core, scheduling
from volcano_py.api.plain_pods import WATCHED_OWNERS
from volcano_py.scheduler.model.assumed_plans import AssumedPlans
from volcano_py.scheduler.model.changes import Changes
from volcano_py.scheduler.model.claims.demand import NONE
from volcano_py.scheduler.model.claims.pod_claims import KINDS as CLAIM_KINDS
from volcano_py.scheduler.model.claims.pod_claims import PodClaims
from volcano_py.scheduler.model.feature_gates import DEFAULT_GATES
from volcano_py.scheduler.model.jobs import status
from volcano_py.scheduler.model.jobs.group_names import NATIVE_KINDS, check_group, group_of
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.native_gangs import NativeGroups
from volcano_py.scheduler.model.jobs.shadow_groups import ShadowGroups, is_same_plain_pod
from volcano_py.scheduler.model.jobs.spec_class import PodKeys, SpecClasses, equal_for_nodes
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.amounts import allocatable, check_quota, oversubscribed
from volcano_py.scheduler.model.nodes.held_nodes import HeldNodes
from volcano_py.scheduler.model.nodes.hyper_nodes import HyperNodes, build
from volcano_py.scheduler.model.nodes.node_table import NodeTable
from volcano_py.scheduler.model.nodes.node_usage import NodeUsage
from volcano_py.scheduler.model.nodes.placed_pods import PlacedPods
from volcano_py.scheduler.model.nodes.usable_capacity import UsableCapacity
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.queue_parents import parents_of
from volcano_py.scheduler.model.reported import Nominations, Reported
from volcano_py.scheduler.model.updates import changes_scheduling, counts_only, is_newer, repeats, same_place

T = TypeVar("T")


class Cluster(AssumedPlans):
    """All objects that the scheduler uses.

    `shadow_schedulers`: names of schedulers whose pods without a PodGroup are jobs of one task at once.
    `default_queue`: the queue of PodGroups that set none.
    `features`: the enabled feature gates.
    `ignored_provisioners`: additional provisioners whose volumes do not count against a limit.
    """

    def __init__(
        self,
        *,
        shadow_schedulers: frozenset[str] = frozenset(),
        default_queue: str = "default",
        features: frozenset[str] = DEFAULT_GATES,
        ignored_provisioners: frozenset[str] = frozenset(),
    ) -> None:
        self._options: dict[str, Any] = {
            "shadow_schedulers": shadow_schedulers,
            "default_queue": default_queue,
            "features": features,
            "ignored_provisioners": ignored_provisioners,
        }
        self.shadow_schedulers = shadow_schedulers
        self.default_queue = default_queue
        self.features = features
        self.nodes = NodeTable()
        self.classes = SpecClasses(self.nodes)
        self.usable = UsableCapacity(self.nodes)
        self.tasks: dict[str, Task] = {}
        self.placed = PlacedPods(self.nodes)
        self.on_node = self.placed.on_node
        """Tasks that take capacity, by node name."""
        self.jobs: dict[str, Job] = {}
        self.native_groups = NativeGroups(self)
        self.shadow_groups = ShadowGroups(self)
        self.queues: dict[str, Queue] = {}
        self.priority_classes: dict[str, core.PriorityClass] = {}
        self.others: dict[str, dict[str, Any]] = {}
        """Objects of kinds that only some rules read (Namespace, Service, ResourceQuota, …), by kind and key."""
        self.usage: dict[str, NodeUsage] = {}
        """The last measured usage of nodes, by name; from the metrics source."""
        self.statuses = bytearray()
        """The status of the task in each slot."""
        self.reported = Reported()
        self.nominations = Nominations()
        self.cycle = 0
        """Number of the last session."""
        self.dirty = True
        """Whether anything that a decision could depend on has changed since the last session closed."""
        self.jobs_moved = False
        """Whether pods or PodGroups of jobs have changed since then. With a pending job this requires a decision,
        otherwise only statuses are written."""
        self.others_moved = False
        """Whether pods without a job were added, changed or deleted since then, which concerns only pending jobs."""
        self.job_changes = Changes()
        """Jobs that changed in anything other than conditions that a session has decided."""
        self.node_changes = self.placed.changes
        """Nodes whose object or pods have changed, by name."""
        self.held = HeldNodes()
        self.check_states = False
        """Debug switch: compare incremental states with states built from scratch, in every cycle."""
        self._kept: dict[type[Any], Any] = {}
        self.claims = PodClaims(self, ignored_provisioners)
        self._hierarchy: tuple[dict[str, str], dict[str, str]] | None = None
        self._hyper_nodes: HyperNodes | None = None
        self._hyper_nodes_generation = -1
        self._free_slots: list[int] = []
        self._rule_cache: dict[tuple[str, int], Any] = {}
        self._rule_cache_generation = -1
        self._derived: dict[str, tuple[Hashable, Any]] = {}
        """By name: the generation, and the value that was derived from it."""
        self._rules_of: object = None

    def keep(self, kind: type[T]) -> T:
        """The state that a plugin or an action keeps between sessions: one object of its own type, constructed without
        arguments."""
        if kind not in self._kept:
            self._kept[kind] = kind()
        found: T = self._kept[kind]
        return found

    def reset(self) -> None:
        """Remove all objects, and what is derived from them and kept. Measured usage, held nodes and the number of the
        last session stay."""
        cycle, verifies, usage, held = self.cycle, self.check_states, self.usage, self.held
        self.__init__(**self._options)  # type: ignore[misc]
        self.cycle, self.check_states, self.usage, self.held = cycle, verifies, usage, held

    def rule_cache(self) -> dict[tuple[str, int], Any]:
        """Results of rules that do not depend on numbers: (rule, class) → array over nodes.

        Emptied when nodes or rules change. Rules that add an array for a class limit their number with `drop_oldest`.
        """
        if self._rule_cache_generation != self.nodes.generation:
            self._rule_cache = {}
            self._rule_cache_generation = self.nodes.generation
        return self._rule_cache

    def derived(self, name: str, generation: Hashable, derive: Callable[[], T]) -> T:
        """A value that depends on the nodes alone, derived again when `generation` (of `NodeTable`) has changed."""
        known = self._derived.get(name)
        if known is None or known[0] != generation:
            known = self._derived[name] = generation, derive()
        found: T = known[1]
        return found

    def use_rules(self, of: object) -> None:
        """Use the rules of another configuration from now on, with its arguments and weights."""
        if of is not self._rules_of:
            self._rules_of = of
            self._rule_cache = {}

    def read_keys(self, keys: PodKeys) -> None:
        """Distinguish pods by these labels and annotations from now on, because rules of plugins read them."""
        if keys != self.classes.keys:
            self.classes.keys = keys
            for task in self.tasks.values():
                self.claims.classify(task)

    @property
    def hierarchy(self) -> tuple[dict[str, str], dict[str, str]]:
        """The parent of each queue, and by queue the fault of its spec.parent; built again when a queue has changed."""
        if self._hierarchy is None:
            self._hierarchy = parents_of(self.queues)
        return self._hierarchy

    @property
    def hyper_nodes(self) -> HyperNodes:
        """The forest of HyperNodes, built when one of them or a node has changed."""
        if self._hyper_nodes is None or self._hyper_nodes_generation != self.nodes.generation:
            objects = self.others.get("HyperNode", {}).values()
            labels = {n.metadata.name: n.metadata.labels or {} for n in self.nodes.objects} if objects else {}
            self._hyper_nodes = build(objects, labels)
            self._hyper_nodes_generation = self.nodes.generation
        return self._hyper_nodes

    # ---- events from the API server ----------------------------------------------------------------------

    def upsert(self, kind: str, obj: Any) -> None:
        """Add or replace an object. Raises ValueError if it is invalid; its older version is then removed."""
        if kind == "Pod":
            self._put_pod(obj)
        elif kind == "Node":
            self._put_node(obj)
        elif kind == "PodGroup":
            job = self.jobs.get(obj.metadata.key)
            if job is not None and repeats(job.pod_group, obj):
                job.pod_group = obj
            else:
                self.set_group(obj.metadata.key, lambda job: job.set_pod_group(obj, self.default_queue))
        elif kind in NATIVE_KINDS:
            self.native_groups.upsert(kind, obj)
        elif kind == "Queue":
            self._put_queue(obj)
        elif kind == "PriorityClass":
            self.priority_classes[obj.metadata.name] = obj
            self.dirty = True
        else:
            self.dirty = True
            known = self.others.setdefault(kind, {})
            if kind == "ResourceQuota":
                known.pop(obj.metadata.key, None)
                check_quota(obj)
            known[obj.metadata.key] = obj
            self._claims_changed(kind, obj.metadata.key)
            self._hyper_nodes = None if kind == "HyperNode" else self._hyper_nodes
            if kind == "Namespace":
                self.native_groups.namespace_changed(obj.metadata.name)
                self.shadow_groups.namespace_changed(obj.metadata.name)
            elif kind in WATCHED_OWNERS:
                self.shadow_groups.owner_changed(obj)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Remove a deleted object. Unknown ones are ignored."""
        key = f"{namespace}/{name}" if namespace else name
        self.reported.events.pop((kind, f"{namespace}/{name}"), None)
        if kind == "Pod":
            task = self.tasks.get(key)
            if task is not None:
                self.claims.removed(task)
            self._pod_moved(task)
            self._drop_task(key)
            return
        self.dirty = True
        if kind == "Node":
            self._drop_node(name)
        elif kind in NATIVE_KINDS:
            self.native_groups.remove(kind, key)
        elif kind == "PodGroup":
            job = self.jobs.get(key)
            if job is not None and not job.shadow:
                job.unset_pod_group()
                self.job_changes.add(job.uid)
                self.shadow_groups.group_removed(job)
                self._forget_if_terminated(job)
        elif kind == "Queue":
            self._hierarchy = None
            self.queues.pop(name, None)
        elif kind == "PriorityClass":
            self.priority_classes.pop(name, None)
        else:
            self.others.get(kind, {}).pop(key, None)
            self._claims_changed(kind, key)
            self._hyper_nodes = None if kind == "HyperNode" else self._hyper_nodes

    def hold(self, why: Mapping[str, str], all_nodes: str = "") -> None:
        """Let these nodes take no new pods, until the next call: by name, the object that is doubted. `all_nodes`: the
        object because of which no node takes any."""
        changed = self.held.replace(why, all_nodes)
        if changed is None:
            changed = set(self.nodes.index)
        for name in changed:
            self.node_changes.add(name)
        self.dirty |= bool(changed)

    def _put_pod(self, pod: core.Pod) -> None:
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        old = self.tasks.get(key)
        same = old is not None and pod.metadata.uid == old.pod.metadata.uid
        if old is not None and not same:
            self.claims.removed(old)
        newer = old is not None and same and is_newer(old.pod, pod)
        if (
            old is not None
            and same
            and status.IS_ALLOCATED[old.status]
            and not pod.spec.node_name
            # If it had a node, the API server has withdrawn the bind: it was restored from a backup.
            and not (old.pod.spec.node_name and newer)
            and pod.metadata.deletion_timestamp is None
        ):
            return  # an event that precedes our own bind: the assumed state is newer
        if old is not None and not changes_scheduling(old.pod, pod):
            old.pod = pod
            return
        group = self.native_groups.job_of(group_of(pod))
        try:
            check_group(pod)
            claims = self.claims.demand(pod)
            equal = (
                old is not None and old.claims is claims is NONE and equal_for_nodes(old.pod, pod, self.classes.keys)
            )
            spec_class = old.spec_class if old is not None and equal else self.classes.of(pod, claims)
            task = Task(pod, spec_class, group, claims)
        except ValueError:
            self._drop_task(key)
            raise
        leaving = (
            old is not None
            and old.status == status.RELEASING
            and old.uid == task.uid
            and not (old.pod.metadata.deletion_timestamp and newer)  # else the deletion was withdrawn, in the same way
        )
        if leaving and task.status in (status.RUNNING, status.BOUND):
            task.status = status.RELEASING  # our eviction is in flight
        if not group and pod.spec.scheduler_name in self.shadow_schedulers:
            task.job = self.shadow_groups.uid_of(task)
        if old is not None and same_place(old, task, self.jobs.get(task.job)):
            self._replace_task(old, task)
        else:
            self._drop_task(key, followed_by=task)
            self._add_task(task)
        for c in pod.status.conditions or ():
            if c.type == "PodScheduled" and c.status == "False":
                self.reported.conditions[key] = (c.reason, c.message)
        self._pod_moved(old)
        self._pod_moved(task)

    def _put_node(self, node: core.Node) -> None:
        name = node.metadata.name
        table = self.nodes
        self.node_changes.add(name)
        try:
            have = allocatable(node, self.claims.storage.limits(name), self.claims.amounts.of(name))
        except ValueError:
            self._drop_node(name)
            raise
        known = name in table.index
        before = (table.generation, table.total_generation)
        table.put(node, have, oversubscribed(node))
        if not known:
            self.placed.count_node(name)
        if (table.generation, table.total_generation) != before:
            self.dirty = True

    def _claims_changed(self, kind: str, key: str) -> None:
        if kind in CLAIM_KINDS:
            self.claims.changed(kind, key)
            if kind == "CSINode":
                self.allocatable_changed(key)

    def allocatable_changed(self, node: str) -> None:
        """Count again what a node can allocate, after a change of another object than the Node."""
        if node in self.nodes.index:
            self._put_node(self.nodes.objects[self.nodes.index[node]])

    def unset_group(self, uid: str) -> None:
        """A job has no PodGroup any more, or cannot have one."""
        job = self.jobs.get(uid)
        if job is not None:
            job.unset_pod_group()
            self.job_changes.add(uid)
            self._forget_if_terminated(job)

    def move_tasks(self, tasks: Iterable[Task], uid: str) -> None:
        """Move tasks into another job, as they are."""
        for task in tasks:
            self._drop_task(task.key)
            task.job = uid
            self._add_task(task)
            self._pod_moved(task)

    def set_group(self, uid: str, take: Callable[[Job], None]) -> None:
        """`take` sets the job's fields from its PodGroup. Raises ValueError if one of them is invalid."""
        job = self._job(uid)
        self.job_changes.add(uid)
        self.shadow_groups.replaced(job)
        try:
            take(job)
        except ValueError:
            job.unset_pod_group()
            self._forget_if_terminated(job)
            raise
        if job.min_resources is not None:
            self.claims.resource_claims.extended.want(job.min_resources.scalars or ())
        self.jobs_moved = True

    def _put_queue(self, queue: scheduling.Queue) -> None:
        name = queue.metadata.name
        old = self.queues.get(name)
        if old is not None and counts_only(old.object, queue):
            self.jobs_moved |= old.object.status.allocated != queue.status.allocated
            old.object = queue
            return
        self.dirty = True
        self._hierarchy = None
        self.queues.pop(name, None)
        self.queues[name] = Queue(queue)

    def _pod_moved(self, task: Task | None) -> None:
        if task is not None and task.job:
            self.jobs_moved = True
        self.others_moved = True

    def _nominate(self, key: str, node: str) -> None:
        """Record the nominated node of a pod; empty: none."""
        before = self.nominations.drop(key)
        if node:
            self.nominations.put(key, node)
        for changed in (before, node):
            if changed:
                self.node_changes.add(changed)

    # ---- bookkeeping ------------------------------------------------------------------------------------

    def _job(self, uid: str) -> Job:
        job = self.jobs.get(uid)
        if job is None:
            job = self.jobs[uid] = Job(uid)
        return job

    def _add_task(self, task: Task) -> None:
        if self._free_slots:
            task.slot = self._free_slots.pop()
            self.statuses[task.slot] = task.status
        else:
            task.slot = len(self.statuses)
            self.statuses.append(task.status)
        self.tasks[task.key] = task
        self.claims.use(task, True)
        if task.status == status.PENDING and task.pod.status.nominated_node_name:
            self._nominate(task.key, task.pod.status.nominated_node_name)
        if task.takes_capacity:
            self.placed.put(task)
        if task.job:
            self.usable.add(task, +1)
            job = self._job(task.job)
            job.add(task)
            self.job_changes.add(task.job)
            self.native_groups.task_added(task)
            if not group_of(task.pod):
                self.shadow_groups.added(job, task)

    def _replace_task(self, old: Task, task: Task) -> None:
        """Replace a task by one of the same class, job and node."""
        task.slot = old.slot
        self.statuses[task.slot] = task.status
        self.tasks[task.key] = task
        self.claims.use(old, False)
        self.claims.use(task, True)
        self._forget_reports(task.key)
        if task.status == status.PENDING and task.pod.status.nominated_node_name:
            self._nominate(task.key, task.pod.status.nominated_node_name)
        self.placed.replace(old, task)
        job = self.jobs.get(task.job)
        if job is not None:
            job.replace(old, task)
            self.native_groups.task_added(task)
            self.job_changes.add(task.job)

    def _forget_reports(self, key: str) -> None:
        """Forget what was reported about a pod that is replaced or removed."""
        self.reported.conditions.pop(key, None)
        self.reported.gates_removed.pop(key, None)
        self._nominate(key, "")

    def _drop_task(self, key: str, followed_by: Task | None = None) -> None:
        """`followed_by`: the task that is added next, so that the state of a job that it belongs to is kept."""
        task = self.tasks.pop(key, None)
        if task is None:
            return
        self._free_slots.append(task.slot)
        self.claims.use(task, False)
        self._forget_reports(key)
        if task.takes_capacity:
            self.placed.take(task)
        if task.job:
            self.usable.add(task, -1)
            self.native_groups.task_removed(task)
        job = self.jobs.get(task.job)
        if job is not None:
            job.remove(task)
            self.job_changes.add(task.job)
            if job.shadow and not (followed_by is not None and is_same_plain_pod(task, followed_by)):
                self.shadow_groups.removed(job, key)
            self._forget_if_terminated(job)

    def _drop_node(self, name: str) -> None:
        self.node_changes.add(name)
        self.nodes.drop(name)

    def count_node_again(self, name: str) -> None:
        """Compute allocatable and the sums of a node again, from its object and its tasks."""
        i = self.nodes.index.get(name)
        if i is None:
            return
        here = self.on_node.get(name, {})
        for key in [key for key, task in here.items() if self.tasks.get(key) is not task]:
            del here[key]
        if not here:
            self.on_node.pop(name, None)
        self._put_node(self.nodes.objects[i])
        self.placed.add_up(i)

    def count_job_again(self, uid: str) -> None:
        """Compute the counts and sums of a job again, from its tasks."""
        self.jobs[uid].count_again()
        self.job_changes.add(uid)

    def _forget_if_terminated(self, job: Job) -> None:
        if job.terminated:
            self.jobs.pop(job.uid, None)
