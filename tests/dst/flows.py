"""JobFlows in a fifth of the runs, and what must hold of their Jobs. Plain objects, and nothing of the product."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.dst import manifests
from tests.dst.oracle import state_of
from tests.dst.parts import Call, Part
from tests.dst.server import ApiServer
from tests.dst.virtual import chance

Object = dict[str, Any]

_API = "flow.volcano.sh/v1alpha1"
FLOWS = f"/apis/{_API}/namespaces/default/jobflows"
TEMPLATES = f"/apis/{_API}/namespaces/default/jobtemplates"
KIND, JOBS = "jobflows.flow.volcano.sh", "jobs.batch.volcano.sh"
DEPENDS = {"a": (), "b": ("a",), "c": ("a", "b")}
"""The entries of each flow, and what they wait for."""
MOST = 3
"""Flows in a run: each has up to three pods."""


class JobFlows(Part):
    """The JobFlows of a run."""

    name = "flows"
    share = 0.2

    def __init__(self, server: ApiServer, seed: str, call: Call) -> None:
        super().__init__(server, seed, call)
        self._flows = 0

    async def begin(self) -> None:
        """The templates."""
        for name in DEPENDS if self.used else ():
            spec = manifests.job(name, Random(f"{self._seed} template {name}"), "default")["spec"]
            spec["tasks"][0]["replicas"] = spec["minAvailable"] = 1
            body = {"apiVersion": _API, "kind": "JobTemplate", "metadata": {"name": name}, "spec": spec}
            await self._call("POST", TEMPLATES, body, "user")

    async def step(self, number: int) -> None:
        """A step of the users, in addition to the others."""
        if not self.used or self._flows >= MOST or chance(self._seed, "flow", number) > 0.05:
            return
        self._flows += 1
        entries = [{"name": name, **({"dependsOn": {"targets": [*of]}} if of else {})} for name, of in DEPENDS.items()]
        spec = {"flows": entries, "jobRetainPolicy": "retain"}
        body = {"apiVersion": _API, "kind": "JobFlow", "metadata": {"name": f"f{number}"}, "spec": spec}
        await self._call("POST", FLOWS, body, "user")

    def created(self, job: Object) -> list[str]:
        """What is wrong with a Job that was created just now: those that it waits for have not completed."""
        owners = job["metadata"].get("ownerReferences") or ()
        flow = next((owner["name"] for owner in owners if owner["kind"] == "JobFlow"), None)
        if flow is None:
            return []
        entry = job["metadata"]["name"].removeprefix(f"{flow}-")
        return [
            f"JobFlow {flow} starts {entry} before {target} has completed"
            for target in DEPENDS[entry]
            if self._phase(flow, target) not in ("Completed", None)  # None: a user has deleted it
        ]

    def _phase(self, flow: str, entry: str) -> str | None:
        """The phase of an entry's Job; None: there is none."""
        job = self._server.objects(JOBS).get(f"default/{flow}-{entry}")
        return None if job is None else state_of(job)

    def left(self) -> list[str]:
        """Jobs that are missing at the end. A flow that has ended does not create those again that users delete."""
        found = []
        for flow in self._server.objects(KIND).values():
            name, state = flow["metadata"]["name"], state_of(flow)
            if flow["metadata"].get("deletionTimestamp") or state in ("Succeed", "Failed", "Terminating"):
                continue
            found += [
                f"JobFlow {name} ({state}) has no Job for {entry}"
                for entry, targets in DEPENDS.items()
                if self._phase(name, entry) is None and all(self._phase(name, of) == "Completed" for of in targets)
            ]
        return found
