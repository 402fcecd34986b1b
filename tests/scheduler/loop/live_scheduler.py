"""A whole scheduler with its dispatcher process, and the objects of its API server, for the tests of this folder."""

import asyncio

import yaml

from tests.waiting import budget
from volcano_py.scheduler.configuration.options import Options
from volcano_py.scheduler.runtime.server import Scheduler

CONF = 'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n'


def kubeconfig(tmp_path, api):
    file = tmp_path / "kubeconfig"
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": api.url}}],
    }
    file.write_text(yaml.safe_dump(document))
    return str(file)


def put_node(api, name, cpu="8", labels=None):
    capacity = {"cpu": cpu, "memory": "256Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": capacity, "capacity": capacity, "conditions": ready}
    api.put("nodes", {"metadata": {"name": name, "labels": labels or {}}, "status": status})


def put_gang(api, name, size, cpu="1", members=None):
    api.put(
        "podgroups",
        {
            "metadata": {"name": name, "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"minMember": size, "queue": "default"},
            "status": {"phase": "Pending"},
        },
    )
    for i in range(size if members is None else members):
        put_pod(api, f"{name}-{i}", name, cpu)


def put_pod(api, name, group, cpu="1", node=""):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    spec = {"schedulerName": "volcano", "containers": [container]}
    if node:
        spec["nodeName"] = node
    api.put(
        "pods",
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "annotations": {"scheduling.k8s.io/group-name": group} if group else {},
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": spec,
            "status": {"phase": "Pending"},
        },
    )


def open_queues(api):
    """Set the state of every queue, as the queue controller does."""
    for name in ("root", "default"):
        api.put("queues", {"metadata": {"name": name}, "spec": {"weight": 1}, "status": {"state": "Open"}})


class Live:
    def __init__(self, tmp_path, api, **options):
        options = {"leader_elect": False, "schedule_period": 0.2, "kubeconfig": kubeconfig(tmp_path, api), **options}
        self.api = api
        open_queues(api)
        self.scheduler = Scheduler(Options(**options))

    async def __aenter__(self):
        self.task = asyncio.create_task(self.scheduler.run())
        await self.until(lambda: self.scheduler.handle.leading and self.scheduler.cache.ready.is_set())
        return self

    async def __aexit__(self, *exc):
        self.task.cancel()
        await asyncio.wait([self.task])

    async def until(self, test):
        async with asyncio.timeout(budget()):
            while not test():
                if self.task.done():
                    self.task.result()
                await asyncio.sleep(0.01)

    async def quiet(self, seconds=0.5):
        """Wait until no cycle has run for a while."""
        while True:
            before = self.scheduler.cycles
            await asyncio.sleep(seconds)
            if self.scheduler.cycles == before:
                return

    def bound(self, prefix=""):
        return {name: node for (_, name), node in self.api.bindings.items() if name.startswith(prefix)}

    def phase(self, name):
        return self.api.objects[("podgroups", "default", name)]["status"].get("phase")
