"""Volumes in a third of the runs: classes, local volumes of nodes, claims of pods and Jobs, and Kubernetes' controllers
of volumes, which are those of the sandbox."""

from __future__ import annotations

from random import Random

from tests.dst.manifests import Manifest
from tests.dst.parts import Call, Part
from tests.dst.server import ApiServer
from tests.dst.storage_oracle import claims_of, node_of
from tests.dst.virtual import chance
from volcano_py.sandbox.controllers.storage import persistent_volume, volume_protection

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
DRIVER = "csi.simulated"
LOCAL, WAITING, IMMEDIATE = "local", "waiting", "immediate"


class Storage(Part):
    """The volumes of a run."""

    name = "volumes"
    share = 0.35

    def __init__(self, server: ApiServer, seed: str, call: Call) -> None:
        super().__init__(server, seed, call)
        self._local = 0

    async def begin(self) -> None:
        """Classes, and the controllers of volumes."""
        if not self.used:
            return
        rows = ((LOCAL, "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
                (WAITING, DRIVER, "WaitForFirstConsumer"), (IMMEDIATE, DRIVER, "Immediate"))  # fmt: skip
        for name, provisioner, mode in rows:
            body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
            await self._call("POST", CLASSES, body, "user")
        self._server.run(persistent_volume.controller, volume_protection.controller)

    async def node_created(self, node: str) -> None:
        """A node has local volumes, and a limit of attached ones."""
        if not self.used:
            return
        limit = 1 + int(4 * chance(self._seed, "limit of volumes", node))
        driver = {"name": DRIVER, "nodeID": node, "topologyKeys": [], "allocatable": {"count": limit}}
        body = {"metadata": {"name": node}, "spec": {"drivers": [driver]}}
        await self._call("POST", CSI_NODES, body, "node")
        for _ in range(2):
            await self._add_local(node)

    async def _add_local(self, node: str) -> None:
        self._local += 1
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
        spec = {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": LOCAL,
            "local": {"path": f"/mnt/{self._local}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }
        await self._call("POST", VOLUMES, {"metadata": {"name": f"l{self._local}"}, "spec": spec}, "node")

    async def dress(self, pods: list[Manifest], name: str) -> None:
        """Give some pods a claim each, or all of them one claim."""
        if not self.used:
            return
        drawn = chance(self._seed, "claims of", name)
        if drawn < 0.1:
            if await self._create_claim(name):
                for pod in pods:
                    _mount(pod, name)
        elif drawn < 0.5:
            for pod in pods:
                own = f"{pod['metadata']['name']}-v"
                if chance(self._seed, "claim of", own) < 0.7 and await self._create_claim(own):
                    _mount(pod, own)

    async def _create_claim(self, name: str) -> bool:
        return await self._call("POST", CLAIMS, {"metadata": {"name": name}, "spec": self._spec(name)}, "user") < 400

    def _spec(self, name: str) -> Manifest:
        random = Random(f"{self._seed} claim {name}")
        mode = "ReadWriteOncePod" if random.random() < 0.3 else "ReadWriteOnce"
        return {
            "accessModes": [mode],
            "storageClassName": random.choice((LOCAL, LOCAL, WAITING, WAITING, IMMEDIATE)),
            "resources": {"requests": {"storage": random.choice(("1Gi", "2Gi"))}},
        }

    def dress_job(self, job: Manifest) -> None:
        """Some Jobs have a volume, whose claim the controller creates for all of their pods."""
        name = job["metadata"]["name"]
        if self.used and chance(self._seed, "volume of job", name) < 0.4:
            job["spec"]["volumes"] = [{"mountPath": "/data", "volumeClaim": self._spec(name)}]

    async def tidy(self) -> None:
        """Delete claims whose pods are gone, and replace local volumes that were deleted with their claims."""
        if not self.used:
            return
        wanted = {key for pod in self._server.objects("pods").values() for key in claims_of(pod)}
        for key, claim in self._server.objects("persistentvolumeclaims").items():
            if key not in wanted and not claim["metadata"].get("ownerReferences"):
                await self._call("DELETE", f"{CLAIMS}/{key.partition('/')[2]}", None, "user")
        there = [node_of(volume) for volume in self._server.objects("persistentvolumes").values()]
        for node in sorted(self._server.objects("nodes")):
            if there.count(node) < 2:
                await self._add_local(node)


def _mount(pod: Manifest, claim: str) -> None:
    pod["spec"].setdefault("volumes", []).append(
        {"name": f"v{len(pod['spec'].get('volumes', []))}", "persistentVolumeClaim": {"claimName": claim}}
    )
