"""Jobs with one task from flags, for `vcctl job run` and `vsub`; and a job from a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from volcano_py.api import names
from volcano_py.api.kinds import JOB

Manifest = dict[str, Any]
_DEFAULT_RESOURCES = "cpu=1000m,memory=100Mi"


class Shape(NamedTuple):
    """The values of the flags that describe a job."""

    image: str
    minimum: int
    replicas: int
    requests: str
    limits: str
    scheduler: str


def shape_options(image_variable: str | None = None, scheduler_variable: str | None = None) -> Callable[..., Any]:
    """Adds the flags of a Shape; `…_variable` is the environment variable with a default."""
    options = (
        click.option(
            "-i", "--image", default="busybox", show_default=True, envvar=image_variable, help="Image of the container."
        ),
        click.option(
            "-m",
            "--min",
            "minimum",
            type=int,
            default=1,
            show_default=True,
            help="Minimum number of pods that must run together.",
        ),
        click.option("-r", "--replicas", type=int, default=1, show_default=True, help="Number of pods."),
        click.option(
            "-R", "--requests", default=_DEFAULT_RESOURCES, show_default=True, help="Resource requests of a pod."
        ),
        click.option("-L", "--limits", default=_DEFAULT_RESOURCES, show_default=True, help="Resource limits of a pod."),
        click.option(
            "-S",
            "--scheduler",
            default="volcano",
            show_default=True,
            envvar=scheduler_variable,
            help="Scheduler of the job.",
        ),
    )

    def all_of_them(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return all_of_them


def from_flags(name: str, namespace: str, shape: Shape, command: list[str] | None = None) -> Manifest:
    """A job with one task. Raises ValueError for invalid resources."""
    container: Manifest = {
        "name": name,
        "image": shape.image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": resources(shape.requests), "limits": resources(shape.limits)},
    }
    if command:
        container["command"] = command
    return {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "minAvailable": shape.minimum,
            "schedulerName": shape.scheduler,
            "tasks": [
                {
                    "replicas": shape.replicas,
                    "template": {
                        "metadata": {"name": name, "labels": {names.CLI_JOB_LABEL: name}},
                        "spec": {"restartPolicy": "Never", "containers": [container]},
                    },
                }
            ],
        },
    }


def resources(text: str) -> dict[str, str]:
    """`cpu=1,memory=1Gi` as a resource list. Raises ValueError."""
    found = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key or not value:
            raise ValueError(f"resource {part!r} must be name=quantity, such as cpu=1000m")
        found[key] = value
    return found


def from_file(path: str) -> Manifest:
    """The job of a YAML file. Raises ValueError and OSError."""
    import yaml

    from volcano_py.api import yaml_documents

    if ".yaml" not in path and ".yml" not in path:
        raise ValueError(f"only support yaml file, found {path}")
    try:
        document = yaml_documents.load(Path(path).read_text())
    except yaml.YAMLError as e:
        raise ValueError(f"{path}: not valid YAML: {' '.join(str(e).split())}") from None
    if not isinstance(document, dict) or document.get("kind") != "Job":
        raise ValueError(f"{path}: must contain one Job (batch.volcano.sh/v1alpha1)")
    return document
