"""Shared devices: GPUs, vGPUs, MIG instances, Ascend chips. The data contains a node's cards with their usage."""

from __future__ import annotations

from typing import Any

from tests.conformance.functions.adapter import Adapter, Adapters, Data, receiver_after
from tests.conformance.functions.values import pod as pod_struct
from volcano_py.api import names
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node
from volcano_py.scheduler.model.jobs.spec_class import SpecClasses
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeTable
from volcano_py.scheduler.plugins.deviceshare.device_config import AscendConfig, AscendTemplate, VgpuConfig
from volcano_py.scheduler.plugins.deviceshare.gpu_share import GpuCards, GpuShare, amount_of, card_numbers
from volcano_py.scheduler.plugins.deviceshare.hami_ascend import (
    Ascend,
    AscendChips,
    Chip,
    Use,
    chip_score,
    fits,
    read_chips,
    template_of,
    unservable,
)
from volcano_py.scheduler.plugins.deviceshare.hami_ascend import AscendDemand as ChipDemand
from volcano_py.scheduler.plugins.deviceshare.hami_ascend import AscendRequest as ChipRequest
from volcano_py.scheduler.plugins.deviceshare.mig import Geometry, Instance, Slot, choose, instance_at, read_id
from volcano_py.scheduler.plugins.deviceshare.plugin import Deviceshare
from volcano_py.scheduler.plugins.deviceshare.vgpu import Card, Holding, Vgpu, VgpuCards, card_score
from volcano_py.scheduler.plugins.deviceshare.vgpu_annotations import Announced, Assigned, read_assigned
from volcano_py.scheduler.plugins.deviceshare.vgpu_demand import (
    NO_PERCENTAGE,
    Constraints,
    VgpuDemand,
    VgpuRequest,
    constraints_of,
    demand_of,
    group_key,
)

_RULES = "deviceshare.GPUExclusiveRules"


def _task(manifest: Data | None) -> Task:
    """A pod as a task; its UID is used as its name, as in the data."""
    pod = pod_struct(manifest)
    task = Task(pod, SpecClasses(NodeTable()).of(pod), "")
    task.key = pod.metadata.uid or task.key
    return task


# ---- gpushare -------------------------------------------------------------------------------------------------


def _gpus(data: Data, by_number: bool = False) -> GpuCards:
    of = GpuShare(by_number, exact=False)
    pods: dict[int, dict[str, int]] = {}
    for number, device in data["Device"].items():
        here = device.get("PodMap") or {}
        pods[int(number)] = {uid: amount_of(pod_struct(p), names.GPU_MEMORY) for uid, p in here.items()}
    return GpuCards(of, next((d.get("Memory", 0) for d in data["Device"].values()), 0), pods)


def _by_memory(_: Any, a: list[Any]) -> list[Any]:
    task = _task(a[0])
    cards = _gpus(a[1])
    demand = GpuShare(False, exact=False).demand(task.pod)
    taken = cards.take(demand, task) if demand is not None else None
    return [[int(taken.annotations[names.GPU_INDEX])] if taken is not None and taken.error is None else None]


def _keys(annotations: dict[str, str], times: dict[str, str]) -> Data:
    """The annotations that a binding adds, which Volcano removes when a placement is undone."""
    return dict.fromkeys([*annotations, *times], "")


def _gpu_release(receiver: Data, a: list[Any]) -> list[Any]:
    cards, task = _gpus(receiver), _task(a[1])
    cards.release(task)
    free = GpuShare(False, exact=False)
    taken = GpuCards(free, 1, {0: {}}).take(free.demand(_asking(names.GPU_MEMORY).pod), task)  # type: ignore[arg-type]
    reservation = {"Annotations": _keys(taken.annotations, free.times(0)), "DeviceType": "GpuShare"}
    left = {number: {"PodMap": {}} for number in receiver["Device"] if cards.state() == (0,)}
    return [reservation, {"Device": left, "Name": receiver["Name"]}]


def _asking(resource: str) -> Task:
    return _task({"spec": {"containers": [{"resources": {"limits": {resource: "1"}}}]}})


# ---- vgpu -----------------------------------------------------------------------------------------------------


