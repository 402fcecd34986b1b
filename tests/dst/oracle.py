"""What must hold at each step, from the history of the API server alone: plain dicts, and nothing of the product.

A replica cannot know what its watch has not delivered. What a user, a node or a rival scheduler changed counts as known
to it only `STALE` seconds later; what the product itself has bound counts at once, also by another replica: each new
leader has to know it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from tests.dst import devices_oracle, native_gangs, shards, storage_oracle

Object = dict[str, Any]
Amounts = dict[str, Fraction]

STALE = 150.0
"""Seconds after which a change counts as known: longer than any injected delay of a watch and its retries."""
MOST_REQUESTS = 90
"""Requests of one component about one object in one minute."""
ENDED = ("Succeeded", "Failed")
WHOLE_WITHIN = 4.0
"""Seconds within which the binds of a gang have been tried, all of them, unless something has disturbed it: shorter
than the time in which other pods end and make room for the rest."""
EVICTED_WITHIN = 8.0
"""Seconds within which an eviction on its way has taken effect: longer than any injected delay of a request."""
STEAL_NOTICED = 13.0
"""Seconds after which a leader must have noticed that another candidate has taken its Lease: its renew deadline, and
the time that a request may take."""
BINDER = "dispatcher"
"""The user that binds and evicts for the product."""
CLAIMED = (*storage_oracle.KINDS, *devices_oracle.KINDS)
"""What pods claim: volumes and devices."""
OBSERVED = (
    "pods",
    "nodes",
    "podgroups.scheduling.volcano.sh",
    "queues.scheduling.volcano.sh",
    *CLAIMED,
    shards.KIND,
    native_gangs.KIND,
)
"""The collections on which the rules depend."""
PRODUCT = ("scheduler", "dispatcher", "controllers")

_SUFFIXES = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
             "m": Fraction(1, 1000), "k": 1000, "M": 10**6, "G": 10**9, "T": 10**12}  # fmt: skip


@cache
def amount(text: Any) -> Fraction:
    """A quantity of Kubernetes."""
    text = str(text)
    for suffix, factor in _SUFFIXES.items():
        if text.endswith(suffix):
            return Fraction(text[: -len(suffix)]) * factor
    return Fraction(text)


def requests(pod: Object) -> Amounts:
    """What a pod requests: its containers, and one of `pods`; without what devices provide."""
    total: Amounts = defaultdict(Fraction)
    for container in pod["spec"]["containers"]:
        for name, quantity in ((container.get("resources") or {}).get("requests") or {}).items():
            if name != devices_oracle.EXTENDED:
                total[name] += amount(quantity)
    total["pods"] = Fraction(1)
    return total


def host_ports(pod: Object) -> set[int]:
    return {p["hostPort"] for c in pod["spec"]["containers"] for p in c.get("ports") or () if p.get("hostPort")}


def active(pod: Object) -> bool:
    """Whether a pod uses its node."""
    return (pod.get("status") or {}).get("phase") not in ENDED


def owned_by(obj: Object, uid: str) -> bool:
    """Whether an object has an owner."""
    return any(owner["uid"] == uid for owner in obj["metadata"].get("ownerReferences") or ())


def state_of(job: Object) -> str:
    """The phase of a Job or JobFlow; empty at first."""
    return str(((job.get("status") or {}).get("state") or {}).get("phase", ""))


def group_of(pod: Object) -> str:
    """The PodGroup of a pod, `namespace/name`. A plain pod has none; then the name is that which it would have."""
    if native := native_gangs.key_of(pod):
        return native
    name = (pod["metadata"].get("annotations") or {}).get("scheduling.k8s.io/group-name", "")
    return f"{pod['metadata']['namespace']}/{name or 'podgroup-' + pod['metadata']['uid']}"


def stand_in(pod: Object) -> Object | None:
    """What the PodGroup of a plain pod would be; None for a pod that names one, or of another scheduler."""
    annotations = pod["metadata"].get("annotations") or {}
    grouped = "scheduling.k8s.io/group-name" in annotations or native_gangs.key_of(pod)
    if grouped or pod["spec"].get("schedulerName") != "volcano":
        return None
    queue = annotations.get("scheduling.volcano.sh/queue-name", "default")
    return {"metadata": {}, "spec": {"minMember": 1, "queue": queue}}


@dataclass
class Bound:
    """Where and when a pod was bound, and which client did it."""

    node: str
    at: float
    writer: str


@dataclass
class _Gang:
    """A gang whose binds have begun at some time."""

    since: float
    wanted: int
    pods: set[str] = field(default_factory=set)


class _OverLimit(NamedTuple):
    """A queue with more bound than its capability, at some time."""

    at: float
    text: str
    limit: Fraction
    bound: dict[str, Fraction]
    """Amounts by UID of the pod."""


@dataclass
class Oracle:
    """Observes every write. `violations` are texts, the first one first."""

    violations: list[str] = field(default_factory=list)
    objects: dict[str, dict[str, Object]] = field(default_factory=lambda: defaultdict(dict))
    bound: dict[str, Bound] = field(default_factory=dict)
    """By UID of the pod."""
    trees: bool = True
    """Whether the limits of parent queues hold: the plugin proportion knows no parents."""
    binds: int = 0
    bound_at: float = -1e9
    """When the product bound a pod last."""
    evictions: int = 0
    _allocatable: dict[str, list[tuple[float, Object]]] = field(default_factory=lambda: defaultdict(list))
    """Past states of each node, with the time at which they began."""
    _queues: dict[str, list[tuple[float, Object]]] = field(default_factory=lambda: defaultdict(list))
    sharded: bool = False
    """Whether the scheduler uses only the nodes of its shard."""
    _shards: dict[str, list[tuple[float, Object]]] = field(default_factory=lambda: defaultdict(list))
    """Past states of each NodeShard."""
    _over: list[_OverLimit] = field(default_factory=list)
    _evicted: set[str] = field(default_factory=set)
    """Pods that the product has evicted, or tried to, by UID."""
    _tried: dict[str, _Gang] = field(default_factory=dict)
    """Gangs whose binds have begun."""
    _attempted: dict[str, set[str]] = field(default_factory=dict)
    """Pods of each gang whose bind has been sent before, by UID."""
    _unanswered: Counter[str] = field(default_factory=Counter)
    """Writes for each pod that are on their way: its writes are sent one after the other, so that its bind waits."""
    _changed: dict[str, float] = field(default_factory=dict)
    """When a gang has lost a member, or its minimum was changed, last: a watch that is late does not show it."""
    _disturbed: float = -1e9
    _holder: tuple[float, str] = (-1e9, "")
    """Since when who holds the scheduler's Lease."""
    _identities: dict[str, str] = field(default_factory=dict)
    """The process that has written each identity into the Lease."""
    _requests: Counter[tuple[str, ...]] = field(default_factory=Counter)
    _minute: int = 0
    restored_at: float = -1e9
    _revived: dict[str, float] = field(default_factory=dict)
    """Pods that had ended and run again because of a restore, by UID: since when."""

    # ---- what happened ---------------------------------------------------------------------------------------

    def observe(self, now: float, writer: str, kind: str, type_: str, obj: Object) -> None:
        """One write to the store: the object after it, or the last state of a deleted one."""
        if kind == native_gangs.KIND:
            kind, obj = "podgroups.scheduling.volcano.sh", native_gangs.as_group(obj)
        key = _key(obj)
        before = self.objects[kind].get(key)
        if kind in (*CLAIMED, shards.KIND):
            self._claimed(now, kind, key, None if type_ == "DELETED" else obj)
            return
        self._check_gangs(now)
        self._check_over(now)
        if type_ == "DELETED":
            self._deleted(now, writer, kind, before or obj)
            return
        self.objects[kind][key] = obj
        if kind == "nodes":
            if before is None or before.get("spec") != obj.get("spec"):
                self._disturbed = now
            self._allocatable[key].append((now, obj))
        elif kind == "queues.scheduling.volcano.sh":
            self._queues[key].append((now, obj))
        elif kind == "podgroups.scheduling.volcano.sh":
            if before is not None and before["spec"] != obj["spec"]:
                self._gang_changed(now, key)
        elif kind == "pods":
            if before is not None and before["metadata"]["uid"] != obj["metadata"]["uid"]:
                self._gang_changed(now, group_of(obj))
            self._pod(now, writer, before, obj)

    def _deleted(self, now: float, writer: str, kind: str, obj: Object) -> None:
        """An object of the session was deleted."""
        key = _key(obj)
        self.objects[kind].pop(key, None)
        self._gang_changed(now, group_of(obj) if kind == "pods" else key)
        if kind == "nodes":
            self._allocatable[key].append((now, {}))
        elif kind == "queues.scheduling.volcano.sh":
            self._queues[key].append((now, {}))
        elif kind == "pods":
            self._pod_deleted(now, writer, obj)

    def _claimed(self, now: float, kind: str, key: str, obj: Object | None) -> None:
        """An object that pods claim, or a shard, was written; None: it was deleted."""
        if kind == shards.KIND:
            self._shards[key].append((now, obj or {}))
        elif obj is None:
            self.objects[kind].pop(key, None)
        else:
            self.objects[kind][key] = obj
            if kind == devices_oracle.CLAIMS:
                for text in devices_oracle.wrong_claim(obj, self.objects):
                    self._wrong(now, text)

    def restored(self, now: float) -> None:
        """The API server has the state of an older backup: what was bound since is not bound any more."""
        self.restored_at = now
        pods = {pod["metadata"]["uid"]: pod for pod in self.objects["pods"].values()}
        self.bound = {
            uid: bound for uid, bound in self.bound.items() if uid in pods and pods[uid]["spec"].get("nodeName")
        }

    def requested(self, now: float, component: str, verb: str, plural: str, key: str) -> None:
        """One request of the product about one object."""
        if int(now / 60) != self._minute:
            self._minute = int(now / 60)
            self._requests.clear()
        if plural == "leases" or not key or verb == "LIST":
            return
        about = (component, verb, plural, key)
        self._requests[about] += 1
        if self._requests[about] == MOST_REQUESTS:
            self._wrong(now, f"{component} sent {MOST_REQUESTS} {verb} requests for {plural} {key} within a minute")

    def acknowledged(self, now: float, verb: str, plural: str, key: str) -> None:
        """A bind was answered with success: the pod has its node, unless it is gone."""
        pod = self.objects["pods"].get(key)
        if verb != "POST binding" or pod is None or pod["spec"].get("nodeName"):
            return
        if now - self.restored_at > 30 and pod["metadata"]["uid"] in self.bound:
            self._wrong(now, f"the acknowledged bind of pod {key} is lost")

    # ---- leaders and gangs -----------------------------------------------------------------------------------

    def lease(self, now: float, process: str, holder: str) -> None:
        """The scheduler's Lease was written by a process."""
        if holder != self._holder[1]:
            self._holder = (now, holder)
            self._disturbed = now
        if process and holder:
            self._identities[holder] = process

    def sent(self, now: float, process: str, verb: str, plural: str, key: str) -> None:
        """A dispatcher sends a write, which is on its way from now on."""
        since, holder = self._holder
        leader = self._identities.get(holder, "")
        if plural != "leases" and leader != process and now - since > (0.0 if leader else STEAL_NOTICED):
            self._wrong(
                now, f"{process} sends {verb} {plural} {key}, and {leader or holder or 'no process'} holds the Lease"
            )
        if plural == "pods":
            self._unanswered[key] += 1
        pod = self.objects["pods"].get(key)
        # The conditions of an eviction are the only ones that are written to a pod with a node.
        evicts = verb == "DELETE" or (verb == "PATCH status" and pod is not None and pod["spec"].get("nodeName"))
        if evicts and plural == "pods" and pod is not None:
            self._evicted.add(pod["metadata"]["uid"])
        if verb == "POST binding" and pod is not None:
            self._try(now, pod)
            bound = self.bound.get(pod["metadata"]["uid"])
            if bound is not None and bound.writer == BINDER and bound.at < since and leader == process:
                self._wrong(now, f"{process} binds pod {key}, which was bound before it became the leader")

    def ended(self, plural: str, key: str) -> None:
        """A write that was sent is answered or lost."""
        if plural == "pods":
            self._unanswered[key] -= 1

    def disturbed(self, now: float) -> None:
        """A process was killed, stopped or cut off, or the configuration has changed."""
        self._disturbed = now

    def _try(self, now: float, pod: Object) -> None:
        name = group_of(pod)
        group = self.objects["podgroups.scheduling.volcano.sh"].get(name)
        if group is None or now - self._changed.get(name, -1e9) <= STALE:
            return
        gang = self._tried.get(name)
        if gang is None or now - gang.since > WHOLE_WITHIN:
            started = [
                other
                for other in self.objects["pods"].values()
                if group_of(other) == name and (other["spec"].get("nodeName") or not active(other))
            ]
            # A rejected bind is repeated after a pause of its own.
            tried = [
                uid
                for other in self.objects["pods"].values()
                if group_of(other) == name
                and other not in started
                and (uid := other["metadata"]["uid"]) in self._attempted.get(name, ())
            ]
            wanted = (group["spec"].get("minMember") or 1) - len(started)
            gang = self._tried[name] = _Gang(now, wanted, set(tried))
        uid = pod["metadata"]["uid"]
        gang.pods.add(uid)
        self._attempted.setdefault(name, set()).add(uid)

    def _gang_changed(self, now: float, name: str) -> None:
        self._tried.pop(name, None)
        self._changed[name] = now

    def _check_gangs(self, now: float) -> None:
        for name, gang in list(self._tried.items()):
            if self._waits(name, gang):
                gang.since = now
            if now - gang.since <= WHOLE_WITHIN:
                continue
            del self._tried[name]
            if len(gang.pods) < gang.wanted and self._disturbed < gang.since - 5:
                self._wrong(now, f"{len(gang.pods)} pods of gang {name} were bound, and {gang.wanted} must be together")

    def _waits(self, name: str, gang: _Gang) -> bool:
        """Whether a member that is not bound has a write on its way."""
        return any(
            self._unanswered[key] > 0
            for key, pod in self.objects["pods"].items()
            if group_of(pod) == name and pod["metadata"]["uid"] not in gang.pods
        )

    # ---- pods ------------------------------------------------------------------------------------------------

    def _pod(self, now: float, writer: str, before: Object | None, pod: Object) -> None:
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        known = self.bound.get(uid)
        if known is not None and node != known.node and now > self.restored_at:
            self._wrong(now, f"pod {_key(pod)} moved from node {known.node} to {node or 'none'}, by {writer}")
        if now <= self.restored_at and before is not None and not active(before) and active(pod):
            self._revived[uid] = now
        if node and known is None:
            self.bound[uid] = Bound(node, now, writer)
            if writer == BINDER:
                self.binds += 1
                self.bound_at = now
                self._check_bind(now, pod, node)
        was_deleted = before is not None and before["metadata"].get("deletionTimestamp")
        if pod["metadata"].get("deletionTimestamp") and not was_deleted and writer == BINDER:
            self._check_eviction(now, pod)

    def _pod_deleted(self, now: float, writer: str, pod: Object) -> None:
        if writer == BINDER and not pod["metadata"].get("deletionTimestamp"):
            self._check_eviction(now, pod)

    def _check_eviction(self, now: float, pod: Object) -> None:
        self.evictions += 1
        self._evicted.add(pod["metadata"]["uid"])
        conditions = {c["type"]: c for c in (pod.get("status") or {}).get("conditions") or ()}
        if "DisruptionTarget" not in conditions:
            self._wrong(now, f"pod {_key(pod)} is evicted without the condition DisruptionTarget")
        critical = pod["spec"].get("priorityClassName", "").startswith("system-")
        if pod["metadata"]["namespace"] == "kube-system" or critical:
            self._wrong(now, f"the protected pod {_key(pod)} is evicted")
        if not pod["spec"].get("nodeName"):
            self._wrong(now, f"pod {_key(pod)} is evicted, which has no node")

    def _on_node(self, node: str, now: float) -> list[Object]:
        """The pods of a node that the product must know of."""
        found = []
        for pod in self.objects["pods"].values():
            bound = self.bound.get(pod["metadata"]["uid"])
            if bound is None or bound.node != node or not active(pod):
                continue
            if self._revived.get(pod["metadata"]["uid"], -1e9) >= now - STALE:
                continue
            if bound.writer == BINDER or bound.at < now - STALE:
                found.append(pod)
        return found

    def _check_bind(self, now: float, pod: Object, node: str) -> None:
        key = _key(pod)
        states = _within(self._allocatable[node], now)
        if not any(states):
            self._wrong(now, f"pod {key} is bound to node {node}, which does not exist")
            return
        on_node = self._on_node(node, now)
        limits: Amounts = defaultdict(Fraction)
        for state in states:
            for name, quantity in ((state.get("status") or {}).get("allocatable") or {}).items():
                limits[name] = max(limits[name], amount(quantity))
        total: Amounts = defaultdict(Fraction)
        for other in on_node:
            for name, quantity in requests(other).items():
                total[name] += quantity
        mine = requests(pod)
        for name in mine:
            if mine[name] and total[name] > limits[name]:
                names = ", ".join(sorted(_key(other) for other in on_node))
                have, held = float(limits[name]), float(total[name])
                self._wrong(now, f"node {node} has {have:g} {name}, and {held:g} are bound after {key}: {names}")
        ports = host_ports(pod)
        for other in on_node:
            if other is not pod and ports & host_ports(other):
                self._wrong(now, f"pods {key} and {_key(other)} are bound to node {node} with the same host port")
        selector = pod["spec"].get("nodeSelector") or {}
        labels = [state["metadata"].get("labels") or {} for state in states if state]
        if not any(all(have.get(name) == value for name, value in selector.items()) for have in labels):
            self._wrong(now, f"pod {key} is bound to node {node}, which its nodeSelector {selector} does not allow")
        of_shard = [shards.desired(state) for state in _within(self._shards[shards.OWN], now)]
        if self.sharded and pod["spec"]["schedulerName"] == "volcano" and not any(node in nodes for nodes in of_shard):
            self._wrong(now, f"pod {key} is bound to node {node}, which is not in the shard of the scheduler")
        known = [other for name in self.objects["nodes"] for other in self._on_node(name, now)]
        for text in storage_oracle.wrong_bind(pod, node, known, on_node, self.objects):
            self._wrong(now, f"pod {key} is bound to node {node}, and {text}")
        for text in devices_oracle.wrong_bind(pod, node, self.objects):
            self._wrong(now, f"pod {key} is bound to node {node}, and {text}")
        self._check_queue(now, pod)

    def _check_queue(self, now: float, pod: Object) -> None:
        group = self.objects["podgroups.scheduling.volcano.sh"].get(group_of(pod)) or stand_in(pod)
        if group is None:
            return
        queue = group["spec"].get("queue") or "default"
        while queue:
            states = _within(self._queues[queue], now)
            limits: dict[str, Fraction | None] = {}
            for state in states:
                capability = (state.get("spec") or {}).get("capability") or {}
                for name in requests(pod):
                    if name not in capability:
                        limits[name] = None
                    elif name not in limits:
                        limits[name] = amount(capability[name])
                    elif (known := limits[name]) is not None:
                        limits[name] = max(known, amount(capability[name]))
            members = self._of_queue(queue, now)
            for name, limit in limits.items():
                bound = {m["metadata"]["uid"]: requests(m).get(name, Fraction()) for m in members}
                total = sum(bound.values(), Fraction())
                if limit is not None and total > limit:
                    text = f"has a capability of {float(limit):g} {name}, and {float(total):g} are bound"
                    self._over.append(_OverLimit(now, f"queue {queue} {text} after {_key(pod)}", limit, bound))
            spec = (self.objects["queues.scheduling.volcano.sh"].get(queue) or {}).get("spec") or {}
            queue = (spec.get("parent") or "") if self.trees else ""

    def _check_over(self, now: float) -> None:
        """Queues above their capability, unless evictions were on their way that make up for it: a queue at its limit
        gets the place of a victim at once, as in Volcano, and the bind may arrive before the eviction, which the API
        server may even reject."""
        while self._over and now - self._over[0].at > EVICTED_WITHIN:
            over = self._over.pop(0)
            kept = sum((amount_ for uid, amount_ in over.bound.items() if uid not in self._evicted), Fraction())
            if kept > over.limit:
                self._wrong(over.at, over.text)

    def _of_queue(self, queue: str, now: float) -> list[Object]:
        """The bound pods of a queue and of those below it. A pod that is being deleted counts on its node, but not in
        its queue, as in Volcano: a queue at its limit gets the place of a victim at once."""
        queues = self.objects["queues.scheduling.volcano.sh"]
        below = {queue}
        for _ in queues:
            below |= {name for name, q in queues.items() if (q.get("spec") or {}).get("parent") in below}
        found = []
        for pod in self.objects["pods"].values():
            bound = self.bound.get(pod["metadata"]["uid"])
            group = self.objects["podgroups.scheduling.volcano.sh"].get(group_of(pod)) or stand_in(pod)
            if bound is None or bound.writer != BINDER or group is None or not active(pod):
                continue
            if pod["metadata"].get("deletionTimestamp"):
                continue
            if (group["spec"].get("queue") or "default") in below:
                found.append(pod)
        return found

    def _wrong(self, now: float, text: str) -> None:
        self.violations.append(f"{now:.3f} s: {text}")


def _key(obj: Object) -> str:
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def _within(states: list[tuple[float, Object]], now: float) -> list[Object]:
    """The states that a replica may take for the current one."""
    found = []
    for i, (_, state) in enumerate(states):
        until = states[i + 1][0] if i + 1 < len(states) else now
        if until >= now - STALE:
            found.append(state)
    return found
