"""Trees follow each change of a group, as if they were derived again, with work that does not grow with the tree."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from tests.scheduler.model.test_group_trees import composite, model, pod, pod_group, shape
from volcano_py.api import gang
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import group_tree, kept_trees
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE, NATIVE
from volcano_py.scheduler.model.plan import NativeGroupStatus

ROOT = f"default/{COMPOSITE}/root"
PARENTS = ("", "root", "c1", "c2", "c3", "c4", "missing")


def random_group(r: random.Random) -> tuple[str, gang.AnyGroup]:
    """A group with a random parent: trees that are too deep, circles and invalid fields are among them."""
    parent, least = r.choice(PARENTS), r.choice((1, 1, 2, 3, 3, 0))
    if r.random() < 0.5:
        kind, group = pod_group(r.choice("abcdef"), parent, least)
    else:
        kind, group = composite(r.choice(("root", "c1", "c2", "c3", "c4")), parent, least)  # type: ignore[assignment]
    group.metadata.creation_timestamp = r.choice((None, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"))
    return kind, group


def trees(cluster: Cluster) -> dict[str, Any]:
    return {uid: job.tree for uid, job in cluster.jobs.items() if job.tree is not None}


def names(cluster: Cluster) -> dict[str, list[str]]:
    return {g: sorted(t.key for t in cluster.native_groups.tasks(f"default/{g}")) for g in "abcdef"}


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 600), marks=pytest.mark.slow)])
def test_kept_trees_equal_those_that_are_derived_again(seeds: range) -> None:
    levels: Counter[int] = Counter()
    for seed in seeds:
        r = random.Random(seed)
        pods = [pod(f"{g}-{i}", g) for g in "abcdef" for i in range(2)]
        cluster = model(*pods)
        objects: dict[tuple[str, str], gang.AnyGroup] = {}
        for _ in range(30):
            if objects and r.random() < 0.2:
                kind, name = r.choice(sorted(objects))
                del objects[kind, name]
                cluster.remove(kind, "default", name)
            else:
                kind, group = random_group(r)
                objects[kind, group.metadata.name] = group
                put(cluster, kind, group)
            if r.random() < 0.1:
                kind, name = r.choice(sorted(objects) or [(COMPOSITE, "root")])
                written(cluster, objects, kind, name)
            again = model(*pods)
            for (kind, _), group in objects.items():
                put(again, kind, group)
            assert trees(cluster) == trees(again), seed
            assert shape(cluster) == shape(again), seed
            assert names(cluster) == names(again), seed
            levels.update(tree.levels for tree in trees(cluster).values())
    assert levels[3] and levels[4] and max(levels) == group_tree.MOST_LEVELS


def put(cluster: Cluster, kind: str, group: gang.AnyGroup) -> None:
    """Add a group; the cache sets one with an invalid field aside."""
    try:
        cluster.upsert(kind, group)
    except ValueError:
        cluster.remove(kind, "default", group.metadata.name)


def written(cluster: Cluster, objects: dict[tuple[str, str], gang.AnyGroup], kind: str, name: str) -> None:
    """A condition that the session writes."""
    group = objects.get((kind, name))
    if group is not None and cluster.native_groups.get(kind, group.metadata.key) is not None:
        conditions = [{"type": "PodGroupInitiallyScheduled", "status": "False", "reason": "Unschedulable"}]
        cluster.assume(NativeGroupStatus("default", name, f"uid-{name}", conditions, kind=kind))
        status = msgspec.structs.replace(
            group.status,
            conditions=cluster.native_groups.get(kind, group.metadata.key).status.conditions,  # type: ignore[union-attr]
        )
        objects[kind, name] = msgspec.structs.replace(group, status=status)


def test_a_tree_that_grows_by_one_group_after_another_is_derived_in_linear_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work: Counter[str] = Counter()
    for name in ("tree_of", "with_child"):
        function = getattr(group_tree, name)

        def counted(*args: Any, function: Any = function, name: str = name) -> Any:
            work[name] += 1
            return function(*args)

        monkeypatch.setattr(group_tree, name, counted)
        monkeypatch.setattr(kept_trees, name, counted)
    count = 1000
    cluster = model(composite("root"), composite("half", "root", least=count))
    for i in range(count):
        cluster.upsert(*pod_group(f"g{i:04}", "half", least=1))
        cluster.upsert(*pod(f"g{i:04}-0", f"g{i:04}"))
    for i in range(count):  # again, as after a change of the status
        cluster.upsert(*pod_group(f"g{i:04}", "half", least=2))
    job = cluster.jobs[ROOT]
    assert job.min_available == 2 * count and job.tree is not None
    assert len(job.tree.below[0].below) == len(job.tasks) == count
    # For each change: the group itself, and the two groups above it.
    assert work["tree_of"] <= 2 * count + 10
    assert work["with_child"] <= 2 * 2 * count + 10
    for i in range(count):
        cluster.remove(NATIVE, "default", f"g{i:04}")
    assert work["with_child"] <= 3 * 2 * count + 10
    assert cluster.jobs[ROOT].tree is not None and not cluster.jobs[ROOT].tree.below[0].below
