"""The ReplicaSets of a Deployment as its revisions: the newest one, their numbers, which ones to delete.

Kubernetes: the deployment controller's deployment_util.go.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.controllers.apps.deployment_rollout import DESIRED, MAXIMUM, by_age, max_surge, size
from volcano_py.sandbox.controllers.runtime.adoption import controller_reference
from volcano_py.sandbox.controllers.runtime.hashing import template_hash

Object = dict[str, Any]

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
_OWN = {
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAXIMUM,
    "deprecated.deployment.rollback.to",
}


def split(deployment: Object, sets: list[Object]) -> tuple[Object | None, list[Object]]:
    """The ReplicaSet of the current template (the oldest one, if there are several), and the others."""
    wanted = deployment["spec"]["template"]
    new = next((row for row in by_age(sets) if _bare(row["spec"]["template"]) == wanted), None)
    return new, [row for row in by_age(sets) if row is not new]


def _bare(template: Object) -> Object:
    """A ReplicaSet's template without the label that the controller has added."""
    meta = dict(template.get("metadata") or {})
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH_LABEL}
    meta.pop("labels", None)
    return {**template, "metadata": {**meta, "labels": labels} if labels else meta}


def new_replica_set(deployment: Object, replicas: int, revision: int) -> Object:
    """The ReplicaSet of a new template."""
    spec, meta = deployment["spec"], deployment["metadata"]
    hashed = template_hash(spec["template"], (deployment.get("status") or {}).get("collisionCount"))
    template = dict(spec["template"])
    given = dict(template.get("metadata") or {})
    given["labels"] = {**(given.get("labels") or {}), HASH_LABEL: hashed}
    template["metadata"] = given
    selector = dict(spec["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: hashed}
    made: Object = {"replicas": replicas, "selector": selector, "template": template}
    if spec.get("minReadySeconds"):
        made["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name']}-{hashed}",
            "namespace": meta["namespace"],
            "labels": dict(given["labels"]),
            "annotations": {**inherited(deployment), **size_annotations(deployment), REVISION: str(revision)},
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": made,
    }


def inherited(deployment: Object) -> Object:
    """The annotations that are copied from a Deployment to its ReplicaSets."""
    annotations = deployment["metadata"].get("annotations") or {}
    return {key: value for key, value in annotations.items() if key not in _OWN}


def size_annotations(deployment: Object) -> Object:
    """The annotations of a ReplicaSet with the Deployment's size, from which later changes are detected."""
    return {DESIRED: str(size(deployment)), MAXIMUM: str(size(deployment) + max_surge(deployment))}


def revision(obj: Object) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(REVISION, "")
    return int(text) if text.isdigit() else 0


def next_revision(olds: list[Object]) -> int:
    return max(map(revision, olds), default=0) + 1


def newest_annotations(deployment: Object, new: Object, olds: list[Object]) -> Object:
    """The annotations of the newest ReplicaSet; its old number is added to its history."""
    annotations = {**(new["metadata"].get("annotations") or {}), **inherited(deployment)}
    number = next_revision(olds)
    if revision(new) < number:
        if revision(new):
            history = [text for text in annotations.get(HISTORY, "").split(",") if text]
            annotations[HISTORY] = ",".join([*history, str(revision(new))])
        annotations[REVISION] = str(number)
    return annotations


def outdated(deployment: Object, olds: list[Object]) -> list[Object]:
    """Old ReplicaSets beyond revisionHistoryLimit."""
    limit = deployment["spec"].get("revisionHistoryLimit", 10)
    idle = [
        row
        for row in olds
        if not size(row)
        and not (row.get("status") or {}).get("replicas")
        and not row["metadata"].get("deletionTimestamp")
        and (row.get("status") or {}).get("observedGeneration", 0) >= row["metadata"].get("generation", 0)
    ]
    spare = len(olds) - limit
    return sorted(idle, key=revision)[:spare] if spare > 0 else []
