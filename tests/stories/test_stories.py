"""Stories: a job that waits, its true first blocker, and what helps. Every suggestion is carried out.

A story is a scenario in the notation of `volcano_py.testing.table`, with:

    explain: g                     the job
    first: QueueLimit              the code of its true first blocker
    says: "1 is missing"           words of its sentence
    helps: [raise-limit]           kinds of changes that must be among the suggestions
    nothing helps: true            there must be none
    before: 1                      cycles that run first
    broken: gang                   a plugin that cannot be opened
    then: [VictimsRank]            codes of further blockers
    shard: [n1]                    the nodes of the scheduler's shard, which is hard
    gate: x                        a plugin x that admits no job
    ask: job                       the answer of `vcctl explain job`, podgroup or pod, instead of that of a cycle
    object: {status: {...}}        with `ask`: parts of the object that is explained
    lease: {holderIdentity: x}     with `ask`: the spec of the scheduler's Lease
    cured by: {queues: {a: ...}}   what replaces values of the story; with it, the job starts
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from volcano_py.api.codec import to_manifest
from volcano_py.api.yaml_documents import FAST_LOADER
from volcano_py.cli.explain_answer import Answer
from volcano_py.cli.explain_answer import answer as answer_of
from volcano_py.cli.explain_facts import Facts, lease_cause
from volcano_py.scheduler.explain.explanation import Explanation
from volcano_py.scheduler.explain.table import REASONS, sentence_of
from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.config import Configuration, load
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.framework.session import Session, Shard
from volcano_py.scheduler.model.feature_gates import enabled_gates
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.complete import complete
from volcano_py.simulate.cycles import Simulation
from volcano_py.simulate.explained import explained
from volcano_py.simulate.manifests import as_struct, model_kind
from volcano_py.simulate.snapshot import Snapshot
from volcano_py.simulate.unblock.search import suggestions
from volcano_py.simulate.unblock.suggestion import Suggestion
from volcano_py.simulate.unblock.trials import Edit, Trials
from volcano_py.testing.table import configuration, manifests

NOW = 1_798_761_600.0
"""2027-01-01, for Leases."""
Story = dict[str, Any]
FOLDER = Path(__file__).parent
MAY_BE_WRONG: frozenset[str] = frozenset()
"""Stories whose first blocker is not found, by name; at most 3 of 100."""


def stories() -> Iterator[Story]:
    for path in sorted(FOLDER.glob("*.yaml")):
        yield from yaml.load(path.read_text(), FAST_LOADER)


STORIES = list(stories())


class Gate(Plugin):
    """A plugin that admits no job."""

    def on_session_open(self, session: Session) -> None:
        session.add_job_enqueueable(lambda job: Vote.REJECT)


class Broken(Plugin):
    """A plugin that raises."""

    name = "broken"

    def on_session_open(self, session: Session) -> None:
        raise ValueError("no answer")


def registry(story: Story) -> Registry:
    added = {story[key]: plugin for key, plugin in (("broken", Broken), ("gate", Gate)) if key in story}
    return Registry({**REGISTRY.plugins, **added}, REGISTRY.actions)


def shard(story: Story) -> Shard | None:
    return Shard(frozenset(story["shard"]), True) if "shard" in story else None


def merged(story: Story, changes: Story) -> Story:
    """A story with some values replaced."""
    return {
        **story,
        **{
            key: merged(story[key], value) if isinstance(value, dict) and isinstance(story.get(key), dict) else value
            for key, value in changes.items()
        },
    }


def simulated(story: Story) -> tuple[Simulation, Configuration]:
    gates = enabled_gates(story.get("featureGates") or {})
    simulation = Simulation(manifests(story), features=gates, registry=registry(story), shard=shard(story))
    conf = load(configuration(story.get("conf")), REGISTRY.actions)
    for _ in range(story.get("before", 0)):
        simulation.cycle(conf)
    return simulation, conf


def answer_to(story: Story) -> Answer:
    """The answer of `vcctl explain` about an object of the story."""
    kind, name = story["ask"], story["explain"]
    objects, _ = complete(manifests(story), frozenset(("volcano",)), NOW)
    found: dict[str, list[Any]] = {}
    for o in objects:
        struct = as_struct(o)
        if struct is not None:
            found.setdefault(model_kind(o), []).append(struct)
    subject = next((o for o in objects if o["kind"].lower() == kind and o["metadata"]["name"] == name), {})
    subject = merged({"metadata": {"name": name}, **subject}, story.get("object", {}))
    snapshot = Snapshot(NOW, found, configuration(story.get("conf")))
    group = f"default/{name.rpartition('-')[0] if kind == 'pod' else name}"
    facts = Facts(kind, name, "default", subject, snapshot, group)
    if "lease" in story:
        facts.scheduler = lease_cause("volcano-system/volcano", story["lease"], NOW)
    return answer_of(facts, "volcano", True)


def answer(story: Story) -> tuple[Explanation, list[Suggestion]]:
    simulation, conf = simulated(story)
    trials = Trials(simulation.cluster, conf, simulation.now, registry=registry(story), shard=shard(story))
    uid = f"default/{story['explain']}"
    found = explained(trials, uid)
    return found, suggestions(trials, uid, found.blockers)


def starts_with(story: Story, edits: Iterable[Edit]) -> bool:
    """Whether the job runs after changes were made in a cluster and some cycles have passed."""
    simulation, conf = simulated(story)
    for edit in edits:
        if edit.new is None:
            simulation.drop(edit.kind, edit.key if edit.namespace else f"/{edit.name}".lstrip("/"))
        else:
            simulation.put({"kind": edit.kind, **to_manifest(edit.new)})
    bound: set[str] = set()
    for _ in range(3):
        bound |= set(simulation.cycle(conf).bound)
    name = story["explain"].rpartition("/")[2]
    return any(key.startswith(f"default/{name}-") or key == f"default/{name}" for key in bound)


def test_there_are_sixty_stories_over_many_reasons() -> None:
    assert len(STORIES) >= 60
    assert len({code for s in STORIES for code in (s["first"], *s.get("then", ()))}) >= 50
    assert len({s["name"] for s in STORIES}) == len(STORIES)
    assert len(MAY_BE_WRONG) <= len(STORIES) * 0.03


@pytest.mark.parametrize("story", STORIES, ids=lambda s: s["name"])
def test_the_first_blocker_is_right_and_each_suggestion_works(story: Story) -> None:
    if "ask" in story:
        printed = answer_to(story)
        assert [b.code for b in printed.blockers][:1] == [story["first"]], printed.verdict
        assert story.get("says", "") in printed.verdict
        cured = merged(story, story["cured by"])
        assert answer_to(cured).state == "starting" and starts_with(cured, ())
        return
    found, suggested = answer(story)
    if story["name"] not in MAY_BE_WRONG:
        assert [b.code for b in found.blockers][:1] == [story["first"]], found.verdict
        assert story.get("says", "") in sentence_of(found.blockers[0])
    kinds = {s.kind for s in suggested}
    texts = [f"{s.kind}: {s.text}" for s in suggested]
    assert set(story.get("helps", ())) <= kinds, texts
    assert bool(suggested) is not story.get("nothing helps", False), texts
    for suggestion in suggested:
        assert starts_with(story, suggestion.edits), suggestion.text
    assert set(story.get("then", ())) <= {b.code for b in found.blockers[1:]}, found.blockers
    if "cured by" in story:
        assert starts_with(merged(story, story["cured by"]), ()), "the cure does not help"


if __name__ == "__main__":
    for each in STORIES:
        if "ask" in each:
            printed = answer_to(each)
            mark = "ok " if printed.blockers[0].code == each["first"] else "BAD"
            print(f"{mark} {each['name']}\n      {printed.verdict}")
            continue
        explanation, suggested_ = answer(each)
        codes_ = [b.code for b in explanation.blockers]
        mark = "ok " if codes_[:1] == [each["first"]] else "BAD"
        print(f"{mark} {each['name']}\n      {explanation.verdict}\n      {codes_}")
        for one in suggested_:
            print(f"      * {one.kind}: {one.text}{'' if starts_with(each, one.edits) else '   DOES NOT WORK'}")
    covered = {code for each in STORIES for code in (each["first"], *each.get("then", ()))}
    print(f"\n{len(STORIES)} stories; codes without a story: {', '.join(sorted(REASONS.keys() - covered)) or 'none'}")
