"""The faults, each with a name and a range of rates, and the draw of them for one run.

A run has a random subset of the faults, each with a random rate: faults that occur in each run hide those that need
quiet around them. Whether a fault is injected depends only on the seed and on the place (replica, verb, kind, number
of the request), so that a run without one injection has all the others.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import orjson

from tests.dst.virtual import chance

if TYPE_CHECKING:
    from tests.dst.network import Place
    from tests.dst.processes import Process


class Kind(NamedTuple):
    """One row of the table. `verbs`: empty means all; with a resource, only its own. `lasting`: for one object, for
    about half a minute."""

    name: str
    layer: str
    """Where it is injected: request, watch, admission, or at a step: process, situation, cluster."""
    kind: str
    low: float
    high: float
    verbs: tuple[str, ...] = ()
    status: int = 0
    lasting: bool = False
    longest: float = 0.0
    """Seconds of a delay, at most."""


_WRITES = ("POST", "PUT", "PATCH", "DELETE", "POST binding", "POST eviction", "PUT status", "PATCH status")
_READS = ("GET", "LIST")
TABLE: tuple[Kind, ...] = (
    Kind("409 without a newer version", "request", "answer", 0.01, 0.2, _WRITES, 409),
    Kind("409 that lasts for one object", "request", "answer", 0.01, 0.1, _WRITES, 409, lasting=True),
    Kind(
        "409 on the status or the end of a pod",
        "request",
        "answer",
        0.05,
        0.4,
        ("PATCH status pods", "DELETE pods"),
        409,
    ),
    Kind("403 that lasts for one object", "request", "answer", 0.01, 0.1, (*_WRITES, "GET"), 403, lasting=True),
    Kind("422 that lasts for one object", "request", "answer", 0.01, 0.1, _WRITES, 422, lasting=True),
    Kind("429 with Retry-After", "request", "answer", 0.005, 0.1, (), 429),
    Kind("500", "request", "answer", 0.005, 0.1, (), 500),
    Kind("503", "request", "answer", 0.005, 0.1, (), 503),
    Kind("500 after the request took effect", "request", "late answer", 0.005, 0.08, _WRITES, 500),
    Kind("time-out before the request takes effect", "request", "hang", 0.002, 0.05),
    Kind("time-out after the request took effect", "request", "lose answer", 0.002, 0.05, (*_WRITES, *_READS)),
    Kind("connection reset after the request took effect", "request", "reset", 0.005, 0.08, (*_WRITES, *_READS)),
    Kind("connection refused", "request", "refuse", 0.005, 0.08),
    Kind("request delayed", "request", "delay", 0.005, 0.1, (*_WRITES, *_READS), longest=6.0),
    Kind("object recreated while its bind is on the way", "request", "recreate", 0.01, 0.1, ("POST binding",)),
    Kind("slow body", "request", "slow body", 0.005, 0.1, (*_WRITES, *_READS), longest=5.0),
    Kind("watch delayed", "watch", "delay", 0.005, 0.15, longest=15.0),
    Kind("watch delayed for long", "watch", "delay", 0.001, 0.01, longest=60.0),
    Kind("watch dropped", "watch", "drop", 0.005, 0.1),
    Kind("watch cut in the middle of a line", "watch", "cut", 0.005, 0.05),
    Kind("watch events twice", "watch", "twice", 0.01, 0.3),
    Kind("watch ended with 410", "watch", "gone", 0.002, 0.05),
    Kind("bookmarks only", "watch", "bookmarks", 0.005, 0.05, longest=30.0),
    Kind("webhook down", "admission", "answer", 0.01, 0.2, status=500),
    Kind("webhook slow", "admission", "delay", 0.01, 0.2, longest=9.0),
    Kind("decider killed", "process", "kill decider", 0.002, 0.015),
    Kind("dispatcher killed", "process", "kill dispatcher", 0.002, 0.015),
    Kind("controllers killed", "process", "kill controllers", 0.002, 0.015),
    Kind("process stopped", "process", "stop", 0.002, 0.015, longest=40.0),
    Kind("network of a replica lost", "process", "cut off", 0.002, 0.015, longest=40.0),
    Kind("wall clock jumps", "process", "jump", 0.005, 0.03),
    Kind("clock drifts", "process", "drift", 0.005, 0.03),
    Kind("leader without a Lease", "process", "steal lease", 0.005, 0.02),
    Kind("API server restored from a backup", "process", "restore", 0.001, 0.006),
    Kind("takeover with a stale watch", "situation", "stale takeover", 0.005, 0.03, longest=30.0),
    Kind("500 for a bind that took effect, room requested", "situation", "bind unanswered", 0.005, 0.03),
    Kind("pod edited while its bind is on the way, room requested", "situation", "bind overtaken", 0.005, 0.03),
    Kind("pod deleted before a watch returned it", "situation", "pod unseen", 0.005, 0.03),
    Kind("node lost", "cluster", "node lost", 0.01, 0.05),
    Kind("node back", "cluster", "node back", 0.02, 0.06),
    Kind("node drained", "cluster", "node drained", 0.01, 0.05),
    Kind("node relabelled", "cluster", "node relabelled", 0.01, 0.05),
    Kind("node shrunk", "cluster", "node shrunk", 0.01, 0.05),
    Kind("node replaced under its name", "cluster", "node replaced", 0.01, 0.05),
    Kind("devices lost", "cluster", "devices lost", 0.01, 0.05),
    Kind("rival scheduler binds a pod", "cluster", "rival", 0.01, 0.05),
    Kind("object deleted at a bad moment", "cluster", "delete", 0.01, 0.08),
    Kind("object recreated under its name", "cluster", "recreate", 0.01, 0.06),
    Kind("object edited at a bad moment", "cluster", "edit", 0.01, 0.08),
    Kind("configuration reloaded", "cluster", "reload", 0.005, 0.03),
    Kind("many objects together", "cluster", "many", 0.003, 0.02),
)
BY_NAME = {kind.name: kind for kind in TABLE}
LASTS = 25.0
"""Seconds of a fault that lasts for one object."""
_REASONS = {403: "Forbidden", 409: "Conflict", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError",
            503: "ServiceUnavailable"}  # fmt: skip


class Fault(NamedTuple):
    """What happens to one request or one part of a watch; without a name: nothing."""

    name: str = ""
    kind: str = ""
    status: int = 0
    seconds: float = 0.0
    retry_after: float | None = None

    def body(self, place: Place) -> bytes:
        """The Status of an answer."""
        details = {"name": place.name, "kind": place.plural}
        text = f"{place.plural} {place.name!r}: {self.name} (injected)"
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": text, "code": self.status,
                  "reason": _REASONS[self.status], "details": details}  # fmt: skip
        return orjson.dumps(status)


NOTHING = Fault()


class Faults:
    """The faults of one run. `disabled`: keys of injections that are left out, to shrink a run."""

    def __init__(self, seed: str, disabled: frozenset[str] = frozenset(), only: frozenset[str] | None = None) -> None:
        self.seed = seed
        self.disabled = disabled
        self.active = True
        self.now = 0.0
        self.injected: Counter[tuple[str, str, str]] = Counter()
        """By fault, component and verb (or kind, for watches)."""
        self.keys: dict[str, None] = {}
        """Keys of all injections, in order."""
        self.rates: dict[str, float] = {}
        share = 0.15 + 0.6 * chance(seed, "share of faults")
        for kind in TABLE:
            wanted = kind.name in only if only is not None else chance(seed, "has", kind.name) < share
            if wanted:
                drawn = chance(seed, "rate", kind.name)
                self.rates[kind.name] = kind.low * (kind.high / kind.low) ** drawn
        self._request = [k for k in TABLE if k.layer == "request" and k.name in self.rates]
        self._watch = [k for k in TABLE if k.layer == "watch" and k.name in self.rates]
        self._admission = [k for k in TABLE if k.layer == "admission" and k.name in self.rates]

    def has(self, name: str) -> bool:
        return name in self.rates

    def _inject(self, kind: Kind, key: str, component: str, verb: str) -> Fault:
        self.keys[key] = None
        self.injected[kind.name, component, verb] += 1
        seconds = kind.longest * chance(self.seed, key, "seconds") ** 2
        after = float(1 + int(3 * chance(self.seed, key, "after"))) if kind.status == 429 else None
        return Fault(kind.name, kind.kind, kind.status, seconds, after)

    def of_request(self, process: Process, verb: str, place: Place, number: int) -> Fault:
        """The fault of one request."""
        if not self.active:
            return NOTHING
        for kind in self._request:
            if kind.verbs and verb not in kind.verbs and f"{verb} {place.plural}" not in kind.verbs:
                continue
            if kind.lasting:
                if place.plural == "leases" or not place.name:
                    continue
                window = int(self.now / LASTS)
                key = "|".join((kind.name, process.component, verb, *place, str(window)))
            else:
                key = "|".join((kind.name, process.name, verb, place.plural, str(number)))
            if chance(self.seed, key) < self.rates[kind.name] and key not in self.disabled:
                return self._inject(kind, key, process.component, verb)
        return NOTHING

    def of_watch(self, process: Process, place: Place, where: tuple[object, ...]) -> Fault:
        """The fault of one part of a watch."""
        if not self.active:
            return NOTHING
        for kind in self._watch:
            key = "|".join((kind.name, *map(str, where)))
            if chance(self.seed, key) < self.rates[kind.name] and key not in self.disabled:
                return self._inject(kind, key, process.component, f"WATCH {place.plural}")
        return NOTHING

    def of_admission(self, webhook: str, operation: str, number: int) -> Fault:
        """The fault of one call of a webhook."""
        if not self.active:
            return NOTHING
        for kind in self._admission:
            key = "|".join((kind.name, webhook, operation, str(number)))
            if chance(self.seed, key) < self.rates[kind.name] and key not in self.disabled:
                return self._inject(kind, key, "webhooks", operation)
        return NOTHING

    def of_step(self, layer: str, number: int) -> Kind | None:
        """The fault of a layer that step `number` injects, or None."""
        if not self.active:
            return None
        for kind in TABLE:
            if kind.layer == layer and kind.name in self.rates:
                key = f"{kind.name}|step {number}"
                if chance(self.seed, key) < self.rates[kind.name] and key not in self.disabled:
                    return kind
        return None

    def did(self, kind: Kind, number: int, component: str, verb: str = "") -> None:
        """Count a fault of `of_step` that found something to break."""
        self.keys[f"{kind.name}|step {number}"] = None
        self.injected[kind.name, component, verb or kind.kind] += 1
