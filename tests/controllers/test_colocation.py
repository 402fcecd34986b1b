"""ColocationConfigurations: which one a pod has, and its annotations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.controllers.world import World
from volcano_py.api import kinds
from volcano_py.api.codec import from_manifest
from volcano_py.api.config import ColocationConfiguration
from volcano_py.api.core import Pod
from volcano_py.controllers import colocation

Manifest = dict[str, Any]
NAME, CONFIG = "volcano.sh/colocation-config-name", "volcano.sh/colocation-config"


def configuration(name: str, selector: Manifest | None, created: str = "2026-01-01T00:00:00Z", **qos: int) -> Manifest:
    return {
        "apiVersion": kinds.COLOCATIONCONFIGURATION.api_version,
        "kind": "ColocationConfiguration",
        "metadata": {"name": name, "namespace": "lab", "creationTimestamp": created},
        "spec": {"selector": selector, "memoryQos": qos or {"highRatio": 90}},
    }


def pod(name: str, namespace: str = "lab", **labels: str) -> Manifest:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"schedulerName": "other"}}


def chosen(selectors: dict[str, Manifest | None], **labels: str) -> str:
    found = [from_manifest(ColocationConfiguration, configuration(name, one)) for name, one in selectors.items()]
    best = colocation.find(from_manifest(Pod, pod("p", **labels)), found)
    return best.metadata.name if best else ""


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert chosen({"none": None}) == ""
    assert chosen({"all": {}}) == "all"
    assert chosen({"b": {"matchLabels": {"app": "x"}}, "a": {}}, app="x") == "a"
    assert chosen({"a": {"matchLabels": {"app": "y"}}}, app="x") == ""


def test_the_agent_gets_all_that_differs_from_zero() -> None:
    made = from_manifest(ColocationConfiguration, configuration("c", {}, highRatio=100, lowRatio=0, minRatio=5))
    assert json.loads(colocation.written(made)) == {"memoryQos": {"highRatio": 100, "minRatio": 5}}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(colocation, "DELAY_SECONDS", 0.05)


def annotations(world: World, name: str) -> tuple[str | None, str | None]:
    annotations = (world.api.get(kinds.POD, name) or {})["metadata"].get("annotations") or {}
    return annotations.get(NAME), annotations.get(CONFIG)


async def test_pods_follow_labels_and_configurations(world: World) -> None:
    world.api.put(pod("p", app="x"))
    world.api.put(pod("q", app="y"))
    world.api.clock -= 100
    world.api.put(configuration("old", {"matchLabels": {"app": "x"}}, highRatio=70))
    await world.until(lambda: annotations(world, "p") == ("old", '{"memoryQos":{"highRatio":70}}'))
    world.api.clock += 100
    world.api.put(configuration("new", {}, highRatio=80))
    await world.until(lambda: annotations(world, "p")[0] == annotations(world, "q")[0] == "new")
    world.api.delete(kinds.COLOCATIONCONFIGURATION, "new")
    await world.until(lambda: annotations(world, "p")[0] == "old" and annotations(world, "q") == (None, "{}"))
    world.api.change(kinds.POD, "p", {"metadata": {"labels": {"app": "z"}}})
    await world.until(lambda: annotations(world, "p") == (None, "{}"))
    await world.quiet()
    assert annotations(world, "q") == (None, "{}")


async def test_a_selector_that_cannot_be_used_is_reported(world: World) -> None:
    odd = {"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "app", "operator": "Like"}]}
    world.api.put(configuration("bad", odd))
    world.api.put(configuration("good", {}))
    world.api.put(pod("p", app="x"))
    await world.until(lambda: annotations(world, "p")[0] == "good")
    await world.until(lambda: world.events("InvalidSelector"))
