"""What surrounds the product: kubelets, garbage collection, users, a rival scheduler, and what happens to nodes.

Users create and change objects through the API server, without faults of their own. Each step has its own random
numbers, so that a run without one step has all the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

from tests.dst import manifests
from tests.dst.commands import Commands
from tests.dst.crons import CronJobs
from tests.dst.devices import Devices
from tests.dst.faults import Faults, Kind
from tests.dst.flows import JobFlows
from tests.dst.manifests import Manifest
from tests.dst.native_gangs import NativeGangs
from tests.dst.oracle import active, amount, requests
from tests.dst.server import ApiServer
from tests.dst.shards import Shards
from tests.dst.storage import Storage
from tests.dst.topology import Topology
from tests.dst.virtual import chance

CORE = "/api/v1/namespaces/default"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
HYPERNODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CONFIGMAP = ("volcano-system", "volcano-scheduler-configmap", "volcano-scheduler.conf")
OWNED = (
    ("pods", f"{CORE}/pods"),
    ("podgroups.scheduling.volcano.sh", GROUPS),
    ("persistentvolumeclaims", f"{CORE}/persistentvolumeclaims"),
)
"""Collections whose objects may have owners, and their paths."""
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
"""As kubelets write conditions: those of other clients stay."""
MOST_PODS = 12
"""Live pods above which users create nothing more."""
ENDED = ("Succeeded", "Failed")
log = logging.getLogger(__name__)


class Cluster:
    """Everything in the cluster but the product."""

    def __init__(self, server: ApiServer, faults: Faults, seed: str, log: Callable[[str], None]) -> None:
        self.server = server
        self.faults = faults
        self.seed = seed
        self.log = log
        self.trees = True
        """Whether all configurations so far limit parent queues."""
        self.lost: set[str] = set()
        """Nodes whose kubelet is gone."""
        self.finishing = True
        """Whether pods end."""
        life = chance(seed, "longest life")
        self.crowded = life >= 0.8
        """Whether pods run until users delete them or others take their place: what became of an eviction is visible at
        the end."""
        self.longest = 1e6 if self.crowded else 150.0 if life >= 0.5 else 30.0
        """Seconds that a pod runs, at most: with larger values the cluster is full."""
        self.running_since: dict[str, float] = {}
        self.leaving_since: dict[str, float] = {}
        self.profiles = chance(seed, "profiles") < 0.25
        """Whether some pods are scheduled pod by pod, or are members of gangs with the rules of a profile."""
        self.storage = Storage(server, seed, self._request)
        self.devices = Devices(server, seed, self._request)
        self.topology = Topology(server, seed, self._request)
        self.crons = CronJobs(server, seed, self._request)
        self.shards = Shards(server, seed, self._request)
        self.flows = JobFlows(server, seed, self._request)
        self.native = NativeGangs(server, seed, self._request)
        self.commands = Commands(server, seed, self._request)
        self.controllers = tuple(
            name
            for part, name in (
                (self.topology, "hyperNode-controller"),
                (self.crons, "cronjob-controller"),
                (self.shards, "sharding-controller"),
                (self.flows, "jobflow-controller"),
                (self.flows, "jobtemplate-controller"),
            )
            if part.used
        )
        """Those that only some runs have."""
        self._begun = False
        self._collected = 0
        """The revision of the store at which nothing was left to collect."""

    async def _call(self, method: str, path: str, body: Any = None, who: str = "user", kind: str = "") -> int:
        status, answer = await self.server.call(who, method, path, body, kind)
        name = (body or {}).get("metadata", {}).get("name", "") if isinstance(body, dict) else ""
        note = f": {answer.get('message', '')}" if status >= 400 else ""
        self.log(f"{who} {method} {path}{'/' + name if method == 'POST' and name else ''}: {status}{note}")
        return status

    async def _request(self, method: str, path: str, body: Any, who: str) -> int:
        status = await self._call(method, path, body, who, MERGE if method == "PATCH" else "")
        assert status < 400 or self._begun, f"{method} {path}: {status}"
        return status

    # ---- the beginning ---------------------------------------------------------------------------------------

    async def begin(self, random: Random) -> None:
        """Nodes, priorities, queues and the configuration of the scheduler."""
        for name, value in (("low", 10), ("high", 1000)):
            await self._call("POST", PRIORITIES, {"metadata": {"name": name}, "value": value})
        # Those that evict are drawn more often: evictions are rare.
        evicting = ("preempt", "preempt", "reclaim", "reclaim")
        self.configuration = random.choice((*manifests.CONFIGURATIONS, *evicting))
        if self.crowded:
            self.configuration = random.choice(evicting)
        self.trees = self.configuration != "enqueue"
        await self.storage.begin()
        await self.devices.begin()
        await self.topology.begin()
        await self.native.begin()
        await self.flows.begin()
        # Few nodes, so that jobs of a higher priority find them full.
        for i in range(random.choice((1, 2, 2)) if random.random() < 0.5 else random.randint(2, 5)):
            await self._create_node(manifests.node(f"n{i}", random))
        namespace, name, key = CONFIGMAP
        body = manifests.configmap(name, namespace, key, self.configuration)
        await self._call("POST", f"/api/v1/namespaces/{namespace}/configmaps", body)
        for queue in ("root", "default"):
            first = manifests.queue(queue, random, "")
            first["spec"] = {"weight": 1, "reclaimable": queue != "root"}
            await self._call("POST", QUEUES, first)
            await self._call("PATCH", f"{QUEUES}/{queue}/status", {"status": {"state": "Open"}}, "user", MERGE)
        for i in range(random.randint(0, 3)):
            parents = ["", *sorted(n for n in self.server.objects("queues.scheduling.volcano.sh") if n.startswith("p"))]
            parent = random.choice(parents) if self.configuration != "enqueue" else ""
            await self._call("POST", QUEUES, manifests.queue(f"{'p' if i == 0 else 'q'}{i}", random, parent))
        await self.crons.begin("default")
        self._begun = True

    async def _create_node(self, node: Manifest) -> None:
        await self._call("POST", "/api/v1/nodes", node, "node")
        await self._call("PATCH", f"/api/v1/nodes/{node['metadata']['name']}/status", {"status": node["status"]},
                         "node", MERGE)  # fmt: skip
        await self.storage.node_created(node["metadata"]["name"])
        await self.devices.node_created(node["metadata"]["name"])

    async def _create_pods(self, pods: list[Manifest], name: str) -> None:
        await self.storage.dress(pods, name)
        await self.devices.dress(pods, name)
        if self.profiles and chance(self.seed, "profile of", name) < 0.5:
            for pod in pods:
                pod["spec"]["schedulerName"] = manifests.PROFILE
        for pod in pods:
            await self._call("POST", f"{CORE}/pods", pod)

    # ---- kubelets and the controllers of Kubernetes ----------------------------------------------------------

    async def kubelets(self, now: float) -> None:
        """Start, finish and remove pods, and collect what has lost its owner."""
        nodes = self.server.objects("nodes")
        for key, pod in self.server.objects("pods").items():
            metadata, uid = pod["metadata"], pod["metadata"]["uid"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            where = pod["spec"].get("nodeName")
            phase = pod.get("status", {}).get("phase")
            if where and where not in nodes:
                await self._call("DELETE", path, at_once(uid), "node")
            elif metadata.get("deletionTimestamp"):
                since = self.leaving_since.setdefault(uid, now)
                grace = metadata.get("deletionGracePeriodSeconds") or 0
                if not where or (where not in self.lost and now - since >= grace):
                    await self._call("DELETE", path, at_once(uid), "node")
            elif where and where not in self.lost and phase == "Pending":
                await self._status(path, {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
                self.running_since[uid] = now
            elif phase == "Running" and where not in self.lost and self.finishing and self._has_ended(key, uid, now):
                failed = chance(self.seed, "fails", uid) < 0.2
                await self._status(path, {"phase": "Failed" if failed else "Succeeded"})
        await self.shards.follow()
        revision = self.server.api.store.revision
        if revision != self._collected and not await self._collect():
            self._collected = revision

    def _has_ended(self, key: str, uid: str, now: float) -> bool:
        return now - self.running_since.get(uid, now) > 3 + self.longest * chance(self.seed, "life", key, uid)

    async def _status(self, path: str, status: Manifest) -> None:
        await self._call("PATCH", f"{path}/status", {"status": status}, "node", STRATEGIC)

    async def _collect(self) -> int:
        """Delete objects whose owners are all gone, as the garbage collector does. Returns how many there were."""
        deleted = 0
        uids = {
            obj["metadata"]["uid"]
            for kind in ("jobs.batch.volcano.sh", "podgroups.scheduling.volcano.sh", "pods")
            for obj in self.server.objects(kind).values()
        }
        for kind, base in OWNED:
            for obj in self.server.objects(kind).values():
                metadata = obj["metadata"]
                owners = [o["uid"] for o in metadata.get("ownerReferences") or ()]
                gone = owners and not uids.intersection(owners) and not metadata.get("deletionTimestamp")
                if gone and metadata["namespace"] == "default":
                    body = {"preconditions": {"uid": metadata["uid"]}}
                    await self._call("DELETE", f"{base}/{metadata['name']}", body, "garbage-collector")
                    deleted += 1
        return deleted

    # ---- users -----------------------------------------------------------------------------------------------

    async def step(self, number: int, late: bool) -> None:
        """One step of the users; `late`: one of the last, of which more evict, because what they leave stays."""
        random = Random(f"{self.seed} user {number}")
        pods = self.server.objects("pods")
        alive = sum(1 for pod in pods.values() if pod.get("status", {}).get("phase") not in ENDED)
        drawn = random.random()
        if self.crowded and drawn < 0.4:
            await self._crowd(random, number, pods, alive)
        elif self.configuration in ("preempt", "reclaim") and drawn < (0.5 if late else 0.12) and alive < MOST_PODS + 6:
            await self.create_urgent(random, number)
        elif drawn < 0.25 and alive < MOST_PODS:
            await self.create_gang(random, number)
        elif drawn < 0.4 and alive < MOST_PODS:
            await self.create_job(random, number)
        elif drawn < 0.5 and alive < MOST_PODS:
            await self.create_pod(random, number)
        elif drawn < 0.6:
            await self._tidy(pods)
        elif drawn < 0.62:
            await self._call("POST", BUDGETS, manifests.budget(f"d{number}", f"g{random.randint(0, number)}", 1))
        elif drawn < 0.66:
            await self._edit_queue(random)
        elif drawn > 0.99:
            await self._call("POST", HYPERNODES, manifests.hyper_node(f"h{number}", random))
        await self.commands.step(number)
        await self.flows.step(number)

    async def create_job(self, random: Random, number: int) -> None:
        """A Job."""
        job = manifests.job(f"j{number}", random, self._queue(random))
        self.storage.dress_job(job)
        self.devices.dress_job(job)
        await self._call("POST", JOBS, job)

    async def create_pod(self, random: Random, number: int) -> None:
        """A pod of its own."""
        name = f"b{number}"
        await self._create_pods([manifests.pod(name, manifests.spec(random))], name)

    async def create_competitor(self, pod: Manifest, node: str) -> bool:
        """A pod of a higher priority that requests all that is free on a node, before this pod is bound to it. Returns
        whether there is one."""
        free = self._free_cpus(node)
        if free < 1:
            return False
        spec = manifests.spec(Random(f"{self.seed} {pod['metadata']['uid']}"), 1)
        spec["containers"] = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": str(int(free))}}}]
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
        spec["priorityClassName"] = "high"
        return await self._call("POST", f"{CORE}/pods", manifests.pod(f"u{pod['metadata']['name']}", spec)) < 400

    async def create_gang(self, random: Random, number: int) -> None:
        """A PodGroup and its pods, in either order."""
        name, size = f"g{number}", random.randint(1, 4)
        minimum = random.choice((1, random.randint(1, size), size))
        priority = random.choice(("", "", "low", "high"))
        group = manifests.pod_group(name, minimum, self._queue(random), priority)
        pods = [manifests.pod(f"{name}-{i}", manifests.spec(random), name) for i in range(size)]
        if priority:
            for pod in pods:
                pod["spec"]["priorityClassName"] = priority
        first = random.random() < 0.85
        if self.native.is_native(name):
            if await self.native.create(group, pods):
                await self._create_pods(pods, name)
            return
        if first and await self._call("POST", GROUPS, group) >= 400:
            return
        await self._create_pods(pods, name)
        if not first:
            await self._call("POST", GROUPS, group)

    async def create_urgent(self, random: Random, number: int) -> None:
        """Fill the cluster with pods of little importance, of which more run than must, or ask for their place."""
        name = f"u{number}"
        free = self._free_cpus()
        size, priority = (min(6, int(free) + 1), "low") if free >= 1 else (random.randint(1, 2), "high")
        group = manifests.pod_group(name, 1 if priority == "low" else size, "default", priority)
        if await self._call("POST", GROUPS, group) >= 400:
            return
        pods = []
        for i in range(size):
            pod = manifests.pod(f"{name}-{i}", manifests.spec(random, 1 if priority == "low" else 2), name)
            pod["spec"].pop("nodeSelector", None)
            pod["spec"]["priorityClassName"] = priority
            pods.append(pod)
        await self._create_pods(pods, name)

    async def _crowd(self, random: Random, number: int, pods: dict[str, Manifest], alive: int) -> None:
        """One more that evicts, or that fills the cluster; users delete the important ones when there are many."""
        urgent = [
            pod["metadata"]
            for key, pod in pods.items()
            if key.startswith("default/u") and pod["spec"].get("priorityClassName") == "high" and active(pod)
        ]
        if len(urgent) > 3 or alive >= MOST_PODS + 6:
            for metadata in random.sample(urgent, min(2, len(urgent))):
                await self._call("DELETE", f"{CORE}/pods/{metadata['name']}", at_once(metadata["uid"]))
        else:
            await self.create_urgent(random, number)

    def _free_cpus(self, only: str = "") -> float:
        """The cpus of all nodes or one that no pod requests, or none where a node has less than its pods request."""
        free = {
            name: amount(node["status"]["allocatable"]["cpu"])
            for name, node in self.server.objects("nodes").items()
            if name not in self.lost and not node["spec"].get("unschedulable") and only in ("", name)
        }
        for pod in self.server.objects("pods").values():
            if pod["spec"].get("nodeName") in free and active(pod):
                free[pod["spec"]["nodeName"]] -= requests(pod)["cpu"]
        return float(sum(max(cpus, Fraction()) for cpus in free.values()))

    def _queue(self, random: Random) -> str:
        queues = self.server.objects("queues.scheduling.volcano.sh")
        parents = {q["spec"].get("parent") for q in queues.values()}
        leaves = sorted(
            name
            for name, queue in queues.items()
            if name != "root" and name not in parents and (queue.get("status") or {}).get("state") == "Open"
        )
        if leaves and chance(self.seed, "one queue gets most") < 0.5 and random.random() < 0.8:
            return leaves[-1]
        return random.choice(leaves) if leaves and random.random() < 0.6 else "default"

    async def _tidy(self, pods: dict[str, Manifest]) -> None:
        """Delete pods that have ended, and those that will never start: their PodGroup is gone."""
        groups = self.server.objects("podgroups.scheduling.volcano.sh")
        for key, pod in pods.items():
            group = (pod["metadata"].get("annotations") or {}).get("scheduling.k8s.io/group-name", "")
            lost = group and f"default/{group}" not in groups and not pod["spec"].get("nodeName")
            # With too many that wait, users give some of them up: cycles would only get slower.
            lost = lost or (len(pods) > MOST_PODS and not pod["spec"].get("nodeName") and key[-1] in "02")
            if (pod.get("status", {}).get("phase") in ENDED or lost) and not pod["metadata"].get("ownerReferences"):
                await self._call("DELETE", f"{CORE}/pods/{key.partition('/')[2]}", at_once(pod["metadata"]["uid"]))
        await self.storage.tidy()
        await self.devices.tidy()
        await self.native.tidy()

    async def _edit_queue(self, random: Random) -> None:
        queues = sorted(n for n in self.server.objects("queues.scheduling.volcano.sh") if n not in ("root", "default"))
        if queues:
            body = {"spec": {"capability": {"cpu": str(random.randint(2, 10))}}}
            await self._call("PATCH", f"{QUEUES}/{random.choice(queues)}", body, "user", MERGE)

    # ---- faults of the cluster -------------------------------------------------------------------------------

    async def fault(self, kind: Kind, number: int, now: float) -> None:
        """Inject a fault of the layer `cluster`, if there is an object for it."""
        random = Random(f"{self.seed} {kind.name} {number}")
        if await self._inject(kind.kind, random, number):
            self.faults.did(kind, number, "cluster")

    async def _inject(self, what: str, random: Random, number: int) -> bool:
        nodes = self.server.objects("nodes")
        pods = self.server.objects("pods")
        groups = self.server.objects("podgroups.scheduling.volcano.sh")
        node = random.choice(sorted(nodes)) if nodes else ""
        path = f"/api/v1/nodes/{node}"
        match what:
            case "node lost" if node and node not in self.lost and len(self.lost) < len(nodes) - 1:
                self.lost.add(node)
                conditions = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
                await self._call("PATCH", f"{path}/status", {"status": {"conditions": conditions}}, "node", MERGE)
            case "node back" if self.lost:
                await self._node_back(random.choice(sorted(self.lost)))
            case "node drained" if node:
                await self._call("PATCH", path, {"spec": {"unschedulable": True}}, "user", MERGE)
                for pod in pods.values():
                    if pod["spec"].get("nodeName") == node and not pod["metadata"].get("deletionTimestamp"):
                        await self._call("DELETE", f"{CORE}/pods/{pod['metadata']['name']}")
                await self._call("PATCH", path, {"spec": {"unschedulable": None}}, "user", MERGE)
            case "node relabelled" if node:
                labels = {"zone": random.choice(manifests.ZONES)}
                await self._call("PATCH", path, {"metadata": {"labels": labels}}, "user", MERGE)
            case "node shrunk" if node:
                status = {"allocatable": {"cpu": str(random.randint(1, 4))}}
                await self._call("PATCH", f"{path}/status", {"status": status}, "node", MERGE)
            case "devices lost" if node and manifests.GPU in nodes[node]["status"].get("allocatable", {}):
                status = {"allocatable": {manifests.GPU: "0"}}
                await self._call("PATCH", f"{path}/status", {"status": status}, "node", MERGE)
            case "node replaced" if node:
                await self._call("DELETE", path, None, "user")
                self.lost.discard(node)
                await self._create_node(manifests.node(node, random))
            case "rival":
                return await self._rival(random, pods, nodes)
            case "delete" if pods or groups:
                await self._delete(random, pods, groups)
            case "recreate" if pods:
                await self._recreate(random, pods)
            case "edit":
                free = sorted(key for key, group in groups.items() if not group["metadata"].get("ownerReferences"))
                if not free:
                    return False
                name = random.choice(free).partition("/")[2]
                body = random.choice(
                    (
                        {"spec": {"minMember": random.randint(1, 3)}},
                        {"metadata": {"annotations": {"edited": str(number)}}},
                        {"spec": {"priorityClassName": random.choice(("low", "high"))}},
                    )
                )
                await self._call("PATCH", f"{GROUPS}/{name}", body, "user", MERGE)
            case "reload":
                await self.reload(random.choice(list(manifests.CONFIGURATIONS)))
            case "many":
                if random.random() < 0.5:
                    for i in range(30):
                        await self._call("POST", HYPERNODES, manifests.hyper_node(f"m{number}-{i}", random, large=True))
                else:
                    for i in range(random.randint(3, 6)):
                        await self.create_gang(random, number * 1000 + i)
            case _:
                return False
        return True

    async def reload(self, configuration: str) -> None:
        """Change the scheduler's ConfigMap."""
        namespace, name, key = CONFIGMAP
        body = manifests.configmap(name, namespace, key, configuration)
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        await self._call("PATCH", path, body, "user", MERGE)
        self.configuration = configuration
        self.trees = self.trees and configuration != "enqueue"

    async def _node_back(self, node: str) -> None:
        self.lost.discard(node)
        conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        path = f"/api/v1/nodes/{node}/status"
        await self._call("PATCH", path, {"status": {"conditions": conditions}}, "node", MERGE)

    async def _rival(self, random: Random, pods: dict[str, Manifest], nodes: dict[str, Manifest]) -> bool:
        waiting = sorted(k for k, p in pods.items() if not p["spec"].get("nodeName") and k.startswith("default/"))
        if not waiting or not nodes:
            return False
        name = random.choice(waiting).partition("/")[2]
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": random.choice(sorted(nodes))}}  # fmt: skip
        await self._call("POST", f"{CORE}/pods/{name}/binding", body, "rival")
        return True

    async def _delete(self, random: Random, pods: dict[str, Manifest], groups: dict[str, Manifest]) -> None:
        jobs = self.server.objects("jobs.batch.volcano.sh")
        base, kind = random.choice([(b, k) for b, k in ((f"{CORE}/pods", pods), (GROUPS, groups), (JOBS, jobs)) if k])
        await self._call("DELETE", f"{base}/{random.choice(sorted(kind)).partition('/')[2]}")

    async def _recreate(self, random: Random, pods: dict[str, Manifest]) -> None:
        """Another pod with the same name and another request, at once."""
        names = sorted(k for k, p in pods.items() if not p["metadata"].get("ownerReferences"))
        if not names:
            return
        await self._recreated(random, pods[random.choice(names)])

    async def recreate(self, name: str) -> None:
        """Put another pod in the place of one that waits."""
        pod = self.server.objects("pods").get(f"default/{name}")
        if pod is not None and not pod["spec"].get("nodeName") and not pod["metadata"].get("ownerReferences"):
            await self._recreated(Random(f"{self.seed} {pod['metadata']['uid']}"), pod)

    async def _recreated(self, random: Random, old: Manifest) -> None:
        name = old["metadata"]["name"]
        group = (old["metadata"].get("annotations") or {}).get("scheduling.k8s.io/group-name", "")
        made = manifests.pod(name, manifests.spec(random), group)
        if volumes := [v for v in old["spec"].get("volumes") or () if "persistentVolumeClaim" in v]:
            made["spec"]["volumes"] = volumes
        if claims := old["spec"].get("resourceClaims"):
            made["spec"]["resourceClaims"] = claims
        if native := old["spec"].get("schedulingGroup"):
            made["spec"]["schedulingGroup"] = native
        await self._call("DELETE", f"{CORE}/pods/{name}", at_once(old["metadata"]["uid"]))
        await self._call("POST", f"{CORE}/pods", made)

    # ---- the end ---------------------------------------------------------------------------------------------

    async def calm(self) -> None:
        """End all faults of the cluster: nodes are back, and pods run for ever."""
        self.finishing = False
        for node in sorted(self.lost):
            await self._node_back(node)


def at_once(uid: str) -> Manifest:
    """The options of a deletion without grace, of this object alone."""
    return {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
