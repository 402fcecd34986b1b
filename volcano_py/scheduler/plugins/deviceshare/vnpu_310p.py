"""Ascend 310P chips that MindCluster divides by templates, or assigns as a whole. Volcano: devices/ascend/mindcluster.

The node's labels contain the type of its chips, ConfigMaps and the annotation `baseDeviceInfos` the usable ones. The
annotation `huawei.com/npu-core` of a pod contains its chips (`0,1`), or its chip and template (`0-vir02`). The device
plugin on the node then creates the vNPU and adds the annotation `huawei.com/AscendReal`; until then it serves no other
template, and the scheduler assigns no other part of the chip.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from volcano_py.api import names, quantity
from volcano_py.api.core import Node, Pod, ResourceList
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.plugins.deviceshare.chip_reports import ChipReport, chip_numbers, numbers
from volcano_py.scheduler.plugins.deviceshare.device_type import Annotations, Fit, Taken
from volcano_py.scheduler.plugins.deviceshare.vnpu_templates import (
    CPUS_OF_CHIP,
    DOWNGRADES,
    NO,
    NULL,
    TEMPLATES,
    YES,
    Amount,
    VnpuDemand,
    demand_of,
)

_SEPARATED, _NO_CHIPS, _TOO_FEW, _OTHER_TEMPLATE, _INVALID = 1, 2, 3, 4, 5
_RESERVED = "PreSeparate"
DOWNGRADED = 1.0
"""The score of a node that has fewer AI CPUs than the pod's template."""


