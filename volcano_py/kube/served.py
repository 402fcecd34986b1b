"""The version of a kind that the API server serves, by the discovery of its API group. client-go: RESTMapper.

The one place that chooses between versions: informers, snapshots and Events about objects of such kinds ask it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from volcano_py.api.resource_types import ResourceType
from volcano_py.kube.client import Client
from volcano_py.kube.errors import Forbidden, KubeError, NotFound

PERIOD = 300.0
"""Seconds for which `ServedKind` keeps a version: a cluster may be upgraded."""


class _Version(msgspec.Struct):
    version: str = ""


class _ApiGroup(msgspec.Struct):
    versions: list[_Version] = msgspec.field(default_factory=list)


async def served(client: Client, versions: Sequence[ResourceType]) -> ResourceType | None:
    """The first of these versions of a kind that the API server serves; None if it serves none of them, or does not let
    the user read that. Raises KubeError."""
    try:
        body = await client.raw("GET", f"/apis/{versions[0].group}")
        found = {entry.version for entry in msgspec.json.decode(body, type=_ApiGroup).versions}
    except (NotFound, Forbidden, msgspec.MsgspecError):
        return None
    return next((rt for rt in versions if rt.version in found), None)


class ServedKind:
    """The version that is served, which is read again after a while."""

    def __init__(self, client: Client, versions: Sequence[ResourceType]) -> None:
        self._client = client
        self._versions = versions
        self._known = versions[-1]
        self._until = 0.0

    async def at(self, now: float) -> ResourceType:
        """`now`: seconds since the epoch. While the version cannot be read, the last one stays in force."""
        if now >= self._until:
            try:
                self._known = await served(self._client, self._versions) or self._versions[-1]
            except KubeError:
                return self._known
            self._until = now + PERIOD
        return self._known
