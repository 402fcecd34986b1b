"""The version in which the cluster serves PodGroups of scheduling.k8s.io, which Events about them name.

Statuses are written in the version of the object that was read. An Event only has the name of its object, so the
version is read from the API server: once, and again after a while, because a cluster may be upgraded.
"""

from __future__ import annotations

import msgspec

from volcano_py.api import kinds
from volcano_py.api.kinds import ResourceType
from volcano_py.kube import Client, KubeError

PERIOD = 300.0
"""Seconds for which the version that was read holds."""
_GROUP = "/apis/scheduling.k8s.io"


class _Served(msgspec.Struct):
    version: str = ""


class _ApiGroup(msgspec.Struct):
    versions: list[_Served] = msgspec.field(default_factory=list)


class NativeVersion:
    """See the module. `at` returns the kind in the version that is served."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known = kinds.NATIVE_PODGROUP
        self._until = 0.0

    async def at(self, now: float) -> ResourceType:
        """`now`: seconds since the epoch. While the version cannot be read, the last one stays in force."""
        if now >= self._until:
            try:
                group = msgspec.json.decode(await self._client.raw("GET", _GROUP), type=_ApiGroup)
            except (KubeError, msgspec.MsgspecError):
                return self._known
            served = {entry.version for entry in group.versions}
            beta = kinds.NATIVE_PODGROUP_BETA
            self._known = beta if beta.version in served else kinds.NATIVE_PODGROUP
            self._until = now + PERIOD
        return self._known
