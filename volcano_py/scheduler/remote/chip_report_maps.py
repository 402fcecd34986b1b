"""The ConfigMaps in which MindCluster reports chips, watched while the plugin deviceshare shares them. Volcano:
InitCmInformer.

What they contain is read by `plugins.deviceshare.chip_reports`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from volcano_py.api.core import ConfigMap
from volcano_py.api.kinds import CONFIGMAP
from volcano_py.kube import Client, Informer
from volcano_py.kube.supervise import first
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.plugins.deviceshare import Deviceshare
from volcano_py.scheduler.plugins.deviceshare.chip_reports import (
    NODE_NAMESPACE,
    Parameters,
    is_report,
    parameters_of,
)

_CHECK = 1.0
"""Seconds between two checks whether the configuration requires the ConfigMaps."""
Put = Callable[[tuple[str, str], ConfigMap | None], None]


class ChipReportMaps:
    """`put` receives each ConfigMap that is new or has changed, and its key with None when it is deleted or no longer
    required."""

    def __init__(self, client: Client, configuration: Callable[[], Configuration], put: Put) -> None:
        self._client = client
        self._configuration = configuration
        self._put = put
        self._checked: Configuration | None = None
        self._required: Parameters | None = None
        self.read = asyncio.Event()
        """Set when the ConfigMaps were listed for the first time, cannot be listed, or are not required."""

    async def run(self) -> None:
        """Watch until cancelled. Raises the error that ended the watch."""
        while True:
            required = self._parameters()
            if required is None:
                self.read.set()
                await asyncio.sleep(_CHECK)
            else:
                await self._follow(required)

    async def _follow(self, required: Parameters) -> None:
        """Watch as long as the configuration requires these ConfigMaps."""
        selector, namespace = source(required)
        informer: Informer[ConfigMap] = Informer(
            self._client, CONFIGMAP, ConfigMap, namespace, label_selector=selector, optional=True
        )

        def changed(found: ConfigMap, put: ConfigMap | None) -> None:
            if is_report(found, required):
                self._put((found.metadata.namespace, found.metadata.name), put)

        informer.on(lambda new: changed(new, new), lambda old, new: changed(new, new), lambda last: changed(last, None))
        watch = asyncio.create_task(informer.run(), name="informer chip reports")
        try:
            await first(informer.synced.wait(), watch)
            self.read.set()
            await first(self._while_required(required), watch)
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
        for found in informer.store.values():
            changed(found, None)

    async def _while_required(self, required: Parameters) -> None:
        while self._parameters() == required:
            await asyncio.sleep(_CHECK)

    def _parameters(self) -> Parameters | None:
        configuration = self._configuration()
        if configuration is not self._checked:
            self._checked, self._required = configuration, required_by(configuration)
        return self._required


def required_by(configuration: Configuration) -> Parameters | None:
    """Which reports a configuration requires; None: none."""
    for tier in configuration.tiers:
        for option in tier:
            if option.name == Deviceshare.name and Deviceshare(option.arguments).arguments.mindcluster:
                return parameters_of(configuration)
    return None


def source(parameters: Parameters) -> tuple[str, str | None]:
    """Label selector and namespace of the ConfigMaps; None: those of the node agents are in two namespaces."""
    if parameters.cluster_info:
        return "mx-consumer-volcano=true", NODE_NAMESPACE
    return "mx-consumer-cim=true", None
