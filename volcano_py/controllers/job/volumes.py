"""PersistentVolumeClaims of a Job: existing claims are checked, others are created. Volcano: createJobIO."""

from __future__ import annotations

import copy
from typing import Any

from volcano_py.api.batch import Job, JobStatus
from volcano_py.api.kinds import JOB, PERSISTENTVOLUMECLAIM
from volcano_py.controllers.instructions import Create, Instruction, Patch
from volcano_py.controllers.job.observed import Observed, Unready
from volcano_py.controllers.job.pods import owner_reference, stable_suffix

BLAME = "PVCError"


def claim_name(job: Job, index: int) -> str:
    """The name of the claim of volume `index`: the specified one, or the one it is created with."""
    volume = (job.spec.volumes or [])[index]
    if volume.volume_claim_name:
        return volume.volume_claim_name
    return f"{job.metadata.name}-pvc-{stable_suffix(job.metadata.uid, str(index))}"


def keep_claims(seen: Observed, status: JobStatus) -> list[Instruction]:
    """Create the claims that the Job describes and record all of them in the status.

    Raises Unready if a specified claim does not exist.
    """
    job = seen.job
    instructions: list[Instruction] = []
    names: list[dict[str, Any]] = []
    for index, volume in enumerate(job.spec.volumes or ()):
        name = claim_name(job, index)
        if name not in seen.claims:
            if volume.volume_claim is None:
                why = f"pvc {name} is not found, the job will be in the Pending state until the PVC is created"
                raise Unready(BLAME, why, from_outside=True)
            claim = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": name,
                    "namespace": job.metadata.namespace,
                    "ownerReferences": [owner_reference(job)],
                },
                "spec": copy.deepcopy(volume.volume_claim),
            }
            instructions.append(Create(PERSISTENTVOLUMECLAIM, claim, BLAME))
        if not volume.volume_claim_name:
            names.append({"op": "add", "path": f"/spec/volumes/{index}/volumeClaimName", "value": name})
        if status.controlled_resources is None:
            status.controlled_resources = {}
        status.controlled_resources[f"volume-pvc-{name}"] = name
    if names:
        uid = {"op": "test", "path": "/metadata/uid", "value": job.metadata.uid}
        metadata = job.metadata
        instructions.append(Patch(JOB, metadata.namespace, metadata.name, [uid, *names], "json", blame=BLAME))
    return instructions
