"""CEL selectors of devices: their variables, and the report without the CEL library."""

from __future__ import annotations

import pytest

from volcano_py.api import dra
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.claims.device_pools import Device
from volcano_py.scheduler.model.claims.device_selectors import NO_CEL, DeviceSelectors, SelectorError
from volcano_py.scheduler.noderules.devices import dynamic_resources
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

SPEC = dra.Device(
    name="d0",
    attributes={
        "model": dra.DeviceAttribute(string="A100"),
        "other.example.com/numa": dra.DeviceAttribute(int_=1),
        "driverVersion": dra.DeviceAttribute(version="1.10.0"),
        "ecc": dra.DeviceAttribute(bool_=True),
    },
    capacity={"memory": dra.DeviceCapacity(value="80Gi")},
)
DEVICE = Device(("gpu.example.com", "p", "d0"), SPEC, (), "n", None, False, b"content")


def accepts(expression: str) -> bool:
    return DeviceSelectors().accept([dra.DeviceSelector(cel=dra.CELSelector(expression=expression))], DEVICE)


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ('device.driver == "gpu.example.com"', True),
        ('device.attributes["gpu.example.com"].model == "A100"', True),
        ('device.attributes["other.example.com"].numa == 0', False),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) > 0', True),
        ('device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.9.2"))', True),
        ('device.attributes["gpu.example.com"].driverVersion.compareTo(semver("1.10.0-rc.1")) == 1', True),
        ('device.attributes["gpu.example.com"].ecc && !device.allowMultipleAllocations', True),
        ('"speed" in device.attributes["missing.example.com"]', False),
        ('"not a boolean"', False),
    ],
)
def test_variables_of_an_expression(expression: str, answer: bool) -> None:
    assert accepts(expression) is answer


@pytest.mark.parametrize("expression", ["device.((", 'device.attributes["gpu.example.com"].speed == 1'])
def test_the_error_contains_the_expression(expression: str) -> None:
    with pytest.raises(SelectorError, match="CEL expression"):
        accepts(expression)


def test_without_the_library_the_pod_waits_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic_resources, "can_select", lambda: False)
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    claimed = {"resourceClaims": [{"name": "c", "resourceClaimName": "one"}]}
    objects = [
        {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": "true"}}]}},
        {"kind": "ResourceClaim", "metadata": {"name": "one"}, "spec": {"devices": {"requests": [request]}}},
    ]
    world = Simulation(
        manifests({"nodes": {"n": {}}, "jobs": {"g": {"each": {"cpu": 1, "spec": claimed}}}, "objects": objects})
    )
    result = world.cycle(load(configuration(None), REGISTRY.actions))
    assert not result.bound and NO_CEL in result.waiting["default/g"]
