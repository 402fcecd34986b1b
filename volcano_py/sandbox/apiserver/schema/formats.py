"""String formats of OpenAPI as the API server validates them; unknown formats are ignored."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
import uuid
from collections.abc import Callable
from datetime import date
from typing import Any
from urllib.parse import urlsplit

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.schema import codec

_EMAIL = re.compile(r"^[^@\s]+@[^@\s]+$")
_HOST = re.compile(r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*$")
_MAC = re.compile(r"^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$|^([0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}$")
_DURATION = re.compile(r"^[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h|d|w))+)$")


def _tries(test: Callable[[str], Any], errors: tuple[type[Exception], ...] = (ValueError,)) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            test(text)
        except errors:
            return False
        return True

    return check


def _uri(text: str) -> None:
    if not urlsplit(text).scheme and not text.startswith("/"):
        raise ValueError(text)


def _byte(text: str) -> None:
    base64.b64decode(text, validate=True)


def _date(text: str) -> None:
    if len(text) != 10:
        raise ValueError(text)
    date.fromisoformat(text)


_CHECKS: dict[str, Callable[[str], bool]] = {
    "date-time": _tries(codec.parse_time),
    "datetime": _tries(codec.parse_time),
    "date": _tries(_date),
    "duration": lambda text: bool(_DURATION.match(text.replace(" ", ""))),
    "byte": _tries(_byte, (ValueError, binascii.Error)),
    "uuid": _tries(uuid.UUID),
    "uuid3": lambda text: _version(text, 3),
    "uuid4": lambda text: _version(text, 4),
    "uuid5": lambda text: _version(text, 5),
    "ipv4": _tries(ipaddress.IPv4Address),
    "ipv6": _tries(ipaddress.IPv6Address),
    "cidr": lambda text: "/" in text and _tries(lambda t: ipaddress.ip_network(t, strict=False))(text),
    "mac": lambda text: bool(_MAC.match(text)),
    "email": lambda text: bool(_EMAIL.match(text)),
    "hostname": lambda text: bool(_HOST.match(text)) and len(text) <= 255,
    "uri": _tries(_uri),
    "k8s-short-name": lambda text: not metadata.label_errors(text),
    "k8s-long-name": lambda text: not metadata.subdomain_errors(text),
}


def _version(text: str, number: int) -> bool:
    try:
        return uuid.UUID(text).version == number
    except ValueError:
        return False


def matches(name: str, text: str) -> bool:
    """Whether a string has a format."""
    check = _CHECKS.get(name)
    return check is None or check(text)
