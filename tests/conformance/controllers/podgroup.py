"""The PodGroups of plain pods: what they look like, and when one is made, changed or left alone."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.conformance.controllers.comparing import NEVER_ASKED, existing, resting, see
from tests.conformance.controllers.writes import ours, recorded, same
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.api.kinds import BY_KIND, POD
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers import quota
from volcano_py.controllers.instructions import Instruction
from volcano_py.controllers.podgroup.controller import PodGroupController
from volcano_py.controllers.podgroup.reconcile import (
    OWNER_KINDS,
    _changes,
    _owner_references,
    build_podgroup,
    podgroup_name,
    reconcile,
)

Data = dict[str, Any]


def podgroup(case: Data) -> str:
    given, output = case["input"], case["output"]
    pod = from_manifest(Pod, given["pod"]) if "pod" in given else Pod()
    match case["operation"]:
        case "newPGOwnerReferences":
            return same(_owner_references(pod), output["r0"])
        case "CalTaskRequests":
            usage = quota.total([(quota.usage(given["pod"]["spec"]), given["validReplica"])])
            return "" if quota.same(usage, output["r0"]) else f"made {usage}"
        case "buildPodGroupFromPod":
            made = build_podgroup(pod, _owners(case, given["pod"]))
            made["metadata"]["name"] = given["pgName"]
            return same(_with_kind(made), output["r0"])
        case "shouldUpdateExistingPodGroup":
            changes = _changes(from_manifest(PodGroup, given["podGroup"]), build_podgroup(pod, []))
            after = _merged(given["podGroup"], changes)
            return same(bool(changes), output["r0"]) or same(after, case["after"]["podGroup"])
        case "createNormalPodPGIfNotExist" | "createOrUpdateNormalPodPG":
            found = _found(case, podgroup_name(pod))
            update = case["operation"].startswith("createOrUpdate")
            return _compared(reconcile(pod, found, _owners(case, given["pod"]), update), case)
    return _handled(case)


def _handled(case: Data) -> str:
    """What the controller does when an informer adds or updates an object."""
    obj = case["input"].get("obj") or case["input"]["newObj"]
    pods = existing(case, "Pod")
    if obj["kind"] != "Pod" and case.get("writes") and not any(p["metadata"].get("ownerReferences") for p in pods):
        return f"{NEVER_ASKED}a {obj['kind']} whose pods are not owned by it"
    return asyncio.run(_drive(case, obj))


async def _drive(case: Data, obj: Data) -> str:
    cluster = resting()
    done: list[Instruction] = []

    async def carry_out(instructions: list[Instruction], about: Any) -> None:
        done.extend(instructions)

    cluster.executor.carry_out = carry_out  # type: ignore[method-assign,assignment]
    state = case["state"]
    controller = PodGroupController(
        cluster, scheduler_names=state["schedulerNames"], inherit_owner_annotations=state["inheritOwnerAnnotations"]
    )
    see(cluster, [o for o in case.get("existing") or () if (o["apiVersion"], o["kind"]) in BY_KIND and o != obj])
    while len(controller.queue):
        controller.queue.done(await controller.queue.get())  # what was there before is not what is asked about
    see(cluster, [obj])
    if obj["kind"] == POD.kind:
        # theirs only notes the pod; the work is another case
        return ""
    while len(controller.queue):
        await controller.process(await controller.queue.get())
    return _compared(done, case)


def _compared(instructions: list[Instruction], case: Data) -> str:
    made, wanted = ours(instructions), recorded(case.get("writes") or ())
    for one in made:
        if one["resource"] == "podgroups" and one["verb"] == "patch":
            # theirs replaces the group, ours patches what differs
            found = next(o for o in existing(case, "PodGroup") if o["metadata"]["name"] == one["name"])
            one |= {"verb": "update", "object": _merged(found, one["object"])}
        elif one["verb"] == "create":
            one["object"] = _with_kind(one["object"])
    # theirs asks for what is there already, and is told so
    there = {o["metadata"]["name"] for o in existing(case, "PodGroup")}
    wanted = [w for w in wanted if not (w["verb"] == "create" and w["name"] in there)]
    return same(*(sorted(writes, key=lambda w: (w["resource"], w["verb"], w["name"])) for writes in (made, wanted)))


def _with_kind(manifest: Data) -> Data:
    """As the API server would store it: with its kind, and the default mode of a topology."""
    made = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", **manifest}
    if topology := made["spec"].get("networkTopology"):
        made["spec"] = {**made["spec"], "networkTopology": {"mode": "hard", **topology}}
    return made


def _merged(obj: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(obj, dict):
        return patch
    merged = {k: v for k, v in obj.items() if k not in patch}
    return merged | {k: _merged(obj.get(k), v) for k, v in patch.items() if v is not None}


def _owners(case: Data, pod: Data) -> list[dict[str, str]]:
    """The annotations of the pod's owners that exist, as the controller looks them up."""
    if not case["state"]["inheritOwnerAnnotations"]:
        return []
    found = []
    for owner in pod["metadata"].get("ownerReferences") or ():
        for obj in existing(case, owner["kind"]):
            if owner["kind"] in OWNER_KINDS and obj["metadata"]["name"] == owner["name"]:
                found.append(obj["metadata"].get("annotations") or {})
    return found


def _found(case: Data, name: str) -> PodGroup | None:
    found = next((o for o in existing(case, "PodGroup") if o["metadata"]["name"] == name), None)
    return from_manifest(PodGroup, found) if found else None


RUNNERS = {"podgroup": podgroup}
