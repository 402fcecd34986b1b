"""The queue controller: which PodGroups it counts for a queue, and what a sync writes."""

from __future__ import annotations

from typing import Any

from tests.conformance.controllers.comparing import COVERED, NEVER_ASKED, in_a_loop, resting, see
from tests.conformance.controllers.writes import ours, recorded, same
from volcano_py.api import bus
from volcano_py.api.codec import from_manifest
from volcano_py.api.kinds import PODGROUP, QUEUE
from volcano_py.api.scheduling import Queue
from volcano_py.controllers.queue.controller import QueueController
from volcano_py.controllers.queue.reconcile import Observed, reconcile

Data = dict[str, Any]


def queue(case: Data) -> str:
    if case["operation"] == "syncQueue":
        return _synced(case)
    return str(in_a_loop(lambda: _handled(case)))


def _synced(case: Data) -> str:
    found = from_manifest(Queue, case["input"]["queue"])
    instructions, _ = reconcile(Observed(queue=found), bus.SYNC_QUEUE)
    made, wanted = ours(instructions), recorded(case["writes"])
    if not made and found.status.state and wanted[0]["object"]["status"]["state"] != found.status.state:
        return f"{NEVER_ASKED}a test hands over a state function of its own"
    return same(made, wanted)


def _handled(case: Data) -> str:
    cluster = resting()
    controller = QueueController(cluster)
    mirror = cluster.mirror(PODGROUP)
    before, given = case["state"]["podGroups"], case["input"]
    for name, groups in before.items():
        see(cluster, [_group(key, name) for key in groups or ()])
    obj = given.get("obj") or given.get("new")
    match case["operation"]:
        case "addQueue" | "addPodGroup" | "updatePodGroup":
            see(cluster, [obj])
        case "deletePodGroup":
            for group in mirror.all():
                mirror.informer._drop(group.key, group)
        case "deleteQueue":
            see(cluster, [obj])
            queues = cluster.mirror(QUEUE)
            queues.informer._drop(obj["metadata"]["name"], queues.get(obj["metadata"]["name"]))
            return same(list(controller._pending), list(case["after"]["state"]["podGroups"]))
        case "processNextWorkItem":
            return f"{COVERED}tests/controllers/test_queue_life.py"
        case _:
            raise ValueError(f"operation {case['operation']} is not known")
    after = (case.get("after") or {}).get("state", case["state"])["podGroups"]
    made = {name: sorted(g.key for g in mirror.by_index(name)) for name in after}
    return same(made, {name: sorted(groups or ()) for name, groups in after.items()})


def _group(key: str, queue: str) -> Data:
    namespace, _, name = key.partition("/")
    return {
        "apiVersion": PODGROUP.api_version,
        "kind": PODGROUP.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"queue": queue},
    }


RUNNERS = {"queue": queue}
