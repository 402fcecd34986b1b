"""A controller for the example: each VirtualMachine gets an instance, and each instance a pod, again and again.

python examples/sticky-vm/controller.py     (KUBECONFIG names the cluster)
"""

import asyncio

from volcano_py.api.kinds import POD
from volcano_py.api.resource_types import namespaced_kind
from volcano_py.kube.client import Client
from volcano_py.kube.errors import KubeError

API = "example.volcano.sh/v1"
VM = namespaced_kind(API, "virtualmachines", "VirtualMachine")
VMI = namespaced_kind(API, "virtualmachineinstances", "VirtualMachineInstance")


def owned(owner, kind, name):
    """Metadata of an object that belongs to another one."""
    reference = {"apiVersion": API, "kind": kind, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    space = owner["metadata"]["namespace"]
    return {"name": name, "namespace": space, "ownerReferences": [{**reference, "controller": True}]}


def launcher(vm, vmi):
    """The pod that runs a virtual machine."""
    container = {"name": "compute", "image": "busybox", "command": ["sleep", "100000"]}
    container["resources"] = {"requests": {"cpu": vm["spec"].get("cpu", "1")}}
    spec = {"schedulerName": "sticky-vm", "containers": [container], "terminationGracePeriodSeconds": 0}
    if vm["spec"].get("priorityClassName"):
        spec["priorityClassName"] = vm["spec"]["priorityClassName"]
    return {"metadata": owned(vmi, "VirtualMachineInstance", f"launcher-{vm['metadata']['name']}"), "spec": spec}


async def step(client):
    """Create what is missing."""
    instances = {i["metadata"]["name"]: i for i in await client.list(VMI)}
    pods = {p["metadata"]["name"] for p in await client.list(POD)}
    for vm in await client.list(VM):
        name = vm["metadata"]["name"]
        instance = instances.get(name)
        if instance is None:
            made = {"apiVersion": API, "kind": "VirtualMachineInstance", "metadata": owned(vm, "VirtualMachine", name)}
            await client.create(VMI, made)
        elif f"launcher-{name}" not in pods:
            await client.create(POD, launcher(vm, instance))


async def main():
    async with Client.for_flags() as client:
        while True:
            try:
                await step(client)
            except KubeError as error:
                print(error, flush=True)
            await asyncio.sleep(0.2)


if __name__ == "__main__":
    asyncio.run(main())
