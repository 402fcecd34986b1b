"""A plugin that fails ends an attempt of its pod, and has no other effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.scheduler.profiles.all_points import CALLS, AllPoints
from tests.scheduler.profiles.trial import Trial
from volcano_py.profile_plugin import PodInfo, PostFilterResult
from volcano_py.scheduler.configuration.extensions import ExtensionError, profile_plugins
from volcano_py.scheduler.profiles.configuration import ProfilesConfigurationError
from volcano_py.scheduler.profiles.decisions import SCHEDULER_ERROR, Fail, ReportEvent
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS

POINTS = {
    "bind": {"disabled": [{"name": "*"}], "enabled": [{"name": "Faulty"}]},
    "queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "Faulty"}]},
}


POINTS_OF_ONE = {"disabled": [{"name": "AllPoints"}]}


class Faulty(AllPoints):
    """Behaves as a test sets at one method, for pods with the name `bad`."""

    name = "Faulty"
    fault: Callable[..., Any]
    at: str = ""

    def __getattribute__(self, method: str) -> Any:
        normal = super().__getattribute__(method)
        if method != type(self).at:
            return normal

        def called(*args: Any) -> Any:
            pod = next((a for a in args if isinstance(a, PodInfo)), None)
            return Faulty.fault(*args) if pod is not None and pod.name == "bad" else normal(*args)

        return called

    def bind(self, *args: Any) -> Any:
        super().bind(*args)
        return SUCCESS


def fails_always(*args: Any) -> Any:
    raise ValueError("fails_always")


RAISED = f"raised ValueError: fails_always (profiles/test_faults.py:{fails_always.__code__.co_firstlineno + 1})"


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    CALLS.clear()
    yield
    Faulty.at = ""


def trial() -> Trial:
    t = Trial(Faulty, points=POINTS)
    t.node("n1")
    t.node("n2")
    return t


BEFORE = ["pre_enqueue", "pre_filter", "filter", "pre_score", "score", "normalize"]
AFTER = ["reserve", "permit", "pre_bind", "bind"]
NAMES = {"normalize": "NormalizeScore"} | {
    m: "".join(w.capitalize() for w in m.split("_")) for m in (*BEFORE[:-1], *AFTER)
}


RAISES = [(method, fails_always, "raised ValueError: fails_always") for method in (*BEFORE, *AFTER)]
ANSWERS = [(method, lambda *a: 7.5, "") for method in (*BEFORE, *AFTER) if method != "normalize"]


@pytest.mark.parametrize(("method", "fault", "text"), [*RAISES, *ANSWERS])
def test_a_plugin_that_raises_or_returns_an_invalid_result(method: str, fault: Callable[..., Any], text: str) -> None:
    Faulty.at, Faulty.fault = method, fault
    t = trial()
    t.pod("bad")
    t.pod("good")
    t.settle()
    t.tick(3)
    assert t.settle() == {"good": "n2"}
    fails = [d for d in t.decided if isinstance(d, Fail)] + [d for d in t.scheduler.tick(t.now) if isinstance(d, Fail)]
    assert {(d.pod.name, d.reason) for d in fails} == {("bad", SCHEDULER_ERROR)}
    assert fails[0].message.startswith(f'running {NAMES[method]} plugin "Faulty": {text}')
    if method in AFTER:
        assert "unreserve bad n2" in CALLS
    t.check()


@pytest.mark.parametrize(
    ("method", "fault", "message"),
    [
        ("score", lambda *a: 500, 'running NormalizeScore plugin "Faulty": the score 166 is outside of 0 to 100'),
        ("score", lambda *a: True, 'running Score plugin "Faulty": returned bool, not int'),
        (
            "normalize",
            lambda s, p, scores: scores.update(n9=1),
            "running NormalizeScore plugin \"Faulty\": 'n9' was not in the nodes to score, or its score is missing",
        ),
        (
            "post_filter",
            lambda *a: PostFilterResult(SUCCESS, "n9"),
            "running PostFilter plugin \"Faulty\": the nominated node 'n9' does not exist",
        ),
        ("post_filter", fails_always, f'running PostFilter plugin "Faulty": {RAISED}'),
    ],
)
def test_invalid_results(method: str, fault: Callable[..., Any], message: str) -> None:
    Faulty.at, Faulty.fault = method, fault
    t = trial()
    t.pod("bad", labels={"fail": "filter"} if method == "post_filter" else {})
    t.pod("good")
    assert t.settle() == {"good": "n2"}
    assert t.messages() == {"bad": message}
    t.check()


def test_a_pre_filter_with_only_unknown_nodes_leaves_none() -> None:
    Faulty.at, Faulty.fault = "pre_filter", lambda *a: (["n9"], SUCCESS)
    t = trial()
    t.pod("bad")
    t.pod("good")
    assert t.settle() == {"good": "n2"}
    assert t.messages()["bad"].startswith("0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [Faulty]")
    t.check()


@pytest.mark.parametrize("method", ["unreserve", "post_bind"])
def test_a_fault_that_changes_nothing_is_an_event(method: str) -> None:
    Faulty.at, Faulty.fault = method, fails_always
    t = trial()
    t.pod("bad", labels={"fail": "preBind"} if method == "unreserve" else {})
    t.bind(t.run())
    t.decided += t.tick()
    point = "Unreserve" if method == "unreserve" else "PostBind"
    text = f'running {point} plugin "Faulty": {RAISED}'
    assert ReportEvent(t.pods["default/bad"], "Warning", "PluginFailed", text) in [
        d._replace(pod=t.pods["default/bad"]) if isinstance(d, ReportEvent) else d for d in t.decided
    ]
    t.check()


@pytest.mark.parametrize("answer", [fails_always, lambda *a: None, lambda *a: ("x", None)])
def test_a_queue_sort_that_fails_puts_the_pod_last(answer: Callable[..., Any]) -> None:
    Faulty.at, Faulty.fault = "sort_key", answer
    t = Trial(Faulty, points=POINTS)
    t.node("n1", cpu=1)
    t.pod("bad", priority=100, preemptionPolicy="Never")
    t.pod("good")
    t.pod("fine", priority=3)
    assert t.settle() == {"fine": "n1"}
    t.delete("fine")
    t.tick(3)
    assert t.settle() == {"good": "n1"}
    t.check()


def test_arguments_that_a_plugin_rejects_are_an_error_of_the_configuration() -> None:
    class Picky(AllPoints):
        name = "Picky"

        def __init__(self, arguments: Any, handle: Any) -> None:
            raise ValueError("hold must be below 5")

    with pytest.raises(ProfilesConfigurationError, match="default-scheduler, pluginConfig Picky: hold must be below 5"):
        Trial(Picky, points={"queueSort": {"disabled": [{"name": "Picky"}]}})
    for given, text in (({"hold": "x"}, "Expected `float`, got `str`"), ({"holds": 1}, "unknown field `holds`")):
        with pytest.raises(ProfilesConfigurationError, match=f"pluginConfig AllPoints: .*{text}"):
            Trial(AllPoints, points={"queueSort": POINTS_OF_ONE}, arguments={"AllPoints": given})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_of_that_name", "mine.py: ModuleNotFoundError"),
        (
            "from volcano_py.profile_plugin import *\nclass M(PostBind):\n  name = 'NodeName'\n"
            "  def post_bind(self, *a): pass",
            "NodeName is already registered",
        ),
    ],
)
def test_errors_name_the_plugin_file(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(ExtensionError, match=message):
        profile_plugins(str(tmp_path))


def test_plugins_of_a_folder_are_not_enabled_by_default(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from volcano_py.profile_plugin import PostBind\n"
        "class Mine(PostBind):\n  name = 'Mine'\n  def post_bind(self, *a): pass"
    )
    made: Mapping[str, Any] = profile_plugins(str(tmp_path))
    assert made["Mine"].default is False
