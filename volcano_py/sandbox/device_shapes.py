"""Devices of node agents, in node shapes. For devices of DRA drivers see `devices`.

gpu=8:A100:80Gi         8 cards of 80Gi that HAMi shares
gpu=2:A30:24Gi:mig      the same, partitioned into MIG instances
gpu-share=4:16          4 cards with 16 units of memory each, shared by memory or allocated as a whole
"""

from __future__ import annotations

from volcano_py.sandbox.apiserver.apimachinery import quantity

_SHARES = 10
"""The number of pods that may share a card, HAMi's default."""
_MIB = 1 << 20
NAMES = ("vgpu", "gpu-share")


def announced(name: str, value: str) -> tuple[dict[str, str], dict[str, str]]:
    """Capacity and annotations of one device part of a shape; `{node}` in an annotation stands for the node's name.

    Raises ValueError with the form that is expected.
    """
    parts = value.split(":")
    return _shared_cards(parts) if name == "gpu-share" else _hami(parts)


def _shared_cards(parts: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    if len(parts) != 2 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ValueError("write gpu-share=<cards>:<memory of each>, e.g. gpu-share=4:16")
    cards, memory = map(int, parts)
    return {"volcano.sh/gpu-number": str(cards), "volcano.sh/gpu-memory": str(cards * memory)}, {}


def _hami(parts: list[str]) -> tuple[dict[str, str], dict[str, str]]:
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
    return capacity, {"volcano.sh/node-vgpu-register": records}
