"""Manifests of Jobs: `job(...)` with tasks of commands or functions, and from YAML.

A manifest is a plain dict, the object that `kubectl apply` sends. volcano.sh/v1alpha1 Job is the counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from volcano_py.api import quantity
from volcano_py.api.kinds import JOB
from volcano_py.client.errors import Invalid

Manifest = dict[str, Any]
GPU = "nvidia.com/gpu"
"""The resource of `gpus`."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """Equal pods of a job: a command in a container, and what each pod requests.

    `requests` are further resources. `pod` and `container` are merged into the specs of the pod and of its container,
    for all other fields. `minimum`: how many pods must run together; None: all.
    """

    name: str
    image: str
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    replicas: int = 1
    minimum: int | None = None
    cpus: float | str = 1
    memory: str = ""
    gpus: int = 0
    gpu_resource: str = GPU
    requests: Mapping[str, str | int | float] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    restart_policy: str = "Never"
    depends_on: Sequence[str] = ()
    pod: Mapping[str, Any] = field(default_factory=dict)
    container: Mapping[str, Any] = field(default_factory=dict)

    def options(self, **changes: Any) -> Task:
        """The same task with other values: `work.options(replicas=8)`."""
        try:
            return replace(self, **changes)
        except TypeError as error:
            name = str(error).rpartition("argument ")[2].strip("'")
            raise Invalid(
                f"options has no field {name!r}",
                object=f"task {self.name}",
                field=name,
                remedy=f"use one of {', '.join(sorted(self.__dataclass_fields__))}",
            ) from None

    def manifest(self) -> Manifest:
        """The entry of `spec.tasks`. Raises Invalid."""
        container: Manifest = {"name": "main", "image": self.image, "resources": {"requests": self._resources()}}
        extended = {name: amount for name, amount in container["resources"]["requests"].items() if "/" in name}
        if extended:  # Kubernetes accepts requests of extended resources only with an equal limit
            container["resources"]["limits"] = extended
        for key, value in (("command", list(self.command)), ("args", list(self.args))):
            if value:
                container[key] = value
        if self.env:
            container["env"] = [{"name": name, "value": str(value)} for name, value in self.env.items()]
        spec: Manifest = {
            "restartPolicy": self.restart_policy,
            "containers": [{**container, **self.container}],
        }
        if self.node_selector:
            spec["nodeSelector"] = dict(self.node_selector)
        metadata = {
            key: dict(value) for key, value in (("labels", self.labels), ("annotations", self.annotations)) if value
        }
        found: Manifest = {
            "name": self.name,
            "replicas": self.replicas,
            "template": {**({"metadata": metadata} if metadata else {}), "spec": {**spec, **self.pod}},
        }
        if self.minimum is not None:
            found["minAvailable"] = self.minimum
        if self.depends_on:
            found["dependsOn"] = {"name": list(self.depends_on)}
        return found

    def _resources(self) -> dict[str, str]:
        amounts = {
            "cpu": self.cpus,
            "memory": self.memory,
            self.gpu_resource: self.gpus,
            **self.requests,
        }
        found = {}
        for name, amount in amounts.items():
            if amount in ("", 0):
                continue
            try:
                found[name] = quantity.canonical(str(amount))
            except ValueError:
                where = {"cpu": "cpus", "memory": "memory", self.gpu_resource: "gpus"}.get(name, "requests")
                raise Invalid(
                    f"{where} is {amount!r}, which is no amount of {name}",
                    object=f"task {self.name}",
                    field=where,
                    remedy='write a quantity of Kubernetes, such as 0.5, "500m" or "16Gi"',
                ) from None
        return found


def job(
    name: str,
    *tasks: Task,
    namespace: str = "",
    queue: str = "",
    min_available: int | None = None,
    priority_class: str = "",
    retries: int = 0,
    ttl_seconds: int | None = None,
    plugins: Mapping[str, Sequence[str]] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    scheduler: str = "volcano",
    spec: Mapping[str, Any] | None = None,
) -> Manifest:
    """The manifest of a Job. By default it is a gang: all of its pods run together, or none (`min_available`).

    `retries`: how often the job restarts as a whole after a pod has failed. `plugins`: of the job controller; by
    default env and svc if there are several pods, so that each pod has its index and the addresses of the others.
    `spec`: further fields. Raises Invalid.
    """
    about = f"job {namespace}/{name}" if namespace else f"job {name}"
    if not tasks:
        raise Invalid("there is no task", object=about, field="spec.tasks", remedy="pass a Task, or a call of an @task")
    for one in tasks:
        if not isinstance(one, Task):
            called = getattr(one, "name", "")
            raise Invalid(
                f"{one!r} is no Task",
                object=about,
                field="spec.tasks",
                remedy=f"call the function: job(…, {called}(…))" if called else "pass a Task, or a call of an @task",
            )
    several = len(tasks) > 1 or tasks[0].replicas > 1
    body: Manifest = {
        "schedulerName": scheduler,
        "minAvailable": _minimum(tasks) if min_available is None else min_available,
        "tasks": [one.manifest() for one in tasks],
    }
    if plugins is not None or several:
        chosen = plugins if plugins is not None else {"env": (), "svc": ()}
        body["plugins"] = {plugin: list(arguments) for plugin, arguments in chosen.items()}
    if queue:
        body["queue"] = queue
    if priority_class:
        body["priorityClassName"] = priority_class
    if ttl_seconds is not None:
        body["ttlSecondsAfterFinished"] = ttl_seconds
    if retries:
        body["maxRetry"] = retries
        body["policies"] = [{"event": "PodFailed", "action": "RestartJob"}]
    metadata: Manifest = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    for key, value in (("labels", labels), ("annotations", annotations)):
        if value:
            metadata[key] = dict(value)
    return {"apiVersion": JOB.api_version, "kind": "Job", "metadata": metadata, "spec": {**body, **(spec or {})}}


def _minimum(tasks: Sequence[Task]) -> int:
    """All pods, of tasks with a minimum that many. A task that depends on others starts later."""
    first = [one for one in tasks if not one.depends_on] or tasks
    return sum(one.replicas if one.minimum is None else one.minimum for one in first)


def from_yaml(source: str | Path) -> Manifest:
    """The Job in a file (a Path, or a string without line breaks) or in a text. Raises Invalid."""
    import yaml

    from volcano_py.api import yaml_documents

    is_text = isinstance(source, str) and "\n" in source
    where = "the text" if is_text else str(source)
    remedy = "pass one Job of batch.volcano.sh/v1alpha1"
    try:
        text = source if isinstance(source, str) and is_text else Path(source).read_text()
        document = yaml_documents.load(text)
    except OSError as error:
        raise Invalid(
            f"{where} cannot be read: {error.strerror or error}", object=where, remedy="pass the path of a file"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Invalid(
            f"{where} is not valid YAML: {' '.join(str(error).split())}", object=where, remedy=remedy
        ) from None
    return checked(document, where)


def checked(manifest: Any, where: str = "the manifest") -> Manifest:
    """A manifest that is a Job. Raises Invalid."""
    remedy = "pass one Job of batch.volcano.sh/v1alpha1"
    if not isinstance(manifest, dict):
        raise Invalid(f"{where} is {type(manifest).__name__}, not a Job", object=where, remedy=remedy)
    for key, wanted in (("apiVersion", JOB.api_version), ("kind", "Job")):
        if manifest.get(key) != wanted:
            raise Invalid(f"{where}: {key} is {manifest.get(key)!r}", object=where, field=key, remedy=remedy)
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        raise Invalid(f"{where}: the job has no name", object=where, field="metadata.name", remedy="set metadata.name")
    return manifest


def to_yaml(manifest: Mapping[str, Any]) -> str:
    """A manifest as YAML, for `kubectl apply -f -` or a file in git."""
    import yaml

    return yaml.safe_dump(dict(manifest), sort_keys=False)
