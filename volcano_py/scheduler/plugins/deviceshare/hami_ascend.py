"""Ascend chips that HAMi shares: by templates of memory, or by cores. Volcano: devices/ascend/hami.

Each chip of the device configuration is a device type of its own. A node announces its chips in the annotation
`hami.io/node-register-<word>`; the annotation `hami.io/<word>-devices-allocated` of a pod contains its devices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from volcano_py.api import names, quantity
from volcano_py.api.core import Container, Node, Pod
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.plugins.deviceshare.device_config import AscendConfig
from volcano_py.scheduler.plugins.deviceshare.device_type import Fit, Taken, limit
from volcano_py.scheduler.plugins.deviceshare.vgpu_annotations import Assigned, read_assigned

HAMI_CORE = "hami-core"
_NODE_CORE_MODE = "hami-vnpu-core"
_CORES = 100
"""The cores of a chip that is shared by cores."""
BINPACK, SPREAD = "binpack", "spread"


class AscendRequest(NamedTuple):
    """The request of one container for each of `number` chips: MiB and cores."""

    number: int
    memory: int
    cores: int = 0


class AscendDemand(NamedTuple):
    """The demand of a pod. `core_mode`: by cores, not by templates; `error`: why the request is invalid."""

    requests: tuple[AscendRequest, ...]
    core_mode: bool = False
    error: str = ""


class Chip(msgspec.Struct):
    """One chip as the node announces it. Memory in MiB."""

    id: str = ""
    index: int = 0
    count: int = 0
    devmem: int = 0
    devcore: int = 0
    type: str = ""
    health: bool = True
    custominfo: dict[str, Any] | None = None


class Ascend:
    """`core_mode`: the mode of nodes that do not announce one. `policy`, `exact`: as for vGPUs."""

    lock = "hami.io/mutex.lock"
    scores = True
    moved: frozenset[str] = frozenset()
    reasons: Sequence[Reason] = (
        Reason("no ascend device available: too few are free"),
        Reason("no ascend device available: the request cannot be served", FitCode.ERROR),
    )

    def __init__(self, config: AscendConfig, core_mode: bool, policy: str, *, exact: bool, healthy: bool) -> None:
        self.name = config.word
        self.config = config
        self.core_mode = core_mode
        self.policy = policy
        self.exact = exact
        self.healthy = healthy

    def demand(self, pod: Pod) -> AscendDemand | None:
        annotations = pod.metadata.annotations or {}
        core_mode = annotations.get(names.ASCEND_VNPU_MODE) == HAMI_CORE
        found = [r for c in pod.spec.containers or () if (r := self._request(c, core_mode)) is not None]
        if not found:
            return None
        error = next((e for r in found if not core_mode and (e := unservable(r, self.config))), "")
        return AscendDemand(tuple(found), core_mode, error)

    def _request(self, c: Container, core_mode: bool) -> AscendRequest | None:
        config, limits, requests = self.config, c.resources.limits, c.resources.requests
        number = limit(limits, config.resource)
        memory = limit(limits, config.memory_resource)
        if number is None and memory is None:
            return None
        memory = limit(requests, config.memory_resource) if memory is None else memory
        cores = limit(limits, f"{config.resource}-core")
        cores = limit(requests, f"{config.resource}-core") if cores is None else cores
        requested = memory or config.allocatable
        if not core_mode:
            requested = template_of(requested, config)[0]
        return AscendRequest(1 if number is None else number, requested, cores or 0)

    def of_pod(self, demand: AscendDemand, task: Task) -> AscendDemand:
        return demand

    def is_shared(self, demand: AscendDemand) -> bool:
        return True

    def locks(self, demand: AscendDemand) -> bool:
        return True

    def times(self, now: float) -> dict[str, str]:
        seconds = str(int(now))
        return {"predicate-time": seconds, "hami.io/vgpu-time": seconds, "hami.io/bind-time": seconds}

    def cards(self, node: Node) -> AscendChips | None:
        annotations = node.metadata.annotations or {}
        have = node.status.allocatable or {}
        text = annotations.get(f"hami.io/node-register-{self.config.word}")
        if not text or self.config.resource not in have or quantity.value(have[self.config.resource]) <= 0:
            return None
        chips = read_chips(text)
        mode = annotations.get(_NODE_CORE_MODE)
        usable = [chip for chip in chips if chip.health or not self.healthy]
        return AscendChips(self, node.metadata.name, self.core_mode if mode is None else mode == "true", usable)


class Use(NamedTuple):
    """The used part of a chip: the number of its users, MiB, cores."""

    users: int = 0
    memory: int = 0
    cores: int = 0

    def plus(self, other: Use, sign: int = 1) -> Use:
        return Use(*(a + sign * b for a, b in zip(self, other, strict=True)))


class AscendChips:
    """The chips of one node. `core_mode`: whether it shares them by cores."""

    __slots__ = ("_of", "chips", "core_mode", "node", "pods", "used")

    def __init__(self, of: Ascend, node: str, core_mode: bool, chips: list[Chip]) -> None:
        self._of = of
        self.node = node
        self.core_mode = core_mode
        self.chips = {chip.id: chip for chip in chips}
        self.used: dict[str, Use] = {}
        self.pods: dict[str, dict[str, Use]] = {}
        """By pod, what it uses of each chip."""

    def clone(self) -> AscendChips:
        other = AscendChips(self._of, self.node, self.core_mode, [])
        other.chips, other.used = self.chips, dict(self.used)
        other.pods = {pod: dict(uses) for pod, uses in self.pods.items()}
        return other

    def state(self) -> tuple[object, ...]:
        chips = tuple((c.count, c.devmem, c.devcore, c.type, _network(c), self._use(c)) for c in self.chips.values())
        return (self.core_mode, *chips)

    def _use(self, chip: Chip) -> Use:
        return self.used.get(chip.id, Use())

    def fit(self, demand: AscendDemand) -> Fit:
        if demand.error or not self.chips:
            return Fit(2)
        chosen = self._choose(demand)
        return Fit(1) if chosen is None else Fit(0, self._score(chosen))

    def _choose(self, demand: AscendDemand) -> list[list[Chip]] | None:
        """The chips of each container; a chip serves at most one container of the pod."""
        taken: set[str] = set()
        chosen = []
        for request in demand.requests:
            fitting = [
                chip
                for chip in self._in_order()
                if chip.id not in taken and fits(request, chip, self._use(chip), demand.core_mode, self.core_mode)
            ]
            if len(fitting) < request.number:
                return None
            mine = self._near(fitting, request.number)
            taken.update(chip.id for chip in mine)
            chosen.append(mine)
        return chosen

    def _in_order(self) -> list[Chip]:
        chips = list(self.chips.values())
        return sorted(chips, key=lambda chip: -chip_score(self._of.policy, self._use(chip), chip.devmem))

    def _near(self, fitting: list[Chip], number: int) -> list[Chip]:
        """Chips of the network that has the most candidates, if all chips announce their network."""
        if not self._has_networks:
            return fitting[:number]
        sizes = Counter(_network(chip) for chip in fitting)
        return sorted(fitting, key=lambda chip: -sizes[_network(chip)])[:number]

    @property
    def _has_networks(self) -> bool:
        return self._of.name.startswith("Ascend910") and all(_network(c) is not None for c in self.chips.values())

    def _score(self, chosen: list[list[Chip]]) -> float:
        flat = [chip for mine in chosen for chip in mine]
        score = sum(chip_score(self._of.policy, self._use(chip), chip.devmem) for chip in flat)
        if flat and self._has_networks:
            score += 10 * max(Counter(_network(chip) for chip in flat).values()) / len(flat)
        return score

    def take(self, demand: AscendDemand, task: Task) -> Taken:
        chosen = None if demand.error else self._choose(demand)
        if chosen is None:
            return Taken({}, demand.error or self._of.reasons[0].text)
        containers, runtime = [], []
        for request, mine in zip(demand.requests, chosen, strict=True):
            for chip in mine:
                self._book(task.key, chip.id, Use(1, request.memory, request.cores))
                runtime.append(self._runtime(chip, request, demand.core_mode))
            containers.append([Assigned(chip.id, request.memory, request.cores) for chip in mine])
        word = self._of.name
        text = "".join(
            "".join(f"{d.device},{word},{d.memory},{d.cores}:" for d in devices) + ";" for devices in containers
        )
        return Taken(
            {
                f"hami.io/{word}-devices-to-allocate": text,
                f"hami.io/{word}-devices-allocated": text,
                f"huawei.com/{word}": msgspec.json.encode(runtime or None).decode(),
                "hami.io/vgpu-node": self.node,
                "hami.io/bind-phase": "allocating",
            }
        )

    def _runtime(self, chip: Chip, request: AscendRequest, core_mode: bool) -> dict[str, Any]:
        if core_mode:
            return {"UUID": chip.id, "memory": request.memory, "core": request.cores}
        template = template_of(request.memory, self._of.config)[1]
        return {"UUID": chip.id, **({"temp": template} if template else {})}

    def _book(self, pod: str, chip: str, use: Use) -> None:
        self.used[chip] = self.used.get(chip, Use()).plus(use)
        mine = self.pods.setdefault(pod, {})
        mine[chip] = mine.get(chip, Use()).plus(use)

    def count(self, task: Task) -> None:
        held = set(self.pods.get(task.key, ()))
        for device in self._assigned(task):
            if device.device in self.chips and device.device not in held:
                self._book(task.key, device.device, Use(1, device.memory, device.cores))

    def uncount(self, task: Task) -> None:
        if any(True for _ in self._assigned(task)):
            self._free(task.key)

    def release(self, task: Task) -> None:
        if self._of.exact:
            self._free(task.key)
        else:
            self.uncount(task)

    def _free(self, pod: str) -> None:
        for chip, use in self.pods.pop(pod, {}).items():
            self.used[chip] = self.used[chip].plus(use, -1)

    def _assigned(self, task: Task) -> Iterator[Assigned]:
        yield from read_assigned(task.annotations.get(f"hami.io/{self._of.name}-devices-allocated", ""))


def read_chips(text: str) -> list[Chip]:
    """The chips in a node's annotation; empty if the annotation is invalid."""
    try:
        return msgspec.json.decode(text, type=list[Chip], strict=False)
    except msgspec.DecodeError:
        return []


