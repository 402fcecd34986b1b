"""What a viewer may do: suspend and resume a Job, open and close a queue, each through a Command as `vcctl` does.

A SelfSubjectAccessReview reports whether the user may; the API server decides again when the Command is created.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from volcano_py.api.kinds import COMMAND, JOB, QUEUE, ResourceType
from volcano_py.cli.job_commands import send
from volcano_py.kube.errors import ApiError, KubeError
from volcano_py.kube.remedies import for_denied

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
QUEUE_COMMANDS = "default"
"""The namespace of Commands for queues, as in vcctl."""
_VALID = 60.0
"""Seconds for which a review holds."""


class Action(NamedTuple):
    """A button. `command`: the Command's action; `effect`: the question of the dialog before it; empty: no dialog."""

    command: str
    label: str
    rt: ResourceType
    done: str
    effect: str = ""


SUSPEND = Action(
    "AbortJob", "Suspend", JOB, "is being suspended", "Its pods are deleted, and what they have not saved is lost."
)
RESUME = Action("ResumeJob", "Resume", JOB, "is being resumed")
OPEN = Action("OpenQueue", "Open", QUEUE, "is being opened")
CLOSE = Action("CloseQueue", "Close", QUEUE, "is being closed", "It admits no more jobs; those that run go on.")


def of_job(state: str) -> Action | None:
    """The action for a Job in one of `jobs.STATES`."""
    return {"suspended": RESUME, "running": SUSPEND, "waiting": SUSPEND}.get(state)


def of_queue(name: str, state: str) -> Action | None:
    """The action for a queue; root and default stay open."""
    if name in ("root", "default"):
        return None
    return {"Open": CLOSE, "Closed": OPEN, "Closing": OPEN}.get(state)


class Actions:
    """Actions with the user's rights."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reviews: dict[str, tuple[float, bool]] = {}

    async def allowed(self, action: Action, namespace: str = "") -> bool:
        """Whether the user may create the Command; False while the API server does not say."""
        where = namespace if action.rt is JOB else QUEUE_COMMANDS
        known = self._reviews.get(where)
        now = time.monotonic()
        if known is not None and now - known[0] < _VALID:
            return known[1]
        attributes = {"namespace": where, "verb": "create", "group": COMMAND.group, "resource": COMMAND.plural}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        try:
            answer = msgspec.json.decode(await self._client.raw("POST", _REVIEW, body=msgspec.json.encode(body)))
        except (KubeError, OSError, msgspec.DecodeError):
            return False
        may = bool((answer.get("status") or {}).get("allowed"))
        self._reviews[where] = now, may
        return may

    async def carry_out(self, action: Action, name: str, namespace: str = "") -> str:
        """Create the Command. Returns why it could not be done, in one sentence; empty when it was."""
        try:
            target = await self._client.get(action.rt, name, namespace or None)
            await send(self._client, action.rt, target, action.command, namespace or QUEUE_COMMANDS)
        except ApiError as error:
            self._reviews.clear()
            return f"The API server rejected it: {error}{for_denied(str(error))}"
        except (KubeError, OSError) as error:
            return f"The API server does not answer: {error}"
        return ""
