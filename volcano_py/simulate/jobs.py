"""PodGroups and pods for pending Volcano Jobs, as the controllers create them. Volcano: the first sync of a job.

Objects that are already described (from a cluster in which the controllers run) are not created again. The pods of a
task that depends on other tasks are created later, and therefore not here.
"""

from __future__ import annotations

from collections.abc import Iterator

from volcano_py.api import batch
from volcano_py.api.codec import from_manifest
from volcano_py.api.kinds import JOB
from volcano_py.controllers.job.podgroup import build_podgroup
from volcano_py.controllers.job.pods import build_pod, podgroup_name
from volcano_py.simulate.manifests import Manifest
from volcano_py.webhooks.job_defaults import defaulted_job
from volcano_py.webhooks.jobs import validate_job_create
from volcano_py.webhooks.lookup import QueueIndex

MAX_PODS = 100_000
"""The limit of pods per job, so that a typing error does not exhaust the memory."""


def is_job(manifest: Manifest) -> bool:
    return manifest.get("kind") == JOB.kind and manifest.get("apiVersion") == JOB.api_version


def expand(objects: list[Manifest]) -> tuple[list[Manifest], list[str]]:
    """PodGroups and pods of the jobs among the objects, and the reasons why admission would deny others. Namespaces
    and UIDs are set, and queues have the defaults of admission."""
    queues = QueueIndex(o for o in objects if o["kind"] == "Queue")
    classes = {o["metadata"]["name"]: int(o.get("value") or 0) for o in objects if o["kind"] == "PriorityClass"}
    known = {_key(o) for o in objects}
    made: list[Manifest] = []
    rejected: list[str] = []
    for o in objects:
        if not is_job(o):
            continue
        try:
            mutated = defaulted_job(o)
            job = from_manifest(batch.Job, mutated)
            if job.status.state.phase not in ("", batch.PENDING):
                continue
            group = "PodGroup", job.metadata.namespace, podgroup_name(job)
            problems = [] if group in known else validate_job_create(mutated, queues)
            if problems:
                rejected.append("; ".join(problems))
                continue
            made += [m for m in (build_podgroup(job, classes), *_pods(job)) if _key(m) not in known]
        except (ValueError, TypeError, AttributeError, KeyError) as e:  # a pod template can be any JSON
            rejected.append(f"Job {o['metadata']['namespace']}/{o['metadata']['name']}: {e}")
    return made, rejected


def _pods(job: batch.Job) -> Iterator[Manifest]:
    if sum(task.replicas for task in job.spec.tasks or ()) > MAX_PODS:
        raise ValueError(f"spec.tasks: more than {MAX_PODS:,} replicas; use fewer")
    for task in job.spec.tasks or ():
        if task.depends_on is None or not task.depends_on.name:
            for index in range(task.replicas):
                yield build_pod(job, task, index)


def _key(o: Manifest) -> tuple[str, str, str]:
    return o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]
