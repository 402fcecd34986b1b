"""Each run in a process of its own, forked from one in which the API server is prepared: no run sees another one."""

from __future__ import annotations

import os
import select
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator

from tests.dst import virtual
from tests.dst.run import Outcome, Plan, Prepared, document, of_document, perform

LIMIT = 300.0
"""Seconds of this machine after which a run has hung."""


def _nothing() -> None:
    pass


def player(before: Callable[[], None] = _nothing) -> Callable[[Plan], Outcome]:
    """Runs plans. `before` is called in the process of each run, to change the product."""
    prepared = Prepared()
    return lambda plan: _forked(plan, prepared, before)


def outcomes(plans: Iterable[Plan], before: Callable[[], None] = _nothing) -> Iterator[Outcome]:
    """The outcome of each plan."""
    return map(player(before), plans)


def _forked(plan: Plan, prepared: Prepared, before: Callable[[], None]) -> Outcome:
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(receive)
            before()
            data = document(perform(plan, prepared.server))
        except BaseException:
            data = b"!" + traceback.format_exc().encode()
        with os.fdopen(send, "wb") as file:
            file.write(data)
        os._exit(0)
    os.close(send)
    data = b""
    deadline = virtual.real_seconds() + LIMIT
    with os.fdopen(receive, "rb", buffering=0) as file:
        while True:
            if not select.select([file], [], [], max(0.0, deadline - virtual.real_seconds()))[0]:
                os.kill(child, signal.SIGKILL)
                data = b"!it hung"
                break
            part = file.read(1 << 20)
            if not part:
                break
            data += part
    os.waitpid(child, 0)
    if not data or data.startswith(b"!"):
        return Outcome(plan, [f"the run failed: {data[1:].decode() or 'its process died'}"])
    return of_document(data)
