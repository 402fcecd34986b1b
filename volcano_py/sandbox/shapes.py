"""Nodes of a sandbox: their names and what they offer, from texts such as `cpu=32,memory=256Gi,nvidia.com/gpu=8`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import quantity

DEFAULT = {"cpu": "32", "memory": "256Gi", "pods": "110"}


@dataclass(frozen=True, slots=True)
class NodeShape:
    """Capacity by resource name, and labels and taints of the nodes made from it."""

    capacity: dict[str, str] = field(default_factory=lambda: dict(DEFAULT))
    labels: dict[str, str] = field(default_factory=dict)


def parse(text: str) -> NodeShape:
    """A shape from `resource=amount,…`; ValueError with the remedy when it is none. pods=110 unless given."""
    capacity: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, amount = part.partition("=")
        try:
            if not equals:
                raise quantity.QuantityError
            capacity[name.strip()] = quantity.canonical(amount)
        except quantity.QuantityError:
            raise ValueError(
                f"node shape {text!r}: {part!r} is not resource=amount; write e.g. cpu=32,memory=256Gi"
            ) from None
    if not capacity:
        raise ValueError(f"node shape {text!r} names no resource; write e.g. cpu=32,memory=256Gi")
    capacity.setdefault("pods", "110")
    return NodeShape(capacity)


def manifest(name: str, shape: NodeShape) -> dict[str, Any]:
    """A Node object; its kubelet adds conditions, addresses and the usual labels."""
    return {
        "metadata": {"name": name, "labels": dict(shape.labels)},
        "spec": {},
        "status": {"capacity": dict(shape.capacity), "allocatable": dict(shape.capacity)},
    }


def numbered(count: int, shapes: list[NodeShape]) -> list[dict[str, Any]]:
    """`count` nodes named node-0, node-1, …, the shapes taken in turn."""
    if count < 0:
        raise ValueError(f"nodes: {count} is negative; give 0 or more")
    width = len(str(max(count - 1, 0)))
    shapes = shapes or [NodeShape()]
    return [manifest(f"node-{index:0{width}d}", shapes[index % len(shapes)]) for index in range(count)]