def _geometries(data: list[Data] | None) -> tuple[Geometry, ...]:
    return tuple(
        Geometry(g.get("Group", ""), tuple(Instance(i["Name"], i["Memory"], i["Count"]) for i in g["Instances"]))
        for g in data or ()
        if g.get("Instances")
    )


def _card(data: Data, position: int = 0) -> Card:
    announced = Announced(
        position,
        data.get("UUID", ""),
        data.get("Number", 0),
        data.get("Memory", 0),
        data.get("Type", ""),
        data.get("Health", False),
        "",
    )
    card = Card(announced, _geometries(data.get("MigTemplate")))
    card.use(data.get("UsedNum", 0), data.get("UsedMem", 0), data.get("UsedCore", 0))
    pods = data.get("PodMap") or {}
    for uid, use in pods.items() if isinstance(pods, dict) else ():
        if use.get("UsedMem") or use.get("UsedCore"):  # one without was released
            holding = Holding(1, use.get("UsedMem", 0), use.get("UsedCore", 0), use.get("PodGroupKey", ""), ())
            card.pods[uid] = holding
    for slot in _used(card.geometries, data.get("MigUsage") or {}):
        card.use_slot(slot, +1)
    return card


def _used(geometries: tuple[Geometry, ...], usage: Data) -> list[Slot]:
    """The instances in use, which the data counts by type. A type that no geometry has excludes all of them."""
    found = []
    for use in usage.get("UsageList") or ():
        geometry = next((g for g in geometries if any(i.name == use["Name"] for i in g.instances)), None)
        if geometry is None:
            found.append(Slot("unknown", 0))
            continue
        position = 0
        for instance in geometry.instances:
            if instance.name == use["Name"]:
                found += [Slot(geometry.group, position + i) for i in use.get("UsedIndex") or ()]
            position += instance.number
    return found


def _cards(data: Data, policy: str = "", rules: list[dict[str, str]] | None = None) -> VgpuCards:
    of = Vgpu(VgpuConfig(), policy, rules or [], exact=False)
    cards = [_card(device, int(number)) for number, device in sorted((data.get("Device") or {}).items())]
    return VgpuCards(of, data.get("Name", ""), data.get("Mode", "hami-core"), cards)


def _card_out(card: Card) -> Data:
    out: Data = {"UsedNum": card.number, "UsedMem": card.memory, "UsedCore": card.cores}
    pods = {uid: {"UsedMem": h.memory, "UsedCore": h.cores, "PodGroupKey": h.group} for uid, h in card.pods.items()}
    return {**{k: v for k, v in out.items() if v}, "PodMap": {u: _not_empty(p) for u, p in pods.items()}}


def _not_empty(data: Data) -> Data:
    return {k: v for k, v in data.items() if v}


def _card_facts(device: Data) -> Data:
    return {k: device[k] for k in ("UsedNum", "UsedMem", "UsedCore", "PodMap") if k in device}


def _device_out(device: Assigned) -> Data:
    return _not_empty({"Type": "NVIDIA", "UUID": device.device, "Usedmem": device.memory, "Usedcores": device.cores})


def _check_node(_: Any, a: list[Any]) -> list[Any]:
    cards, demand = _cards(a[1], a[3]), demand_of(pod_struct(a[0]), VgpuConfig())
    assert demand is not None, "the data requests vGPUs"
    code, chosen, score = cards.choose(demand)
    devices = [[_device_out(c.assigned) for c in mine] for mine in chosen] if code == 0 else []
    return [code == 0, devices, score if code == 0 else 0, code != 0]


def _checked(expected: Data) -> list[Any]:
    fit, devices, score, error = expected["result"]
    return [fit, devices, score, error is not None]


def _add_resource(receiver: Data, a: list[Any]) -> list[Any]:
    annotations, manifest = a
    cards = _cards(receiver)
    metadata = {**manifest["metadata"], "annotations": annotations}
    cards.count(_task({**manifest, "metadata": metadata}))
    return [{str(c.announced.position): _card_out(c) for c in cards.cards}]


def _added(expected: Data) -> list[Any]:
    return [{number: _card_facts(device) for number, device in expected["receiver_after"]["Device"].items()}]


