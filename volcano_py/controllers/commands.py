"""Commands: passes the requested action to the controller of the target. Volcano: Command.

A Command is deleted before it is executed, so that it is executed at most once. Commands for other kinds are
ignored. A Command for a queue takes effect on the whole cluster: unlike in Volcano it is executed only if its creator's
access was checked at admission, or if it is in a namespace that the administrator has listed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from volcano_py.api import names
from volcano_py.api.bus import Command
from volcano_py.api.kinds import COMMAND, QUEUE, ResourceType
from volcano_py.api.meta import ApiObject
from volcano_py.controllers.instructions import Emit
from volcano_py.controllers.mirror import Mirror
from volcano_py.controllers.runner import Cluster
from volcano_py.kube.workqueue import WorkQueue
from volcano_py.webhooks.commands import PROTECTED_QUEUES, protected, record_of

log = logging.getLogger(__name__)

Sink = Callable[[Command], None]
REJECTED = "CommandRejected"
"""Reason of the Event on a queue."""
ANY_NAMESPACE = "*"


class QueueCommands(Struct, frozen=True):
    """Which Commands may open and close queues; by default none."""

    checked: bool = False
    """Those whose creator's access was checked by /commands/mutate."""
    namespaces: Sequence[str] = ()
    """Those in these namespaces; `*`: in all, as in Volcano."""

    def problem_of(self, command: Command) -> str:
        """Why a Command may not act on its queue; empty if it may."""
        assert command.target is not None
        queue, where = command.target.name, command.metadata.namespace
        if queue in PROTECTED_QUEUES:
            return protected(queue)
        if ANY_NAMESPACE in self.namespaces or where in self.namespaces:
            return ""
        record = (command.metadata.annotations or {}).get(names.QUEUE_ACCESS_CHECKED)
        if self.checked and record == record_of(queue, command.action):
            return ""
        if self.checked:
            return (
                "the access of its creator was not checked at admission: enable the webhook /commands/mutate, or start "
                f"the controllers with --queue-command-namespaces={where}"
            )
        return (
            "Commands for queues are off: install the webhook /commands/mutate and start the controllers with "
            f"--queue-commands=checked, or start them with --queue-command-namespaces={where}"
        )

    def user_of(self, command: Command) -> str:
        """Whose access was checked; empty if none was."""
        return (command.metadata.annotations or {}).get(names.QUEUE_ACCESS_USER, "") if self.checked else ""


class CommandController:
    name = "command"
    workers = 2

    def __init__(
        self, cluster: Cluster, sinks: Mapping[ResourceType, Sink], queue_commands: QueueCommands | None = None
    ) -> None:
        """`sinks`: by kind of target, the function that receives its commands."""
        self.queue: WorkQueue[str] = WorkQueue()
        self._executor = cluster.executor
        self._sinks = {(rt.api_version, rt.kind): sink for rt, sink in sinks.items()}
        self._permitted = queue_commands or QueueCommands()
        self._queues: Mirror[ApiObject] | None = cluster.mirror(QUEUE) if QUEUE in sinks else None
        self._commands: Mirror[Command] = cluster.mirror(COMMAND)
        self._commands.on(add=self._added)

    def _added(self, command: Command) -> None:
        # One that is being deleted was executed before, or was changed after its deletion, without admission.
        if self._sink(command) is not None and command.metadata.deletion_timestamp is None:
            self.queue.add(command.key)

    def _sink(self, command: Command) -> Sink | None:
        target = command.target
        return self._sinks.get((target.api_version, target.kind)) if target else None

    async def process(self, key: str) -> None:
        command = self._commands.get(key)
        sink = self._sink(command) if command else None
        if command is not None and sink is not None and await self._executor.take(COMMAND, command):
            self._commands.forget(key, command.metadata.uid)
            problem = self._permitted.problem_of(command) if _is_for_queue(command) else ""
            if problem:
                self._reject(command, problem)
            else:
                if _is_for_queue(command):
                    self._announce(command)
                sink(command)
        self.queue.forget(key)

    def _announce(self, command: Command) -> None:
        """An Event on the queue: who has requested the action."""
        assert command.target is not None
        queue = self._queues.get(command.target.name) if self._queues is not None else None
        if queue is not None:
            user = self._permitted.user_of(command)
            by = f", requested by {user}" if user else ""
            text = f"Start to execute command {command.action} of the Command {command.key}{by}"
            self._executor.record(queue, Emit("Normal", "CommandIssued", text))

    def _reject(self, command: Command, problem: str) -> None:
        assert command.target is not None
        text = f"{command.action} by the Command {command.key} was not executed: {problem}"
        log.warning("queue %s: %s", command.target.name, text)
        queue = self._queues.get(command.target.name) if self._queues is not None else None
        if queue is not None:
            self._executor.record(queue, Emit("Warning", REJECTED, text))


def _is_for_queue(command: Command) -> bool:
    target = command.target
    return target is not None and (target.api_version, target.kind) == (QUEUE.api_version, QUEUE.kind)
