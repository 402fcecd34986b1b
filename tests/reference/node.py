"""Nodes and what is on them. Volcano: NodeInfo."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from tests.reference.resource import Resource, parse
from tests.reference.task import Task


class NodeError(Exception):
    """A task cannot be added."""


class Node:
    def __init__(self, manifest: dict[str, Any]) -> None:
        self.manifest = manifest
        self.name: str = manifest["metadata"]["name"]
        self.labels: dict[str, str] = manifest["metadata"].get("labels") or {}
        self.taints: list[dict[str, Any]] = (manifest.get("spec") or {}).get("taints") or []
        self.unschedulable = bool((manifest.get("spec") or {}).get("unschedulable"))
        self.kube_allocatable = parse((manifest.get("status") or {}).get("allocatable"))
        """Without oversubscribed capacity, which kube-scheduler does not count."""
        self.allocatable = self.kube_allocatable.clone()
        annotations = manifest["metadata"].get("annotations") or {}
        self.allocatable.cpu += number(annotations.get("volcano.sh/oversubscription-cpu", ""))
        self.allocatable.memory += number(annotations.get("volcano.sh/oversubscription-memory", ""))
        self.idle = self.allocatable.clone()
        self.used = Resource()
        self.releasing = Resource()
        self.pipelined = Resource()
        self.tasks: dict[str, Task] = {}
        """Copies, with the status at the time when they were added."""

    def future_idle(self) -> Resource:
        return self.idle.clone().add(self.releasing).sub(self.pipelined)

    def add_task(self, task: Task) -> None:
        if task.node and task.node != self.name:
            raise NodeError(f"task {task.key} already on different node {task.node}")
        if task.key in self.tasks:
            raise NodeError(f"task {task.key} already on node {self.name}")
        r = task.resreq
        if task.status == "Releasing":
            self.idle.sub(r)
            self.releasing.add(r)
            self.used.add(r)
        elif task.status == "Pipelined":
            self.pipelined.add(r)
        else:
            if task.status == "Binding" and not r.less_equal(self.idle):
                raise NodeError(f"node {self.name} resources are not enough to put task {task.key}")
            self.idle.sub(r)
            self.used.add(r)
        task.node = self.name
        self.tasks[task.key] = replace(task)

    def update_task(self, task: Task) -> None:
        """Replace a task whose status has changed."""
        self.remove_task(task)
        self.add_task(task)

    def remove_task(self, task: Task) -> None:
        stored = self.tasks.pop(task.key, None)
        if stored is None:
            return
        r = stored.resreq
        if stored.status == "Releasing":
            self.releasing.sub(r)
            self.idle.add(r)
            self.used.sub(r)
        elif stored.status == "Pipelined":
            self.pipelined.sub(r)
        else:
            self.idle.add(r)
            self.used.sub(r)


def number(text: str) -> float:
    """A decimal number; invalid text counts as 0."""
    return float(text) if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text) else 0.0
