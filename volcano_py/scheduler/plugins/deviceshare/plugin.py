"""deviceshare: parts of GPUs and NPUs, or whole ones. Volcano: plugin deviceshare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from volcano_py.api.meta import format_time
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.pre_bind import LockNode, PreBindStep, PreBindSteps
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.plugins.deviceshare import device_config
from volcano_py.scheduler.plugins.deviceshare.chip_reports import ChipReports, parameters_of
from volcano_py.scheduler.plugins.deviceshare.device_config import DeviceConfig
from volcano_py.scheduler.plugins.deviceshare.device_type import Annotations, DeviceType
from volcano_py.scheduler.plugins.deviceshare.gpu_share import GpuShare
from volcano_py.scheduler.plugins.deviceshare.hami_ascend import Ascend
from volcano_py.scheduler.plugins.deviceshare.ledger import CardFilter, CardScore, Ledger, PodCardFilter
from volcano_py.scheduler.plugins.deviceshare.node_locks import LockFilter, NodeLocks
from volcano_py.scheduler.plugins.deviceshare.npu_order import NpuOrder
from volcano_py.scheduler.plugins.deviceshare.vgpu import BINPACK, SPREAD, Vgpu
from volcano_py.scheduler.plugins.deviceshare.vnpu_310p import Vnpu310P


class Deviceshare(Plugin):
    """See `Arguments`."""

    name = "deviceshare"

    class Arguments(PluginArguments):
        gpu_sharing: bool = field(default=False, name="deviceshare.GPUSharingEnable")
        """Share GPUs by memory: pods request `volcano.sh/gpu-memory`."""
        gpu_number: bool = field(default=False, name="deviceshare.GPUNumberEnable")
        """Assign whole GPUs: pods request `volcano.sh/gpu-number`."""
        vgpu: bool = field(default=False, name="deviceshare.VGPUEnable")
        """Share GPUs with HAMi: pods request `volcano.sh/vgpu-number`, `-memory` and `-cores`."""
        mindcluster: bool = field(default=False, name="deviceshare.AscendMindClusterVNPUEnable")
        """Share Ascend 310P chips with MindCluster: pods request `huawei.com/npu-core`."""
        ascend: bool = field(default=False, name="deviceshare.AscendHAMiVNPUEnable")
        """Share Ascend chips with HAMi."""
        node_lock: bool = field(default=False, name="deviceshare.NodeLockEnable")
        """Lock a node while a pod with devices is bound to it."""
        policy: str = field(default="", name="deviceshare.SchedulePolicy")
        """`binpack` prefers used cards, `spread` prefers unused ones."""
        weight: int = field(default=0, name="deviceshare.ScheduleWeight")
        """The weight of the score of a node's cards; 0 or less: nodes are not scored."""
        config_name: str = field(default="volcano-vgpu-device-config", name="deviceshare.KnownGeometriesCMName")
        """The ConfigMap with the device configuration, under the key `device-config.yaml`."""
        config_namespace: str = field(default="kube-system", name="deviceshare.KnownGeometriesCMNamespace")
        """The namespace of that ConfigMap."""
        exclusive: list[dict[str, str]] = field(default_factory=list, name="deviceshare.GPUExclusiveRules")
        """Maps of labels: pods that have all labels of one map do not share a vGPU's card with each other."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        a = self.arguments
        if a.gpu_sharing and a.gpu_number:
            self.warn("GPUSharingEnable and GPUNumberEnable exclude each other; only memory is shared")
        if a.vgpu and (a.gpu_sharing or a.gpu_number):
            self.warn("VGPUEnable excludes GPUSharingEnable and GPUNumberEnable; only vGPUs are used")
        self.rules = [rule for rule in a.exclusive if rule]
        """The exclusive rules; a rule without labels would apply to all pods."""
        if a.policy not in ("", BINPACK, SPREAD):
            self.warn(f"deviceshare.SchedulePolicy is {a.policy!r}; use {BINPACK} or {SPREAD}")

    def on_session_open(self, session: Session) -> None:
        a = self.arguments
        exact = session.deviations.exact_devices
        config = self._config(session)
        version = (config, a, session.deviations, parameters_of(session.configuration))
        self._session = session
        self._ledgers = [Ledger(session, t, version, exact) for t in self._types(session, config)]
        self._assigned: dict[int, Annotations] = {}
        self._locked: dict[int, list[tuple[str, int]]] = {}
        self._locks = NodeLocks(session) if a.node_lock else None
        for ledger in self._ledgers:
            session.add_filters(CardFilter(ledger))
            if isinstance(ledger.type, Vgpu) and ledger.type.rules:
                session.add_filters(PodCardFilter(ledger))
            if self._locks is not None and exact and ledger.type.lock:
                session.add_filters(LockFilter(session, self._locks, ledger))
            if isinstance(ledger.type, Vnpu310P) and a.weight > 0:
                session.add_scores(NpuOrder(session, ledger, a.weight))
        scored = [ledger for ledger in self._ledgers if ledger.type.scores]
        if a.weight > 0 and scored:
            session.add_scores(CardScore(scored, a.weight))
        if self._ledgers:
            session.add_event_handler(
                self._allocate, self._deallocate, leaves_traces=not exact, concerns=self._concerns
            )
            session.add_pre_bind(self._pre_bind)

    def _config(self, session: Session) -> DeviceConfig:
        a = self.arguments
        found = session.cluster.others.get("ConfigMap", {}).get(f"{a.config_namespace}/{a.config_name}")
        text = (found.data or {}).get(device_config.KEY) if found is not None else None
        if text is None:
            return device_config.DEFAULT
        try:
            return device_config.parsed(text)
        except ValueError as e:
            self.warn(f"ConfigMap {a.config_namespace}/{a.config_name}: {e}; the built-in configuration is used")
            return device_config.DEFAULT

    def _types(self, session: Session, config: DeviceConfig) -> list[DeviceType]:
        a, deviations = self.arguments, session.deviations
        exact = deviations.exact_devices
        found: list[DeviceType] = []
        if a.vgpu:
            healthy = deviations.healthy_devices
            found.append(Vgpu(config.nvidia, a.policy, self.rules, exact=exact, healthy=healthy))
        elif a.gpu_sharing or a.gpu_number:
            found.append(GpuShare(not a.gpu_sharing, exact))
        if a.ascend:
            for chip in config.vnpus.configs:
                mode, healthy = config.vnpus.core_mode, deviations.healthy_devices
                found.append(Ascend(chip, mode, a.policy, exact=exact, healthy=healthy))
        if a.mindcluster:
            found.append(self._mindcluster(session))
        return found

    def _mindcluster(self, session: Session) -> Vnpu310P:
        parameters = parameters_of(session.configuration)
        reports = session.cluster.keep(ChipReports)
        moved = reports.update(session.cluster.others.get("ConfigMap", {}), parameters)
        for problem in reports.problems:
            self.warn(f"{problem}; what it reported before counts")
        return Vnpu310P(parameters.own_list, reports.by_node, moved, exact=session.deviations.exact_devices)

    # ---- following the session --------------------------------------------------------------------------

    def _concerns(self, task: Task) -> bool:
        return any(ledger.demand(task) is not None for ledger in self._ledgers)

    def _allocate(self, task: Task, node: int) -> str | None:
        if self._simulates():
            for ledger in self._ledgers:
                ledger.simulate(task, node, +1)
            return None
        for ledger in self._ledgers:
            demand = ledger.demand(task)
            if demand is None or ledger.cards(node) is None:
                continue
            annotations, error = ledger.allocate(task, node)
            if error is None:
                error = self._lock(ledger, task, node)
            if error is not None:
                return error
            if annotations:
                self._assigned.setdefault(task.slot, {}).update(annotations)
        return None

    def _lock(self, ledger: Ledger, task: Task, node: int) -> str | None:
        """Lock the node if the pod requires it; returns why the node cannot be locked."""
        lock = ledger.type.lock
        if self._locks is None or task.takes_capacity or not lock or not ledger.type.locks(ledger.demand(task)):
            return None
        error = self._locks.error(lock, node)
        if error is None:
            self._locks.take(lock, node)
            self._locked.setdefault(task.slot, []).append((lock, node))
        return error

    def _simulates(self) -> bool:
        """Whether only the cards of a dry run change. With exact devices a move and its undo leave nothing."""
        return self._session.events.in_dry_run and not self._session.deviations.exact_devices

    def _deallocate(self, task: Task, node: int) -> None:
        if self._simulates():
            for ledger in self._ledgers:
                ledger.simulate(task, node, -1)
            return
        for ledger in self._ledgers:
            if ledger.demand(task) is not None:
                ledger.deallocate(task, node)
        self._assigned.pop(task.slot, None)
        locked = self._locked.pop(task.slot, ())
        if self._locks is not None and self._session.deviations.exact_devices:
            for lock, of in locked:
                self._locks.give_back(lock, of)

    def _pre_bind(self, task: Task, node: int) -> PreBindSteps | None:
        assigned = self._assigned.get(task.slot)
        if not assigned:
            return None
        now = self._session.now
        annotations = dict(assigned)
        for ledger in self._ledgers:
            if ledger.demand(task) is not None:
                annotations |= ledger.type.times(now)
        name = self._session.table.names[node]
        steps: list[PreBindStep] = []
        if task.slot in self._locked:
            at = f"{format_time(now)[:-1]}.{int(now % 1 * 1_000_000):06d}Z"
            steps += [LockNode(name, lock, at) for lock, _ in self._locked[task.slot]]
        return PreBindSteps(steps, annotations)
