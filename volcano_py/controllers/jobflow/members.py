"""The Jobs of a JobFlow: their names, their selection, and their manifests.

The Job of an entry has the spec of the JobTemplate with the entry's name, merged with the entry's patch.
"""

from __future__ import annotations

from typing import Any

import msgspec

from volcano_py.api import names
from volcano_py.api.batch import Job
from volcano_py.api.flow import Flow, JobFlow, JobTemplate
from volcano_py.api.kinds import JOB, JOBFLOW
from volcano_py.controllers.jobflow.merge import merge_spec


def job_name(flow: str, entry: str) -> str:
    """The name of the Job of an entry."""
    return f"{flow}-{entry}"


def mark(namespace: str, name: str) -> str:
    """The value that refers to a JobFlow or JobTemplate in the labels of Jobs."""
    return f"{namespace}.{name}"


def is_made_by(job: Job, flow: JobFlow) -> bool:
    """Whether a Job has the label of this JobFlow."""
    metadata = flow.metadata
    wanted = mark(metadata.namespace, metadata.name)
    return (job.metadata.labels or {}).get(names.CREATED_BY_JOB_FLOW) == wanted


def is_foreign(job: Job, flow: JobFlow) -> bool:
    """Whether a Job has the name of one of the JobFlow's Jobs, but another owner."""
    owner = job.metadata.controller
    return owner is None or owner.kind != JOBFLOW.kind or owner.uid != flow.metadata.uid


def entries(flow: JobFlow) -> dict[str, Flow]:
    """The entries by name; of two with one name the last one counts, as in admission."""
    return {entry.name: entry for entry in flow.spec.flows or ()}


def spec_of(template: JobTemplate, entry: Flow) -> dict[str, Any]:
    """The spec of an entry's Job, as plain JSON."""
    plain: dict[str, Any] = msgspec.to_builtins(template.spec)
    patch = entry.patch.job_spec if entry.patch else None
    return merge_spec(plain, patch) if patch else plain


def make_job(flow: JobFlow, entry: Flow, template: JobTemplate) -> dict[str, Any]:
    """The Job of an entry."""
    metadata = flow.metadata
    marks = {
        names.CREATED_BY_JOB_TEMPLATE: mark(metadata.namespace, entry.name),
        names.CREATED_BY_JOB_FLOW: mark(metadata.namespace, metadata.name),
    }
    owner = {
        "apiVersion": JOBFLOW.api_version,
        "kind": JOBFLOW.kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": {
            "name": job_name(metadata.name, entry.name),
            "namespace": metadata.namespace,
            "labels": dict(marks),
            "annotations": dict(marks),
            "ownerReferences": [owner],
        },
        "spec": spec_of(template, entry),
    }


def expires(template: JobTemplate | None, entry: Flow) -> bool:
    """Whether the entry's Job is deleted automatically some time after it has finished."""
    patch = (entry.patch.job_spec or {}) if entry.patch else {}
    if "ttlSecondsAfterFinished" in patch:
        return patch["ttlSecondsAfterFinished"] is not None
    return template is not None and template.spec.ttl_seconds_after_finished is not None
