"""The host names by which the pods of a Job reach each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from volcano_py.api.batch import DEFAULT_TASK_NAME, Job, Task
from volcano_py.controllers.job.observed import Unready, pod_name


def all_containers(pod: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Containers and init containers of a pod manifest."""
    yield from pod["spec"].get("containers") or ()
    yield from pod["spec"].get("initContainers") or ()


LONGEST_VARIABLE = 128 * 1024 - 1
"""Bytes of NAME=value: Linux starts no process with a longer one (MAX_ARG_STRLEN)."""


def add_env(container: dict[str, Any], *variables: dict[str, Any]) -> None:
    """Add variables. Raises Unready for one with which no container could start."""
    for variable in variables:
        length = len(variable["name"]) + 1 + len(variable.get("value") or "")
        if length > LONGEST_VARIABLE:
            raise Unready(
                "PluginError",
                f"{variable['name']} would have {length} characters in each pod; Linux starts no container with more "
                f"than {LONGEST_VARIABLE}: use fewer replicas, or shorter names of the Job and its tasks",
            )
    container.setdefault("env", []).extend(variables)


def add_port(container: dict[str, Any], name: str, number: int) -> None:
    """Declare a port, unless its number is already declared."""
    ports = container.setdefault("ports", [])
    if all(port.get("containerPort") != number for port in ports):
        ports.append({"name": name, "containerPort": number})


def addresses(job: Job, task: Task) -> list[tuple[str, str]]:
    """(host name, subdomain) of each pod of a task; a host name in the template is common to all of them."""
    spec = (task.template or {}).get("spec") or {}
    subdomain = spec.get("subdomain") or job.metadata.name
    if spec.get("hostname"):
        return [(spec["hostname"], subdomain)]
    name = task.name or DEFAULT_TASK_NAME
    return [(pod_name(job, name, index), subdomain) for index in range(task.replicas)]


def hosts(job: Job, task: Task) -> list[str]:
    """`host.subdomain` of each pod of a task."""
    return [f"{host}.{subdomain}" for host, subdomain in addresses(job, task)]
