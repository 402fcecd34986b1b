"""The messages between decider and dispatcher. Volcano has one process.

Every operation has an ID; the IDs of a plan are numbered from `first`. Each operation that was sent gets exactly one
`Result`, unless the dispatcher ends: then the decider reads the objects of the remaining ones.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from volcano_py.kube.request_counts import RequestSeries
from volcano_py.scheduler.model.plan import Operation

Outcome = Literal["done", "failed", "conflict", "revoked", "superseded", "lost", "unknown"]
"""done        written (or no longer necessary: the pod to evict is deleted)
failed      rejected; `message` is the reason
conflict    not written: the object has changed since the status was decided, and the watch returns its newest version
revoked     withdrawn before it began
superseded  replaced by a newer operation on the same object
lost        not begun, because this dispatcher does not lead (any more)
unknown     sent, but without a response: the object must be read"""


class DispatcherSettings(Struct):
    """The connection to the API server, and when the dispatcher may write. Times in seconds."""

    kubeconfig: str = ""
    master: str = ""
    qps: float = 2000.0
    burst: int = 2000
    component: str = "volcano"
    """Source of Events: the scheduler's name."""
    leader_elect: bool = True
    lease_namespace: str = "volcano-system"
    lease_name: str = "volcano"
    identity: str = ""
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    heartbeat_timeout: float = 30.0
    """Without a heartbeat of the decider for longer, the dispatcher stops writing, releases the Lease and ends the
    decider. A dispatcher without a heartbeat for longer is replaced.
    """
    max_in_flight: int = 64
    """The maximum number of concurrent writes."""
    log_level: str = "INFO"


# From the decider


class DispatcherStart(Struct, tag="start"):
    """The first message."""

    settings: DispatcherSettings
    decider: int
    """Process ID of the decider, which is the dispatcher's parent."""


class Plan(Struct, tag="plan"):
    """One emitted list of operations: they belong together."""

    statement: int
    first: int
    operations: list[Operation]


class Revoke(Struct, tag="revoke"):
    """A `Node`, `Job` (PodGroup) or `Pod` was deleted, or is doubted: operations that wait for it must not be
    written."""

    kind: Literal["Node", "Job", "Pod"]
    name: str
    """A node's name, or `namespace/name`."""
    uid: str = ""
    """The uid of a pod; empty: any pod with the name."""
    why: str = ""
    """Why, if the object was not deleted."""

    @property
    def reason(self) -> str:
        return self.why or f"{self.kind} {self.name} was deleted"


class Heartbeat(Struct, tag="heartbeat"):
    """The sender's event loop runs. From the dispatcher: why its election is unhealthy, if it is, and its requests
    since the last heartbeat."""

    problem: str = ""
    requests: list[RequestSeries] = []


class SetLogLevel(Struct, tag="set-log-level"):
    """Log from now on with this level of the module logging."""

    level: str


class Stop(Struct, tag="stop"):
    """Complete writes in flight, release the Lease, and exit."""


FromDecider = DispatcherStart | Plan | Revoke | Heartbeat | SetLogLevel | Stop

# From the dispatcher


class Leading(Struct, tag="leading"):
    """Whether plans are accepted now. Sent first, and on every change."""

    leading: bool
    holder: str = ""
    window: int = 0
    """Credits: the maximum number of operations without a result."""


class Result(Struct, array_like=True, gc=False):
    """The result of one operation."""

    id: int
    outcome: Outcome
    message: str = ""
    waited: float = 0.0
    """Seconds between the arrival and the start of the (last) write."""
    took: float = 0.0
    """Duration of the (last) write in seconds."""


class Results(Struct, tag="results"):
    """The results since the last message of this type; each returns one credit."""

    results: list[Result]


FromDispatcher = Leading | Results | Heartbeat