def _find_match(_: Any, a: list[Any]) -> list[Any]:
    uuid, memory, usage, data = a
    geometries = _geometries(data)
    found = choose(geometries, _used(geometries, usage), memory)
    return [False, "", 0] if found is None else [True, f"{uuid}[{found[0]}]", found[1].memory]


def _mig_used(sign: int) -> Any:
    def call(_: Any, a: list[Any]) -> list[Any]:
        card, slot = _card(a[0]), Slot(a[1], a[2])
        instance = instance_at(card.geometries, slot)
        if instance is None or (sign < 0 and slot not in card.slots):
            return [0]
        card.use_slot(slot, sign)
        return [instance.memory]

    return call


def _requests(_: Any, a: list[Any]) -> list[Any]:
    demand = demand_of(pod_struct(a[0]), VgpuConfig())
    return [
        [
            _not_empty(
                {
                    "Nums": r.number,
                    "Memreq": r.memory,
                    "MemPercentagereq": r.percentage,
                    "Coresreq": r.cores,
                    "Type": "NVIDIA",
                }
            )
            for r in (demand.requests if demand is not None else ())
        ]
    ]


def _with_assigned(device: Data, memory: int, cores: int, uid: str, name: str) -> tuple[VgpuCards, Task]:
    """One card, and a pod that it is assigned to."""
    cards = _cards({"Device": {"0": device}})
    text = f"{name},NVIDIA,{memory},{cores}:"
    return cards, _task({"metadata": {"uid": uid, "annotations": {names.VGPU_IDS_NEW: text}}})


def _core_add(_: Any, a: list[Any]) -> list[Any]:
    cards, task = _with_assigned(*a)
    before = _card_out(cards.cards[0])
    cards.count(task)
    after = _card_out(cards.cards[0])
    return [_UNCHANGED if after == before else after]


def _core_sub(_: Any, a: list[Any]) -> list[Any]:
    cards, task = _with_assigned(*a)
    cards.uncount(task)
    return [_card_out(cards.cards[0])]


_UNCHANGED = "unchanged"


def _first_card_after(expected: Data) -> list[Any]:
    return [_card_facts(expected["args_after"][0]) if "args_after" in expected else _UNCHANGED]


def _core_try(_: Any, a: list[Any]) -> list[Any]:
    cards = _cards({"Device": {"0": a[0]}})
    request = VgpuRequest(1, a[1], NO_PERCENTAGE, a[2])
    choice = cards.try_card(cards.cards[0], request, VgpuDemand((request,)), [])
    return [choice is not None, choice.assigned.device if choice is not None else ""]


def _decode_mig(_: Any, a: list[Any]) -> list[Any]:
    slot = read_id(a[0])[1]
    assert slot is not None, "the text contains an instance"
    return [slot.group, slot.position, None]


def _vgpu_release(_: Any, a: list[Any]) -> list[Any]:
    if (a[1]["metadata"].get("annotations") or {}).get(names.VGPU_BIND_PHASE) == "success":
        return [None]
    of = Vgpu(VgpuConfig(), "")
    one = {"Device": {"0": {"UUID": "u", "Number": 1, "Memory": 1, "Type": "NVIDIA"}}, "Name": "n"}
    taken = _cards(one).take(VgpuDemand((VgpuRequest(1, 1, NO_PERCENTAGE, 0),)), _task(a[1]))
    return [{"Annotations": _keys(taken.annotations, of.times(0)), "DeviceType": of.name}]


def _filter(receiver: Data, a: list[Any]) -> list[Any]:
    of = Vgpu(VgpuConfig(), a[1])
    fit = _cards(receiver, a[1]).fit(of.demand(pod_struct(a[0])))  # type: ignore[arg-type]
    return [int(of.reasons[fit.code - 1].code) if fit.code else 0, fit.score]


def _filtered(expected: Data) -> list[Any]:
    return [expected["result"][0], (expected.get("receiver_after") or {}).get("Score", 0)]


def _score(receiver: Data, a: list[Any]) -> list[Any]:
    return _filter(receiver, a)[1:]


# ---- exclusive rules --------------------------------------------------------------------------------------------


def _rules_of(data: Data) -> list[dict[str, str]]:
    return [rule["labels"] for rule in (data.get("rules") or ())]


