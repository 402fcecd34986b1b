"""What the decider and the dispatcher say to each other.

Every operation has an id; the ids of a plan count on from `first`. Each operation that was sent is answered
by exactly one `Result`, unless the dispatcher dies: then the decider re-reads what was not answered.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from volcano_py.scheduler.model.plan import Operation

Outcome = Literal["done", "failed", "conflict", "revoked", "superseded", "lost", "unknown"]
"""done        carried out (or no longer needed: the pod to evict is gone)
failed      refused for good; `message` says why
conflict    not written: the object has changed since the status was decided, and the watch brings its newest version
revoked     withdrawn before it began
superseded  a newer operation on the same object took its place
lost        not begun, because this dispatcher does not lead (any more)
unknown     sent, but the answer never came: read the object to know"""


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
    """Silence of the decider after which nothing more is written, the Lease released and the decider ended; and
    silence of the dispatcher after which the decider replaces it.
    """
    in_flight: int = 64
    """Writes on their way at a time."""
    log_level: str = "INFO"


# From the decider


class Start(Struct, tag="start"):
    """The first message."""

    settings: Settings
    decider: int
    """Process id of the decider, which is our parent."""


class Plan(Struct, tag="plan"):
    """One emitted list of operations: they belong together."""

    statement: int
    first: int
    operations: list[Operation]


class Revoke(Struct, tag="revoke"):
    """`Node`, `Job` (PodGroup) or `Pod` is gone: what waits for it must not be written."""

    kind: Literal["Node", "Job", "Pod"]
    name: str
    """A node's name, or `namespace/name`."""
    uid: str = ""
    """Of a pod; empty: whichever has the name."""


class Heartbeat(Struct, tag="heartbeat"):
    """The sender's event loop runs. From the dispatcher: what keeps it from leading, if anything does."""

    problem: str = ""


class Stop(Struct, tag="stop"):
    """Finish what is on its way, give back the Lease, end."""


FromDecider = Start | Plan | Revoke | Heartbeat | Stop

# From the dispatcher


class Leading(Struct, tag="leading"):
    """Whether plans are welcome now. Sent on every change, and first of all."""

    leading: bool
    holder: str = ""
    window: int = 0
    """Credits: how many operations may be unanswered at a time."""


class Result(Struct, array_like=True, gc=False):
    """What became of one operation."""

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
