"""Devices of DRA drivers in a quarter of the runs: slices of nodes, claims of pods and gangs, and the controller of
claims, which is that of the sandbox."""

from __future__ import annotations

from tests.dst.devices_oracle import EXTENDED
from tests.dst.manifests import Manifest
from tests.dst.parts import Call, Part
from tests.dst.server import ApiServer
from tests.dst.virtual import chance
from volcano_py.sandbox.controllers.resource import resource_claim

_API = "/apis/resource.k8s.io/v1"
CLASSES, SLICES = f"{_API}/deviceclasses", f"{_API}/resourceslices"
CLAIMS = f"{_API}/namespaces/default/resourceclaims"
TEMPLATES = f"{_API}/namespaces/default/resourceclaimtemplates"
DRIVER = "dev.simulated"


class Devices(Part):
    """The devices of a run."""

    name = "devices"
    share = 0.25

    def __init__(self, server: ApiServer, seed: str, call: Call) -> None:
        super().__init__(server, seed, call)

    async def begin(self) -> None:
        """A class, templates of claims, and the controller of claims."""
        if not self.used:
            return
        expression = f"device.driver == '{DRIVER}'"
        selectors = [{"cel": {"expression": expression}}]
        body = {"metadata": {"name": "dev"}, "spec": {"selectors": selectors, "extendedResourceName": EXTENDED}}
        await self._call("POST", CLASSES, body, "user")
        for count in (1, 2):
            body = {"metadata": {"name": f"of-{count}"}, "spec": {"spec": _request(count)}}
            await self._call("POST", TEMPLATES, body, "user")
        self._server.run(resource_claim.controller)

    async def node_created(self, node: str) -> None:
        """A node has one to three devices."""
        if not self.used:
            return
        count = 1 + int(3 * chance(self._seed, "devices of", node))
        spec = {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{i}"} for i in range(count)],
        }
        await self._call("POST", SLICES, {"metadata": {"name": f"{node}-devices"}, "spec": spec}, "node")

    async def dress(self, pods: list[Manifest], name: str) -> None:
        """Give some pods a claim each, or all of them one claim; some request devices as a resource."""
        if not self.used:
            return
        drawn = chance(self._seed, "devices of", name)
        if drawn > 0.85:
            for pod in pods:
                for amounts in pod["spec"]["containers"][0]["resources"].values():
                    amounts[EXTENDED] = "1"
        if drawn < 0.1:
            body = {"metadata": {"name": name}, "spec": _request(1)}
            if await self._call("POST", CLAIMS, body, "user") < 400:
                for pod in pods:
                    _use(pod["spec"], {"resourceClaimName": name})
        elif drawn < 0.5:
            for pod in pods:
                if (own := chance(self._seed, "device of", pod["metadata"]["name"])) < 0.7:
                    _use(pod["spec"], {"resourceClaimTemplateName": f"of-{1 if own < 0.5 else 2}"})

    def dress_job(self, job: Manifest) -> None:
        """The pods of some Jobs have a claim each."""
        if self.used and chance(self._seed, "devices of job", job["metadata"]["name"]) < 0.4:
            for task in job["spec"]["tasks"]:
                _use(task["template"]["spec"], {"resourceClaimTemplateName": "of-1"})

    async def tidy(self) -> None:
        """Delete the claims of gangs whose pods are gone."""
        if not self.used:
            return
        wanted = {
            f"default/{entry.get('resourceClaimName')}"
            for pod in self._server.objects("pods").values()
            for entry in pod["spec"].get("resourceClaims") or ()
        }
        for key, claim in self._server.objects("resourceclaims.resource.k8s.io").items():
            if key not in wanted and not claim["metadata"].get("ownerReferences"):
                await self._call("DELETE", f"{CLAIMS}/{key.partition('/')[2]}", None, "user")


def _request(count: int) -> Manifest:
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "dev", "count": count}}]}}


def _use(spec: Manifest, source: Manifest) -> None:
    spec["resourceClaims"] = [{"name": "d", **source}]
    for container in spec["containers"]:
        container["resources"]["claims"] = [{"name": "d"}]
