"""The sandbox gives the recorded answers of kube-apiserver."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import yaml

from tests.sandbox.answers.playing import FOLDER, VERSIONS, Peer, Scenario, differences, scenarios
from tests.sandbox.clients import http
from volcano_py.sandbox.apiserver.apimachinery import features
from volcano_py.sandbox.cluster import Sandbox

CASES = [
    pytest.param(version, each, id=f"{version}-{each.name}") for version in VERSIONS for each in scenarios(version)
]


@cache
def recorded(version: str) -> dict[str, Any]:
    """The answers of kube-apiserver, by scenario."""
    loaded: dict[str, Any] = yaml.load((FOLDER / VERSIONS[version]).read_text(), yaml.CSafeLoader)
    return loaded


@pytest.mark.parametrize(("version", "scenario"), CASES)
async def test_the_sandbox_answers_as_kube_apiserver(version: str, scenario: Scenario) -> None:
    gates = ",".join(f"{gate}=true" for gate in features.OF_VERSION[version]) if scenario.gates == "all" else ""
    options: Any = {"hollow": False, "controllers": None, "volcano_admission": False, "first_queues": False}
    async with (
        Sandbox(0, kubernetes_version=version, feature_gates=gates, **options) as sandbox,
        http(sandbox) as client,
    ):
        own = await Peer(client.session, sandbox.url, {"Authorization": f"Bearer {sandbox.token}"}).play(scenario)
    real = recorded(version)[scenario.name]
    found = [
        f"{number}: {step}\n  {line}"
        for number, (step, *pair) in enumerate(zip(scenario.steps, real, own, strict=True))
        for line in differences(*pair)
    ]
    assert not found, "\n".join(found)
