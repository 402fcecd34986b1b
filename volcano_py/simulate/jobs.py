"""Volcano Jobs that wait, as what the controllers make of them: a PodGroup and pods. Volcano: the first sync of a job.

What is described already (from a cluster in which the controllers run) is not made again. Pods of a task that depends
on others are made later, and so not here.
"""

from __future__ import annotations

from collections.abc import Iterator

from volcano_py.api import batch
from volcano_py.api.codec import from_manifest
from volcano_py.api.kinds import JOB
from volcano_py.controllers.job.podgroup import build_podgroup
from volcano_py.controllers.job.pods import build_pod, podgroup_name
from volcano_py.simulate.manifests import Manifest
from volcano_py.webhooks.jobs import mutate_job, validate_job_create
from volcano_py.webhooks.lookup import QueueIndex

MOST_PODS = 100_000
"""More pods of one job are a slip of the keyboard, and no reason to run out of memory."""


def is_job(manifest: Manifest) -> bool:
    return manifest.get("kind") == JOB.kind and manifest.get("apiVersion") == JOB.api_version


def expand(objects: list[Manifest]) -> tuple[list[Manifest], list[str]]:
    """PodGroups and pods of the jobs among the objects, and which jobs would be refused, with the reason. Namespaces
    and UIDs are filled in, and queues are as admission leaves them."""
    queues = QueueIndex(o for o in objects if o["kind"] == "Queue")
    classes = {o["metadata"]["name"]: int(o.get("value") or 0) for o in objects if o["kind"] == "PriorityClass"}
    known = {_key(o) for o in objects}
    made: list[Manifest] = []
    refused: list[str] = []
    for o in objects:
        if not is_job(o):
            continue
        try:
            mutated = mutate_job(o)
            job = from_manifest(batch.Job, mutated)
            if job.status.state.phase not in ("", batch.PENDING):
                continue
            group = "PodGroup", job.metadata.namespace, podgroup_name(job)
            problems = [] if group in known else validate_job_create(mutated, queues)
            if problems:
                refused.append("; ".join(problems))
                continue
            made += [m for m in (build_podgroup(job, classes), *_pods(job)) if _key(m) not in known]
        except (ValueError, TypeError, AttributeError, KeyError) as e:  # a pod template is any JSON
            refused.append(f"Job {o['metadata']['namespace']}/{o['metadata']['name']}: {e}")
    return made, refused


def _pods(job: batch.Job) -> Iterator[Manifest]:
    if sum(task.replicas for task in job.spec.tasks or ()) > MOST_PODS:
        raise ValueError(f"spec.tasks: more than {MOST_PODS:,} replicas; ask for fewer")
    for task in job.spec.tasks or ():
        if task.depends_on is None or not task.depends_on.name:
            for index in range(task.replicas):
                yield build_pod(job, task, index)


def _key(o: Manifest) -> tuple[str, str, str]:
    return o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]
