"""Stand-ins for operators: from an object, the pods and PodGroups that the operator creates, with its names, labels and
annotations. Written after the operators' documentation; no operator runs here."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import yaml

Manifest = dict[str, Any]
GROUP = "scheduling.k8s.io/group-name"
PODGROUPS = "scheduling.volcano.sh/v1beta1"


def owned(owner: Manifest, kind: str, version: str, name: str, **more: Any) -> Manifest:
    """An object whose controller is `owner`."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    metadata = {"name": name, "ownerReferences": [reference], **more.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def group(owner: Manifest, name: str, minimum: int, queue: str, **spec: Any) -> Manifest:
    return owned(owner, "PodGroup", PODGROUPS, name, spec={"minMember": minimum, "queue": queue, **spec})


def pod(owner: Manifest, name: str, template: Manifest, group_name: str = "", **labels: str) -> Manifest:
    """A pod of a template; with `group_name` it is handed over to the scheduler, as operators do."""
    metadata, spec = deepcopy(template.get("metadata") or {}), deepcopy(template["spec"])
    metadata["labels"] = {**(metadata.get("labels") or {}), **{key.replace("__", "/"): v for key, v in labels.items()}}
    if group_name:
        spec["schedulerName"] = spec.get("schedulerName") or "volcano"
        metadata["annotations"] = {**(metadata.get("annotations") or {}), GROUP: group_name}
    return owned(owner, "Pod", "v1", name, metadata=metadata, spec=spec)


def training_operator(job: Manifest) -> list[Manifest]:
    """kubeflow/training-operator with --gang-scheduler-name=volcano."""
    name, spec = job["metadata"]["name"], job["spec"]
    replicas = spec["pytorchReplicaSpecs"]
    policy = (spec.get("runPolicy") or {}).get("schedulingPolicy") or {}
    total = sum(one["replicas"] for one in replicas.values())
    made = [group(job, name, policy.get("minAvailable") or total, policy.get("queue") or "default")]
    for role, one in replicas.items():
        for index in range(one["replicas"]):
            labels = {"training.kubeflow.org__job-name": name, "training.kubeflow.org__replica-type": role.lower()}
            made.append(pod(job, f"{name}-{role.lower()}-{index}", one["template"], name, **labels))
    return made


def mpi_operator(job: Manifest) -> list[Manifest]:
    """kubeflow/mpi-operator with --gang-scheduling=volcano. A late launcher comes when the workers run."""
    name, spec = job["metadata"]["name"], job["spec"]
    launcher, worker = spec["mpiReplicaSpecs"]["Launcher"], spec["mpiReplicaSpecs"]["Worker"]
    policy = (spec.get("runPolicy") or {}).get("schedulingPolicy") or {}
    minimum = policy.get("minAvailable") or worker["replicas"] + 1
    made = [group(job, name, minimum, policy.get("queue") or "default")]
    made += [pod(job, f"{name}-worker-{n}", worker["template"], name) for n in range(worker["replicas"])]
    if spec.get("launcherCreationPolicy") != "WaitForWorkersReady":
        made.append(pod(job, f"{name}-launcher", launcher["template"], name))
    return made


def kuberay(cluster: Manifest) -> list[Manifest]:
    """ray-project/kuberay with --batch-scheduler=volcano."""
    name, spec = cluster["metadata"]["name"], cluster["spec"]
    labels = cluster["metadata"].get("labels") or {}
    handed = f"ray-{name}-pg" if labels.get("ray.io/scheduler-name") == "volcano" else ""
    key = "minReplicas" if spec.get("enableInTreeAutoscaling") else "replicas"
    minimum = 1 + sum(one[key] for one in spec["workerGroupSpecs"])
    queue = labels.get("volcano.sh/queue-name", "default")
    made = [group(cluster, handed, minimum, queue)] if handed else []
    made.append(
        pod(cluster, f"{name}-head", spec["headGroupSpec"]["template"], handed, **{"ray.io__node-type": "head"})
    )
    for one in spec["workerGroupSpecs"]:
        for index in range(one["replicas"]):
            made.append(pod(cluster, f"{name}-{one['groupName']}-worker-{index}", one["template"], handed))
    return made


