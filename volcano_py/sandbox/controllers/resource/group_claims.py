"""ResourceClaims of PodGroups: one for each template of a group, which its pods share. Kubernetes: the resource claim
controller with the feature gate DRAWorkloadResourceClaims.

A claim belongs to its group, is named in `status.resourceClaimStatuses` of the group, and is released with the group.
"""

from __future__ import annotations

from typing import Any, Final

from volcano_py.sandbox.apiserver.apimachinery import features
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.controllers.resource.template_claims import claim_from_template
from volcano_py.sandbox.controllers.runtime.adoption import controller_reference
from volcano_py.sandbox.controllers.runtime.client import Client

Object = dict[str, Any]

GROUPS: Final = "podgroups.scheduling.k8s.io"
CLAIMS: Final = "resourceclaims.resource.k8s.io"
TEMPLATES: Final = "resourceclaimtemplates.resource.k8s.io"
ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"
"""The name of a claim in its group."""


def is_served(api: Api) -> bool:
    """Whether groups have claims."""
    return features.CLAIMS in api.features and api.registry.find("scheduling.k8s.io", "podgroups") is not None


def group_of(pod: Object) -> str:
    """The key of the group that a pod names, or ""."""
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "")
    return f"{pod['metadata']['namespace']}/{name}" if name else ""


def entry_of(group: Object, row: Object) -> bool:
    """Whether a claim of a pod is one of its group: the same name and the same template."""
    rows = group["spec"].get("resourceClaims") or ()
    field = "resourceClaimTemplateName"
    return any(each["name"] == row["name"] and each.get(field) == row.get(field) for each in rows)


def claim_of(group: Object, name: str) -> str:
    """The claim of a group with this name, or "" until it is made."""
    rows = (group.get("status") or {}).get("resourceClaimStatuses") or ()
    return next((row.get("resourceClaimName") or "" for row in rows if row["name"] == name), "")


class GroupClaims:
    """Makes the claims of groups. `waiting`: groups whose template is missing."""

    def __init__(self, api: Api, client: Client) -> None:
        self._client = client
        self._claims = api.resource("resource.k8s.io", "resourceclaims").collection
        self.waiting: set[str] = set()

    async def sync(self, key: str) -> None:
        """Make the missing claims of a group, and name them in its status."""
        self.waiting.discard(key)
        group = self._client.get(GROUPS, key)
        if group is None or group["metadata"].get("deletionTimestamp"):
            return
        status = group.get("status") or {}
        made = {row["name"]: row for row in status.get("resourceClaimStatuses") or ()}
        before = dict(made)
        for row in group["spec"].get("resourceClaims") or ():
            template = row.get("resourceClaimTemplateName")
            if template and row["name"] not in made:
                name = await self._claim(group, row["name"], template, key)
                if name:
                    made[row["name"]] = {"name": row["name"], "resourceClaimName": name}
        if made != before:
            await self._client.set_status(GROUPS, group, {**status, "resourceClaimStatuses": list(made.values())})

    async def _claim(self, group: Object, name: str, template: str, key: str) -> str:
        meta = group["metadata"]
        for entry in self._claims.select(meta["namespace"]):
            found = entry.load()["metadata"]
            mine = any(owner["uid"] == meta["uid"] for owner in found.get("ownerReferences") or ())
            if mine and (found.get("annotations") or {}).get(ANNOTATION) == name:
                return entry.name  # its name was not written yet
        described = self._client.get(TEMPLATES, f"{meta['namespace']}/{template}")
        if described is None:
            self.waiting.add(key)
            text = f"PodGroup claim {name}: resourceclaimtemplate.resource.k8s.io {template!r} not found"
            await self._client.event(group, "Warning", "FailedResourceClaimCreation", text)
            return ""
        wanted = claim_from_template(described, name, group, ANNOTATION, controller_reference(group))
        made = await self._client.create(CLAIMS, wanted)
        return str(made["metadata"]["name"])
