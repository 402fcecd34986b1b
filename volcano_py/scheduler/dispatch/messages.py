"""The messages between decider and dispatcher.

Every operation has an id; the ids of a plan count on from `first`. Each operation that was sent is answered
by exactly one `Result`, unless the dispatcher ends: then the decider reads the objects of the others.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from volcano_py.scheduler.model.plan import Operation

Outcome = Literal["done", "failed", "conflict", "revoked", "superseded", "lost", "unknown"]
"""done        carried out (or no longer needed: the pod to evict is gone)
failed      rejected; `message` is the reason
conflict    not written: the object has changed since the status was decided, and the watch shows its newest version
revoked     withdrawn before it began
superseded  replaced by a newer operation on the same object
lost        not begun, because this dispatcher does not lead (any more)
unknown     sent, but without an answer: read the object to find out"""


class Settings(Struct):
    """How the dispatcher reaches the API server and when it may write. Times in seconds."""

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
    """If the decider is silent for longer, writing stops, the Lease is released and the decider ended; a dispatcher
    that is silent for longer is replaced.
    """
    max_in_flight: int = 64
    """Writes in flight at a time."""
    log_level: str = "INFO"


# From the decider


class Start(Struct, tag="start"):
    """The first message."""

    settings: Settings
    decider: int
    """Process id of the decider, which is the dispatcher's parent."""


class Plan(Struct, tag="plan"):
    """One emitted list of operations: they belong together."""

    statement: int
    first: int
    operations: list[Operation]


class Revoke(Struct, tag="revoke"):
    """`Node`, `Job` (PodGroup) or `Pod` is gone: operations that wait for it must not be written."""

    kind: Literal["Node", "Job", "Pod"]
    name: str
    """A node's name, or `namespace/name`."""
    uid: str = ""
    """Of a pod; empty: whichever has the name."""


class Heartbeat(Struct, tag="heartbeat"):
    """The sender's event loop runs. From the dispatcher: why its election is unhealthy, if it is."""

    problem: str = ""


class Stop(Struct, tag="stop"):
    """Finish writes in flight, release the Lease, end."""


FromDecider = Start | Plan | Revoke | Heartbeat | Stop

# From the dispatcher


class Leading(Struct, tag="leading"):
    """Whether plans are accepted now. Sent on every change, and first."""

    leading: bool
    holder: str = ""
    window: int = 0
    """Credits: how many operations may be unanswered at a time."""


class Result(Struct, array_like=True, gc=False):
    """The result of one operation."""

    id: int
    outcome: Outcome
    message: str = ""
    waited: float = 0.0
    """Seconds between arrival and the (last) begin of the write."""
    took: float = 0.0
    """Seconds that the (last) write took."""


class Results(Struct, tag="results"):
    """Results since the last message of this kind; each gives one credit back."""

    results: list[Result]


FromDispatcher = Leading | Results | Heartbeat
