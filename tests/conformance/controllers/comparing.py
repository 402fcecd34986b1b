"""What the runners of single cases share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from volcano_py.api import kinds
from volcano_py.api.codec import from_manifest
from volcano_py.controllers.executor import Executor
from volcano_py.controllers.runner import Cluster
from volcano_py.kube import Client
from volcano_py.kube.credentials import Credentials

Data = dict[str, Any]
BECAUSE = "because of "
"""A runner's answer that starts like this names the deviation id by which ours differs."""
COVERED = "covered by "
"""Begins an answer that names the test of a rule which has no counterpart of this shape here."""
NEVER_ASKED = "never asked: "
"""Begins an answer about a question that does not come up, there or here."""


def same(made: Any, expected: Any) -> str:
    return "" if made == expected else f"made {made}, expected {expected}"


def existing(case: Data, kind: str) -> list[Data]:
    """The recorded objects of one kind that were there before."""
    return [obj for obj in case.get("existing") or () if obj["kind"] == kind]


def without_times(value: Any) -> Any:
    """The same without empty fields and without when it was recorded."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if v not in (None, {}, []) and not k.endswith("Timestamp")}
        return {k: without_times(v) for k, v in kept.items()}
    if isinstance(value, list):
        return [without_times(item) for item in value]
    return value


def resting() -> Cluster:
    """A cluster whose informers see what they are handed (`see`), and nothing else."""
    client = Client(Credentials(server="http://127.0.0.1:1"))
    return Cluster(client, Executor(client))


def see(cluster: Cluster, manifests: Iterable[Data]) -> None:
    """Hand objects to the informers, as the API server would."""
    for manifest in manifests:
        rt = kinds.for_manifest(manifest)
        mirror = cluster.mirror(rt)
        mirror.informer._put(from_manifest(kinds.STRUCTS[rt], manifest))


def in_a_loop(work: Any) -> Any:
    """Call something that needs a running event loop."""

    async def call() -> Any:
        return work()

    return asyncio.run(call())
