"""Job plugin svc: DNS names for pods, and a ConfigMap with the names.

It creates a headless Service, a ConfigMap with the hosts of each task, and a NetworkPolicy that only admits
traffic from pods of the same Job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from volcano_py.api import names
from volcano_py.api.batch import DEFAULT_TASK_NAME, Job
from volcano_py.api.batch import Task as TaskSpec
from volcano_py.api.kinds import CONFIGMAP, NETWORKPOLICY, SERVICE, ResourceType
from volcano_py.controllers.instructions import Delete, Ensure, Instruction
from volcano_py.controllers.job.plugins.flags import Flags
from volcano_py.controllers.job.plugins.hosts import add_env, all_containers, hosts
from volcano_py.controllers.job.pods import owner_reference

CONFIG_PATH = "/etc/volcano"
BLAME = "PluginError"


class Svc:
    name = "svc"

    def __init__(self, arguments: Sequence[str]) -> None:
        flags = Flags(
            arguments,
            {"publish-not-ready-addresses": False, "disable-network-policy": False, "inject-hosts-env": True},
        )
        self.problem = flags.problem
        self._publish_not_ready = flags.switch("publish-not-ready-addresses")
        self._network_policy = not flags.switch("disable-network-policy")
        self._inject_env = flags.switch("inject-hosts-env")

    def on_pod_create(self, pod: dict[str, Any], job: Job, task: TaskSpec, index: int) -> None:
        spec = pod["spec"]
        spec["hostname"] = spec.get("hostname") or pod["metadata"]["name"]
        spec["subdomain"] = spec.get("subdomain") or job.metadata.name
        config = _config_name(job)
        spec.setdefault("volumes", []).append({"name": config, "configMap": {"name": config}})
        variables = []
        if self._inject_env:
            for other in job.spec.tasks or ():
                for key in (_variable(other, "HOSTS"), _variable(other, "NUM")):
                    source = {"configMapKeyRef": {"name": config, "key": key}}
                    variables.append({"name": key, "valueFrom": source})
        for container in all_containers(pod):
            add_env(container, *variables)
            container.setdefault("volumeMounts", []).append({"name": config, "mountPath": CONFIG_PATH})

    def on_job_add(self, job: Job) -> list[Instruction]:
        labels = _labels(job)
        service: dict[str, Any] = {"clusterIP": "None", "selector": labels}
        if self._publish_not_ready:
            service["publishNotReadyAddresses"] = True
        instructions: list[Instruction] = [
            *self.on_job_update(job),
            Ensure(SERVICE, _object(job, SERVICE, job.metadata.name) | {"spec": service}, blame=BLAME),
        ]
        if self._network_policy:
            selector = {"matchLabels": labels}
            policy = {
                "podSelector": selector,
                "ingress": [{"from": [{"podSelector": selector}]}],
                "policyTypes": ["Ingress"],
            }
            manifest = _object(job, NETWORKPOLICY, job.metadata.name) | {"spec": policy}
            instructions.append(Ensure(NETWORKPOLICY, manifest, blame=BLAME))
        return instructions

    def on_job_update(self, job: Job) -> list[Instruction]:
        data = {}
        for task in job.spec.tasks or ():
            found = hosts(job, task)
            data[f"{(task.name or DEFAULT_TASK_NAME).replace('-', '_')}.host"] = "\n".join(found)
            data[_variable(task, "HOSTS")] = ",".join(found)
            data[_variable(task, "NUM")] = str(len(found))
        manifest = _object(job, CONFIGMAP, _config_name(job)) | {"data": data}
        return [Ensure(CONFIGMAP, manifest, ("data",), blame=BLAME)]

    def on_job_delete(self, job: Job) -> list[Instruction]:
        namespace, name = job.metadata.namespace, job.metadata.name
        instructions: list[Instruction] = [
            Delete(CONFIGMAP, namespace, _config_name(job), blame=BLAME),
            Delete(SERVICE, namespace, name, blame=BLAME),
        ]
        if self._network_policy:
            instructions.append(Delete(NETWORKPOLICY, namespace, name, blame=BLAME))
        return instructions


def _config_name(job: Job) -> str:
    return f"{job.metadata.name}-svc"


def _labels(job: Job) -> dict[str, str]:
    return {names.JOB_NAME: job.metadata.name, names.JOB_NAMESPACE: job.metadata.namespace}


def _variable(task: TaskSpec, what: str) -> str:
    return f"VC_{(task.name or DEFAULT_TASK_NAME).replace('-', '_').upper()}_{what}"


def _object(job: Job, rt: ResourceType, name: str) -> dict[str, Any]:
    return {
        "apiVersion": rt.api_version,
        "kind": rt.kind,
        "metadata": {
            "name": name,
            "namespace": job.metadata.namespace,
            "ownerReferences": [owner_reference(job)],
        },
    }