def spark_operator(app: Manifest) -> list[Manifest]:
    """kubeflow/spark-operator: the PodGroup and the driver; the driver creates the executors."""
    name, spec = app["metadata"]["name"], app["spec"]
    driver, executor = spec["driver"], spec["executor"]
    cpus = driver["cores"] + executor["cores"] * executor["instances"]
    queue = spec["batchSchedulerOptions"]["queue"]
    made = [group(app, f"spark-{name}-pg", 1, queue, minResources={"cpu": str(cpus)})]
    return [*made, _spark(app, f"{name}-driver", driver["cores"], "driver")]


def executors(app: Manifest) -> list[Manifest]:
    """The pods that the driver creates."""
    name, executor = app["metadata"]["name"], app["spec"]["executor"]
    return [_spark(app, f"{name}-exec-{n + 1}", executor["cores"], "executor") for n in range(executor["instances"])]


def _spark(app: Manifest, name: str, cores: int, role: str) -> Manifest:
    container = {"name": "spark", "image": app["spec"]["image"], "resources": {"requests": {"cpu": str(cores)}}}
    labels = {"spark-role": role, "spark-app-selector": f"spark-{app['metadata']['uid']}"}
    template = {"metadata": {"labels": labels}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    return pod(app, name, template, f"spark-{app['metadata']['name']}-pg")


def jobset(js: Manifest) -> list[Manifest]:
    """kubernetes-sigs/jobset: Jobs, whose pods have the labels that identify the JobSet."""
    made, name = [], js["metadata"]["name"]
    for one in js["spec"]["replicatedJobs"]:
        for index in range(one.get("replicas", 1)):
            spec = deepcopy(one["template"]["spec"])
            metadata = spec["template"].setdefault("metadata", {})
            metadata["labels"] = {
                **(metadata.get("labels") or {}),
                "jobset.sigs.k8s.io/jobset-name": name,
                "jobset.sigs.k8s.io/jobset-uid": js["metadata"]["uid"],
                "jobset.sigs.k8s.io/replicatedjob-name": one["name"],
            }
            made.append(owned(js, "Job", "batch/v1", f"{name}-{one['name']}-{index}", spec=spec))
    return made


def leader_worker_set(lws: Manifest) -> list[Manifest]:
    """kubernetes-sigs/lws: a leader and its workers for each replica."""
    name, template = lws["metadata"]["name"], lws["spec"]["leaderWorkerTemplate"]
    made = []
    for replica in range(lws["spec"]["replicas"]):
        for index in range(template["size"]):
            labels = {
                "leaderworkerset.sigs.k8s.io__name": name,
                "leaderworkerset.sigs.k8s.io__group-key": f"{lws['metadata']['uid'][:8]}-{replica}",
            }
            called = f"{name}-{replica}" + (f"-{index}" if index else "")
            made.append(pod(lws, called, template["workerTemplate"], **labels))
    return made


def trainer(job: Manifest, runtime: Manifest) -> list[Manifest]:
    """kubeflow/trainer: a PodGroup, and the pods of the JobSet of its runtime."""
    name, spec = job["metadata"]["name"], runtime["spec"]
    nodes = (job["spec"].get("trainer") or {}).get("numNodes") or spec["mlPolicy"]["numNodes"]
    annotations = spec["template"]["metadata"].get("annotations") or {}
    [node] = spec["template"]["spec"]["replicatedJobs"]
    template = node["template"]["spec"]["template"]
    made = [group(job, name, nodes, annotations.get("scheduling.volcano.sh/queue-name", "default"))]
    return [*made, *(pod(job, f"{name}-node-0-{n}", template, name) for n in range(nodes))]


def argo_resource(workflow: Manifest, template: str) -> list[Manifest]:
    """argoproj/argo-workflows: the object of a resource template."""
    [one] = [one for one in workflow["spec"]["templates"] if one["name"] == template]
    return [yaml.safe_load(one["resource"]["manifest"])]


def argo_pod(workflow: Manifest, template: str) -> list[Manifest]:
    """The pod of a container template."""
    [one] = [one for one in workflow["spec"]["templates"] if one["name"] == template]
    spec = {"schedulerName": one["schedulerName"], "restartPolicy": "Never"}
    spec["containers"] = [{"name": "main", **one["container"]}]
    name = f"{workflow['metadata']['name']}-{template}"
    return [pod(workflow, name, {"metadata": one.get("metadata") or {}, "spec": spec})]


STAND_INS: dict[str, Callable[[Manifest], list[Manifest]]] = {
    "PyTorchJob": training_operator,
    "MPIJob": mpi_operator,
    "RayCluster": kuberay,
    "SparkApplication": spark_operator,
    "JobSet": jobset,
    "LeaderWorkerSet": leader_worker_set,
}
