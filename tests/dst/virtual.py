"""Virtual time and seeded random numbers, in place of the clock and the randomness of the machine.

`install` must run before the first import of the product: its modules take `time.time` as a default argument. Without
a simulation (`STATE.loop` is None), everything is as before.
"""

from __future__ import annotations

import contextvars
import datetime as datetime_module
import os
import random
import time
from datetime import tzinfo
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.dst.loop import SimulatedLoop
    from tests.dst.processes import Process

EPOCH = 1_800_000_000.0
"""The wall clock when a simulation begins."""
UPTIME = 100_000.0
"""The monotonic clock when a simulation begins."""

PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)
"""The simulated process whose code runs."""


class _State:
    loop: SimulatedLoop | None = None
    bytes: random.Random = random.Random(0)


STATE = _State()
_REAL = {name: getattr(time, name) for name in ("time", "monotonic", "perf_counter", "clock_gettime")}
_urandom = os.urandom


def real_seconds() -> float:
    """The clock of this machine, to measure a run."""
    seconds: float = _REAL["perf_counter"]()
    return seconds


def monotonic() -> float:
    """Seconds by the clock of the process whose code runs."""
    loop = STATE.loop
    if loop is None:
        real: float = _REAL["monotonic"]()
        return real
    process = PROCESS.get()
    return UPTIME + (loop.now if process is None else process.clock.monotonic(loop.now))


def wall() -> float:
    """Seconds since the epoch by the clock of the process whose code runs."""
    loop = STATE.loop
    if loop is None:
        real: float = _REAL["time"]()
        return real
    process = PROCESS.get()
    return EPOCH + (loop.now if process is None else process.clock.wall(loop.now))


def _gettime(which: int) -> float:
    if STATE.loop is None:
        real: float = _REAL["clock_gettime"](which)
        return real
    return wall() if which == time.CLOCK_REALTIME else monotonic()


def _bytes(size: int) -> bytes:
    return _urandom(size) if STATE.loop is None else STATE.bytes.randbytes(size)


class _Meta(type):
    def __instancecheck__(cls, obj: Any) -> bool:
        return isinstance(obj, _Real)


_Real = datetime_module.datetime


class _Datetime(_Real, metaclass=_Meta):
    """`datetime` whose `now` is the virtual time."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        return _Real.fromtimestamp(wall(), tz)

    @classmethod
    def utcnow(cls) -> Any:
        return _Real.utcfromtimestamp(wall())


def install() -> None:
    """Replace clock and randomness. Call it before the product is imported."""
    time.time = wall
    time.monotonic = monotonic
    time.perf_counter = monotonic
    time.clock_gettime = _gettime
    os.urandom = _bytes
    random._urandom = _bytes  # type: ignore[attr-defined]
    datetime_module.datetime = _Datetime  # type: ignore[misc]


def seed(value: str) -> None:
    """Begin the same sequence of random numbers."""
    random.seed(value)
    STATE.bytes = random.Random(f"bytes of {value}")


def chance(*key: object) -> float:
    """A number in [0, 1) that depends on the key alone: not on how many numbers were drawn before."""
    text = "\x1f".join(map(str, key))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) / 2**64
