"""The ConfigMap with the device configuration, read while the plugin deviceshare is configured. Volcano reads it once.

It is read again every ten seconds: it changes rarely, and a watch would need the permission to watch ConfigMaps.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from volcano_py.api.core import ConfigMap
from volcano_py.api.kinds import CONFIGMAP
from volcano_py.kube import Client, KubeError, NotFound
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.plugins.deviceshare import Deviceshare

log = logging.getLogger(__name__)

_INTERVAL = 10.0
_CHECK = 1.0
"""Seconds between two checks whether the configuration requires a ConfigMap; it is then read immediately."""


class DeviceConfigMap:
    """`put` receives the ConfigMap when it has changed, and its key with None when it was deleted."""

    def __init__(
        self,
        client: Client,
        configuration: Callable[[], Configuration],
        put: Callable[[tuple[str, str], ConfigMap | None], None],
    ) -> None:
        self._client = client
        self._configuration = configuration
        self._put = put
        self._version = ""
        self._problem = ""
        self.read = asyncio.Event()
        """Set when the ConfigMap was read for the first time, or is not required."""

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            key = config_map_of(self._configuration())
            if key is not None:
                await self._read(key)
            self.read.set()
            for _ in range(int(_INTERVAL / _CHECK)):
                await asyncio.sleep(_CHECK)
                if config_map_of(self._configuration()) != key:
                    break

    async def _read(self, key: tuple[str, str]) -> None:
        namespace, name = key
        problem = ""
        try:
            found = await self._client.get(CONFIGMAP, name, namespace, type=ConfigMap)
        except NotFound:
            if self._version:
                self._version = ""
                self._put(key, None)
        except (KubeError, OSError) as e:
            problem = str(e)
        else:
            version = f"{namespace}/{name}/{found.metadata.resource_version}"
            if version != self._version:
                self._version = version
                self._put(key, found)
        if problem and problem != self._problem:
            log.warning("ConfigMap %s/%s with the device configuration: %s", namespace, name, problem)
        self._problem = problem


def config_map_of(configuration: Configuration) -> tuple[str, str] | None:
    """Namespace and name of the ConfigMap; None: deviceshare is not configured."""
    for tier in configuration.tiers:
        for option in tier:
            if option.name == Deviceshare.name:
                arguments = Deviceshare(option.arguments).arguments
                return arguments.config_namespace, arguments.config_name
    return None