def fits(request: AscendRequest, chip: Chip, used: Use, core_mode: bool, node_core_mode: bool) -> bool:
    """Whether a chip fits the request of a container."""
    if core_mode and not node_core_mode:
        return False
    cores = _CORES if core_mode else chip.devcore
    if chip.count <= used.users or chip.devmem - used.memory < request.memory or cores - used.cores < request.cores:
        return False
    if cores == _CORES and request.cores == _CORES and used.users > 0:
        return False
    return not (cores > 0 and used.cores == cores and request.cores == 0)


def template_of(memory: int, config: AscendConfig) -> tuple[int, str]:
    """The memory that is assigned, and the template's name: the smallest template with enough memory, or the whole chip
    ("" and its allocatable memory); (0, "") if the request is larger than a chip."""
    for template in sorted(config.templates, key=lambda t: t.memory):
        if memory <= template.memory:
            return template.memory, template.name
    return (config.allocatable, "") if memory <= config.capacity else (0, "")


def unservable(request: AscendRequest, config: AscendConfig) -> str:
    """Why a request can never be served; "" if it can."""
    if request.number > 1 and config.templates and request.memory < config.allocatable:
        return "vNPU does not support partial memory allocation when requesting multiple devices"
    return ""


def chip_score(policy: str, used: Use, memory: int) -> float:
    """binpack: the used part of the memory; spread: 100 for an unused chip."""
    if memory == 0:
        return 0.0
    if policy == BINPACK:
        return 100 * used.memory / memory
    return 100.0 if policy == SPREAD and used.users == 0 else 0.0


def _network(chip: Chip) -> Any:
    return (chip.custominfo or {}).get("NetworkID")
