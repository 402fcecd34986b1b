"""Admission of PodGroups. Volcano: /podgroups/mutate and /podgroups/validate."""

from __future__ import annotations

import copy
from typing import Any

from volcano_py.api import names
from volcano_py.api.scheduling import DEFAULT_QUEUE, QUEUE_OPEN
from volcano_py.webhooks.jobs import check_topology
from volcano_py.webhooks.lookup import Manifest, Queues, about, state_of


def mutate_podgroup(podgroup: Manifest, namespace: Manifest | None) -> dict[str, Any]:
    """The PodGroup in the queue of its namespace's annotation, if its queue is the default one."""
    mutated = copy.deepcopy(dict(podgroup))
    annotations = ((namespace or {}).get("metadata") or {}).get("annotations") or {}
    queue = annotations.get(names.POD_QUEUE_NAME)
    if queue and (mutated.get("spec") or {}).get("queue") == DEFAULT_QUEUE:
        mutated["spec"]["queue"] = queue
    return mutated


def validate_podgroup(podgroup: Manifest, queues: Queues) -> list[str]:
    """Problems of a new PodGroup. Unlike Jobs, PodGroups may use root and inner queues."""
    spec = podgroup.get("spec") or {}
    problems = []
    if name := spec.get("queue"):
        queue = queues.get(name)
        if queue is None:
            problems.append(
                f"spec.queue: Invalid value: {name!r}: unable to find queue: queue {name!r} not found; "
                "create it, or use another queue"
            )
        elif state_of(queue) != QUEUE_OPEN:
            state = state_of(queue)
            problems.append(
                f"spec.queue: Invalid value: {name!r}: can only submit PodGroup to queue with state `Open`, "
                f"queue `{name}` status is `{state}`; open it, or use another queue"
            )
    problems.extend(check_topology("spec.networkTopology", spec.get("networkTopology")))
    for policy in spec.get("subGroupPolicy") or ():
        path = f"spec.subGroupPolicy: in subGroupPolicy '{policy.get('name', '')}'"
        problems.extend(check_topology(path, policy.get("networkTopology")))
    return about("podgroup", podgroup, problems)
