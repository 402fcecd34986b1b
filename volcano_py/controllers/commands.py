"""Commands: passes the requested action to the controller of the target. Volcano: Command.

A Command is deleted before it is executed, so that it is executed at most once. Commands for other kinds are
ignored.
"""

from __future__ import annotations

from collections.abc import Callable

from volcano_py.api.bus import Command
from volcano_py.api.kinds import COMMAND, ResourceType
from volcano_py.controllers.mirror import Mirror
from volcano_py.controllers.runner import Cluster
from volcano_py.kube.workqueue import WorkQueue

Sink = Callable[[Command], None]


class CommandController:
    name = "command"
    workers = 2

    def __init__(self, cluster: Cluster, sinks: dict[ResourceType, Sink]) -> None:
        """`sinks`: by kind of target, the function that receives its commands."""
        self.queue: WorkQueue[str] = WorkQueue()
        self._executor = cluster.executor
        self._sinks = {(rt.api_version, rt.kind): sink for rt, sink in sinks.items()}
        self._commands: Mirror[Command] = cluster.mirror(COMMAND)
        self._commands.informer.on(add=self._added)

    def _added(self, command: Command) -> None:
        if self._sink(command) is not None:
            self.queue.add(command.key)

    def _sink(self, command: Command) -> Sink | None:
        target = command.target
        return self._sinks.get((target.api_version, target.kind)) if target else None

    async def process(self, key: str) -> None:
        command = self._commands.get(key)
        sink = self._sink(command) if command else None
        if command is not None and sink is not None and await self._executor.take(COMMAND, command):
            self._commands.forget(key, command.metadata.uid)
            sink(command)
        self.queue.forget(key)
