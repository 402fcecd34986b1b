"""Ledgers of devices under random histories: no device is assigned twice, and all are released.

`LEDGER_EXAMPLES=5000` sets the number of histories; a normal run has few.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node, Pod
from volcano_py.scheduler.model.jobs.spec_class import SpecClasses
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeTable
from volcano_py.scheduler.plugins.deviceshare.device_config import AscendConfig, AscendTemplate, VgpuConfig, read
from volcano_py.scheduler.plugins.deviceshare.gpu_share import GpuCards, GpuShare
from volcano_py.scheduler.plugins.deviceshare.hami_ascend import Ascend, AscendChips
from volcano_py.scheduler.plugins.deviceshare.vgpu import Vgpu, VgpuCards

EXAMPLES = int(os.environ.get("LEDGER_EXAMPLES", "60"))
_CLASSES = SpecClasses(NodeTable())

MIG = read(
    """
    nvidia:
      knownMigGeometries:
      - models: [A30]
        allowedGeometries:
        - {group: small, geometries: [{name: 1g, memory: 6, count: 3}, {name: 2g, memory: 12, count: 1}]}
        - {group: large, geometries: [{name: 4g, memory: 24, count: 1}]}
    """
).nvidia
CHIP = AscendConfig(
    word="Ascend310P",
    resource="huawei.com/Ascend310P",
    memory_resource="huawei.com/Ascend310P-memory",
    allocatable=21,
    capacity=24,
    templates=[AscendTemplate("vir01", 3), AscendTemplate("vir02", 6), AscendTemplate("vir04", 12)],
)


def node(annotations: dict[str, str], **resources: int) -> Node:
    amounts = {name.replace("__", "/").replace("_", "-"): str(amount) for name, amount in resources.items()}
    have = {f"volcano.sh/{name}" if "/" not in name else name: amount for name, amount in amounts.items()}
    manifest = {
        "metadata": {"name": "n", "annotations": annotations},
        "status": {"allocatable": have, "capacity": have},
    }
    found: Node = from_manifest(Node, manifest)
    return found


def vgpu_node(mode: str) -> Node:
    cards = "".join(f"GPU-{i},4,24,NVIDIA-A30,true,{mode}:" for i in range(3))
    return node({"volcano.sh/node-vgpu-register": cards}, vgpu_number=12, vgpu_memory=72, vgpu_cores=300)


def task(name: str, containers: list[dict[str, int]], annotations: dict[str, str] | None = None) -> Task:
    pod: Pod = from_manifest(
        Pod,
        {
            "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": annotations or {}},
            "spec": {"containers": [{"resources": {"limits": {k: str(v) for k, v in c.items()}}} for c in containers]},
        },
    )
    return Task(pod, _CLASSES.of(pod), "")


def check_vgpu(cards: VgpuCards) -> None:
    for card in cards.cards:
        have, held = card.announced, card.pods.values()
        assert (card.number, card.memory, card.cores) == tuple(
            sum(getattr(h, field) for h in held) for field in ("number", "memory", "cores")
        ), "the sums are not those of the pods"
        assert 0 <= card.number <= have.number and 0 <= card.memory <= have.memory and 0 <= card.cores <= 100
        assert all(users == 1 for users in card.slots.values()), "a MIG instance has two users"
        assert len({slot.group for slot in card.slots}) <= 1, "instances of two geometries"


def check_gpus(cards: GpuCards) -> None:
    for pods in cards._pods.values():
        assert sum(pods.values()) <= cards._memory
        assert not cards._of.by_number or len(pods) <= 1


def check_chips(cards: AscendChips) -> None:
    for chip in cards.chips.values():
        used = cards.used.get(chip.id)
        held = [uses[chip.id] for uses in cards.pods.values() if chip.id in uses]
        if used is None:
            assert not held
            continue
        sums = (sum(u.users for u in held), sum(u.memory for u in held), sum(u.cores for u in held))
        assert tuple(used) == sums
        assert used.users <= chip.count and used.memory <= chip.devmem


def amounts(**limits: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, int]]:
    named = {f"volcano.sh/{name.replace('_', '-')}": values for name, values in limits.items()}
    return st.fixed_dictionaries({}, optional=named)


VGPU_REQUEST = amounts(
    vgpu_number=st.integers(1, 3), vgpu_memory=st.integers(0, 26), vgpu_cores=st.sampled_from([0, 10, 50, 100])
)
ASCEND_REQUEST = st.fixed_dictionaries(
    {"huawei.com/Ascend310P": st.integers(1, 2)}, optional={"huawei.com/Ascend310P-memory": st.integers(1, 25)}
)
CHIPS = "[" + ",".join(f'{{"id":"c{i}","count":7,"devmem":21,"devcore":8}}' for i in range(2)) + "]"

KINDS: dict[str, tuple[Any, Node, Any, st.SearchStrategy[Any]]] = {
    "memory": (
        GpuShare(False, exact=True),
        node({}, gpu_memory=30, gpu_number=3),
        check_gpus,
        amounts(gpu_memory=st.integers(1, 11)),
    ),
    "whole cards": (
        GpuShare(True, exact=True),
        node({}, gpu_memory=30, gpu_number=3),
        check_gpus,
        amounts(gpu_number=st.integers(1, 3)),
    ),
    "vgpu": (Vgpu(VgpuConfig(), "binpack"), vgpu_node("hami-core"), check_vgpu, VGPU_REQUEST),
    "vgpu, spread": (Vgpu(VgpuConfig(), "spread"), vgpu_node("hami-core"), check_vgpu, VGPU_REQUEST),
    "mig": (Vgpu(MIG, ""), vgpu_node("mig"), check_vgpu, VGPU_REQUEST),
    "ascend": (
        Ascend(CHIP, False, "binpack", exact=True, healthy=True),
        node({"hami.io/node-register-Ascend310P": CHIPS}, huawei__x=1, **{"huawei.com__Ascend310P": 2}),
        check_chips,
        ASCEND_REQUEST,
    ),
}

HISTORY = st.lists(st.tuples(st.sampled_from(["take", "release", "bind", "evict", "restore"]), st.integers(0, 7)))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=EXAMPLES)
@given(data=st.data(), history=HISTORY)
def test_no_device_is_assigned_twice_and_all_are_released(
    kind: str, data: st.DataObject, history: list[tuple[str, int]]
) -> None:
    type_, on, check, request = KINDS[kind]
    cards = type_.cards(on)
    assert cards is not None
    empty = cards.state()
    pods = [task(f"p{i}", data.draw(st.lists(request, min_size=1, max_size=2))) for i in range(8)]
    placed: dict[int, dict[str, str]] = {}
    evicted: dict[int, dict[str, str]] = {}
    for what, i in history:
        pod, before = pods[i], cards.state()
        demand = type_.demand(pod.pod)
        if what == "take" and i not in placed and i not in evicted and demand is not None:
            fits = cards.fit(demand).code == 0
            assert cards.state() == before, "an evaluation has changed the cards"
            taken = cards.take(demand, pod)
            assert (taken.error is None) is fits
            if taken.error is None:
                placed[i] = taken.annotations
            else:
                assert cards.state() == before, "a failure has left something behind"
        elif what == "release" and i in placed:
            cards.release(pod)
            del placed[i]
        elif what == "bind" and i in placed:
            pod.assigned = placed[i]
        elif what == "evict" and i in placed and pod.assigned is not None:
            cards.release(pod)
            evicted[i] = placed.pop(i)
        elif what == "restore" and i in evicted:
            copy = cards.clone()
            copy.count(pod)
            if all(fits_in(check, copy)):
                cards = copy
                placed[i] = evicted.pop(i)
        check(cards)
    again = type_.cards(on)
    for i, assigned in placed.items():
        pods[i].assigned = assigned
        again.count(pods[i])
    assert again.state() == cards.state(), "the annotations do not contain what is used"
    for i in placed:
        cards.release(pods[i])
    assert cards.state() == empty


def fits_in(check: Any, cards: Any) -> list[bool]:
    """Whether cards keep their limits."""
    try:
        check(cards)
    except AssertionError:
        return [False]
    return [True]
