"""The configuration as a ConfigMap that is read and watched directly, so that `kubectl edit` takes effect at once.

Volcano mounts the ConfigMap as a file instead, which the kubelet updates within a minute or two. Errors are Warning
Events on the ConfigMap, with the field and the nearest valid name; the configuration in force is kept.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Coroutine
from difflib import get_close_matches
from typing import Any

from volcano_py.api.core import ConfigMap
from volcano_py.api.kinds import CONFIGMAP
from volcano_py.kube.backoff import Backoff
from volcano_py.kube.client import Client
from volcano_py.kube.errors import Forbidden, KubeError, NotFound, Unauthorized
from volcano_py.kube.events import Correlator, send
from volcano_py.kube.informer import Informer
from volcano_py.kube.remedies import remedy
from volcano_py.kube.wire import Undecodable
from volcano_py.scheduler.configuration.last_valid import LastValid
from volcano_py.scheduler.configuration.options import Options
from volcano_py.scheduler.configuration.reload import ConfigurationFile, ConfigurationSource
from volcano_py.scheduler.framework.config import ConfigurationError
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.model.plan import Event, Operation

log = logging.getLogger(__name__)

INVALID, WARNING, IN_FORCE = "InvalidConfiguration", "ConfigurationWarning", "ConfigurationInForce"
"""Reasons of the Events on the ConfigMap."""
_MAX_EVENTS = 100
"""Limit of Events that wait until this replica leads; the oldest are dropped."""


class ConfigurationMap(ConfigurationSource):
    """The configuration of the ConfigMap `namespace/name`, in its key `key`."""

    def __init__(
        self,
        namespace: str,
        name: str,
        key: str,
        actions: Collection[str],
        plugins: Collection[str],
        *,
        strict: bool = True,
        default: bool = True,
        kept: LastValid | None = None,
    ) -> None:
        super().__init__(f"ConfigMap {namespace}/{name}", actions, plugins, strict=strict, default=default, kept=kept)
        self._namespace, self._name, self._key = namespace, name, key
        self._found: ConfigMap | None = None
        self._error = ""
        self._changed = False
        self._events: list[Event] = []
        self._correlator = Correlator("volcano")
        self._informer: Informer[ConfigMap]

    async def start(self, client: Client) -> None:
        self._informer = Informer(
            client,
            CONFIGMAP,
            ConfigMap,
            self._namespace,
            field_selector=f"metadata.name={self._name}",
            decode_error=self._undecodable,
        )
        self._informer.on(add=self._set, update=lambda _, new: self._set(new), delete=lambda _: self._set(None))
        self._found = await self._permitted(client)
        await super().start(client)

    async def _look_again(self, client: Client) -> None:
        self._found = await self._permitted(client)

    async def _permitted(self, client: Client) -> ConfigMap | None:
        """The ConfigMap, None if there is none. Waits for permission and valid credentials. Raises KubeError."""
        backoff = Backoff()
        while True:
            try:
                found: ConfigMap = await client.get(CONFIGMAP, self._name, self._namespace, type=ConfigMap)
                return found
            except NotFound:
                return None
            except (Forbidden, Unauthorized) as error:
                if backoff.failures in (0, 10, 100):
                    what = remedy(error, CONFIGMAP, ("get", "list", "watch"), self._namespace)
                    log.error("%s%s; retrying", error, f"; {what}" if what else "")
                await asyncio.sleep(backoff.next())

    def parts(self) -> dict[str, Coroutine[Any, Any, None]]:
        return {**super().parts(), "configuration map": self._informer.run()}

    def poll(self) -> bool:
        if not self._changed:
            return False
        self._changed = False
        return self._next()

    def operations(self) -> list[Operation]:
        events, self._events = self._events, []
        return list(events)

    def warn(self, text: str) -> None:
        self._note("Warning", WARNING, text)

    def failed(self, text: str) -> None:
        self._note("Warning", INVALID, text)

    def in_force(self, text: str) -> None:
        self._note("Normal", IN_FORCE, text)

    def _text(self) -> str:
        if self._error:
            raise ConfigurationError(f"{self.where}: {self._error}")
        if self._found is None:
            text = f"{self.where} not found; create it with the key {self._key}, or use --scheduler-conf"
            raise ConfigurationError(text)
        data = self._found.data or {}
        if self._key not in data:
            near = get_close_matches(self._key, list(data), 1) or sorted(data)[:1]
            hint = f"; rename {near[0]}" if near else ""
            raise ConfigurationError(f"{self.where}: data: no key {self._key}{hint}")
        return data[self._key]

    def _set(self, found: ConfigMap | None) -> None:
        known = self._found.data if self._found is not None else None
        if found is None:
            self._error = f"it was deleted; create it again with the key {self._key}"
            self._changed = True
            return  # the Events about its deletion are on the deleted ConfigMap
        if self._error or found.data != known:
            self._changed = True
        self._error, self._found = "", found

    def _undecodable(self, rejected: Undecodable) -> None:
        self._error = str(rejected.error)
        self._changed = True

    def _note(self, kind: str, reason: str, text: str) -> None:
        uid = self._found.metadata.uid if self._found is not None else ""
        event = Event("ConfigMap", self._namespace, self._name, uid, kind, reason, text)
        self._events = [*self._events, event][-_MAX_EVENTS:]

    async def _report(self, client: Client, text: str) -> None:
        """Write the Event of an error at the start, because there is no dispatcher yet."""
        if self._found is None:
            return
        about = {
            "apiVersion": CONFIGMAP.api_version,
            "kind": "ConfigMap",
            "namespace": self._namespace,
            "name": self._name,
            "uid": self._found.metadata.uid,
        }
        write = self._correlator.correlate(about, "Warning", INVALID, text.removeprefix(f"{self.where}: "), time.time())
        if write is None:
            return
        try:
            await send(client, self._correlator, write)
        except KubeError as error:
            log.warning("the Event about %s cannot be written: %s", self.where, error)


def source_of(options: Options, registry: Registry) -> ConfigurationSource:
    """The source of the configuration by the flags. Raises ConfigurationError for flags that contradict each other."""
    strict, default = options.strict_config, not options.disable_default_scheduler_config
    known = registry.actions, registry.plugins
    kept: LastValid | None = None
    if options.scheduler_configmap is not None:
        namespace, name, key = options.scheduler_configmap
        if not options.shadow:
            kept = LastValid(namespace, f"{name}-last-valid", f"ConfigMap {namespace}/{name}/{key}")
        return ConfigurationMap(namespace, name, key, *known, strict=strict, default=default, kept=kept)
    if not options.shadow:
        name = f"{options.lease_name}-scheduler-conf-last-valid"
        kept = LastValid(options.lease_namespace, name, f"file {options.scheduler_conf}")
    return ConfigurationFile(options.scheduler_conf, *known, strict=strict, default=default, kept=kept)