def _with_rules(receiver: Data) -> VgpuCards:
    """The cards, each with a pod for every rule that contains its GPU."""
    cards = _cards(receiver["inner"], rules=_rules_of(receiver["cfg"]))
    for rule, numbers in (receiver.get("ruleGPUs") or {}).items():
        for card in cards.cards:
            if str(card.announced.position) in numbers:
                card.hold(f"rule {rule}", Holding(1, 1, 0, "", (int(rule),)))
    return cards


def _excluded(cards: VgpuCards, rules: tuple[int, ...]) -> list[str]:
    return [str(card.announced.position) for card in cards.cards if cards.is_excluded(card, rules)]


def _reserved(receiver: Data, a: list[Any]) -> list[Any]:
    cards = _with_rules(receiver)
    of = Vgpu(VgpuConfig(), "", _rules_of(receiver["cfg"]))
    return [_excluded(cards, of.rules_of(pod_struct(a[0])))]


def _capped(receiver: Data, a: list[Any]) -> list[Any]:
    """Volcano lowers the number of pods that the cards accept; here they are excluded."""
    return [_excluded(_with_rules({**receiver, "ruleGPUs": {"0": a[0]}}), (0,))]


def _restored(receiver: Data, a: list[Any]) -> list[Any]:
    """Afterwards they accept other pods."""
    return [_excluded(_with_rules({**receiver, "ruleGPUs": {"0": [*a[0]]}}), ())]


def _rules(value: Any) -> list[Data]:
    return [{"labels": rule} for rule in Deviceshare({_RULES: value}).rules]


# ---- Ascend -----------------------------------------------------------------------------------------------------


def _ascend(config: Data, policy: str = "") -> Ascend:
    templates = [AscendTemplate(t["Name"], t["Memory"]) for t in config.get("Templates") or ()]
    made = AscendConfig(
        word=config.get("CommonWord", ""),
        resource=config.get("ResourceName", ""),
        memory_resource=config.get("ResourceMemoryName", ""),
        allocatable=config.get("MemoryAllocatable", 0),
        capacity=config.get("MemoryCapacity", 0),
        templates=templates,
    )
    return Ascend(made, False, policy, exact=False, healthy=False)


def _chip(info: Data) -> Chip:
    return Chip(info["ID"], 0, info.get("Count", 0), info.get("Devmem", 0), info.get("Devcore", 0))


def _use(data: Data) -> Use:
    return Use(data.get("Used", 0), data.get("Usedmem", 0), data.get("Usedcores", 0))


def _chips(receiver: Data) -> tuple[Ascend, AscendChips]:
    devices = receiver.get("Devices") or {}
    config = next((d["config"] for d in devices.values()), {"CommonWord": receiver.get("Type", "")})
    of = _ascend(config, receiver.get("Policy", ""))
    chips = AscendChips(of, receiver.get("NodeName", ""), False, [_chip(d["DeviceInfo"]) for d in devices.values()])
    for device in devices.values():
        chip = device["DeviceInfo"]["ID"]
        chips.used[chip] = _use(device.get("DeviceUsage") or {})
        for uid, use in (device.get("PodMap") or {}).items():
            chips.pods.setdefault(uid, {})[chip] = _use(use)
    return of, chips


def _ascend_add(receiver: Data, a: list[Any]) -> list[Any]:
    of, chips = _chips(receiver)
    manifest = a[0]
    text = next(iter(manifest["metadata"]["annotations"].values()))
    key = f"hami.io/{of.name}-devices-allocated"
    chips.count(_task({**manifest, "metadata": {**manifest["metadata"], "annotations": {key: text}}}))
    return [
        {chip: [chips.used[chip], {u: p[chip] for u, p in chips.pods.items() if chip in p}] for chip in chips.chips}
    ]


def _ascend_added(expected: Data) -> list[Any]:
    devices = expected.get("receiver_after", {}).get("Devices", {})
    return [
        {
            d["DeviceInfo"]["ID"]: [_use(d.get("DeviceUsage") or {}), {u: _use(p) for u, p in d["PodMap"].items()}]
            for d in devices.values()
        }
    ]


