"""What happened, from the API server's side: its audit log, and every version of the pods and Leases that it stored.

Shares no code with the product.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

Manifest = dict[str, Any]
GROUP = "scheduling.k8s.io/group-name"
_READS = frozenset({"get", "list", "watch"})


@dataclass(frozen=True)
class Write:
    """A write that the server carried out. `at`: when it was received, in seconds since the epoch."""

    at: float
    user: str
    verb: str
    resource: str
    """With the subresource: pods/binding."""
    namespace: str
    name: str


def writes(log: Path, after: int = 0) -> list[Write]:
    """The successful writes in an audit log, from a byte on; in the order in which they were received."""
    with log.open("rb") as file:
        file.seek(after)
        found = [write for line in file if (write := _write(line)) is not None]
    return sorted(found, key=lambda write: write.at)


def _write(line: bytes) -> Write | None:
    if not line.endswith(b"\n"):
        return None  # it is being written
    event = orjson.loads(line)
    reference = event.get("objectRef")
    if event["verb"] in _READS or event["responseStatus"]["code"] >= 300 or not reference:
        return None
    resource = "/".join(filter(None, (reference["resource"], reference.get("subresource", ""))))
    at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
    user = event["user"].get("username", "")
    return Write(at, user, event["verb"], resource, reference.get("namespace", ""), reference.get("name", ""))


def late(all_writes: Iterable[Write], lease: str, users: Iterable[str]) -> list[Write]:
    """Writes of one of `users` that were received after another one of them had written the Lease."""
    among = set(users)
    holder, found = "", []
    for write in all_writes:
        if write.user not in among:
            continue
        if write.resource == "leases":
            if write.name in ("", lease):
                holder = write.user
        elif holder and write.user != holder:
            found.append(write)
    return found


def bound_twice(all_writes: Iterable[Write]) -> list[str]:
    """Pods with more than one successful binding."""
    count = Counter((w.namespace, w.name) for w in all_writes if w.resource == "pods/binding")
    return [f"{namespace}/{name}" for (namespace, name), times in count.items() if times > 1]


def cpus(pod: Manifest) -> float:
    """The requested CPUs of a pod."""
    total = 0.0
    for container in pod["spec"]["containers"]:
        text = str(((container.get("resources") or {}).get("requests") or {}).get("cpu", "0"))
        total += float(text[:-1]) / 1000 if text.endswith("m") else float(text)
    return total


@dataclass
class Pods:
    """Follows all versions of all pods; `problems` are what must never be."""

    allocatable: dict[str, float]
    """CPUs by node."""
    problems: list[str] = field(default_factory=list)
    created: Counter[str] = field(default_factory=Counter)
    """How often a pod of a name was created."""
    nodes: dict[str, str] = field(default_factory=dict)
    """Node by uid, also of pods that are gone."""
    gangs: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """When the pods of a group were bound, in order."""
    _used: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))

    def see(self, kind: str, pod: Manifest, at: float | None = None) -> None:
        """One version: ADDED, MODIFIED or DELETED."""
        now = time.time() if at is None else at
        meta, uid = pod["metadata"], pod["metadata"]["uid"]
        key = f"{meta['namespace']}/{meta['name']}"
        if kind == "ADDED":
            self.created[key] += 1
        node = pod["spec"].get("nodeName", "")
        before = self.nodes.get(uid, "")
        if before and node != before:
            self.problems.append(f"pod {key} moved from {before} to {node or 'no node'}")
        if not node:
            return
        if not before:
            self.nodes[uid] = node
            self.gangs[(meta.get("annotations") or {}).get(GROUP, key)].append(now)
        if kind == "DELETED" or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            self._used[node].pop(uid, None)
            return
        self._used[node][uid] = cpus(pod)
        total = sum(self._used[node].values())
        if total > self.allocatable.get(node, 0.0) + 1e-9:
            self.problems.append(f"node {node} has {total:g} CPUs of pods and {self.allocatable.get(node, 0.0):g}")

    def longest_partial(self, size: int) -> float:
        """The longest time, in seconds, during which a part of a gang of this size was bound."""
        return max((times[size - 1] - times[0] for times in self.gangs.values() if len(times) >= size), default=0.0)

    def partial(self, size: int) -> list[str]:
        """Gangs of which fewer than `size` pods have ever been bound."""
        return [group for group, times in self.gangs.items() if 0 < len(times) < size]


@dataclass
class Leases:
    """Follows the holders of all Leases."""

    holders: dict[str, list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))
    """By name of the Lease: since when, and by which identity. An empty identity: it was released."""

    def see(self, kind: str, lease: Manifest, at: float | None = None) -> None:
        """One version."""
        holder = (lease.get("spec") or {}).get("holderIdentity") or ""
        known = self.holders[lease["metadata"]["name"]]
        if not known or known[-1][1] != holder:
            known.append((time.time() if at is None else at, holder))

    def holder(self, name: str) -> str:
        """The current holder of a Lease; empty without one."""
        known = self.holders[name]
        return known[-1][1] if known else ""

    def takeover(self, name: str, after: float, of: str) -> float | None:
        """When another candidate than `of` acquired the Lease."""
        found = (at for at, holder in self.holders[name] if at >= after and holder not in ("", of))
        return next(found, None)
