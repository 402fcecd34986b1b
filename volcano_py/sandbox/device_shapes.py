"""Devices of node agents, in node shapes. For devices of DRA drivers see `devices`.

gpu=8:A100:80Gi         8 cards of 80Gi that HAMi shares
gpu=2:A30:24Gi:mig      the same, partitioned into MIG instances
gpu-share=4:16          4 cards with 16 units of memory each, shared by memory or allocated as a whole
vnpu=2:310P             2 Ascend 310P chips that MindCluster divides, see `npu`
numa=2:8                2 NUMA nodes of 8 CPUs each, see `numa`
"""

from __future__ import annotations

from typing import NamedTuple

from volcano_py.sandbox import npu, numa
from volcano_py.sandbox.apiserver.apimachinery import quantity

_SHARES = 10
"""The number of pods that may share a card, HAMi's default."""
_MIB = 1 << 20
_MOST_CHIPS = 64


class Announced(NamedTuple):
    """What a node announces; `{node}` in an annotation stands for the node's name."""

    capacity: dict[str, str]
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


def announced(name: str, value: str) -> Announced:
    """The announcement of one device part of a shape. Raises ValueError with the form that is expected."""
    return _FORMS[name](value.split(":"))


def _chips(parts: list[str]) -> Announced:
    if len(parts) != 2 or parts[1] != "310P" or not parts[0].isdecimal() or not 0 < int(parts[0]) <= _MOST_CHIPS:
        raise ValueError(f"write vnpu=<chips>:310P, e.g. vnpu=2:310P, at most {_MOST_CHIPS}")
    return Announced(*npu.announced(int(parts[0])), npu.LABELS)


def _shared_cards(parts: list[str]) -> Announced:
    if len(parts) != 2 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ValueError("write gpu-share=<cards>:<memory of each>, e.g. gpu-share=4:16")
    cards, memory = map(int, parts)
    return Announced({"volcano.sh/gpu-number": str(cards), "volcano.sh/gpu-memory": str(cards * memory)})


def _hami(parts: list[str]) -> Announced:
    try:
        cards, memory = int(parts[0]), int(quantity.parse(parts[2])) // _MIB
        if not 3 <= len(parts) <= 4 or cards < 1 or memory < 1 or (len(parts) == 4 and parts[3] != "mig"):
            raise ValueError
    except (ValueError, IndexError, quantity.QuantityError):
        raise ValueError("write vgpu=<cards>:<type>:<memory of each>[:mig], e.g. vgpu=8:A100:80Gi") from None
    mode = "mig" if len(parts) == 4 else "hami-core"
    records = "".join(f"GPU-{{node}}-{i},{_SHARES},{memory},NVIDIA-{parts[1]},true,{mode}:" for i in range(cards))
    capacity = {
        "volcano.sh/vgpu-number": str(cards * _SHARES),
        "volcano.sh/vgpu-memory": str(cards * memory),
        "volcano.sh/vgpu-cores": str(cards * 100),
    }
    return Announced(capacity, {"volcano.sh/node-vgpu-register": records})


def _numa(parts: list[str]) -> Announced:
    text = ":".join(parts)
    layout = numa.parse(text)
    return Announced({"cpu": str(layout.nodes * layout.cpus)}, {numa.LAYOUT: text})


_FORMS = {"vgpu": _hami, "gpu-share": _shared_cards, "vnpu": _chips, "numa": _numa}
NAMES = tuple(_FORMS)
