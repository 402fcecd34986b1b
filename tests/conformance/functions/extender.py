"""The plugin extender: for which pods it is called."""

from __future__ import annotations

from typing import Any

from tests.conformance.functions.adapter import Adapters, Data
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Container, Pod
from volcano_py.scheduler.model.jobs.spec_class import SpecClasses
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeTable
from volcano_py.scheduler.plugins.extender.plugin import is_managed, requests_any


def _managed(receiver: Data) -> list[str]:
    found: list[str] = receiver["config"].get("managedResources") or []
    return found


def _containers(manifests: list[Data] | None) -> list[Container]:
    return from_manifest(Pod, {"spec": {"containers": manifests or []}}).spec.containers or []


def _interested(receiver: Data, a: list[Any]) -> list[Any]:
    pod = from_manifest(Pod, a[0].get("pod") or {})
    return [is_managed(Task(pod, SpecClasses(NodeTable()).of(pod), ""), _managed(receiver))]


ADAPTERS: Adapters = {
    "extender.extenderPlugin.hasManagedResources": lambda r, a: [requests_any(_containers(a[0]), _managed(r))],
    "extender.extenderPlugin.hasResourcesInList": lambda r, a: [
        requests_any(_containers([{"resources": {"requests": a[0] or {}}}]), _managed(r))
    ],
    "extender.extenderPlugin.IsInterested": _interested,
}
