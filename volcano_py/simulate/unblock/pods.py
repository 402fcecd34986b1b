"""Changes of the job's own pods: selectors, tolerations, gates, ports, affinity, requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from volcano_py.api.affinity import Affinity
from volcano_py.api.core import NO_RAW, Pod, ResourceList, Toleration
from volcano_py.scheduler.explain.reasons import amount_text
from volcano_py.scheduler.explain.selectors import taint_text, untolerated_taints
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource_names import CPU
from volcano_py.simulate.unblock.suggestion import Change
from volcano_py.simulate.unblock.trials import Edit

replace = msgspec.structs.replace
_FACTS = ("kubernetes.io", "k8s.io")
"""The domains of labels and taints that kubelet, the cloud provider and Kubernetes' controllers set: they describe the
machine and its state."""
_MACHINE = ("kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/os")
"""What images depend on: a pod without such a selector may get a node on which it cannot run."""
_MOST_CPU_STEPS = 6
"""The number of smaller requests that are tried."""


def changed_pods(session: Session, job: SessionJob, change: Callable[[Pod], Pod]) -> list[Edit]:
    """The job's pending pods, changed."""
    waiting = [t for t in job.model.tasks.values() if t.status == st.PENDING]
    return [Edit("Pod", t.namespace, t.name, change(t.pod)) for t in waiting]


def with_spec(**fields: Any) -> Callable[[Pod], Pod]:
    """Change fields of spec."""
    return lambda pod: replace(pod, spec=replace(pod.spec, **fields))


