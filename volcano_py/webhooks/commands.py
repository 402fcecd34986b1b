"""Admission of Commands: whether their creator may open or close the queue. Volcano has no such rule.

A Command for a queue takes effect on the whole cluster, but is created in a namespace. The access check (a
SubjectAccessReview, see `access`) happens before the rule; its result is recorded in an annotation, which the
controllers require with `--queue-commands=checked`. Every write of a Command is checked, so that no user can write the
annotation, or change the target of a checked Command.
"""

from __future__ import annotations

import copy
from typing import Any

from volcano_py.api import names
from volcano_py.api.kinds import QUEUE
from volcano_py.api.scheduling import DEFAULT_QUEUE, ROOT_QUEUE
from volcano_py.webhooks.access import AccessQuery, UserInfo
from volcano_py.webhooks.lookup import Manifest, about

PROTECTED_QUEUES = (ROOT_QUEUE, DEFAULT_QUEUE)
"""Queues on which no Command may act: every workload without a queue of its own needs them."""
VERB = "update"
"""The verb on the queue that its creator needs."""


def queue_of(command: Manifest) -> str | None:
    """The name of the queue on which a Command acts; None if it acts on another kind."""
    target = command.get("target") or {}
    if (target.get("apiVersion"), target.get("kind")) != (QUEUE.api_version, QUEUE.kind):
        return None
    return str(target.get("name") or "")


def record_of(queue: str, action: str) -> str:
    """The value of the annotation for a checked Command."""
    return f"{action} {queue}"


def query_of(command: Manifest, user: UserInfo) -> AccessQuery | None:
    """The access check that a Command needs; None if it needs none."""
    queue = queue_of(command)
    if queue is None or queue in PROTECTED_QUEUES:
        return None
    return AccessQuery(user, VERB, QUEUE.group, QUEUE.plural, queue)


RECORD = (names.QUEUE_ACCESS_CHECKED, names.QUEUE_ACCESS_USER)
"""The annotations that only admission writes."""


def mutate_command(command: Manifest, granted: bool, user: str = "") -> dict[str, Any]:
    """The Command with the record of its access check; a record that the creator wrote is removed."""
    mutated = copy.deepcopy(dict(command))
    metadata = mutated.setdefault("metadata", {})
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key not in RECORD}
    queue = queue_of(command)
    if queue is not None and granted:
        annotations[names.QUEUE_ACCESS_CHECKED] = record_of(queue, str(mutated.get("action") or ""))
        annotations[names.QUEUE_ACCESS_USER] = user
    if annotations or "annotations" in metadata:
        metadata["annotations"] = annotations
    return mutated


def validate_command(command: Manifest, granted: bool, user: str) -> list[str]:
    """Why a Command is denied."""
    queue = queue_of(command)
    if queue is None:
        return []
    if queue in PROTECTED_QUEUES:
        return about("command", command, [f"target.name: Forbidden: {protected(queue)}"])
    if granted:
        return []
    problem = (
        f"target.name: Forbidden: user {user!r} may not open or close queue {queue}: that requires the verb {VERB} on "
        f"{QUEUE.plural}.{QUEUE.group} {queue}; ask an administrator of the cluster to grant it with a ClusterRole"
    )
    return about("command", command, [problem])


def protected(queue: str) -> str:
    """The text about a Command for `root` or `default`."""
    return (
        f"no Command may open or close queue {queue}; an administrator can set status.state with "
        f"`kubectl patch queue {queue} --subresource=status --type=merge`"
    )