def _ascend_filter(receiver: Data, a: list[Any]) -> list[Any]:
    of, chips = _chips(receiver)
    if not chips.chips:
        return [int(of.reasons[1].code)]
    fit = chips.fit(of.demand(pod_struct(a[0])))  # type: ignore[arg-type]
    return [int(of.reasons[fit.code - 1].code) if fit.code else 0]


def _node_devices(receiver: Data, a: list[Any]) -> list[Any]:
    word = receiver["nodeRegisterAnno"].removeprefix("hami.io/node-register-")
    resource = f"huawei.com/{word}"
    node = from_manifest(Node, {**a[0], "status": {"allocatable": {resource: "1"}}})
    of = _ascend({"CommonWord": word, "ResourceName": resource})
    chips = of.cards(node)
    assert chips is not None, "the data contains chips"
    found = read_chips((node.metadata.annotations or {})[receiver["nodeRegisterAnno"]])
    out = [{"ID": c.id, "Count": c.count, "Devmem": c.devmem, "Devcore": c.devcore} for c in found]
    return [out, chips.core_mode, None]


def _fit(_: Any, a: list[Any]) -> list[Any]:
    request, device, core_mode = a
    wanted = ChipRequest(request.get("Nums", 1), request.get("Memreq", 0), request.get("Coresreq", 0))
    able = bool(device.get("hamiVnpuCore"))
    return [fits(wanted, _chip(device["DeviceInfo"]), _use(device.get("DeviceUsage") or {}), core_mode, able)]


_ASCEND_TIMES = ("predicate-time", "hami.io/vgpu-time", "hami.io/bind-time")


def _ascend_allocate(receiver: Data, a: list[Any]) -> list[Any]:
    of, chips = _chips(receiver)
    task = _task(a[1])
    taken = chips.take(of.demand(task.pod) or ChipDemand(()), task)
    return [{**taken.annotations, **dict.fromkeys(of.times(0), "")}, of.name]


def _ascend_allocated(expected: Data) -> list[Any]:
    reservation = expected["result"][0]
    return [reservation["Annotations"] | dict.fromkeys(_ASCEND_TIMES, ""), reservation["DeviceType"]]


def _ascend_release(_: Any, a: list[Any]) -> list[Any]:
    annotations = a[1]["metadata"]["annotations"]
    if annotations.get("hami.io/bind-phase") == "success":
        return [None]
    word = next(k for k in annotations if k.endswith("-devices-allocated"))[
        len("hami.io/") : -len("-devices-allocated")
    ]
    of = _ascend({"CommonWord": word})
    taken = AscendChips(of, "n", False, []).take(ChipDemand(()), _task(a[1]))
    return [_keys(taken.annotations, of.times(0))]


def _ascend_released(expected: Data) -> list[Any]:
    reservation = expected["result"][0]
    return [None if reservation is None else reservation["Annotations"]]


