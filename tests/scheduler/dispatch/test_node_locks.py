"""Locks of nodes: acquired once, kept from other pods, released, and acquired again after they expire."""

from __future__ import annotations

import time
from typing import Any

import pytest

from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node
from volcano_py.api.meta import format_time
from volcano_py.kube import NotFound
from volcano_py.scheduler.dispatch.pre_bind.node_lock_writes import lock_node, unlock_node
from volcano_py.scheduler.dispatch.pre_bind.step_objects import StepFailed
from volcano_py.scheduler.model.jobs.pre_bind import LOCK_EXPIRES, LockNode, object_of

LOCK = "hamivgpu"


class OneNode:
    """An API server with one node, whose annotations a merge patch changes."""

    def __init__(self, annotations: dict[str, str] | None) -> None:
        self.manifest: dict[str, Any] | None = {"metadata": {"name": "n", "resourceVersion": "7"}}
        if annotations is not None:
            self.manifest["metadata"]["annotations"] = annotations
        self.versions: list[str] = []

    async def get(self, rt: Any, name: str, namespace: Any = None, type: Any = None) -> Node:
        if self.manifest is None:
            raise NotFound(404, "NotFound", "gone")
        return from_manifest(Node, self.manifest)  # type: ignore[no-any-return]

    async def patch(self, rt: Any, name: str, body: Any, namespace: Any, kind: str) -> None:
        assert kind == "merge" and self.manifest is not None
        self.versions.append(body["metadata"]["resourceVersion"])
        annotations = self.manifest["metadata"].setdefault("annotations", {})
        for key, value in body["metadata"]["annotations"].items():
            if value is None:
                annotations.pop(key, None)
            else:
                annotations[key] = value

    @property
    def lock(self) -> str | None:
        assert self.manifest is not None
        found: str | None = (self.manifest["metadata"].get("annotations") or {}).get(LOCK)
        return found


def step(age: float = 0.0) -> LockNode:
    return LockNode("n", LOCK, format_time(time.time() - age))


@pytest.mark.parametrize("annotations", [None, {}, {"other": "x"}], ids=["no annotations", "none", "others"])
async def test_a_lock_is_acquired_with_a_version_and_released(annotations: dict[str, str] | None) -> None:
    api, mine = OneNode(annotations), step()
    await lock_node(api, mine)  # type: ignore[arg-type]
    assert api.lock == mine.time
    await lock_node(api, mine)  # type: ignore[arg-type]
    assert api.versions == ["7"], "a repeated step writes nothing"
    await unlock_node(api, mine)  # type: ignore[arg-type]
    assert api.lock is None


async def test_a_lock_of_another_pod_is_kept() -> None:
    other = step(60).time
    api = OneNode({LOCK: other})
    with pytest.raises(StepFailed, match="Node n has been locked since"):
        await lock_node(api, step())  # type: ignore[arg-type]
    await unlock_node(api, step())  # type: ignore[arg-type]
    assert api.lock == other


@pytest.mark.parametrize("left", [step(LOCK_EXPIRES + 60).time, "yesterday"], ids=("expired", "no-time"))
async def test_an_expired_lock_is_acquired(left: str) -> None:
    api, mine = OneNode({LOCK: left}), step()
    await lock_node(api, mine)  # type: ignore[arg-type]
    assert api.lock == mine.time


async def test_a_deleted_node() -> None:
    api = OneNode({})
    api.manifest = None
    with pytest.raises(StepFailed, match="was deleted"):
        await lock_node(api, step())  # type: ignore[arg-type]
    await unlock_node(api, step())  # type: ignore[arg-type]


def test_writes_of_one_node_do_not_overlap() -> None:
    assert object_of(step()) == ("Node", "", "n")
