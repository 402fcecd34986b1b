"""The Workload and the PodGroup of a Job. Kubernetes 1.37, gate WorkloadWithJob: the job controller's scheduling
manager.

A Job gets them before its first pod, and its pods name the PodGroup. Jobs of another controller, Jobs whose template
names a group, and Jobs that have started without one get none.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import features
from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.controllers.runtime.adoption import controller_reference
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.hashing import template_hash

Object = dict[str, Any]

GROUPS, WORKLOADS = "podgroups.scheduling.k8s.io", "workloads.scheduling.k8s.io"
_LONGEST = 63
"""Of a DNS label, such as the name of a template."""
_FIELDS = ("schedulingConstraints", "disruptionMode", "resourceClaims")
"""Of `spec.scheduling`, which the PodGroup has as well."""


def is_on(api: Api) -> bool:
    """Whether Jobs get groups."""
    return features.JOB in api.features


def wants_group(job: Object) -> bool:
    """Whether a Job, of the fields that never change, has groups of its own."""
    owners = job["metadata"].get("ownerReferences") or ()
    named = (job["spec"]["template"].get("spec") or {}).get("schedulingGroup")
    return not named and not any(owner.get("controller") for owner in owners)


async def group_of(client: Client, job: Object, started: bool) -> str:
    """The name of the PodGroup of a Job, which is created or brought up to date; "" if the Job has none. `started`:
    whether the Job has or had pods."""
    if not wants_group(job):
        return ""
    namespace, names = job["metadata"]["namespace"], _names(job)
    workload, template, group = names
    wanted = _policy(job)
    known = client.get(GROUPS, f"{namespace}/{group}")
    if known is None:
        if started:
            return ""
        await _create(client, job, names)
    elif (
        wanted != known["spec"]["schedulingPolicy"]
        and "gang" in wanted
        and not known["metadata"].get("deletionTimestamp")
    ):
        await client.update(WORKLOADS, f"{namespace}/{workload}", lambda copy: _set(copy, template, wanted))
        await client.update(
            GROUPS,
            f"{namespace}/{group}",
            lambda copy: copy["spec"].update(schedulingPolicy=wanted),
            uid=known["metadata"]["uid"],
        )
    return group


async def _create(client: Client, job: Object, names: tuple[str, str, str]) -> None:
    workload, template, group = names
    scheduling = job["spec"].get("scheduling") or {}
    spec = {"schedulingPolicy": _policy(job)} | {f: scheduling[f] for f in _FIELDS if scheduling.get(f)}
    of_pods = job["spec"]["template"].get("spec") or {}
    if of_pods.get("priorityClassName"):  # pods of another priority than the group's are rejected
        spec["priorityClassName"] = of_pods["priorityClassName"]
    reference = controller_reference(job)
    owner = {"apiGroup": "batch", "kind": "Job", "name": job["metadata"]["name"]}
    for collection, name, body in (
        (WORKLOADS, workload, {"controllerRef": owner, "podGroupTemplates": [{"name": template, **spec}]}),
        (GROUPS, group, {"workloadRef": {"workloadName": workload, "templateName": template}, **spec}),
    ):
        metadata = {"name": name, "namespace": job["metadata"]["namespace"], "ownerReferences": [reference]}
        for field in ("labels", "annotations"):
            queue = {k: v for k, v in (job["metadata"].get(field) or {}).items() if "volcano.sh/" in k}
            if queue:
                metadata[field] = queue
        try:
            await client.create(collection, {"metadata": metadata, "spec": body})
        except StatusError as error:
            if error.code != 409:
                raise


def _names(job: Object) -> tuple[str, str, str]:
    """The names of the Workload, of its template, and of the PodGroup: the same for each attempt."""
    name, hashed = job["metadata"]["name"], template_hash(job["metadata"]["uid"])[:5]
    workload = f"{name[: _LONGEST - 6]}-{hashed}"
    template = f"{name[: _LONGEST - 6]}-pgt-0"
    return workload, template, f"{workload}-{template}-{hashed}"


def _policy(job: Object) -> Object:
    policy = (job["spec"].get("scheduling") or {}).get("schedulingPolicy") or {}
    if policy.get("gang") is None:
        return {"basic": {}}
    least = policy["gang"].get("minCount")
    return {"gang": {"minCount": max(job["spec"]["parallelism"], 1) if least is None else least}}


def _set(workload: Object, template: str, policy: Object) -> None:
    for row in workload["spec"]["podGroupTemplates"]:
        if row["name"] == template:
            row["schedulingPolicy"] = policy