class Vnpu310P:
    """`own_list`: see `Parameters`. `reports` by node. `moved`: the nodes with a new report."""

    name = "ascend310p-vNPU"
    lock = ""
    scores = False

    def __init__(
        self, own_list: bool, reports: Mapping[str, ChipReport], moved: frozenset[str], *, exact: bool
    ) -> None:
        self._own_list = own_list
        self._reports = reports
        self.moved = moved
        # In Volcano evictions never help: all rejections are errors.
        resolvable = FitCode.UNSCHEDULABLE if exact else FitCode.ERROR
        self.reasons: Sequence[Reason] = (
            Reason(f"Ascend 310P: the status of the node is {_RESERVED}", FitCode.ERROR),
            Reason("Ascend 310P: MindCluster reports no usable chips", FitCode.ERROR),
            Reason("Ascend 310P: too few AI cores or chips are free", resolvable),
            Reason("Ascend 310P: a vNPU of another template is being created", resolvable),
            Reason("Ascend 310P: npu-core must be 1, 2, 4 or whole chips, vnpu-dvpp yes, no or null", FitCode.ERROR),
        )

    def demand(self, pod: Pod) -> VnpuDemand | None:
        return demand_of(pod)

    def of_pod(self, demand: VnpuDemand, task: Task) -> VnpuDemand:
        return demand

    def is_shared(self, demand: VnpuDemand) -> bool:
        return True

    def locks(self, demand: VnpuDemand) -> bool:
        return False

    def times(self, now: float) -> Annotations:
        return {names.NPU_TIME: str(int(now * 1e9))}

    def cards(self, node: Node) -> NpuChips | None:
        cores = _amount(node.status.allocatable, names.NPU_CORE)
        if cores <= 0:
            return None
        report = self._reports.get(node.metadata.name, ChipReport())
        total = _amount(node.status.capacity, names.NPU_CORE) or cores
        size = chip_size(node.metadata.labels or {}, total)
        usable = self._usable(node, report) if size is not None else None
        if size is None or usable is None:
            return NpuChips(Amount(0, 0), 0, frozenset(), frozenset(), report.status == _RESERVED)
        unhealthy = report.chips(f"{names.NPU_310P}-Unhealthy")
        return NpuChips(size, total // size.cores, usable - unhealthy, unhealthy, report.status == _RESERVED)

    def _usable(self, node: Node, report: ChipReport) -> frozenset[int] | None:
        """The chips that are usable; None: they are not reported."""
        if report.devices is None or names.NPU_310P not in dict(report.devices):
            return None
        if not self._own_list:
            return report.chips(names.NPU_310P)
        text = (node.metadata.annotations or {}).get(names.NPU_BASE_DEVICES)
        try:
            own = msgspec.json.decode(text or "", type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, RecursionError):
            return None
        return chip_numbers(own) - report.chips(f"{names.NPU_310P}-Recovering")


class HeldChips(NamedTuple):
    """What a pod holds: whole chips, or a part of one (`template`). `created`: its device plugin has created it.
    `here`: it was assigned in this session. `group`: the group of the chip's AI cores that the vNPU uses."""

    chips: tuple[int, ...]
    template: str = ""
    created: bool = False
    here: bool = False
    group: str = ""


class Free(NamedTuple):
    """The free part of a chip. `whole`: nothing of it was assigned; `open`: parts can be assigned now; `groups`: the
    number of groups in use, 0 where they do not limit."""

    cores: int
    cpus: int
    dvpp: str
    whole: bool
    open: bool
    groups: int

    def has(self, amount: Amount) -> bool:
        """Whether a vNPU of this size fits. A chip has four groups of two AI cores; with three in use 4 cores no longer
        fit, with four in use only 1."""
        if not self.open or self.cores < amount.cores or self.cpus < amount.cpus:
            return False
        if (self.groups == 3 and amount.cores >= 4) or (self.groups == 4 and amount.cores >= 2):
            return False
        return self.dvpp == YES if amount.dvpp == YES else amount.dvpp == NO or self.dvpp != NO


class NpuChips:
    """The chips of one node. `size`: one whole chip; (0, 0): they are not usable. `number`: how many the node has, with
    those that are not reported because a pod uses them."""

    __slots__ = ("_number", "_unhealthy", "chips", "pods", "separated", "size")

    def __init__(
        self, size: Amount, number: int, chips: Iterable[int], unhealthy: frozenset[int], separated: bool
    ) -> None:
        self.size = size
        self._number = number
        self.chips = set(chips)
        self.separated = separated
        self.pods: dict[str, HeldChips] = {}
        self._unhealthy = unhealthy

    def clone(self) -> NpuChips:
        other = NpuChips(self.size, self._number, self.chips, self._unhealthy, self.separated)
        other.pods = dict(self.pods)
        return other

    def state(self) -> tuple[object, ...]:
        return (self.size, self.separated, self._in_creation(), tuple(sorted(self.free().items())))

    def free(self) -> dict[int, Free]:
        """The free part of each chip."""
        on: dict[int, list[HeldChips]] = {chip: [] for chip in self.chips}
        for held in self.pods.values():
            for chip in held.chips:
                on[chip].append(held)
        return {chip: self._free(pods) for chip, pods in on.items()}

    def _free(self, pods: list[HeldChips]) -> Free:
        amounts = [TEMPLATES.get(held.template, Amount(0, 0)) if held.template else self.size for held in pods]
        dvpp = {amount.dvpp for held, amount in zip(pods, amounts, strict=True) if held.template}
        groups = {held.group for held in pods if held.group}
        return Free(
            self.size.cores - sum(amount.cores for amount in amounts),
            self.size.cpus - sum(amount.cpus for amount in amounts),
            NO if YES in dvpp else NULL if NULL in dvpp else YES,
            not pods,
            all(held.created or held.here for held in pods),
            len(groups),
        )

    def _in_creation(self) -> frozenset[str]:
        """The templates of the vNPUs that the device plugin has not created yet; "" for whole chips."""
        return frozenset(held.template for held in self.pods.values() if not held.created)

    # ---- checking ---------------------------------------------------------------------------------------

    def fit(self, demand: VnpuDemand) -> Fit:
        code, held = self._choose(demand)
        return Fit(code, DOWNGRADED if held is not None and held.template in _less_than(demand) else 0.0)

    def _choose(self, demand: VnpuDemand) -> tuple[int, HeldChips | None]:
        """The chips for a demand, or the number of the reason why there are none."""
        if self.separated:
            return _SEPARATED, None
        if not self.size.cores:
            return _NO_CHIPS, None
        if demand.error:
            return _INVALID, None
        if demand.cores % self.size.cores and not demand.template:
            return _INVALID, None
        held = self._part(demand) if demand.cores % self.size.cores else self._whole(demand)
        if held is None:
            return _TOO_FEW, None
        return (_OTHER_TEMPLATE, None) if self._in_creation() - {held.template} else (0, held)

    def _whole(self, demand: VnpuDemand) -> HeldChips | None:
        whole = sorted(chip for chip, free in self.free().items() if free.whole)
        number = demand.cores // self.size.cores
        return HeldChips(tuple(whole[:number]), here=True) if len(whole) >= number else None

    def _part(self, demand: VnpuDemand) -> HeldChips | None:
        """A part of the chip that has the least left."""
        chips = sorted((free.cores, free.cpus, chip, free) for chip, free in self.free().items())
        for template in (demand.template, *_less_than(demand)):
            for _, _, chip, free in chips:
                if free.has(TEMPLATES[template]):
                    return HeldChips((chip,), template, here=True)
        return None

    # ---- booking ----------------------------------------------------------------------------------------

    def take(self, demand: VnpuDemand, task: Task) -> Taken:
        _, held = self._choose(demand)
        if held is None:
            return Taken({}, demand.error or "too few AI cores or chips are free")
        self.pods[task.key] = held
        text = f"{held.chips[0]}-{held.template}" if held.template else ",".join(map(str, held.chips))
        return Taken({names.NPU_CORE: text})

    def count(self, task: Task) -> None:
        if task.key in self.pods:
            return
        held = read_held(task.annotations)
        chips = tuple(chip for chip in held.chips if self._has(chip))
        if chips:
            self.pods[task.key] = held._replace(chips=chips)

    def _has(self, chip: int) -> bool:
        """Whether a chip of a pod is on the node: it is reported, or one of those that are not."""
        if chip not in self.chips and chip not in self._unhealthy:
            if len(self.chips | self._unhealthy) >= self._number:
                return False
            self.chips.add(chip)
        return chip in self.chips

    def uncount(self, task: Task) -> None:
        self.pods.pop(task.key, None)

    def release(self, task: Task) -> None:
        self.pods.pop(task.key, None)


def _less_than(demand: VnpuDemand) -> tuple[str, ...]:
    less = DOWNGRADES.get(demand.template)
    return (less,) if less else ()


def read_held(annotations: Mapping[str, str]) -> HeldChips:
    """What the annotations of a pod assign; no chips if they assign none. Whole chips can also be those of a pod that
    requests chips instead of AI cores."""
    text, real = annotations.get(names.NPU_CORE, ""), annotations.get(names.NPU_REAL, "")
    chip, _, template = text.partition("-")
    if template:
        _, separator, group = real.rpartition("_")
        known = group if separator and group.isdecimal() else ""
        return HeldChips(tuple(numbers([chip])), template, bool(real), group=known)
    whole = numbers(text.split(",")) | chip_numbers(annotations.get(names.NPU_310P, "").split(","))
    return HeldChips(tuple(sorted(whole)), created=bool(real) or not text)


def chip_size(labels: Mapping[str, str], cores: int) -> Amount | None:
    """One chip of a node, from its labels: accelerator `huawei-Ascend310P`, servertype `Ascend310P-<cores of a chip>`.
    None: the labels do not describe such chips, or the node's AI cores are not those of whole chips."""
    kind = labels.get(names.NPU_ACCELERATOR, "").split("-")
    server = labels.get(names.NPU_SERVER_TYPE, "").split("-")
    if kind[1:2] != ["Ascend310P"] or len(server) < 2 or names.NPU_CHIP_NAME not in labels:
        return None
    per_chip = int(server[1]) if server[1].isdecimal() and len(server[1]) <= 3 else 0
    if per_chip not in CPUS_OF_CHIP or cores % per_chip:
        return None
    return Amount(per_chip, CPUS_OF_CHIP[per_chip])


def _amount(amounts: ResourceList | None, resource: str) -> int:
    return quantity.value(amounts[resource]) if amounts and resource in amounts else 0
