"""Updates mounted ConfigMaps and Secrets, for example when running pods need the new peers of a growing Job.

Kubernetes: the kubelet's volume manager.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from volcano_py.sandbox.apiserver.storage.store import DELETED, Event

Object = dict[str, Any]
Source = tuple[str, str, str]  # collection, namespace, name
Where = tuple[str, str, str]  # a pod: namespace, name, uid

SPREAD_SECONDS = 0.005  # between two pods with the same mount, so that other tasks can run


def sources(pod: Object) -> Iterator[Source]:
    """The ConfigMaps and Secrets among a pod's volumes."""
    namespace = pod["metadata"]["namespace"]
    for volume in pod["spec"].get("volumes") or []:
        for part in [volume, *((volume.get("projected") or {}).get("sources") or [])]:
            if part.get("configMap"):
                yield "configmaps", namespace, part["configMap"].get("name") or ""
            if part.get("secret"):
                secret = part["secret"]
                yield "secrets", namespace, secret.get("secretName") or secret.get("name") or ""


class Refresh:
    """The mounts of all pods; `again` sets a pod's volumes up again."""

    def __init__(self, again: Callable[[Where], None]) -> None:
        self._again = again
        self._mounted: dict[Source, set[Where]] = {}
        self._sources: dict[str, tuple[Where, set[Source]]] = {}  # by the pod's uid

    def add(self, pod: Object) -> None:
        meta = pod["metadata"]
        where = (meta["namespace"], meta["name"], meta["uid"])
        found = set(sources(pod))
        self._sources[meta["uid"]] = (where, found)
        for source in found:
            self._mounted.setdefault(source, set()).add(where)

    def remove(self, uid: str) -> None:
        """Remove an ended pod."""
        where, found = self._sources.pop(uid, (("", "", uid), set()))
        for source in found:
            self._mounted[source].discard(where)
            if not self._mounted[source]:
                del self._mounted[source]

    def observe(self, collection: str, event: Event) -> None:
        """Handle a changed object; the content of a deleted one is kept."""
        pods = self._mounted.get((collection, event.entry.namespace, event.entry.name))
        if pods and event.type != DELETED:
            for index, where in enumerate(sorted(pods)):
                asyncio.get_running_loop().call_later((index + 1) * SPREAD_SECONDS, self._again, where)
