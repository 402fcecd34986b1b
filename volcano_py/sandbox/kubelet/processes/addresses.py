"""Addresses of pods on the loopback network, and their names.

On Linux all of 127.0.0.0/8 is local, so each pod gets its own address there without any set-up; on other systems all
have 127.0.0.1. A name `<hostname>.<subdomain>` keeps its address while a pod of that subdomain exists. It can be
resolved before its pod exists: a worker can use the future address of the server.

Kubernetes: the pod network, and the DNS of headless Services.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

Object = dict[str, Any]
Name = tuple[str, str, str]  # namespace, subdomain, host name

FIRST, LAST = 1 << 16, 254 << 16  # from 127.1.0.0: other programs use lower ones


def name_of(pod: Object) -> Name | None:
    """A pod's name in its headless Service."""
    spec, meta = pod["spec"], pod["metadata"]
    if not spec.get("subdomain"):
        return None
    return meta["namespace"], spec["subdomain"], spec.get("hostname") or meta["name"]


class Addresses:
    """Allocates addresses."""

    def __init__(self, single: bool = not sys.platform.startswith("linux")) -> None:
        self._single = single
        self._next = FIRST
        self._names: dict[tuple[str, str], dict[str, str]] = {}
        self._members: dict[tuple[str, str], set[str]] = {}  # subdomain to uids of its pods
        self._holders: dict[str, str] = {}  # address to the uid of its pod

    def skip(self, taken: Iterable[str]) -> None:
        """Reserve these addresses, and all below."""
        for address in taken:
            parts = address.split(".")
            if len(parts) == 4 and parts[0] == "127":
                self._next = max(self._next, (int(parts[1]) << 16) + (int(parts[2]) << 8) + int(parts[3]) + 1)

    def reserve(self, namespace: str, subdomain: str, host: str) -> str:
        """The current or future address of the pod with this name."""
        names = self._names.setdefault((namespace, subdomain), {})
        if host not in names:
            names[host] = self._fresh()
        return names[host]

    def has(self, namespace: str, subdomain: str, host: str) -> bool:
        return host in self._names.get((namespace, subdomain), {})

    def take(self, pod: Object) -> str:
        """An address for a new pod: its name's, unless another pod of the same name has it."""
        uid, name = pod["metadata"]["uid"], name_of(pod)
        address = self._fresh() if name is None else self.reserve(*name)
        if self._holders.get(address, uid) != uid:
            address = self._fresh()
        self._hold(pod, address)
        return address

    def adopt(self, pod: Object, address: str) -> None:
        """Record the existing address of a pod."""
        name = name_of(pod)
        if name is not None:
            self._names.setdefault(name[:2], {}).setdefault(name[2], address)
        self._hold(pod, address)

    def release(self, uid: str, namespace: str, subdomain: str, address: str) -> None:
        """Remove a deleted pod; with the last one of a subdomain its names are removed, too."""
        if self._holders.get(address) == uid:
            del self._holders[address]
        members = self._members.get((namespace, subdomain))
        if members is not None:
            members.discard(uid)
            if not members:
                del self._members[namespace, subdomain]
                self._names.pop((namespace, subdomain), None)

    def _hold(self, pod: Object, address: str) -> None:
        uid, name = pod["metadata"]["uid"], name_of(pod)
        if not self._single:
            self._holders[address] = uid
        if name is not None:
            self._members.setdefault(name[:2], set()).add(uid)

    def _fresh(self) -> str:
        if self._single:
            return "127.0.0.1"
        while True:
            number = self._next
            self._next = number + 1 if number + 1 < LAST else FIRST
            address = f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}"
            if address not in self._holders and number & 255 not in (0, 255):
                return address


def mentioned(text: str, namespace: str, subdomain: str) -> re.Pattern[str] | None:
    """A pattern for names of a subdomain in a text, in all their forms; None without names."""
    if f".{subdomain}" not in text:
        return None
    longer = rf"(?:\.{re.escape(namespace)}(?:\.svc(?:\.cluster\.local)?)?)?"
    return re.compile(rf"(?<![\w.-])([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)\.{re.escape(subdomain)}{longer}(?![\w-]|\.\w)")
