"""A driver of dynamic resources without hardware: node shapes become ResourceSlices and DeviceClasses.

`gpu=8:A100:80Gi` in a shape is eight devices of the class `gpu.sandbox`, each with the attributes `model` and `index`
and the capacity `memory`. The model and the memory are optional: `nic=2:`. The class provides the extended resource
`sandbox/gpu`. With `gpu=8:A100:80Gi:later` the devices have a binding condition: they are ready only after their
allocation (`controllers.resource.device_driver`).

Kubernetes: a DRA driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from volcano_py.sandbox.apiserver.apimachinery import quantity

Object = dict[str, Any]

DOMAIN = "sandbox"
READY, FAILED = "sandbox/Ready", "sandbox/Failed"
"""The binding conditions of devices."""


class Devices(NamedTuple):
    """Equal devices of each node of a shape."""

    kind: str
    number: int
    model: str = ""
    memory: str = ""
    later: bool = False
    """Whether they become ready only after their allocation."""

    @property
    def driver(self) -> str:
        """The name of the driver, and of the DeviceClass."""
        return f"{self.kind}.{DOMAIN}"


def parse_devices(kind: str, text: str) -> Devices:
    """`count:model:memory:later`. Raises ValueError."""
    count, _, rest = text.partition(":")
    model, _, rest = rest.partition(":")
    memory, _, later = rest.partition(":")
    if (
        later not in ("", "later")
        or not count.isdigit()
        or int(count) > 128
        or not kind.replace("-", "").isalnum()
        or not kind.islower()
    ):
        raise ValueError(f"{kind}={text!r} is not a device shape; write e.g. gpu=8:A100:80Gi, at most 128")
    return Devices(kind, int(count), model.strip(), quantity.canonical(memory) if memory else "", bool(later))


def slice_of(node: str, devices: Devices) -> Object:
    """The ResourceSlice of the driver for one node."""
    rows: list[Object] = []
    for index in range(devices.number):
        row: Object = {"name": f"{devices.kind}-{index}", "attributes": {"index": {"int": index}}}
        if devices.model:
            row["attributes"]["model"] = {"string": devices.model}
        if devices.memory:
            row["capacity"] = {"memory": {"value": devices.memory}}
        if devices.later:
            row |= {"bindingConditions": [READY], "bindingFailureConditions": [FAILED]}
        rows.append(row)
    return {
        "metadata": {"name": f"{node}-{devices.driver}"},
        "spec": {
            "driver": devices.driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": rows,
        },
    }


def classes_of(all_devices: Sequence[Devices]) -> list[Object]:
    """A DeviceClass for each driver."""
    return [
        {
            "metadata": {"name": f"{kind}.{DOMAIN}"},
            "spec": {
                "selectors": [{"cel": {"expression": f'device.driver == "{kind}.{DOMAIN}"'}}],
                "extendedResourceName": f"{DOMAIN}/{kind}",
            },
        }
        for kind in sorted({devices.kind for devices in all_devices})
    ]