ADAPTERS: Adapters = {
    "gpushare.getDevicesIdleGPUMemory": lambda r, a: [{str(k): v for k, v in _gpus(a[0]).idle_memory().items()}],
    "gpushare.getGPUMemoryOfPod": lambda r, a: [amount_of(pod_struct(a[0]), names.GPU_MEMORY)],
    "gpushare.getGPUNumberOfPod": lambda r, a: [amount_of(pod_struct(a[0]), names.GPU_NUMBER)],
    "gpushare.predicateGPUbyMemory": _by_memory,
    "gpushare.GetGPUIndex": lambda r, a: [card_numbers(_task(a[0]))],
    "gpushare.NewGPUDevices": lambda r, a: [GpuShare(False, exact=False).cards(from_manifest(Node, a[1]))],
    "vgpu.NewGPUDevices": lambda r, a: [Vgpu(VgpuConfig(), "").cards(from_manifest(Node, a[1]))],
    "gpushare.GPUDevices.Release": Adapter(
        _gpu_release, lambda expected: [expected["result"][0], *receiver_after(expected)]
    ),
    "vgpu.addMigUsed": _mig_used(+1),
    "vgpu.subMigUsed": _mig_used(-1),
    "vgpu.GPUDevices.addResource": Adapter(_add_resource, _added),
    "vgpu.checkNodeGPUSharingPredicateAndScore": Adapter(_check_node, _checked),
    "vgpu.getPodGroupKey": lambda r, a: [group_key(pod_struct(a[0]))],
    "vgpu.newGPUUUIDFilter": lambda r, a: [
        _not_empty({"allowlist": sorted((c := constraints_of(a[0] or {})).uuids), "denylist": sorted(c.not_uuids)})
    ],
    "vgpu.gpuUUIDFilter.matches": lambda r, a: [
        Constraints(
            uuids=frozenset(r.get("allowlist") or ()), not_uuids=frozenset(r.get("denylist") or ())
        ).accept_uuid(a[0])
    ],
    "vgpu.checkGPUtype": lambda r, a: [constraints_of(a[0] or {}).accept_type(a[1])],
    "vgpu.decodeContainerDevices": lambda r, a: [[_device_out(d) for d in read_assigned(a[0])]],
    "vgpu.deviceHasPodFromSameGroup": lambda r, a: [
        bool(a[1]) and any(h.group == a[1] for h in _card(a[0]).pods.values())
    ],
    "vgpu.findMatch": _find_match,
    "vgpu.GPUScore": lambda r, a: [card_score(a[0], _card(a[1]))],
    "vgpu.resourcereqs": _requests,
    "vgpu.HAMICoreFactory.AddPod": Adapter(_core_add, _first_card_after),
    "vgpu.HAMICoreFactory.SubPod": Adapter(_core_sub, _first_card_after),
    "vgpu.HAMICoreFactory.TryAddPod": _core_try,
    "vgpu.decodeMIGID": _decode_mig,
    "vgpu.GPUDevices.Release": Adapter(_vgpu_release, lambda expected: expected["result"][:1]),
    "vgpu.GPUDevices.FilterNode": Adapter(_filter, _filtered),
    "vgpu.GPUDevices.ScoreNode": _score,
    "deviceshare.New": Adapter(
        lambda r, a: [(p := Deviceshare(a[0]).arguments).policy, p.weight],
        lambda expected: [expected["result"][0]["schedulePolicy"], expected["result"][0]["scheduleWeight"]],
    ),
    "deviceshare.exclusiveGPUDevices.reservedGPUsForPod": _reserved,
    "deviceshare.exclusiveGPUDevices.capGPUs": Adapter(_capped, lambda expected: [sorted(expected["result"][0])]),
    "deviceshare.exclusiveGPUDevices.restoreGPUs": Adapter(_restored, lambda expected: [[]]),
    "deviceshare.loadGPUExclusiveConfig": lambda r, a: [_not_empty({"rules": _rules((a[0] or {}).get(_RULES))})],
    "deviceshare.parseExclusiveRules": lambda r, a: [_rules(a[0]) if a[0] is not None else []],
    "deviceshare.matchingRules": lambda r, a: [
        list(Vgpu(VgpuConfig(), "", _rules_of({"rules": a[1]})).rules_of(pod_struct(a[0])))
    ],
    "deviceshare.podMatchesRule": lambda r, a: [
        bool(Vgpu(VgpuConfig(), "", [a[1].get("labels") or {}]).rules_of(pod_struct(a[0])))
    ],
    "hami.AscendDevices.Allocate": Adapter(_ascend_allocate, _ascend_allocated),
    "hami.AscendDevice.getNodeDevices": _node_devices,
    "hami.AscendDevices.FilterNode": Adapter(_ascend_filter, lambda expected: expected["result"][:1]),
    "hami.AscendDevices.AddResource": Adapter(_ascend_add, _ascend_added),
    "hami.CalScore": lambda r, a: [chip_score(a[0], _use(a[1]), a[2].get("Devmem", 0))],
    "hami.fit": _fit,
    "hami.AscendDevices.Release": Adapter(_ascend_release, _ascend_released),
    "hami.AscendDevice.trimMemory": lambda r, a: list(template_of(a[0], _ascend(r["config"]).config)),
    "hami.verifyReq": Adapter(
        lambda r, a: [
            bool(unservable(ChipRequest(a[0].get("Nums", 1), a[0].get("Memreq", 0)), _ascend(a[1]["config"]).config))
        ],
        lambda expected: [expected["result"][0] is not None],
    ),
}
