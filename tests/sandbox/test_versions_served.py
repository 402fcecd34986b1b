"""--kubernetes-version of the sandbox: versions without the kinds of later ones."""

from __future__ import annotations

import pytest

from volcano_py.sandbox.apiserver.assembly import new_api
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.shapes import parse


def test_devices_need_a_version_that_serves_their_kinds() -> None:
    shapes = [parse("cpu=4,gpu=1:A100:80Gi")]
    with pytest.raises(ValueError, match=r"--kubernetes-version 1\.33 has no devices of DRA drivers"):
        Sandbox(1, node_shapes=shapes, kubernetes_version="1.33")
    assert Sandbox(1, node_shapes=shapes, kubernetes_version="1.34").kubernetes_version == "1.34"


@pytest.mark.parametrize(
    ("version", "policies", "devices"), [("1.33", False, False), ("1.35", False, True), ("1.36", True, True)]
)
def test_a_version_lacks_the_kinds_of_later_ones(version: str, policies: bool, devices: bool) -> None:
    registry = new_api(kubernetes=version).registry
    assert (registry.find("admissionregistration.k8s.io", "mutatingadmissionpolicies") is not None) == policies
    assert (registry.find("resource.k8s.io", "resourceclaims") is not None) == devices
    assert ("resource.k8s.io" in registry.groups) == devices, "discovery does not list an empty group"
    assert registry.find("admissionregistration.k8s.io", "validatingadmissionpolicies") is not None
