"""Stories: a job that waits, its true first blocker, and what helps. Every suggestion is carried out.

A story is a scenario in the notation of `volcano_py.testing.table`, with:

    explain: g                     the job
    first: QueueLimit              the code of its true first blocker
    says: "1 is missing"           words of its sentence
    helps: [raise-limit]           kinds of changes that must be among the suggestions
    nothing helps: true            there must be none
    before: 1                      cycles that run first
    broken: gang                   a plugin that cannot be opened
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from volcano_py.api.codec import to_manifest
from volcano_py.scheduler.explain.explanation import Explanation
from volcano_py.scheduler.explain.table import sentence_of
from volcano_py.scheduler.framework.config import Configuration, load
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.feature_gates import enabled_gates
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation
from volcano_py.simulate.explained import explained
from volcano_py.simulate.unblock.search import suggestions
from volcano_py.simulate.unblock.suggestion import Suggestion
from volcano_py.simulate.unblock.trials import Trials
from volcano_py.testing.table import configuration, manifests

Story = dict[str, Any]
FOLDER = Path(__file__).parent
MAY_BE_WRONG: frozenset[str] = frozenset()
"""Stories whose first blocker is not found, by name; at most 3 of 100."""


def stories() -> Iterator[Story]:
    for path in sorted(FOLDER.glob("*.yaml")):
        yield from yaml.safe_load(path.read_text())


STORIES = list(stories())


class Broken(Plugin):
    """A plugin that raises."""

    name = "broken"

    def on_session_open(self, session: Session) -> None:
        raise ValueError("no answer")


def registry(story: Story) -> Registry:
    if "broken" not in story:
        return REGISTRY
    return Registry({**REGISTRY.plugins, story["broken"]: Broken}, REGISTRY.actions)


def simulated(story: Story) -> tuple[Simulation, Configuration]:
    gates = enabled_gates(story.get("featureGates") or {})
    simulation = Simulation(manifests(story), features=gates, registry=registry(story))
    conf = load(configuration(story.get("conf")), REGISTRY.actions)
    for _ in range(story.get("before", 0)):
        simulation.cycle(conf)
    return simulation, conf


def answer(story: Story) -> tuple[Explanation, list[Suggestion]]:
    simulation, conf = simulated(story)
    trials = Trials(simulation.cluster, conf, simulation.now, registry=registry(story))
    uid = f"default/{story['explain']}"
    found = explained(trials, uid)
    return found, suggestions(trials, uid, found.blockers)


def starts_with(story: Story, suggestion: Suggestion) -> bool:
    """Whether the job runs after its changes were made in a cluster and some cycles have passed."""
    simulation, conf = simulated(story)
    for edit in suggestion.edits:
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
    assert len({s["first"] for s in STORIES}) >= 30
    assert len({s["name"] for s in STORIES}) == len(STORIES)
    assert len(MAY_BE_WRONG) <= len(STORIES) * 0.03


@pytest.mark.parametrize("story", STORIES, ids=lambda s: s["name"])
def test_the_first_blocker_is_right_and_each_suggestion_works(story: Story) -> None:
    found, suggested = answer(story)
    if story["name"] not in MAY_BE_WRONG:
        assert [b.code for b in found.blockers][:1] == [story["first"]], found.verdict
        assert story.get("says", "") in sentence_of(found.blockers[0])
    kinds = {s.kind for s in suggested}
    texts = [f"{s.kind}: {s.text}" for s in suggested]
    assert set(story.get("helps", ())) <= kinds, texts
    assert bool(suggested) is not story.get("nothing helps", False), texts
    for suggestion in suggested:
        assert starts_with(story, suggestion), suggestion.text


if __name__ == "__main__":
    for each in STORIES:
        explanation, suggested_ = answer(each)
        codes_ = [b.code for b in explanation.blockers]
        mark = "ok " if codes_[:1] == [each["first"]] else "BAD"
        print(f"{mark} {each['name']}\n      {explanation.verdict}\n      {codes_}")
        for one in suggested_:
            print(f"      * {one.kind}: {one.text}{'' if starts_with(each, one) else '   DOES NOT WORK'}")
