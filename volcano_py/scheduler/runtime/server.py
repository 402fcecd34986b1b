"""The decider: its parts and what connects them. Volcano: cmd/scheduler/app/server.go.

watch event → Cache → CycleLoop → run_once (session, planner) → DispatcherHandle → dispatcher process
                ↑                                                      │ result
                └──────────────────────────────────────────────────────┘
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from volcano_py.api.core import ConfigMap, Pod
from volcano_py.kube import Client, definitions, pprof
from volcano_py.kube.health import Progress
from volcano_py.kube.serve import serving, tls_context
from volcano_py.kube.supervise import run_all
from volcano_py.scheduler.cache import summary
from volcano_py.scheduler.cache.audit.audit import Audit
from volcano_py.scheduler.cache.cache import Cache
from volcano_py.scheduler.cache.dump import dump, parts
from volcano_py.scheduler.cache.filters import ObjectFilters, parse_node_selector
from volcano_py.scheduler.cache.queues import ensure_queues
from volcano_py.scheduler.cache.reservations import ReservationObjects
from volcano_py.scheduler.cache.ring import from_environment
from volcano_py.scheduler.cache.shards import Shards
from volcano_py.scheduler.cache.takeover import Takeover
from volcano_py.scheduler.configuration.configmap import source_of
from volcano_py.scheduler.configuration.extensions import extended, profile_plugins
from volcano_py.scheduler.configuration.history import HistoryMap
from volcano_py.scheduler.configuration.options import Options
from volcano_py.scheduler.configuration.reload import INTERVAL
from volcano_py.scheduler.dispatch.handle import DispatcherHandle
from volcano_py.scheduler.dispatch.messages import DispatcherSettings, Result, Revoke
from volcano_py.scheduler.dispatch.queue_spacing import QueueSpacing
from volcano_py.scheduler.framework.kernels.choice import load_compiled, use_compiled, worth_compiling
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.framework.reservations.history import History
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.feature_gates import enabled_gates
from volcano_py.scheduler.model.jobs.group_names import NATIVE_KINDS, uid_of
from volcano_py.scheduler.model.nodes.node_usage import NodeUsage
from volcano_py.scheduler.model.plan import Event, Operation
from volcano_py.scheduler.plugins.deviceshare.ledger import DeviceBooks
from volcano_py.scheduler.plugins.extender.mailbox import Mailbox
from volcano_py.scheduler.protection.containment import Containment
from volcano_py.scheduler.protection.rebuild import Rebuild
from volcano_py.scheduler.protection.watchdog import CycleStuck
from volcano_py.scheduler.recording.recorder import RecordedCluster, Recorder
from volcano_py.scheduler.remote.chip_report_maps import ChipReportMaps
from volcano_py.scheduler.remote.device_config_map import DeviceConfigMap
from volcano_py.scheduler.remote.extender_calls import ExtenderCalls
from volcano_py.scheduler.remote.usage_source import UsageSource
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, run_once
from volcano_py.scheduler.runtime import auditing
from volcano_py.scheduler.runtime.auditing import Auditing
from volcano_py.scheduler.runtime.collection import paused
from volcano_py.scheduler.runtime.debug_socket import Dumps, LogLevel, serving_debug_socket
from volcano_py.scheduler.runtime.failed_cycles import FailedCycles
from volcano_py.scheduler.runtime.health import add_informers, checks
from volcano_py.scheduler.runtime.loop import CycleLoop
from volcano_py.scheduler.runtime.metrics import Metrics
from volcano_py.scheduler.runtime.reporting import Reporter
from volcano_py.scheduler.shadow.handle import SilentHandle
from volcano_py.scheduler.shadow.observed import ObservedCluster
from volcano_py.scheduler.shadow.shadow import Shadow
from volcano_py.scheduler.tracing.job_traces import JobTraces
from volcano_py.scheduler.tracing.otlp import TraceExporter

if TYPE_CHECKING:
    from volcano_py.scheduler.pods.document import ProfilesFile
    from volcano_py.scheduler.pods.live import LiveProfiles
    from volcano_py.scheduler.profiles.sessions.session_rules import SessionRules

log = logging.getLogger(__name__)


class Scheduler:
    """One scheduler process, the decider. `run` lasts until it is cancelled."""

    def __init__(self, options: Options, *, registry: Registry = REGISTRY, seed: int | None = None) -> None:
        """Raises ConfigurationError and ExtensionError for mistakes that are found before the process connects."""
        profiles: ProfilesFile | None = None
        if options.config:
            # Some 60 modules, a quarter of the time of a start, which only profiles need.
            from volcano_py.scheduler.pods.document import ProfilesFile, with_file

            options = with_file(options)
            profiles = ProfilesFile(options, profile_plugins(options.plugins_dir))
        self.options = options
        self.registry = extended(registry, options.plugins_dir)
        self.source = source_of(options, self.registry)
        self.cycles = 0
        """Sessions opened so far."""
        self.last_report: CycleReport | None = None
        self.ports: dict[str, int] = {}
        """The ports of metrics and healthz."""
        self.stopping = False
        self.shards: Shards | None = None
        self._kernels: asyncio.Task[None] | None = None
        """Loads the compiled kernels."""
        self._seed = options.seed if seed is None else seed
        names = (*options.scheduler_names, *(profiles.names if profiles is not None else ()))
        if options.shadow:
            self.handle: DispatcherHandle = SilentHandle(settings_of(options))
        else:
            self.handle = DispatcherHandle(settings_of(options), self._handle_result, self._leadership_changed)
        # A cycle may last as long as the dispatcher waits for a heartbeat.
        progress = Progress(options.heartbeat_timeout)
        gates = enabled_gates(options.feature_gates, options.priority_class)
        model = (ObservedCluster if options.shadow else RecordedCluster if options.record else Cluster)(
            shadow_schedulers=frozenset(options.scheduler_names),
            default_queue=options.default_queue,
            features=gates,
            ignored_provisioners=frozenset(options.ignored_provisioners),
        )
        model.check_states = options.verify_incremental
        self.recorder: Recorder | None = None
        if isinstance(model, RecordedCluster):
            self.recorder = Recorder(Path(options.record), model, options.record_limit * 2**20)
        self.cache = Cache(
            model,
            ObjectFilters(names, from_environment(), parse_node_selector(options.node_selector)),
            self._write_event,
            lambda: self.cycle_loop.wake(),
            self._object_deleted,
            gates,
            on_new_pod=self._pod_added,
        )
        self.cache.emit_later = self._send_held
        self.queue_spacing = QueueSpacing(self._send_held)
        if self.source.kept is not None:
            self.source.kept.may_write = lambda: self.handle.leading
        self.takeover = Takeover(
            self.cache.informers,
            self.cache.plurals,
            self._lists_are_current,
            exclusive=options.shadow or not options.leader_elect,
        )
        self.handle.prepared = lambda: self.takeover.ready and not self.rebuild.in_progress
        periods = options.schedule_period, options.idle_period
        self.cycle_loop = CycleLoop(self.cache, self.handle, progress, periods, self._run_cycle)
        self.failed_cycles = FailedCycles()
        self.rebuild = Rebuild(self.cache, self.handle.pending, self._rebuilt)
        metrics = Metrics(lambda: self.cache.model.keep(DeviceBooks), self.handle.requests)
        metrics.takeover_lists.set_function(lambda: len(self.takeover.missing))
        self.shadow: Shadow | None = None
        if isinstance(model, ObservedCluster):
            self.shadow = Shadow(model, metrics.registry, options.shadow_settle, self._try)
        self.exporter = TraceExporter(options.otlp_endpoint) if options.otlp_endpoint else None
        traces = JobTraces(self.exporter.send) if self.exporter is not None else None
        self.reporter = Reporter(metrics, self.cache, self.handle, self.source, self.failed_cycles, traces)
        self.containment = Containment(options, self.registry, self.source, metrics)
        self.profiles = self._live(profiles, metrics) if profiles is not None else None
        self.audit: Audit | None = None
        if options.cache_audit_period > 0:
            reports = Auditing(self.handle, metrics, self._write_event)
            self.audit = Audit(self.cache, reports, options.cache_audit_period)
        self.extenders = ExtenderCalls(lambda: self.cache.model.keep(Mailbox), self._make_dirty)
        self.health = checks(progress, self.handle, self.failed_cycles)

    # ---- the parts ---------------------------------------------------------------------------------------

    def _live(self, profiles: ProfilesFile, metrics: Metrics) -> LiveProfiles:
        from volcano_py.scheduler.pods.live import LiveProfiles
        from volcano_py.scheduler.remote.plugin_requests import PluginRequests

        live = LiveProfiles(profiles, self.cache, self.handle, self._send, metrics.registry)
        self.cache.follower = live
        self.plugin_requests = PluginRequests(lambda: live.scheduler.reads, live.object_changed, live.answered)
        self.containment.profile_modules = lambda: live.plugin_modules
        live.watching, live.on_stuck = self.containment.attempts.watching, self._stuck
        live.send_request, live.replay_objects = self.plugin_requests.send, self.plugin_requests.replay
        if self.recorder is not None:
            live.record(self.recorder)
        return live

    async def run(self) -> None:
        """Schedule until cancelled; then finish writes in flight, and release the Lease.

        Raises KubeError when there are no usable credentials or the first queues cannot be created, and the error that
        ended one of the parts: none of them works without the others.
        """
        options = self.options
        async with (
            Client.for_flags(
                options.kubeconfig, options.master, user_agent=_agent(options), requests=self.handle.requests
            ) as client,
            self._endpoints() as self.ports,
        ):
            await self.source.start(client)
            self.registry.load(self.source.configuration)
            if self.shadow is None:
                await ensure_queues(client, options.default_queue)
            self.cache.start(client)
            add_informers(self.health, self.cache)
            parts = {
                "dispatcher": self.handle.run(),
                "cache": self.cache.run(),
                "takeover": self.takeover.run(),
                "rebuild": self.rebuild.run(),
                "configuration": self._follow_configuration(),
                **self.source.parts(),
            }
            parts["definitions"] = definitions.follow(
                client, (informer.rt for informer in self.cache.informers.values())
            )
            synced = []
            if options.sharding_mode != "none":
                hard = options.sharding_mode == "hard"
                self.shards = Shards(client, options.sharding_name, hard, self._make_dirty, lambda: self.handle.leading)
                parts["shards"] = self.shards.run()
                synced.append(self.shards.informer.synced)
            devices = DeviceConfigMap(client, lambda: self.source.configuration, self._put_config_map)
            parts["device configuration"] = devices.run()
            chips = ChipReportMaps(client, lambda: self.source.configuration, self._put_config_map)
            parts["chip reports"] = chips.run()
            reservations = ReservationObjects(
                client,
                lambda: self.cache.model,
                lambda: self.source.configuration,
                self._make_dirty,
                lambda: self.shadow is None and self.handle.leading,
            )
            parts["reservations"] = reservations.run()
            synced += [devices.read, chips.read, reservations.first_read]
            if self.shadow is None:
                history = self._history()
                parts["history"] = history.run(client)
                synced.append(history.first_read)
            parts["cycles"] = self.cycle_loop.run(*synced)
            if self.audit is not None:
                parts["cache audit"] = self.audit.run()
            if self.profiles is not None:
                parts["profiles"] = self.profiles.run()
                parts["profile plugins"] = self.plugin_requests.run(client)
            if self.shadow is not None:
                parts["shadow"] = self.shadow.run()
            parts["extenders"] = self.extenders.run()
            usage = UsageSource(client, lambda: self.source.configuration.metrics, self._node_names, self._put_usage)
            parts["usage"] = usage.run()
            try:
                await run_all(parts)
            finally:
                self.cache.close()
                self.queue_spacing.close()
                if self.recorder is not None:
                    self.recorder.close()
                if self.exporter is not None:
                    await asyncio.to_thread(self.exporter.close)

    def _history(self) -> HistoryMap:
        o = self.options
        return HistoryMap(
            o.lease_namespace,
            f"{o.lease_name}-scheduler-history",
            lambda: self.cache.model.keep(History),
            lambda: self.source.configuration,
            lambda: self.handle.leading,
        )

    @contextlib.asynccontextmanager
    async def _endpoints(self) -> AsyncIterator[dict[str, int]]:
        o = self.options
        async with (
            serving(
                metrics=(o.listen_address, self._expose) if o.enable_metrics else None,
                documents={"/shadow": self.shadow.document} if self.shadow is not None else {},
                healthz=(o.healthz_address, self.health) if o.enable_healthz else None,
                readyz=self._readiness,
                ready_note=lambda: "; ".join(filter(None, (self.source.fallback, self.containment.note()))),
                debug=(o.listen_address, pprof.handlers()) if o.enable_pprof else None,
                tls=tls_context(o.ca_cert_file, o.tls_cert_file, o.tls_private_key_file),
            ) as ports,
            serving_debug_socket(LogLevel(o.log_level, self._set_log_level), self._dumps() if o.cache_dumper else None),
        ):
            yield ports

    def _expose(self) -> bytes:
        model = self.cache.model
        self.containment.expose()
        auditing.expose(self.reporter.metrics, self.audit, model.held, len(model.nodes))
        return self.reporter.expose()

    def _readiness(self) -> str:
        """Why this scheduler is not ready, for /readyz; empty if it is."""
        if self.source.waiting:
            return self.source.waiting
        healthy, text = self.health.answer()
        return "" if healthy else text

    def _dumps(self) -> Dumps:
        return Dumps(lambda: parts(self.cache.informers.values()), lambda: summary.lines(self.cache.model))

    def _set_log_level(self, level: str) -> None:
        logging.getLogger().setLevel(level)
        self.handle.set_log_level(level)

    # ---- from the cache to the dispatcher ----------------------------------------------------------------

    def _load_kernels(self) -> None:
        """Load the compiled kernels beside the next cycles: they take a second, for which no pod should wait."""
        if self._kernels is None and worth_compiling(len(self.cache.model.nodes)):
            self._kernels = asyncio.create_task(asyncio.to_thread(load_compiled))
            self._kernels.add_done_callback(self._kernels_loaded)

    def _kernels_loaded(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            log.warning("the compiled kernels cannot be loaded, cycles use numpy: %r", error)
        elif (name := use_compiled()) != "numpy":
            log.info("vector operations: %s", name)

    def _run_cycle(self) -> float:
        """Run a cycle; returns the seconds until the next one that was declared."""
        begun = time.monotonic()
        self.cycles += 1
        configuration, now, seed = self.containment.configuration(), time.time(), self._seed
        sample_size = self.options.sample_size
        # A shadow's plans are not assumed: what one cycle left, the next one would decide alone.
        budget = None if self.shadow is not None else self.options.cycle_budget or None
        shard = self.shards.shard if self.shards is not None else None
        if self.recorder is not None:
            self.recorder.begin(configuration, now, seed, budget, shard, sample_size)
        decided: list[Operation] = []
        try:
            with self.containment.watchdog.watching(), paused():
                report = run_once(
                    self.cache.model,
                    configuration,
                    now,
                    seed,
                    budget,
                    None if self.shadow is not None else self._send,
                    registry=self.registry,
                    shard=shard,
                    sample_size=sample_size,
                    timer=self.reporter.metrics.timer,
                    assume=self.shadow is None,
                    profiles=self._profile_rules(),
                )
            decided = report.plan
        except CycleStuck as stuck:
            self.failed_cycles.failed(stuck)
            self._stuck(stuck)
        except Exception as error:
            # The traceback once for each reason: the same cycle follows again and again.
            log.error(
                "a cycle failed, the %d. in succession: %r; the next one follows in %s s",
                self.failed_cycles.count + 1,
                error,
                self.options.schedule_period,
                exc_info=self.failed_cycles.failed(error),
            )
            self.cache.model.dirty = False
        else:
            self.failed_cycles.ended()
            if self.last_report is not None:
                self.last_report.session.discard()
            self.last_report = report
            if self.shadow is not None:
                self.shadow.decided(report)
            self.containment.ended(report)
            self.reporter.cycle(self.cycles, report, time.monotonic() - begun, written=self.shadow is None)
            self.extenders.wake()
            self._load_kernels()
            return report.session.next_wake - time.time()
        finally:
            if self.recorder is not None:
                self.recorder.end(decided)
        return inf

    def _profile_rules(self) -> SessionRules | None:
        return self.profiles.rules_for_session(self.containment.not_called) if self.profiles is not None else None

    def _stuck(self, stuck: CycleStuck) -> None:
        """A cycle, or an attempt of a profile, was ended half-way."""
        if self.recorder is not None:
            self.recorder.discard()
        self.containment.stuck(stuck)
        if self.shadow is None:  # which assumes nothing, so that its model is complete
            self.rebuild.begin()

    def _try(self) -> CycleReport:
        """A cycle of which nothing is kept."""
        configuration, sample_size = self.source.configuration, self.options.sample_size
        model = self.cache.model
        return run_once(
            model,
            configuration,
            time.time(),
            self._seed,
            registry=self.registry,
            sample_size=sample_size,
            assume=False,
            profiles=self._profile_rules(),
        )

    def _send(self, operations: Sequence[Operation]) -> None:
        with self.containment.watchdog.shielded():
            passing = self.queue_spacing.passing(self.cache.status_backoff.passing(operations))
            if passing:
                self.handle.emit(passing)
            self.reporter.emitted(operations)

    def _send_held(self, operations: list[Operation]) -> None:
        """Send statuses whose pause is over. Without leadership they are lost, as those that wait for a write."""
        if self.handle.leading:
            self.handle.emit(operations)
        else:
            for op in operations:
                self.cache.forget(op)

    # ---- from the dispatcher to the cache ----------------------------------------------------------------

    def _handle_result(self, op: Operation, result: Result) -> None:
        if self.profiles is None or not self.profiles.handle_result(op, result):
            self.cache.handle_result(op, result)
        self.reporter.result(op, result)
        if not self.handle.unanswered or self.handle.credits:
            self._wake()

    def _leadership_changed(self, leading: bool) -> None:
        if leading:
            log.info("leading: cycles may run" if self.takeover.exclusive else "leading; reading current lists")
            self.cache.quarantine.report_again()
            self.cache.model.dirty = True
            self.takeover.begin()
        else:
            self.takeover.end()
            if not self.stopping:
                log.warning("not leading; the Lease is held by %s", self.handle.holder or "no candidate")
        self._wake()

    def _lists_are_current(self) -> None:
        log.info("leading: cycles may run")
        self.cache.model.dirty = True
        self._wake()

    def _rebuilt(self) -> None:
        self.extenders.wake()  # the mailbox is new, too, and a session must know that its calls are sent
        self._lists_are_current()

    def _wake(self) -> None:
        self.cycle_loop.wake()
        if self.profiles is not None:
            self.profiles.loop.wake()

    # ---- from the cache and the configuration ------------------------------------------------------------

    def _pod_added(self, pod: Pod) -> None:
        if self.source.configuration.deviations.bare_pods:  # otherwise its PodGroup follows
            self.cycle_loop.pod_added(pod)
        self.reporter.metrics.watched(pod, time.time())

    def _object_deleted(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Withdraw operations that wait for an object that is gone."""
        if kind == "Node":
            self.handle.revoke(Revoke("Node", name))
        elif kind == "PodGroup" or kind in NATIVE_KINDS:
            uid = uid_of(kind, f"{namespace}/{name}")
            self.handle.revoke(Revoke("Job", uid))
            self.reporter.forget_job(*uid.split("/", 1))
        elif kind == "Pod":
            self.handle.revoke(Revoke("Pod", f"{namespace}/{name}", uid))
            # Of a pod without a PodGroup, which is a job of one task.
            self.reporter.forget_job(namespace, f"podgroup-{uid}")

    def _write_event(self, event: Event) -> bool:
        if self.handle.leading:
            self.handle.emit([event])
        else:
            log.warning("%s %s/%s: %s", event.kind, event.namespace, event.name, event.message)
        return self.handle.leading

    async def _follow_configuration(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            if self.source.poll():
                self.registry.load(self.source.configuration)
                self.reporter.configuration_changed()
                self._make_dirty()
            if self.profiles is not None:
                self.profiles.poll()
            if self.handle.leading and (events := self.source.operations()):
                self.handle.emit(events)

    def _make_dirty(self) -> None:
        self.cache.model.dirty = True
        self.cycle_loop.wake()

    def _put_config_map(self, key: tuple[str, str], found: ConfigMap | None) -> None:
        if found is None:
            self.cache.model.remove("ConfigMap", *key)
        else:
            self.cache.model.upsert("ConfigMap", found)
        self._make_dirty()

    def _node_names(self) -> list[str]:
        return list(self.cache.model.nodes.names)

    def _put_usage(self, measured: dict[str, NodeUsage]) -> None:
        """Count what the metrics source has measured; nodes that are gone are dropped."""
        known = self.cache.model.nodes.index
        usage = self.cache.model.usage
        self.cache.model.usage = {name: u for name, u in (usage | measured).items() if name in known}
        self._make_dirty()

    def write_dump(self) -> None:
        """Write the objects of the cache to `--cache-dump-dir`."""
        try:
            file = dump(self.cache.informers.values(), Path(self.options.cache_dump_dir))
        except OSError as error:
            log.error("the cache cannot be dumped to --cache-dump-dir %s: %s", self.options.cache_dump_dir, error)
        else:
            log.info("dumped the cache to %s", file)

    def log_summary(self) -> None:
        """Log what the model has: nodes, jobs, HyperNodes and memory."""
        for line in summary.lines(self.cache.model):
            log.info("%s", line)


def _agent(options: Options) -> str:
    return "volcano-py/scheduler-shadow" if options.shadow else "volcano-py/scheduler"


def settings_of(options: Options) -> DispatcherSettings:
    """The dispatcher's part of the options."""
    o = options
    return DispatcherSettings(
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
