"""ResourceClaims from ResourceClaimTemplates, for a pod or a PodGroup. Kubernetes: the resourceclaim controller."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def claim_from_template(template: Object, name: str, owner: Object, annotation: str, reference: Object) -> Object:
    """The claim to create. `name`: of the entry in the spec of its owner, which `annotation` states; `reference`: the
    owner reference."""
    given = template["spec"].get("metadata") or {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": f"{owner['metadata']['name']}-{name}-",
            "namespace": owner["metadata"]["namespace"],
            "labels": given.get("labels") or {},
            "annotations": {**(given.get("annotations") or {}), annotation: name},
            "ownerReferences": [{key: value for key, value in reference.items() if key != "blockOwnerDeletion"}],
        },
        "spec": template["spec"]["spec"],
    }
