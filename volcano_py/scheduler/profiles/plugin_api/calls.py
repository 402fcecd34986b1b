"""HTTP calls as data: the requests of plugins to other programs, and their outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Tls(NamedTuple):
    """How to verify the server, and the client's identity; paths of PEM files, empty: the system's defaults."""

    insecure: bool = False
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""


class Call(NamedTuple):
    """One HTTP call: POST `body` as JSON to `url`."""

    url: str
    body: Callable[[], Any]
    """Creates the body when it is sent: the nodes of a large cluster make it large."""
    timeout: float
    """The timeout in seconds."""
    tls: Tls | None = None
    about: Any = None
    """Data that the plugin gets back with the response."""


class Answer(NamedTuple):
    """The decoded JSON of a response with status 200, or why there is none."""

    body: Any = None
    error: str = ""
    about: Any = None
    """The context of the call."""
