"""Containment of plugins in the running scheduler: the watchdog, what plugins did in past cycles, and the reports about
both. Not in Volcano. An exception of a plugin is contained where it is called (`framework.callbacks`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from volcano_py.scheduler.configuration.options import Options
from volcano_py.scheduler.configuration.reload import ConfigurationSource
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.protection.plugin_conduct import PluginConduct
from volcano_py.scheduler.protection.watchdog import CycleStuck, Watchdog
from volcano_py.scheduler.run_once import CycleReport
from volcano_py.scheduler.runtime.metrics import Metrics

log = logging.getLogger(__name__)


class Containment:
    """Decides with which plugins a cycle runs, and for how long."""

    def __init__(
        self,
        options: Options,
        registry: Registry,
        source: ConfigurationSource,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # The dispatcher ends a process without a heartbeat, and a cycle sends none.
        limit = min(options.cycle_deadline, 2 / 3 * options.heartbeat_timeout)
        self.watchdog = Watchdog(limit, options.plugin_deadline, self._modules)
        self.attempts = Watchdog(options.plugin_deadline, 0.0, dict, what="an attempt to schedule a pod of a profile")
        """Watches the attempts of profiles, pod by pod."""
        self.profile_modules: Callable[[], dict[str, str]] = dict
        """The plugins of profiles, which a cycle calls for gangs, by module."""
        self.conduct = PluginConduct(self._report, options.plugin_deadline)
        self._registry = registry
        self._source = source
        self._metrics = metrics
        self._clock = clock
        self._known: Configuration | None = None
        """The configuration of the last cycle."""

    def configuration(self) -> Configuration:
        """The configuration for the next cycle."""
        return self.conduct.applied(self._source.configuration, self._clock())

    @property
    def not_called(self) -> list[str]:
        """Plugins that are off or closed."""
        return [name for name, c in self.conduct.conditions.items() if c.state != "failing"]

    def stuck(self, stuck: CycleStuck) -> None:
        """A cycle was ended."""
        text = f"{stuck}; the cycle was ended, and the model is built again from lists"
        log.error("%s; it was at\n%s", text, stuck.stack)
        self._source.warn(text)
        self._metrics.stuck.labels(stuck.plugin).inc()
        if stuck.plugin:
            self.conduct.stuck(stuck.plugin, str(stuck), stuck.points, self._clock())

    def ended(self, report: CycleReport) -> None:
        """A cycle has ended by itself."""
        session = report.session
        failed = {fault.plugin for fault in report.faults}
        names = {option.name for tier in session.configuration.tiers for option in tier if not option.closed}
        if (
            session.configuration is self._known
        ):  # what a plugin registers is needed again if something is wrong with it
            names &= failed | self.watchdog.seconds.keys()
        self._known = session.configuration
        points = {name: [point for point, _, _ in session.callbacks.registered_by(name)] for name in names}
        tried = bool(session.work.tasks_tried or report.plan)
        self.conduct.ended(failed, self.watchdog.seconds, points, tried, self._clock())

    def note(self) -> str:
        """All conditions, for /readyz."""
        return self.conduct.note()

    def expose(self) -> None:
        """Set the gauge of the conditions."""
        self._metrics.plugins.clear()
        for name, condition in self.conduct.conditions.items():
            self._metrics.plugins.labels(name, condition.state).set(1)

    def _report(self, text: str) -> None:
        log.error("%s", text)
        self._source.warn(text)

    def _modules(self) -> dict[str, str]:
        """The plugins that are not built in, by module."""
        names = [name for name in self._registry.plugins if not self._registry.plugins.is_built_in(name)]
        return self.profile_modules() | {self._registry.plugins[name].__module__: name for name in names}
