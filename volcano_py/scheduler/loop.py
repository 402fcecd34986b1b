"""The live loop around `run_once`. Volcano: Scheduler.Run.

Watches feed the model, the model is dirty, a cycle runs, its plan goes to the dispatcher, results come back:
this module puts the parts together and decides when a cycle runs:

* never before every watched kind has been listed, nor without leadership, nor while the dispatcher has no
room;
* soon after a change (20 ms, so that a burst of changes is one cycle), and without a change once in
  `--schedule-period` while anything is pending, because some rules have a clock;
* not at all while nothing is dirty or pending.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from volcano_py.kube import Client, KubeError
from volcano_py.kube.health import Progress
from volcano_py.kube.serve import serving, tls_context
from volcano_py.kube.supervise import run_all
from volcano_py.scheduler.cache.dump import dump
from volcano_py.scheduler.cache.echoes import Echoes
from volcano_py.scheduler.cache.feed import Feed
from volcano_py.scheduler.cache.filters import Filters, parse_node_selector
from volcano_py.scheduler.cache.kinds import DEFAULT_GATES
from volcano_py.scheduler.cache.quarantine import Quarantine
from volcano_py.scheduler.cache.queues import ensure_queues
from volcano_py.scheduler.cache.ring import from_environment
from volcano_py.scheduler.cache.shards import Shards
from volcano_py.scheduler.configmap import source_of
from volcano_py.scheduler.dispatch.handle import DispatcherHandle
from volcano_py.scheduler.dispatch.messages import Result, Revoke, Settings
from volcano_py.scheduler.extensions import ExtensionError, extended
from volcano_py.scheduler.framework.config import ConfigurationError
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.health import add_informers, checks
from volcano_py.scheduler.metrics import Metrics
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.plan import Event, Operation
from volcano_py.scheduler.options import Options
from volcano_py.scheduler.reload import INTERVAL
from volcano_py.scheduler.run_once import REGISTRY, Report, run_once

log = logging.getLogger(__name__)

SHORTEST_PAUSE = 0.02
"""Seconds between two cycles, in which changes come in."""
QUIET = 0.005
"""Seconds without a change after which a burst counts as over."""
MOST_SAID = 1_000
"""Different warnings since the configuration was read; more are not logged."""
WAITING_PHASES = ("", "Pending", "Inqueue")


class Scheduler:
    """One scheduler process, the decider. `run` lasts until it is cancelled."""

    def __init__(self, options: Options, *, registry: Registry = REGISTRY, seed: int | None = None) -> None:
        """Raises ConfigurationError and ExtensionError: what is wrong before anything has begun."""
        self.options = options
        self.registry = extended(registry, options.plugins_dir)
        self.source = source_of(options, self.registry)
        self.model = Cluster(shadow_schedulers=frozenset(options.scheduler_names), default_queue=options.default_queue)
        self.metrics = Metrics()
        self.cycles = 0
        """Sessions opened so far."""
        self.last_report: Report | None = None
        self.ports: dict[str, int] = {}
        """Where metrics and healthz are served."""
        self._seed = options.seed if seed is None else seed
        self._changed = asyncio.Event()
        self._looping = False
        self.stopping = False
        self._said: set[str] = set()
        self._ended = 0.0
        self._duration = 0.0
        self.quarantine = Quarantine(self._write_event)
        self.handle = DispatcherHandle(self._settings(), self._result, self._leading)
        # A cycle may last as long as the dispatcher waits for a heartbeat.
        self.progress = Progress(options.heartbeat_timeout)
        self.health = checks(self.progress, self.handle)
        self.feed: Feed
        self.echoes: Echoes
        self.shards: Shards | None = None

    # ---- putting the parts together ----------------------------------------------------------------------

    async def run(self) -> None:
        """Schedule until cancelled; then let writes under way end and release the Lease.

        Raises KubeError when there are no usable credentials or the first queues cannot be made, and whatever ended
        one of the parts: none of them works without the others.
        """
        options = self.options
        async with (
            Client.for_flags(options.kubeconfig, options.master, user_agent="volcano-py/scheduler") as client,
            self._endpoints() as self.ports,
        ):
            await self.source.start(client)
            await ensure_queues(client, options.default_queue)
            self._assemble(client)
            parts = {
                "dispatcher": self.handle.run(),
                "informers": self.feed.run(),
                "cycles": self._cycle_for_ever(),
                "configuration": self._look_for_configuration(),
                "reads": self.echoes.run(),
                **self.source.parts(),
            }
            if self.shards is not None:
                parts["shards"] = self.shards.run()
            try:
                await run_all(parts)
            finally:
                self.echoes.close()

    def _assemble(self, client: Client) -> None:
        options = self.options
        gates = {
            *(g for g in DEFAULT_GATES if options.feature_gates.get(g, True)),
            *(g for g, on in options.feature_gates.items() if on),
        }
        if not options.priority_class:
            gates.discard("PriorityClass")
        filters = Filters(options.scheduler_names, from_environment(), parse_node_selector(options.node_selector))
        self.feed = Feed(client, self.model, filters, self.quarantine, self._wake, self._gone, gates)
        add_informers(self.health, self.feed)
        self.echoes = Echoes(
            client,
            self.model,
            self.feed.refresh,
            self.feed.put,
            self._wake,
            self.quarantine.not_written,
            self.feed.put_undecodable_pod,
        )
        if options.sharding_mode != "none":
            self.shards = Shards(
                client,
                options.sharding_name,
                options.sharding_mode == "hard",
                self._make_dirty,
                lambda: self.handle.leading,
            )

    def _make_dirty(self) -> None:
        self.model.dirty = True
        self._wake()

    def _wake(self) -> None:
        """There may be work for the loop."""
        self._changed.set()
        if self._looping:
            self.progress.due()

    def _settings(self) -> Settings:
        o = self.options
        return Settings(
            kubeconfig=o.kubeconfig,
            master=o.master,
            qps=o.kube_api_qps,
            burst=o.kube_api_burst,
            component=o.component,
            leader_elect=o.leader_elect,
            lease_namespace=o.lease_namespace,
            lease_name=o.lease_name,
            lease_duration=o.lease_duration,
            renew_deadline=o.renew_deadline,
            retry_period=o.retry_period,
            heartbeat_timeout=o.heartbeat_timeout,
            log_level=o.log_level,
        )

    @contextlib.asynccontextmanager
    async def _endpoints(self) -> Any:
        o = self.options
        tls = tls_context(o.ca_cert_file, o.tls_cert_file, o.tls_private_key_file)
        async with serving(
            metrics=(o.listen_address, self._expose) if o.enable_metrics else None,
            healthz=(o.healthz_address, self.health) if o.enable_healthz else None,
            tls=tls,
        ) as ports:
            yield ports

    # ---- when a cycle runs -------------------------------------------------------------------------------

    async def _cycle_for_ever(self) -> None:
        await self.feed.ready.wait()
        if self.shards is not None:
            await self.shards.informer.synced.wait()
        self._looping = True
        while True:
            self.progress.working()
            await self._wait_for_work()
            self._changed.clear()
            if not self.handle.leading or not self.handle.room:
                # Results and leadership set `_changed`.
                self.progress.idle()
                await self._changed.wait()
                continue
            self._cycle()

    async def _wait_for_work(self) -> None:
        """Return when a cycle should run."""
        await self._let_changes_in()
        while not self.model.dirty:
            limit = None
            if self.handle.leading and has_pending(self.model):
                limit = max(0.0, self._ended + self.options.schedule_period - time.monotonic())
            if not self._changed.is_set():
                self.progress.idle(limit)
            try:
                async with asyncio.timeout(limit):
                    await self._changed.wait()
            except TimeoutError:
                return
            self.progress.working()
            self._changed.clear()
            await self._let_changes_in()

    async def _let_changes_in(self) -> None:
        # A burst is let in until it pauses, but for no longer than the last cycle took.
        await asyncio.sleep(max(0.0, self._ended + SHORTEST_PAUSE - time.monotonic()) or SHORTEST_PAUSE)
        latest = self._ended + min(self._duration, self.options.schedule_period)
        seen = -1
        while seen != self.feed.events and time.monotonic() < latest:
            seen = self.feed.events
            await asyncio.sleep(QUIET)

    def _cycle(self) -> None:
        begun = time.monotonic()

        def send(operations: Sequence[Operation]) -> None:
            self.handle.emit(operations)
            self.metrics.emitted(operations, self.model, time.time())

        self.cycles += 1
        try:
            report = run_once(
                self.model,
                self.source.configuration,
                time.time(),
                self._seed,
                self.options.cycle_budget or None,
                send,
                registry=self.registry,
                shard=self.shards.shard if self.shards is not None else None,
                timer=self.metrics.timer,
            )
        except Exception:
            log.exception("a cycle failed; the next one follows in %s s", self.options.schedule_period)
            self.model.dirty = False
        else:
            self.last_report = report
            self._report(report, time.monotonic() - begun)
        self._ended = time.monotonic()
        self._duration = self._ended - begun

    def _report(self, report: Report, seconds: float) -> None:
        if report.bound or report.evicted:
            log.info(
                "cycle %d: %d bound, %d evicted in %.0f ms",
                self.cycles,
                report.bound,
                report.evicted,
                seconds * 1000,
            )
        try:
            self.metrics.cycle(report, seconds)
            self._report_once(report)
        except Exception:
            # A plugin of the user's own may give gauges that do not fit together.
            log.exception("what cycle %d reports cannot be used", self.cycles)

    def _report_once(self, report: Report) -> None:
        for text in report.warnings:
            if self._say(text, text):
                self.source.warn(text)
        for f in report.faults:
            # Once a fault, whatever it hit: a predicate that raises does so for every pod and node.
            at = f" at {f.subject}" if f.subject else ""
            self._say(
                f"{f.plugin} {f.point} {f.error}",
                f"plugin {f.plugin} failed in {f.point}{at}: {f.error}; it is closed there and the cycle goes on",
            )

    def _say(self, key: str, text: str) -> bool:
        """Log a warning once; whether it was new."""
        new = key not in self._said and len(self._said) < MOST_SAID
        if new:
            self._said.add(key)
            log.warning("%s", text)
        return new

    # ---- what comes in -----------------------------------------------------------------------------------

    def _result(self, op: Operation, result: Result) -> None:
        self.echoes.result(op, result)
        self.metrics.result(op, result, self.model, time.time())
        if result.outcome == "failed":
            log.log(
                logging.DEBUG if isinstance(op, Event) else logging.WARNING,
                "%s of %s: %s",
                type(op).__name__,
                f"{getattr(op, 'namespace', '')}/{op.name}".strip("/"),
                result.message,
            )
        if not self.handle.unanswered or self.handle.room:
            self._wake()

    def _leading(self, leading: bool) -> None:
        if leading:
            log.info("leading: cycles may run")
            self.quarantine.report_again()
            self.model.dirty = True
        elif not self.stopping:
            log.warning("not leading; the Lease is held by %s", self.handle.holder or "no candidate")
        self._wake()

    def _gone(self, kind: str, namespace: str, name: str, uid: str) -> None:
        if kind == "Node":
            self.handle.revoke(Revoke("Node", name))
        elif kind == "PodGroup":
            self.handle.revoke(Revoke("Job", f"{namespace}/{name}"))
            self.metrics.forget_job(namespace, name)
        elif kind == "Pod":
            self.handle.revoke(Revoke("Pod", f"{namespace}/{name}", uid))
            self.echoes.forget(uid)

    def _write_event(self, event: Event) -> bool:
        if self.handle.leading:
            self.handle.emit([event])
        else:
            log.warning("%s %s/%s: %s", event.kind, event.namespace, event.name, event.message)
        return self.handle.leading

    async def _look_for_configuration(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            if self.source.poll():
                self._said.clear()
                self._make_dirty()
            if self.handle.leading and (events := self.source.operations()):
                self.handle.emit(events)

    # ---- what is shown -----------------------------------------------------------------------------------

    def write_dump(self) -> None:
        """Write what the scheduler sees to `--cache-dump-dir`."""
        try:
            file = dump(self.feed.informers.values(), Path(self.options.cache_dump_dir))
        except (OSError, AttributeError) as error:
            log.error("no dump: %s", error)
        else:
            log.info("dumped what the scheduler sees to %s", file)

    def _expose(self) -> bytes:
        m = self.metrics
        m.leading.set(self.handle.leading)
        m.unanswered.set(self.handle.unanswered)
        m.restarts.set(self.handle.restarts)
        if hasattr(self, "feed"):
            counts = self.quarantine.counts()
            for kind in self.feed.informers:
                m.quarantined.labels(kind).set(counts.get(kind, 0))
            m.connected.set(self.feed.connected)
            m.unknown.set(self.echoes.unknown)
        return m.expose()


def has_pending(model: Cluster) -> bool:
    """Whether some job waits for room or for permission."""
    for job in model.jobs.values():
        if job.pod_group is not None and (job.counts[st.PENDING] or job.pod_group.status.phase in WAITING_PHASES):
            return True
    return False


async def serve(options: Options, started: Callable[[Scheduler], None] = lambda scheduler: None) -> None:
    """Run a scheduler until SIGTERM or SIGINT. `started` gets it, for tests and the sandbox."""
    scheduler = Scheduler(options)
    started(scheduler)
    task = asyncio.create_task(scheduler.run())
    loop = asyncio.get_running_loop()
    broken: list[Exception] = []

    def unexpected(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        loop.default_exception_handler(context)
        error = context.get("exception")
        if "handle" in context and isinstance(error, Exception):
            # A callback of ours (a timer, a signal) failed half-way: what it should have done is not done.
            broken.append(error)
            task.cancel()

    loop.set_exception_handler(unexpected)

    def stop(name: str) -> None:
        log.info("%s: stopping", name)
        scheduler.stopping = True
        task.cancel()

    for signal_ in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_, stop, signal_.name)
    if options.cache_dumper:
        loop.add_signal_handler(signal.SIGUSR1, scheduler.write_dump)
    try:
        await task
    except asyncio.CancelledError:
        if broken:
            raise broken[0] from None


def main(options: Options) -> int:
    """The process: exit code 0 after a signal, 2 when it cannot begin, 1 when it cannot go on."""
    logging.basicConfig(level=options.log_level, format="%(asctime)s %(levelname)s scheduler: %(message)s")
    for flag in options.ignored:
        log.info("%s has no effect here", flag)
    try:
        asyncio.run(serve(options))
    except (ConfigurationError, ExtensionError) as error:
        log.error("%s", error)
        return 2
    except (KubeError, OSError, ValueError) as error:
        log.error("%s", error)
        return 1
    except Exception:
        log.exception("the scheduler cannot go on")
        return 1
    return 0
