"""The arguments of allocate in the configuration of actions. Volcano: parseArguments of action allocate."""

from __future__ import annotations

from msgspec import field

from volcano_py.scheduler.framework.arguments import decode
from volcano_py.scheduler.framework.plugin import ActionArguments
from volcano_py.scheduler.framework.session import Session


class AllocateArguments(ActionArguments):
    error_cache: bool = field(default=True, name="predicateErrorCacheEnable")
    """Without the deviation own-verdict: do not try a pod on a node that rejected another pod of its role."""


def settings(session: Session) -> AllocateArguments:
    read, _ = decode(AllocateArguments, "action allocate", session.configuration.action_arguments.get("allocate"))
    return read
