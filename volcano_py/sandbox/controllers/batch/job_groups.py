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
from volcano_py.sandbox.controllers.runtime.hashing import safe_hash

Object = dict[str, Any]

API_VERSION = "scheduling.k8s.io/v1beta1"
GROUPS, WORKLOADS = "podgroups.scheduling.k8s.io", "workloads.scheduling.k8s.io"
_LONGEST = 63
"""Of a DNS label, such as the name of a template."""
_LONGEST_NAME = 253
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
    owner = {"apiGroup": "batch", "kind": "Job", "name": job["metadata"]["name"]}
    body: Object = {"controllerRef": owner, "podGroupTemplates": [{"name": template, **spec}]}
    made = await _created(client, job, WORKLOADS, workload, body, [])
    link = {"apiVersion": API_VERSION, "kind": "Workload", "name": workload, "uid": made["metadata"]["uid"]}
    body = {"workloadRef": {"workloadName": workload, "templateName": template}, **spec}
    await _created(client, job, GROUPS, group, body, [link])


async def _created(
    client: Client, job: Object, collection: str, name: str, spec: Object, owners: list[Object]
) -> Object:
    """The object of this name. `owners`: in addition to the Job."""
    metadata = {
        "name": name,
        "namespace": job["metadata"]["namespace"],
        "ownerReferences": [controller_reference(job), *owners],
    }
    for field in ("labels", "annotations"):
        queue = {k: v for k, v in (job["metadata"].get(field) or {}).items() if "volcano.sh/" in k}
        if queue:
            metadata[field] = queue
    try:
        made = await client.create(collection, {"metadata": metadata, "spec": spec})
    except StatusError as error:
        known = client.get(collection, f"{metadata['namespace']}/{name}")
        if error.code != 409 or known is None:
            raise
        return known
    kind = "Workload" if collection == WORKLOADS else "PodGroup"
    text = f"Created {kind} {name} for Job {job['metadata']['name']}"
    await client.event(job, "Normal", f"{kind}Created", text)
    return made


def _names(job: Object) -> tuple[str, str, str]:
    """The names of the Workload, of its template, and of the PodGroup, as kube-controller-manager makes them."""
    name = job["metadata"]["name"]
    hashed = safe_hash(f"(types.UID){job['metadata']['uid']}".encode())
    workload = f"{name[: _LONGEST_NAME - len(hashed) - 1]}-{hashed}"
    template = f"{name[: _LONGEST - 6]}-pgt-0"
    hashed = safe_hash(f"{workload}{template}".encode())
    rest = _LONGEST_NAME - len(hashed) - 2 - len(template)
    return workload, template, f"{workload[:rest]}-{template}-{hashed}"


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
