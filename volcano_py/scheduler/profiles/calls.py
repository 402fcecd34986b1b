"""HTTP calls as data: what plugins ask of other programs, and what has come of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Tls(NamedTuple):
    """How to verify the server, and with what to identify; paths of PEM files, empty: the system's defaults."""

    insecure: bool = False
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""


class Call(NamedTuple):
    """One HTTP call: POST `body` as JSON to `url`."""

    url: str
    body: Callable[[], Any]
    """Makes the body when it is sent: the nodes of a large cluster are long."""
    timeout: float
    """Seconds."""
    tls: Tls | None = None
    about: Any = None
    """What the plugin gets back with the answer."""


class Answer(NamedTuple):
    """The decoded JSON of an answer with status 200, or why there is none."""

    body: Any = None
    error: str = ""
    about: Any = None
    """That of the call."""
