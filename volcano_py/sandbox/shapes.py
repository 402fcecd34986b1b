"""Node shapes: names and capacity of nodes, from texts such as `cpu=32,memory=256Gi,nvidia.com/gpu=8`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from volcano_py.sandbox import device_shapes
from volcano_py.sandbox.apiserver.apimachinery import quantity
from volcano_py.sandbox.devices import Devices, parse_devices, slice_of

DEFAULT = {"cpu": "32", "memory": "256Gi", "pods": "110"}


@dataclass(frozen=True, slots=True)
class NodeShape:
    """Capacity by resource name, labels, and devices of the nodes with this shape."""

    capacity: dict[str, str] = field(default_factory=lambda: dict(DEFAULT))
    labels: dict[str, str] = field(default_factory=dict)
    devices: tuple[Devices, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)
    """`{node}` in a value is replaced by the node's name."""


def parse(text: str) -> NodeShape:
    """Parse a shape `resource=amount,…`; ValueError with the remedy if it is invalid. pods=110 by default.

    `kind=count:model:memory` are devices of a DRA driver (see `devices`), `vgpu=…`, `gpu-share=…` and `vnpu=…` those of
    node agents (see `device_shapes`).
    """
    capacity: dict[str, str] = {}
    devices: list[Devices] = []
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, amount = part.partition("=")
        if name.strip() in device_shapes.NAMES:
            try:
                announced = device_shapes.announced(name.strip(), amount.strip())
            except ValueError as e:
                raise ValueError(f"node shape {text!r}: {part!r}: {e}") from None
            capacity |= announced.capacity
            annotations |= announced.annotations
            labels |= announced.labels
            continue
        if ":" in amount:
            devices.append(parse_devices(name.strip(), amount.strip()))
            continue
        try:
            if not equals:
                raise quantity.QuantityError
            capacity[name.strip()] = quantity.canonical(amount)
        except quantity.QuantityError:
            raise ValueError(
                f"node shape {text!r}: {part!r} is not resource=amount; write e.g. cpu=32,memory=256Gi"
            ) from None
    if not capacity and not devices:
        raise ValueError(f"node shape {text!r} contains no resource; write e.g. cpu=32,memory=256Gi")
    capacity = {**({} if capacity else DEFAULT), **capacity}
    capacity.setdefault("pods", "110")
    return NodeShape(capacity, labels, tuple(devices), annotations)


def manifest(name: str, shape: NodeShape) -> dict[str, Any]:
    """A Node object; its kubelet adds conditions, addresses and the usual labels."""
    metadata: dict[str, Any] = {"name": name, "labels": dict(shape.labels)}
    if shape.annotations:
        metadata["annotations"] = {key: text.replace("{node}", name) for key, text in shape.annotations.items()}
    return {
        "metadata": metadata,
        "spec": {},
        "status": {"capacity": dict(shape.capacity), "allocatable": dict(shape.capacity)},
    }


def numbered(count: int, shapes: list[NodeShape]) -> list[dict[str, Any]]:
    """`count` nodes named node-0, node-1, …, with the shapes in turn."""
    if count < 0:
        raise ValueError(f"nodes: {count} is negative; use 0 or more")
    width = len(str(max(count - 1, 0)))
    shapes = shapes or [NodeShape()]
    return [manifest(f"node-{index:0{width}d}", shapes[index % len(shapes)]) for index in range(count)]


def published(nodes: list[dict[str, Any]], shapes: list[NodeShape]) -> list[dict[str, Any]]:
    """The ResourceSlices of numbered nodes."""
    shapes = shapes or [NodeShape()]
    return [
        slice_of(node["metadata"]["name"], devices)
        for index, node in enumerate(nodes)
        for devices in shapes[index % len(shapes)].devices
    ]
