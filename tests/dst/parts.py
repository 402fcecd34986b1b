"""What the parts have in common that only a share of the runs has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from tests.dst.server import ApiServer
from tests.dst.virtual import chance

Call = Callable[[str, str, Any, str], Awaitable[int]]
"""One request: method, path, body, user. Returns the status."""


class Part:
    """One of these parts. In a run without it, each method does nothing."""

    name: ClassVar[str]
    """Of the chance, which is the same for a seed."""
    share: ClassVar[float]
    """Of the runs that have it."""

    def __init__(self, server: ApiServer, seed: str, call: Call) -> None:
        self.used = chance(seed, self.name) < self.share
        self._server = server
        self._seed = seed
        self._call = call
