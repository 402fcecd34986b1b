"""Attempts of profiles decide the same when they are replayed, in each file of a recording."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from tests.scheduler.profiles.trial import node, pod
from tests.simulate.test_replay import gzip_content
from volcano_py.api.core import Pod
from volcano_py.cli.main import main
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.jobs.pre_bind import BindVolume
from volcano_py.scheduler.model.nodes.sample_size import DEFAULT_SAMPLE
from volcano_py.scheduler.model.plan import Bind
from volcano_py.scheduler.pods.feed import Feed
from volcano_py.scheduler.profiles.cluster_events import BindEnded
from volcano_py.scheduler.profiles.configuration import load as load_profiles
from volcano_py.scheduler.profiles.decisions import BindPod, EvictPod
from volcano_py.scheduler.profiles.registry import REGISTRY as PROFILE_REGISTRY
from volcano_py.scheduler.profiles.release import DEFAULT
from volcano_py.scheduler.profiles.scheduler import PodScheduler
from volcano_py.scheduler.recording import recorder as recording
from volcano_py.scheduler.recording.entries import ProfileSettings
from volcano_py.scheduler.recording.recorder import RecordedCluster, Recorder
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.replay import ReplayedAttempt, replay

NAMES = frozenset(("default-scheduler",))
CONF = load("actions: allocate\ntiers:\n- plugins: [{name: predicates}]\n", REGISTRY.actions)
SAMPLED = {"percentageOfNodesToScore": 5}
MANY = 140
"""A number of nodes of which a search evaluates only a part."""


class _Cluster:
    """A model with a profile, changed at random; every tenth step a cycle runs, and a file has three of them."""

    def __init__(self, folder: Path, seed: int, document: dict[str, Any]) -> None:
        self.random = random.Random(seed)
        self.model = RecordedCluster()
        self.scheduler = PodScheduler(load_profiles(document, frozenset(), PROFILE_REGISTRY, DEFAULT), model=self.model)
        self.feed = Feed(self.scheduler, NAMES)
        self.recorder = Recorder(folder, self.model, cycles=3)
        settings = ProfileSettings(document, (), DEFAULT.name)
        self.recorder.set_profiles(settings, lambda: self.scheduler.cluster.order)
        self.scheduler.searches.report = self.recorder.search
        self.pods: dict[str, Pod] = {}
        self.nodes: list[str] = []
        self.now = self.count = 0
        for _ in range(MANY if document else 3):
            self._add_node()

    def run(self, steps: int) -> None:
        for step in range(steps):
            self.now += 1
            if step % 10 == 0:
                self.recorder.begin(CONF, float(self.now), 0, None, None, DEFAULT_SAMPLE)
                report = run_once(self.model, CONF, float(self.now), 0, registry=REGISTRY)
                self.recorder.end(report.plan)
            self._change()
            self.scheduler.tick(float(self.now))
            while (decided := self.scheduler.attempt(float(self.now))) is not None:
                for decision in decided:
                    if isinstance(decision, BindPod):
                        self._put_pod(self._bound(self.pods[decision.pod.key], decision.node))
                        self.scheduler.handle(BindEnded(decision.pod.key, ""), float(self.now))
                    elif isinstance(decision, EvictPod):
                        self._delete_pod(decision.pod.key)
        self.recorder.begin(CONF, float(self.now), 0, None, None, DEFAULT_SAMPLE)
        self.recorder.end(run_once(self.model, CONF, float(self.now), 0, registry=REGISTRY).plan)
        self.recorder.close()

    def _change(self) -> None:
        drawn = self.random.random()
        self.count += 1
        if drawn < 0.2 or len(self.nodes) < 3:
            self._add_node()
        elif drawn < 0.25:
            name = self.nodes.pop(self.random.randrange(len(self.nodes)))
            old = self.model.nodes.objects[self.model.nodes.index[name]]
            self.model.remove("Node", "", name)
            self.feed.changed("Node", old, None, float(self.now))
        elif drawn < 0.35 and self.pods:
            self._delete_pod(self.random.choice(sorted(self.pods)))
        else:
            cpu, priority = self.random.choice((1, 2, 3)), self.random.choice((0, 0, 9))
            self._put_pod(pod(f"p{self.count}", cpu, priority=priority).pod)

    def _add_node(self) -> None:
        self.count += 1
        made = node(f"n{self.count}", self.random.choice((4, 4, 8)))
        self.nodes.append(made.metadata.name)
        self.model.upsert("Node", made)
        self.feed.changed("Node", None, made, float(self.now))

    def _put_pod(self, new: Pod) -> None:
        old = self.pods.get(new.key)
        self.pods[new.key] = new
        self.model.upsert("Pod", new)
        self.feed.changed("Pod", old, new, float(self.now))

    def _bound(self, old: Pod, name: str) -> Pod:
        return msgspec.structs.replace(old, spec=msgspec.structs.replace(old.spec, node_name=name))

    def _delete_pod(self, key: str) -> None:
        old = self.pods.pop(key, None)
        if old is not None:
            self.model.remove("Pod", old.metadata.namespace, old.metadata.name)
            self.feed.changed("Pod", old, None, float(self.now))


@pytest.mark.parametrize("document", [{}, SAMPLED], ids=["all nodes", "a part of the nodes"])
@pytest.mark.parametrize("seed", range(3))
def test_attempts_decide_the_same(tmp_path: Path, seed: int, document: dict[str, Any]) -> None:
    _Cluster(tmp_path, seed, document).run(150)
    files = sorted(tmp_path.iterdir())
    found = [each for file in files for each in replay(file) if isinstance(each, ReplayedAttempt)]
    assert len(files) > 3 and all(each.identical for each in found)
    assert sum(bool(each.outcome.node) for each in found) > 30, "pods find nodes"
    assert any(each.search.start for each in found) if document else any(each.outcome.victims for each in found)


def test_a_different_attempt_is_found(tmp_path: Path) -> None:
    _Cluster(tmp_path, 1, {}).run(40)
    file = sorted(tmp_path.iterdir())[0]
    result = CliRunner().invoke(main, ("replay", str(file), "--verbose"))
    assert result.exit_code == 0 and "attempt default/p" in result.output and "attempts, " in result.output
    bent = gzip_content(file).replace(b'"outcome":{"node":"n', b'"outcome":{"node":"m', 1)
    (tmp_path / "bent").write_bytes(gzip.compress(bent))
    result = CliRunner().invoke(main, ("replay", str(tmp_path / "bent")))
    assert result.exit_code == 1 and '  - {"node":"m' in result.output and '  + {"node":"n' in result.output


def test_attempts_are_written_before_the_end_of_a_cycle_when_there_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "MOST_LINES", 3)
    monkeypatch.setattr(recording, "MOST_WAITING", 10_000)  # on a slow disk more writes wait than are kept by default
    _Cluster(tmp_path, 1, {}).run(60)
    found = [each for file in sorted(tmp_path.iterdir()) for each in replay(file)]
    assert len(found) > 30 and all(each.identical for each in found)


def test_what_is_reserved_for_a_pod_is_recorded_until_the_pod_has_its_node() -> None:
    model = RecordedCluster()
    model.upsert("Pod", pod("p").pod)
    bind = Bind("default", "p", pod("p").pod.metadata.uid, "n", "", steps=(BindVolume("v", "default", "claim", "u"),))

    def reserved() -> int:
        return sum(b'"line":"reserve"' in line for line in model.everything())

    model.reserve(bind)
    assert reserved() == 1
    model.release(bind)
    assert reserved() == 0
    model.reserve(bind)
    model.upsert("Pod", pod("p", node="n").pod)
    assert reserved() == 0