def drop_selector(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """Remove one key of the node selector, then the whole selector, then the node affinity."""
    keys = {k: v for t in session.pending(job) for k, v in (t.pod.spec.node_selector or {}).items()}
    kept = {k: v for k, v in keys.items() if k in _MACHINE}
    keys = {k: v for k, v in keys.items() if k not in _MACHINE}
    for key, value in sorted(keys.items()):

        def without(pod: Pod, key: str = key) -> Pod:
            left = {k: v for k, v in (pod.spec.node_selector or {}).items() if k != key}
            return replace(pod, spec=replace(pod.spec, node_selector=left))

        text = f"remove {key}={value} from spec.nodeSelector of the pods"
        yield Change("drop-selector", text, changed_pods(session, job, without))
    if len(keys) > 1:
        edits = changed_pods(session, job, with_spec(node_selector=kept or None))
        but = f" except {', '.join(sorted(kept))}" if kept else ""
        yield Change("drop-selector", f"remove spec.nodeSelector of the pods{but}", edits)
    parsed = [t.spec_class.affinity for t in session.pending(job)]
    if any(a is not None for a in parsed) and not any(_selects_machine(a) for a in parsed):
        text = "remove the required node affinity of the pods"
        edits = changed_pods(session, job, with_spec(affinity=NO_RAW, node_selector=kept or None))
        yield Change("drop-selector", text, edits)


def label_node(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """Add the labels of the selector to a node that would otherwise accept the pod, and that has no other value of
    them: pods may select it. Labels that describe the machine are not for users to set."""
    pending = session.pending(job)
    wanted = dict(pending[0].pod.spec.node_selector or {}) if pending else {}
    if not wanted:
        return
    tried = 0
    for column in range(len(session.table)):
        node = session.table.objects[column]
        has = node.metadata.labels or {}
        lacking = {k: v for k, v in wanted.items() if has.get(k) != v}
        if any(k in has or _is_fact(k) for k in lacking):
            continue
        tried += 1
        if tried > 5:
            return
        labels = {**has, **wanted}
        changed = replace(node, metadata=replace(node.metadata, labels=labels))
        text = f"label node {node.metadata.name} with {', '.join(f'{k}={v}' for k, v in sorted(lacking.items()))}"
        yield Change("label-node", text, [Edit("Node", "", node.metadata.name, changed)])


def _is_fact(key: str) -> bool:
    """Whether a label or taint belongs to Kubernetes itself."""
    domain = key.rpartition("/")[0]
    return any(domain == d or domain.endswith(f".{d}") for d in _FACTS)


def _selects_machine(affinity: Affinity | None) -> bool:
    """Whether a required node affinity selects what images depend on."""
    of_nodes = affinity.node_affinity if affinity is not None else None
    required = of_nodes.required_during_scheduling_ignored_during_execution if of_nodes is not None else None
    terms = required.node_selector_terms or () if required is not None else ()
    return any(r.key in _MACHINE for term in terms for r in term.match_expressions or ())


def tolerate(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """Add tolerations for the taints of one node, beginning with the node with the fewest."""
    pending = session.pending(job)
    if not pending:
        return
    seen: set[str] = set()
    per_node = [untolerated_taints(session, pending[0], n) for n in range(len(session.table))]
    for taints in sorted((t for t in per_node if t and not any(_is_fact(taint.key) for taint in t)), key=len):
        text = ", ".join(taint_text(t) for t in taints)
        if text in seen or len(seen) == 3:
            continue
        seen.add(text)
        more = [Toleration(key=t.key, operator="Equal", value=t.value, effect=t.effect) for t in taints]

        def tolerating(pod: Pod, more: list[Toleration] = more) -> Pod:
            return replace(pod, spec=replace(pod.spec, tolerations=[*(pod.spec.tolerations or ()), *more]))

        yield Change("tolerate", f"tolerate {text}", changed_pods(session, job, tolerating))


def remove_gates(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """Remove all scheduling gates."""
    gates = sorted({g.name for t in session.pending(job) for g in t.pod.spec.scheduling_gates or ()})
    text = f"remove the scheduling gate {', '.join(gates)}"
    yield Change("remove-gate", text, changed_pods(session, job, with_spec(scheduling_gates=None)))


def drop_affinity(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    parsed = [t.spec_class.affinity for t in session.pending(job)]
    if not any(a is not None and (a.pod_affinity or a.pod_anti_affinity) for a in parsed):
        return
    edits = changed_pods(session, job, with_spec(affinity=NO_RAW))
    yield Change("drop-affinity", "remove the required pod affinity and anti-affinity of the pods", edits)


def drop_spread(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    if not any(t.spec_class.spread for t in session.pending(job)):
        return
    edits = changed_pods(session, job, with_spec(topology_spread_constraints=NO_RAW))
    yield Change("drop-spread", "remove the required topology spread constraints of the pods", edits)


def drop_ports(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    def without(pod: Pod) -> Pod:
        containers = [
            replace(c, ports=[replace(p, host_port=0) for p in c.ports or ()]) for c in pod.spec.containers or ()
        ]
        return replace(pod, spec=replace(pod.spec, containers=containers))

    if not any(t.spec_class.ports for t in session.pending(job)):
        return
    yield Change("drop-host-port", "use no host port", changed_pods(session, job, without))


def ask_for_less(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """Lower the request of one resource to what a node has."""
    resource = str(cause.fields["resource"])
    most = float(cause.fields.get("largest", cause.fields.get("free", 0.0)))
    if most <= 0:
        return
    requested = float(cause.fields["requested"])
    edits = [
        Edit("Pod", t.namespace, t.name, _lowered(t, resource, most))
        for t in job.model.tasks.values()
        if t.status == st.PENDING and t.request[resource] >= requested and len(t.pod.spec.containers or ()) == 1
    ]
    text = f"request at most {amount_text(resource, most)} {resource} in one pod"
    if edits:
        yield Change("ask-for-less", text, edits)


def fewer_cpus(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """Lower the whole CPUs of a pod's container one by one, in requests and limits: it stays Guaranteed."""
    pending = [t for t in job.model.tasks.values() if t.status == st.PENDING and len(t.pod.spec.containers or ()) == 1]
    most = max((int(t.request.milli_cpu // 1000) for t in pending), default=0)
    for cpus in range(most - 1, max(most - 1 - _MOST_CPU_STEPS, 0), -1):
        edits = [
            Edit("Pod", t.namespace, t.name, _with_cpus(t, cpus)) for t in pending if t.request.milli_cpu > cpus * 1000
        ]
        yield Change("ask-for-less", f"request at most {cpus} cpu in one pod", edits)


def _with_cpus(task: Task, cpus: int) -> Pod:
    pod = task.pod
    container = (pod.spec.containers or [])[0]

    def fewer(amounts: ResourceList | None) -> ResourceList | None:
        return {**amounts, CPU: str(cpus)} if amounts and CPU in amounts else amounts

    resources = container.resources
    changed = replace(resources, requests=fewer(resources.requests), limits=fewer(resources.limits))
    lowered = replace(container, resources=changed)
    return replace(pod, spec=replace(pod.spec, containers=[lowered]))


def _lowered(task: Task, resource: str, most: float) -> Pod:
    pod = task.pod
    container = (pod.spec.containers or [])[0]
    amount = str(int(most)) if resource in ("memory", "pods") else f"{int(most)}m"
    requests = {**(container.resources.requests or {}), resource: amount}
    lowered = replace(container, resources=replace(container.resources, requests=requests, limits=None))
    return replace(pod, spec=replace(pod.spec, containers=[lowered]))
