"""kube-scheduler's extender webhooks in profiles: the calls, and the effect of responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.scheduler.profiles.trial import Trial
from volcano_py.scheduler.profiles.attempts.binding import LONGEST_BINDING
from volcano_py.scheduler.profiles.cluster_events import CallAnswered, PodChanged
from volcano_py.scheduler.profiles.configuration import ProfilesConfigurationError, load
from volcano_py.scheduler.profiles.decisions import Ask, BindPod, EvictPod
from volcano_py.scheduler.profiles.plugin_api.calls import Answer

URL = "http://extender"
Reply = Callable[[dict[str, Any]], Any]


def trial(**extender: Any) -> Trial:
    t = Trial(config={"extenders": [{"urlPrefix": URL, **extender}]})
    t.node("n1")
    t.node("n2")
    return t


def run(t: Trial, **replies: Reply | Answer) -> list[tuple[str, Any]]:
    """Respond to the calls; returns verbs and bodies. Bindings of the scheduler are executed."""
    called: list[tuple[str, Any]] = []
    todo = t.run()
    while todo:
        d = todo.pop(0)
        if isinstance(d, Ask):
            verb, body = d.call.url.removeprefix(URL + "/"), d.call.body()
            called.append((verb, body))
            reply = replies[verb]
            answer = reply if isinstance(reply, Answer) else Answer(reply(body))
            todo += t.scheduler.handle(CallAnswered(d.number, answer), t.now)
        elif isinstance(d, BindPod):
            todo += t.bind([d])
        t.decided += [d]
        todo += t.run()
    return called


def test_filter_receives_the_nodes_that_fit_and_rejects_some() -> None:
    t = trial(filterVerb="filter", nodeCacheCapable=True)
    t.node("n3", unschedulable=True)
    t.pod("a")
    called = run(t, filter=lambda q: {"nodenames": ["n2"], "failedNodes": {"n1": "n1 is tired"}})
    assert [(verb, q["Pod"]["metadata"]["name"], q["NodeNames"]) for verb, q in called] == [
        ("filter", "a", ["n1", "n2"])
    ]
    assert t.places() == {"a": "n2"}
    t.check()


def test_node_objects_and_keys_in_any_case() -> None:
    t = trial(filterVerb="filter")
    t.pod("a")
    called = run(t, filter=lambda q: {"Nodes": {"Items": q["Nodes"]["items"][1:]}, "FailedNodes": {}})
    assert [n["metadata"]["name"] for n in called[0][1]["Nodes"]["items"]] == ["n1", "n2"]
    assert t.places() == {"a": "n2"}


def test_reasons_are_in_the_message_and_unresolvable_nodes_are_not_preempted_on() -> None:
    t = trial(filterVerb="filter", nodeCacheCapable=True)
    t.pod("weak", node="n1")
    t.pod("a", priority=5)
    run(
        t,
        filter=lambda q: {"NodeNames": [], "FailedNodes": {"n2": "busy"}, "FailedAndUnresolvableNodes": {"n1": "old"}},
    )
    assert t.messages()["a"].startswith("0/2 nodes are available: 1 busy, 1 old.")
    assert not any(isinstance(d, EvictPod) for d in t.decided)


def test_prioritize_adds_to_the_scores() -> None:
    t = trial(prioritizeVerb="prioritize", weight=5, nodeCacheCapable=True)
    t.node("n1", cpu=64)
    t.pod("a")
    run(t, prioritize=lambda q: [{"Host": "n2", "Score": 10}, {"host": "n1", "score": 0}])
    assert t.places() == {"a": "n2"}


def test_bind_replaces_the_binding_of_the_scheduler() -> None:
    t = trial(bindVerb="bind")
    waiting = t.pod("a")
    called = run(t, bind=lambda q: {})
    node = called[0][1]["Node"]
    assert called[0][1] == {"PodName": "a", "PodNamespace": "default", "PodUID": "a", "Node": node}
    assert not any(isinstance(d, BindPod) for d in t.decided)
    t.pods[waiting.key] = waiting.on(node)
    t.scheduler.handle(PodChanged(waiting, t.pods[waiting.key]), t.now)
    assert "default/a" not in t.scheduler
    t.tick(LONGEST_BINDING)
    assert t.messages() == {}
    t.check()


def test_a_pod_that_the_extender_did_not_bind_is_retried() -> None:
    t = trial(bindVerb="bind")
    t.pod("a")
    run(t, bind=lambda q: {})
    assert t.scheduler.next_deadline() == LONGEST_BINDING
    t.tick(LONGEST_BINDING - 1)
    assert t.messages() == {}
    t.tick(1)
    assert "is not bound to n1 30 s after the plugin announced it" in t.messages()["a"]
    t.check()
    t.tick(2)
    assert [verb for verb, _ in run(t, bind=lambda q: {})] == ["bind"]
    t.check()


def test_preempt_chooses_among_the_candidates() -> None:
    t = trial(preemptVerb="preempt", nodeCacheCapable=True)
    t.pod("w1", cpu=4, node="n1")
    t.pod("w2", cpu=4, node="n2", priority=1)
    t.pod("a", cpu=4, priority=5)

    def keep_n2(q: dict[str, Any]) -> Any:
        return {"NodeNameToMetaVictims": {"n2": q["NodeNameToMetaVictims"]["n2"]}}

    called = run(t, preempt=keep_n2)
    assert set(called[0][1]["NodeNameToMetaVictims"]) == {"n1", "n2"}
    assert {d.pod.name for d in t.decided if isinstance(d, EvictPod)} == {"w2"}


@pytest.mark.parametrize(
    ("victims", "message"),
    [
        ({"n9": {"Pods": [{"UID": "w1"}]}}, "the node 'n9' does not exist"),
        ({"n1": {"Pods": [{"UID": "w2"}]}}, "a victim on node 'n1' does not exist"),
        ({"n2": {"Pods": [{"UID": "strong"}]}}, "a victim on node 'n2' is not of lower priority"),
        ([], "the response has an invalid form: Expected `object | null`, got `array`"),
    ],
)
def test_invalid_victims(victims: Any, message: str) -> None:
    t = trial(preemptVerb="preempt", nodeCacheCapable=True)
    t.pod("w1", cpu=4, node="n1")
    t.pod("w2", cpu=2, node="n2")
    t.pod("strong", cpu=2, node="n2", priority=9)
    t.pod("a", cpu=4, priority=5)
    run(t, preempt=lambda q: {"NodeNameToMetaVictims": victims or ["n1"]})
    assert message in t.messages()["a"]
    assert not any(isinstance(d, EvictPod) for d in t.decided)
    t.check()


@pytest.mark.parametrize("ignorable", [True, False])
@pytest.mark.parametrize(
    "answer",
    [
        Answer(error="status 500"),
        Answer([1]),
        Answer({"error": "no"}),
        Answer({"nodenames": ["n9"]}),
        Answer({"nodenames": "n1"}),
        Answer({"nodes": {"items": [{"metadata": {}}]}}),
        Answer({"failednodes": ["n1"]}),
    ],
)
def test_an_extender_that_fails(answer: Answer, ignorable: bool) -> None:
    t = trial(filterVerb="filter", nodeCacheCapable=True, ignorable=ignorable)
    t.pod("a")
    run(t, filter=answer)
    assert bool(t.places()) is ignorable
    assert ignorable or f'Filter plugin "extender {URL}"' in t.messages()["a"]
    t.check()


def test_prioritize_and_bind_that_fail() -> None:
    t = trial(prioritizeVerb="prioritize", bindVerb="bind", weight=1, ignorable=True)
    t.pod("a")
    run(t, prioritize=Answer(error="hang"), bind=Answer(error="hang"))
    assert t.messages()["a"] == f'running Bind plugin "extender {URL}": {URL}/bind: hang'
    t.check()


def test_managed_resources_ignored_by_the_scheduler() -> None:
    managed = [{"name": "example.com/x", "ignoredByScheduler": True}]
    t = trial(filterVerb="filter", nodeCacheCapable=True, managedResources=managed)
    t.pod("plain")
    assert run(t) == []
    t.pod("a", containers=[{"name": "c", "resources": {"requests": {"example.com/x": "3"}}}])
    assert len(run(t, filter=lambda q: {"NodeNames": q["NodeNames"]})) == 1
    assert t.places().keys() == {"plain", "a"}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, "extenders[0]: Object missing required field `urlPrefix`"),
        ({"urlPrefix": "x"}, "extenders[0], urlPrefix: 'x' is not an http or https URL"),
        ({"urlPrefix": URL, "prioritizeVerb": "p"}, "extenders[0], weight: 0 must be above 0"),
        ({"urlPrefix": URL, "httpTimeout": "x"}, "extenders[0]: "),
    ],
)
def test_errors_name_the_field(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ProfilesConfigurationError) as e:
        load({"extenders": [entry]})
    assert message in str(e.value)
