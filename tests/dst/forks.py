"""Each run in a process of its own, forked from one in which the API server is prepared: no run sees another one."""

from __future__ import annotations

import os
import select
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from tests.dst import virtual
from tests.dst.run import Outcome, Plan, Prepared, document, of_document, perform

LIMIT = 300.0
"""Seconds of this machine after which a run has hung."""


def _nothing() -> None:
    pass


class Runs:
    """Runs plans. `before` is called in the process of each run, to change the product."""

    def __init__(self, before: Callable[[], None] = _nothing) -> None:
        self._before = before
        self._prepared = Prepared()

    def one(self, plan: Plan) -> Outcome:
        """The outcome of one plan."""
        return self._begin(plan).outcome()

    def all(self, plans: Iterable[Plan], jobs: int = 1) -> Iterator[Outcome]:
        """The outcomes in the order of the plans, of which `jobs` run at the same time."""
        running: deque[_Child] = deque()
        for plan in plans:
            running.append(self._begin(plan))
            if len(running) >= jobs:
                yield running.popleft().outcome()
        while running:
            yield running.popleft().outcome()

    def _begin(self, plan: Plan) -> _Child:
        receive, send = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.close(receive)
                self._before()
                data = document(perform(plan, self._prepared.server))
            except BaseException:
                data = b"!" + traceback.format_exc().encode()
            with os.fdopen(send, "wb") as file:
                file.write(data)
            os._exit(0)
        os.close(send)
        return _Child(plan, child, receive)


class _Child:
    """The process of one run, and the pipe that its outcome is read from."""

    def __init__(self, plan: Plan, pid: int, pipe: int) -> None:
        self._plan, self._pid, self._pipe = plan, pid, pipe
        self._deadline = virtual.real_seconds() + LIMIT

    def outcome(self) -> Outcome:
        """Wait for the end."""
        data = b""
        with os.fdopen(self._pipe, "rb", buffering=0) as file:
            while True:
                if not select.select([file], [], [], max(0.0, self._deadline - virtual.real_seconds()))[0]:
                    os.kill(self._pid, signal.SIGKILL)
                    data = b"!it hung"
                    break
                part = file.read(1 << 20)
                if not part:
                    break
                data += part
        os.waitpid(self._pid, 0)
        if not data or data.startswith(b"!"):
            return Outcome(self._plan, [f"the run failed: {data[1:].decode() or 'its process died'}"])
        return of_document(data)
