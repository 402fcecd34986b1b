"""The plugin extender: the effect of responses, which the tests put into the mailbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from volcano_py.scheduler.plugins.extender.mailbox import ExtenderAnswer, Mailbox
from volcano_py.testing import Cluster, Decision

URL = "http://extender"


class Extended:
    """A cluster of two nodes whose scheduler calls an extender; `answers` returns the response to each call."""

    def __init__(self, answers: Callable[[str, Any], Any], **arguments: Any) -> None:
        self.cluster = Cluster()
        self.cluster.add_node("a", cpu=4)
        self.cluster.add_node("b", cpu=4)
        self.called: list[str] = []
        self._answers = answers
        self._arguments = {"extender.urlPrefix": URL, **{f"extender.{k}": v for k, v in arguments.items()}}

    @property
    def mail(self) -> Mailbox:
        return self.cluster._simulation.cluster.keep(Mailbox)

    def schedule(self, actions: str = "enqueue, allocate, backfill") -> Decision:
        """Run one cycle, then add the responses to its calls."""
        self.mail.carried = True
        tiers = [["priority", "gang", {"extender": self._arguments}], ["predicates"]]
        decision = self.cluster.schedule(actions, tiers=tiers)
        now = self.cluster._simulation.now
        for key, question in self.mail.outbox.items():
            self.called.append(key[1])
            answer = self._answers(key[1], question.body())
            error = str(answer) if isinstance(answer, Exception) else ""
            self.mail.answers[key] = ExtenderAnswer(now, None if error else answer, error)
        self.mail.outbox.clear()
        return decision


def only_b(verb: str, body: Any) -> Any:
    return {"status": "" if body["node"]["Name"] == "b" else "not here", "code": 2}


def test_the_first_cycle_sends_the_call_and_the_next_one_uses_the_response() -> None:
    it = Extended(only_b, predicateVerb="predicate")
    it.cluster.add_job("g", pods=2, cpu=1)
    first = it.schedule()
    assert not first.bound
    assert "has not responded yet" in first.pending["g"]
    assert it.called == ["predicate"] * 2, "one call for each node, not for each pod"
    assert it.schedule().bound == {"g-0": "b", "g-1": "b"}


def test_one_call_for_all_nodes() -> None:
    def answers(verb: str, body: Any) -> Any:
        return {"statuses": {n["Name"]: {"status": "" if n["Name"] == "a" else "full"} for n in body["nodes"]}}

    it = Extended(answers, predicateNodesVerb="predicates")
    it.cluster.add_job("g", pods=2, cpu=1)
    it.schedule()
    assert it.called == ["predicates"]
    assert it.schedule().bound == {"g-0": "a", "g-1": "a"}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(OSError("refused"), id="fails"),
        pytest.param([], id="no object"),
        pytest.param({"status": 7}, id="wrong type"),
    ],
)
@pytest.mark.parametrize("ignorable", [True, False])
def test_a_call_that_fails_rejects_unless_it_may_be_ignored(answer: Any, ignorable: bool) -> None:
    it = Extended(lambda verb, body: answer, predicateVerb="predicate", ignorable=ignorable)
    it.cluster.add_job("g", cpu=1)
    it.schedule()
    second = it.schedule()
    assert bool(second.bound) is ignorable
    assert ignorable or "the extender failed" in second.pending["g"]


def test_scores() -> None:
    it = Extended(lambda verb, body: {"nodeScore": {"b": 5, "unknown": 100}}, prioritizeVerb="prioritize")
    it.cluster.add_job("g", cpu=1)
    first = it.schedule()
    assert "has not responded yet" in first.pending["g"], "no pod is placed without the scores"
    assert it.schedule().bound["g-0"] == "b"
    it.cluster.add_job("h", cpu=1)
    assert it.schedule().bound["h-0"] == "b", "an equal pod uses the same response"
    assert it.called == ["prioritize"]


def test_a_simulation_which_makes_no_calls_does_not_wait_for_scores() -> None:
    it = Extended(lambda verb, body: {}, prioritizeVerb="prioritize")
    it.cluster.add_job("g", cpu=1)
    tiers = [["priority", "gang", {"extender": it._arguments}], ["predicates"]]
    assert it.cluster.schedule("enqueue, allocate, backfill", tiers=tiers).bound


def test_pods_with_different_labels_have_separate_responses() -> None:
    def answers(verb: str, body: Any) -> Any:
        team = body["task"]["Pod"]["metadata"]["labels"]["team"]
        return {"statuses": {n["Name"]: {"status": "" if n["Name"] == team else "not here"} for n in body["nodes"]}}

    it = Extended(answers, predicateNodesVerb="predicateNodes")
    for name, team in (("g", "b"), ("h", "a"), ("i", "b")):
        it.cluster.add_job(name, cpu=1, labels={"team": team})
    it.schedule()
    assert it.called == ["predicateNodes"] * 2
    assert it.schedule().bound == {"g-0": "b", "h-0": "a", "i-0": "b"}


def test_a_node_without_a_status_is_named_in_the_reason() -> None:
    it = Extended(lambda verb, body: {"statuses": {"b": {"status": ""}}}, predicateNodesVerb="predicateNodes")
    it.cluster.add_job("g", cpu=3)
    it.cluster.add_job("h", cpu=3)
    it.schedule()
    (waiting,) = it.schedule().pending.values()
    assert "the extender failed: statuses has no entry for this node" in waiting


@pytest.mark.parametrize("score", [-1, "many", None, float("nan")])
def test_a_response_with_an_invalid_score_is_ignored(score: Any) -> None:
    it = Extended(lambda verb, body: {"nodeScore": {"b": score, "a": 3}}, prioritizeVerb="prioritize")
    it.cluster.add_job("g", cpu=1)
    it.schedule()
    assert it.schedule().bound["g-0"] in ("a", "b")


def test_calls_are_sent_only_for_managed_resources() -> None:
    it = Extended(only_b, predicateVerb="predicate", managedResources=["example.com/chip"])
    it.cluster.add_job("g", cpu=1)
    assert it.schedule().bound
    assert not it.called


def test_victims() -> None:
    def answers(verb: str, body: Any) -> Any:
        return {"status": 1, "victims": [t for t in body["evictees"] if t["Name"] == "low-1"]}

    it = Extended(answers, preemptableVerb="preemptable")
    it.cluster.add_job("low", pods=2, min_member=0, cpu=4, priority=1)
    it.schedule()
    it.cluster.add_job("top", cpu=4, priority=100)
    actions = "enqueue, allocate, preempt"
    assert it.schedule(actions).evicted == []
    assert it.schedule(actions).evicted == ["low-1"]


def test_admission_waits_for_the_response() -> None:
    it = Extended(lambda verb, body: {"status": 1}, jobEnqueueableVerb="enqueueable")
    manifest = {
        "kind": "PodGroup",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"minMember": 1, "queue": "default", "minResources": {"cpu": "1"}},
        "status": {"phase": "Pending"},
    }
    it.cluster.add_queue("default", weight=1)
    it.cluster.add(manifest)
    phase = lambda: it.cluster._simulation.cluster.jobs["default/p"].pod_group.status.phase  # type: ignore[union-attr]  # noqa: E731
    it.schedule()
    assert phase() == "Pending"
    it.schedule()
    assert phase() == "Inqueue"


def test_an_overused_queue_gets_nothing() -> None:
    it = Extended(lambda verb, body: {"overused": body["queue"]["Name"] == "default"}, queueOverusedVerb="overused")
    it.cluster.add_job("g", cpu=1)
    assert not it.schedule().bound
    assert not it.schedule().bound


@pytest.mark.parametrize(("parity", "bound"), [(False, False), (True, True)])
def test_a_job_is_not_ready_while_the_extender_fails(parity: bool, bound: bool) -> None:
    it = Extended(lambda verb, body: OSError("down"), jobReadyVerb="ready")
    it.cluster.add_job("g", cpu=1)
    tiers = [[{"extender": it._arguments}], ["predicates"]]
    found = {}
    for _ in range(3):
        settings = {"deviations": "parity"} if parity else {}
        found |= it.cluster.schedule("enqueue, allocate", tiers=tiers, **settings).bound
        for key in it.mail.outbox:
            it.mail.answers[key] = ExtenderAnswer(it.cluster._simulation.now, error="down")
        it.mail.outbox.clear()
    assert bool(found) is bound


def test_notices() -> None:
    it = Extended(only_b, allocateFuncVerb="allocated", onSessionCloseVerb="closed")
    it.cluster.add_job("g", cpu=1)
    bound = it.schedule().bound["g-0"]
    urls = [n.url for n in it.mail.notices]
    assert urls == [f"{URL}/allocated", f"{URL}/closed"]
    task = it.mail.notices[0].body()["task"]
    assert (task["Name"], task["TransactionContext"]["NodeName"]) == ("g-0", bound)


def test_an_extender_that_fails_to_open_and_must_not_be_ignored() -> None:
    it = Extended(lambda verb, body: OSError("down"), onSessionOpenVerb="open", predicateVerb="predicate")
    it.cluster.add_job("g", cpu=1)
    it.schedule()
    assert it.schedule().bound


def test_bad_arguments_are_warnings() -> None:
    it = Extended(only_b, httpTimeout="soon", predicateVerb="predicate", urlPrefix="extender")
    warnings = "\n".join(it.schedule().warnings)
    assert "extender.httpTimeout is 'soon'" in warnings
    assert "extender.urlPrefix must begin with http" in warnings
