"""deviceshare: the cards of a node suffice for a pod, by memory, as a whole, or as vGPUs."""

from __future__ import annotations

from math import floor
from typing import Any

import yaml

from tests.reference.conf import get_bool, get_int
from tests.reference.gpu_share import GpuShareNode
from tests.reference.node import Node
from tests.reference.session import Handler, Session
from tests.reference.task import Task
from tests.reference.vgpu import Config, VgpuNode, config_of
from tests.reference.votes import PredicateError

Cards = GpuShareNode | VgpuNode


def deviceshare(session: Session, arguments: dict[str, Any]) -> None:
    policy = str(arguments.get("deviceshare.SchedulePolicy", ""))
    weight = get_int(arguments, "deviceshare.ScheduleWeight", 0)
    rules = arguments.get("deviceshare.GPUExclusiveRules") or []
    by_memory = get_bool(arguments, "deviceshare.GPUSharingEnable", False)
    by_number = get_bool(arguments, "deviceshare.GPUNumberEnable", False)
    config = _config(session)
    devices: dict[str, Cards] = {}
    for name, node in session.nodes.items():
        found: Cards
        if get_bool(arguments, "deviceshare.VGPUEnable", False):
            found = VgpuNode(node.manifest, config, policy, rules)
        elif by_memory or by_number:
            found = GpuShareNode(node.manifest, not by_memory)
        else:
            continue
        if found.exists:
            devices[name] = found
            for task in node.tasks.values():
                if task.status != "Releasing":
                    found.add(task)
    had_cards = {uid: job_task.node for job in session.jobs.values() for uid, job_task in job.tasks.items()}

    def cards(task: Task, name: str) -> Cards | None:
        found = devices.get(name)
        return found if found is not None and found.requests(task) else None

    def predicate(task: Task, node: Node) -> None:
        there = cards(task, node.name)
        reason = there.rejection(task) if there is not None else ""
        if there is not None and reason:
            session.votes.deciding.add(f"deviceshare.{there.kind}")
            raise PredicateError(reason)

    def simulate(task: Task, node: Node) -> bool:
        there = cards(task, node.name)
        if there is None:
            return True
        before = there.save()
        for victim in session.removed:
            there.sub(victim)
        found = not there.rejection(task)
        there.restore(before)
        return found

    def node_order(task: Task, node: Node) -> float:
        there = cards(task, node.name)
        return float(floor(there.score(task) + 0.5) * weight) if there is not None else 0.0

    def allocate(task: Task) -> str:
        there = None if session.simulating else cards(task, task.node)
        if there is None:
            return ""
        if had_cards.get(task.uid):  # its eviction is undone: it counts, and is allocated again
            there.add(task)
        annotations = there.allocate(task)
        if annotations is None:
            session.rarities.add("no-cards-left")
            return there.rejection(task)
        session.annotations[task.key] = annotations
        return ""

    def deallocate(task: Task) -> None:
        there = None if session.simulating else cards(task, task.node)
        if there is not None:
            if had_cards.get(task.uid):
                there.sub(task)
            there.release(task)
            session.annotations.pop(task.key, None)

    session.votes.register("Predicate", "deviceshare", predicate)
    session.votes.register("SimulatePredicate", "deviceshare", simulate)
    if weight > 0:
        session.votes.register("NodeOrder", "deviceshare", node_order)
    session.handlers.append(Handler(allocate, deallocate))


def _config(session: Session) -> Config:
    for m in session.cluster.of("ConfigMap"):
        if (m["metadata"]["namespace"], m["metadata"]["name"]) == ("kube-system", "volcano-vgpu-device-config"):
            return config_of(yaml.safe_load(m["data"]["device-config.yaml"]))
    return Config()
