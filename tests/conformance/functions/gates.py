"""Scheduling gates: the write that removes Volcano's own gate. Volcano: pkg/scheduler/gate."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.conformance.functions.adapter import Adapter, Adapters, Data
from volcano_py.scheduler.dispatch.writes import Writer
from volcano_py.scheduler.model.plan import RemoveGate


class _Client:
    """Records the patches."""

    def __init__(self) -> None:
        self.patches: list[tuple[str, str, Any]] = []

    async def patch(self, kind: Any, name: str, body: Any, namespace: str, *_: Any, **__: Any) -> None:
        self.patches.append((namespace, name, body))


def _remove(receiver: Any, arguments: list[Any]) -> list[Any]:
    client = _Client()
    writer = Writer(client, "volcano", "host", lambda: 0.0)  # type: ignore[arg-type]
    failure = asyncio.run(writer.write(RemoveGate(arguments[1], arguments[2], "uid")))
    assert failure is None, failure
    ((namespace, name, body),) = client.patches
    return [namespace, name, {"spec": body["spec"]}]


def _recorded(expected: Data) -> list[Any]:
    _, namespace, name = expected["args_after"]
    patch, *_ = _patches(expected["args_after"][0])
    return [namespace, name, json.loads(patch)]


def _patches(value: Any) -> list[str]:
    """The bodies of all recorded patches, wherever the fake client stores them."""
    if isinstance(value, dict):
        own = [value["Patch"]] if isinstance(value.get("Patch"), str) else []
        return own + [p for v in value.values() for p in _patches(v)]
    return [p for v in value for p in _patches(v)] if isinstance(value, list) else []


ADAPTERS: Adapters = {"cache.RemoveVolcanoSchGate": Adapter(_remove, _recorded)}
