"""KubeSchedulerConfiguration: the order of plugins, weights, and clear errors."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.scheduler.profiles.configuration import ProfileConfig, ProfilesConfigurationError, load


def profile(**plugins: Any) -> ProfileConfig:
    return load({"profiles": [{"plugins": plugins}]}).profiles[0]


def test_without_profiles_there_is_the_default_one() -> None:
    default = load({}).profiles[0]
    assert default.name == "default-scheduler"
    assert default.points["queueSort"] == ["PrioritySort"]
    assert default.points["postFilter"] == ["DynamicResources", "DefaultPreemption"]
    assert default.weights["TaintToleration"] == 3
    assert default.points["permit"] == []


def test_a_default_plugin_that_is_configured_again_keeps_its_place() -> None:
    again = profile(multiPoint={"enabled": [{"name": "NodeAffinity", "weight": 7}]})
    assert again.points == load({}).profiles[0].points
    assert again.weights["NodeAffinity"] == 7


def test_plugins_listed_at_a_point_come_first() -> None:
    chosen = profile(score={"enabled": [{"name": "ImageLocality", "weight": 5}]})
    assert chosen.points["score"][0] == "ImageLocality"
    assert chosen.weights["ImageLocality"] == 5


def test_star_at_a_point_leaves_only_what_is_listed_there() -> None:
    chosen = profile(score={"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]})
    assert chosen.points["score"] == ["NodeResourcesFit"]
    assert "NodeAffinity" in chosen.points["filter"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"profiles": [{"plugins": {"filters": {}}}]}, "unknown point 'filters'; did you mean filter?"),
        (
            {"profiles": [{"plugins": {"filter": {"enabled": [{"name": "NodePort"}]}}}]},
            "profile default-scheduler, filter: unknown plugin 'NodePort'; did you mean NodePorts?",
        ),
        ({"profiles": [{"plugins": {"score": {"enabled": [{"name": "NodePorts"}]}}}]}, "does not implement this point"),
        ({"profiles": [{"plugins": {"bind": {"disabled": [{"name": "*"}]}}}]}, "bind has no plugin"),
        ({"profiles": [{"plugins": {"queueSort": {"disabled": [{"name": "*"}]}}}]}, "queueSort needs exactly one"),
        ({"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]}, "two profiles have this schedulerName"),
        ({"profiles": [{"schedulerName": ""}]}, "empty schedulerName"),
        (
            {"profiles": [{"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 101}]}}}]},
            "weight 101 of ImageLocality is out of range",
        ),
        (
            {"profiles": [{"pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": "x"}}]}]},
            "pluginConfig InterPodAffinity: Expected `int`, got `str`",
        ),
        ({"podInitialBackoffSeconds": 5, "podMaxBackoffSeconds": 2}, "podInitialBackoffSeconds"),
        ({"kind": "Other"}, "write KubeSchedulerConfiguration"),
    ],
)
def test_errors_name_profile_point_and_remedy(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ProfilesConfigurationError) as e:
        load(document)
    assert message in str(e.value)
