"""What-if differences are those of two full runs, on random clusters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import Phase, given, settings
from hypothesis import strategies as s

from tests import strategies
from tests.simulate.test_snapshot import NOW, conf_of, secretive, snapshot_of
from volcano_py.api.core import Pod
from volcano_py.cli.main import main
from volcano_py.simulate.complete import complete
from volcano_py.simulate.cycles import Simulation
from volcano_py.simulate.manifests import ManifestError
from volcano_py.simulate.snapshot import save
from volcano_py.simulate.what_if import CYCLES, Run, differences, nodes_to_add, run, simulation_of

Manifest = dict[str, Any]
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "new", "namespace": "default"},
    "spec": {
        "minAvailable": 2,
        "schedulerName": "volcano",
        "tasks": [
            {
                "name": "work",
                "replicas": 2,
                "template": {
                    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
                },
            }
        ],
    },
}


def full_run(manifests: list[Manifest], tiers: list[list[Any]]) -> tuple[dict[str, int], dict[str, int], set[str]]:
    """By job: the cycle in which it starts, evicted pods; jobs that wait in the end. Without what_if.run."""
    simulation = Simulation(manifests, now=NOW, raw=True)
    started: dict[str, int] = {}
    evicted: dict[str, int] = {}
    waiting: set[str] = set()
    for cycle in range(CYCLES):
        jobs = {task.key: task for task in simulation.cluster.tasks.values()}
        result = simulation.cycle(conf_of(tiers))
        for pod in result.bound:
            started.setdefault(group_of(jobs[pod].pod), cycle + 1)
        for pod in result.evicted:
            job = group_of(jobs[pod].pod)
            evicted[job] = evicted.get(job, 0) + 1
        waiting = set(result.waiting)
    return started, evicted, waiting


def group_of(pod: Pod) -> str:
    group = (pod.metadata.annotations or {}).get("scheduling.k8s.io/group-name", pod.metadata.name)
    return f"{pod.metadata.namespace}/{group}"


def agree(manifests: list[Manifest], tiers: list[list[Any]], others: list[list[Any]], nodes: str) -> int:
    """Compare for one cluster; returns the number of differences."""
    snapshot = snapshot_of(manifests)
    added = [*nodes_to_add(nodes, snapshot), JOB]
    before = run(simulation_of(snapshot), conf_of(tiers))
    after = run(simulation_of(snapshot, added), conf_of(others))
    found = differences(before, after)

    made, _ = complete(manifests, frozenset(("volcano",)), NOW)
    old = full_run(made, tiers)
    around = [m for m in made if m["kind"] in ("Queue", "PriorityClass", "Namespace")]
    more, _ = complete([*around, *added], frozenset(("volcano",)), NOW)
    known = {(m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"]) for m in made}
    new = full_run(
        [*made, *(m for m in more if (m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"]) not in known)],
        others,
    )
    by_change: dict[str, set[str]] = {}
    for difference in found:
        by_change.setdefault(difference.change, set()).add(difference.job)
    named = {job for run_ in (old, new) for job in run_[0]}
    assert by_change.get("starts", set()) & named == {j for j in named if j in new[0] and j not in old[0]}
    assert by_change.get("does not start", set()) & named == {j for j in named if j in old[0] and j not in new[0]}
    both = {j for j in named if j in old[0] and j in new[0]}
    assert by_change.get("waits longer", set()) & named == {j for j in both if new[0][j] > old[0][j]}
    assert by_change.get("starts earlier", set()) & named == {j for j in both if new[0][j] < old[0][j]}
    more_evicted = {j for j in {*old[1], *new[1]} if new[1].get(j, 0) > old[1].get(j, 0)}
    assert by_change.get("is evicted", set()) == more_evicted
    fewer_evicted = {j for j in {*old[1], *new[1]} if new[1].get(j, 0) < old[1].get(j, 0)}
    assert by_change.get("is not evicted", set()) == fewer_evicted
    assert by_change.get("waits", set()) == {j for j in new[2] - old[2] if j not in {**old[0], **new[0]}}
    return len(found)


def compared(clusters: int) -> int:
    """The number of differences in that many random clusters."""
    total = 0

    @given(strategies.clusters(), strategies.plugin_tiers(), strategies.plugin_tiers(), s.sampled_from((1, 2, 4)))
    @settings(max_examples=clusters, phases=[Phase.generate])
    def one(manifests: list[Manifest], tiers: list[list[Any]], others: list[list[Any]], count: int) -> None:
        nonlocal total
        total += agree(manifests, tiers, others, f"{count}xcpu=4,memory=8Gi")

    one()
    return total


def test_differences_are_those_of_two_full_runs() -> None:
    assert compared(12) > 12


@pytest.mark.slow
def test_differences_are_those_of_two_full_runs_on_two_hundred_clusters() -> None:
    assert compared(200) > 200


def test_nothing_is_different_without_a_change() -> None:
    snapshot = snapshot_of(secretive())
    conf = conf_of([["gang"], ["predicates"]])
    assert differences(run(simulation_of(snapshot), conf), run(simulation_of(snapshot), conf)) == []


def test_differences_say_what_was_and_what_would_be() -> None:
    old = Run({"a": 1, "b": 2}, {"a": 1, "b": 3}, {"c": 1}, {"d": "no room", "e": "no room"})
    new = Run({"b": 3, "d": 1}, {"b": 2, "d": 1}, {"b": 1}, {"a": "later", "e": "quota", "f": "new"})
    assert [(d.job, d.change, d.before, d.after) for d in differences(old, new)] == [
        ("a", "does not start", "cycle 1", "later"),
        ("b", "waits longer", "cycle 2", "cycle 3"),
        ("b", "gets fewer pods", "3 bound", "2 bound"),
        ("b", "is evicted", "0 pods evicted", "1 pods evicted"),
        ("c", "is not evicted", "1 pods evicted", "0 pods evicted"),
        ("d", "starts", "no room", "cycle 1"),
        ("e", "waits for another reason", "no room", "quota"),
        ("f", "waits", "", "new"),
    ]


def test_added_nodes_are_like_a_node_or_have_a_shape() -> None:
    snapshot = snapshot_of(secretive())
    like = nodes_to_add("2xacme-node", snapshot)
    assert [n["metadata"]["name"] for n in like] == ["added-1", "added-2"]
    assert like[0]["spec"]["taints"] and like[0]["metadata"]["labels"]["kubernetes.io/hostname"] == "added-1"
    (made,) = nodes_to_add("1xcpu=8,nvidia.com/gpu=2", snapshot)
    assert made["status"]["allocatable"] == {"cpu": "8", "nvidia.com/gpu": "2", "pods": "110"}
    for wrong in ("four", "0xcpu=1", "1xnobody", "1xcpu=", "1xcpu=fast", "1x=4", f"{10**9}xcpu=1"):
        with pytest.raises(ManifestError, match="nodes to add"):
            nodes_to_add(wrong, snapshot)


def simulate(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ("simulate", "run", *arguments), prog_name="volcano-py")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def test_the_command_prints_what_would_be_different(tmp_path: Path) -> None:
    file, job, conf = tmp_path / "s", tmp_path / "job.yaml", tmp_path / "conf"
    save(snapshot_of([o for o in secretive() if o["kind"] != "Node"]), file)
    job.write_text(json.dumps(JOB))
    node = "1xcpu=8,memory=8Gi"
    code, out, _ = simulate("--from", str(file), "--add-nodes", node, "--job", str(job), "-o", "json")
    found = {d["job"]: d["change"] for d in json.loads(out)["differences"]}
    assert code == 0 and [change for name, change in found.items() if "new" in name] == ["starts"]
    code, out, _ = simulate("--from", str(file), "--add-nodes", node, "--job", str(job))
    assert code == 0 and "starts" in out and "cycle 1" in out and "started jobs 0 → 1, evicted pods 0 → 0" in out
    code, out, _ = simulate("--from", str(file))
    assert code == 0 and out == "No difference in 3 cycles.\n"

    conf.write_text("actions: nothing")
    (tmp_path / "half").write_bytes(file.read_bytes()[:-9])
    for arguments, says in (
        (("--from", str(tmp_path / "half")), "is truncated"),
        (("--from", str(tmp_path / "none")), "No such file"),
        (("--from", str(file), "--config", str(conf)), 'failed to find Action "nothing"'),
        (("--from", str(file), "--add-nodes", "x"), "write COUNTxSHAPE"),
        (("--from", str(file), "--jsonl"), "cannot be combined"),
        (("--add-nodes", "1xcpu=1"), "set it with --from"),
    ):
        code, out, err = simulate(*arguments)
        assert code == 2 and says in err and len(err.strip().splitlines()) == 1, (arguments, err)
